# Attempts of a job whose launch may begin anew (docs/resilience.md): what its supervisor does between them. It keeps the result back until
# the lifeline has said that no other attempt comes, or somebody has told the job to end.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154

# again_begin: the FIFO for the lifeline's words, and the guard: it ends the ranks when their lease is over and the lifeline is dead. The guard
# is a process apart, without the job's cookie. A spare then waits for its first attempt; again_begin fails where there is none.
again_begin() {
  attempt=1
  again_guard
  [ -e spare ] || return 0
  printf 'spare\n' >&5 # whoever starts it waits no longer
  [ -p .next ] && again_wait || return 1
  oom_source
  oom_kills
  before=${oom:--}
}

again_guard() {
  read -r again_lease again_hub <again && mkfifo .next && command exec 6<>.next || return 0
  (
    unset REMOTE_JOB_ID
    exec 5>&- 6>&- 7>&- </dev/null >/dev/null 2>&1
    # shellcheck disable=SC2086
    $apart sh "$remote_program/lib/again_guard.sh" "$id" "$again_lease" "$again_hub" &
  )
}

# again_next: after the end $end of an attempt, waits for the next one. Fails where there is none.
again_next() {
  [ ! -e stop ] && [ -p .next ] || return 1
  printf '%s\n' "$attempt $end" >.ended && mv -f .ended ended || return 1
  printf 'ended\n' >&5 # its lifeline looks
  again_wait || return 1
  # What tells of the last attempt's failure, and its container, must not be there in the next one.
  jobs=..
  ! box_of "$id" || remove_box "$id"
  rm -rf failures
  before=$oom
  rm -f oom
  printf '%200s\n' '' >.note
}

# again_wait: for the lifeline's word. Fails where it is that no attempt comes.
again_wait() {
  while :; do
    read -r again_word again_number <&6 || continue # a signal
    case $again_word in
      end) return 1 ;;
      go)
        case $again_number in
          '' | *[!0-9]*) continue ;;
        esac
        attempt=$again_number
        REMOTE_JOB_ID=$id
        export REMOTE_JOB_ID
        return 0
        ;;
    esac
  done 2>/dev/null
}
