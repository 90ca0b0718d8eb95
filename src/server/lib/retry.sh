# A point of a sweep that may run again when it has failed (--retry): what its supervisor does then. It is the same job, in the same folder, with
# the same outputs. The file `retry` says how often.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154

# retry_next: after the end of a try, whether another one follows.
retry_next() {
  [ "$kind $code" != 'exit 0' ] && [ ! -e stop ] && read -r retry_most <retry || return 1
  retry_count=$((${retry_count:-0} + 1))
  [ "$retry_count" -le "$retry_most" ] || return 1
  # What the try has left behind must not live beside the next one.
  sh "$remote_program/lib/ender.sh" 15 5 again "$id" >/dev/null 2>&1 </dev/null || return 1
  [ ! -e stop ] || return 1
  printf 'remote: the point begins again (retry %s of %s) after %s %s\n' "$retry_count" "$retry_most" "$kind" "$code" >>job.err
  before=$oom
  rm -f oom
  printf '%200s\n' '' >.note
  REMOTE_JOB_ID=$id SWEEP_RETRY=$retry_count
  export REMOTE_JOB_ID SWEEP_RETRY
}
