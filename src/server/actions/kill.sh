#!/bin/sh
# Ends jobs and proves it: kill_begin SIGNAL GRACE_S BY, kill_one ID CLAIM(0|1) for each, kill_finish. All jobs of a call are
# ended side by side. CLAIM: it may not have started yet, and then not even its project's folder need be there. With $status_too, status.sh
# goes on with the answer, and $proven is set when nothing lives of any of the jobs.
# shellcheck disable=SC2034,SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"

kill_begin() {
  # a loss of the connection must not stop this half-way
  trap : HUP PIPE
  trap cannot_start EXIT
  look_for_room
  signal=$1 grace=$2 by=$3
  # Ends an attempt of a launch that may begin anew, and not its jobs: nothing is put on record, and supervisors stay.
  keep=
  [ "$by" != again ] || keep=1
  [ "$signal" != 9 ] || grace=0
  targets='' members_local=''
  used=
  kill_proven=1
}

# kill_refused ID: for $reason; kill_none ID: it never starts
kill_refused() {
  kill_proven=
  say "kill $1 refused 0 $reason"
}
kill_none() {
  kill_proven=
  say "kill $1 none 0"
}

# kill_due ID CLAIM: whether there is something to end; else it has said how the job is.
kill_due() {
  phase=starting reason=
  if facts "$1"; then
    [ "$f_end" = never ] || state_of "$1" brief
  elif [ -n "$no_forks" ]; then
    reason="its folder is not to be seen, and $no_forks"
    kill_refused "$1"
    return 1
  elif carries_cookie "$1"; then
    phase=running f_sid=- # which session is its own is not known
  elif [ "$2" != 1 ] && unseen "$1"; then
    kill_refused "$1"
    return 1
  fi
  if [ "$phase" = starting ] && [ -z "$f_sup" ]; then
    # not there, or not yet: from now on it never starts, unless its supervisor was quicker
    if [ "$f_end" = never ] || claim "$1"; then
      kill_none "$1"
      return 1
    fi
    nap 0.1
    if ! facts "$1"; then
      unseen "$1" || reason="cannot write in $jobs: no right to, or the disk is full"
      kill_refused "$1"
      return 1
    fi
  fi
  if [ "$f_end" = never ] || [ "$f_sup" = claimed ]; then
    kill_none "$1"
    return 1
  fi
  case $phase:$f_end in
    unknown:*)
      kill_refused "$1"
      return 1
      ;;
    rebooted:* | ended:)
      leave_init_file "$jobs/$1"
      say "kill $1 ended 0"
      return 1
      ;;
  esac
}

# record_kill ID: that it is ended, before the first signal. Sets $rs_mine when this one's record stands.
record_kill() {
  rs_mine=
  [ -z "$f_end$keep" ] || return 0
  read_ms
  record_stop "$signal $by $ms" 2>/dev/null
  # that it is not alone, before the first signal, for the one whose record stands
  [ -n "$rs_mine" ] || create "$f_dir/stop.too" "$signal $by $ms"
  again_over
  # Nobody but this one is left to tell how it ended.
  if [ -z "$no_forks" ] && [ "$f_backend" = local ] && ! alive "$f_sup" "$f_sup_start" && stat_of $$; then
    (umask 077 && printf '%s %s\n' $$ "$st_start" >"$f_dir/ending") 2>/dev/null
  fi
}

kill_one() {
  kill_due "$1" "$2" || return 0
  record_kill "$1"
  targets="$targets $1"
  for_backend "$f_backend" "$1"
  [ "$f_backend" = local ] || f_pid= # its own backend knows it
  store "had_$1" "$f_end"
  store "count_$1" 0
  store "stop_$1" "$rs_mine"
  store "sup_$1" "$f_sup"
  store "sup_start_$1" "$f_sup_start"
  store "boot_$1" "$f_boot"
  store "sid_$1" "$f_sid"
  store "main_$1" "$f_pid"
  store "main_start_$1" "$f_pid_start"
}

# again_over: tells a supervisor that may be waiting for another attempt that there is none.
again_over() {
  [ ! -p "$f_dir/.next" ] || { printf 'end\n' 1<>"$f_dir/.next"; } 2>/dev/null
}

# record_stop TEXT: the first one that asked stays. The disk may be full, so it is written into the room that the
# supervisor took for it; who renames that first, has it. Sets $rs_mine when it is this one.
record_stop() {
  if [ -n "$no_forks" ]; then
    create "$f_dir/stop" "$1" && rs_mine=1
  elif mv "$f_dir/.stop" "$f_dir/.stop.$$"; then
    printf '%s\n' "$1" 1<>"$f_dir/.stop.$$" && ln "$f_dir/.stop.$$" "$f_dir/stop" && rs_mine=1
    rm -f "$f_dir/.stop.$$"
  else
    (
      umask 077
      set -C
      printf '%s\n' "$1" >"$f_dir/stop"
    ) && rs_mine=1
  fi
  if [ -z "$rs_mine" ] && [ -z "$no_forks" ] && [ -e "$f_dir/job.sh" ] && ! [ -e "$f_dir/stop" ] && ! second_file "${f_dir##*/}.stop"; then
    own_uid
    write_second "${f_dir##*/}.stop" "$1" && rs_mine=1
  fi
}

# look_for_suspects: what may be of the jobs, as their backends tell, into $suspects (PID:START:ID …).
look_for_suspects() {
  suspects=
  lk_members=$members
  for lk_backend in $used; do
    recall "ids_$lk_backend"
    # shellcheck disable=SC2086
    "${lk_backend}_members" suspects $recalled
  done
  members=$lk_members
}

# look HOW: the living processes of the jobs, as their backends find them: into $members, with HOW `all` (looks at
# everything) or `new` (a quick look between); into $closing, with HOW `closing`: what ends by itself after the members.
look() {
  if [ "$1" = closing ]; then
    closing=
    [ -z "$keep" ] || return 0
    for lk_backend in $used; do
      recall "ids_$lk_backend"
      # shellcheck disable=SC2086
      "${lk_backend}_members" closing $recalled
    done
    return
  fi
  [ "$1" = new ] || look_for_room # there may be some by now
  every=
  for lk_backend in $used; do
    members=
    recall "ids_$lk_backend"
    # shellcheck disable=SC2086
    "${lk_backend}_members" "$1" $recalled
    store "members_$lk_backend" "$members"
    every="$every$members"
  done
  members=$every
}

# send SIGNAL (a number): to every member that has not had it.
send() {
  for sd_backend in $used; do
    recall "members_$sd_backend"
    # shellcheck disable=SC2086
    "${sd_backend}_signal" "$1" $recalled
  done
}

# signalled ID: what a backend says of each process that it has sent a first signal.
signalled() {
  recall "count_$1"
  store "count_$1" $((recalled + 1))
}

# freeze: stops all members, so that a job that starts processes as fast as they are ended does so no longer.
freeze() {
  for fr_try in 1 2; do
    for fr_member in $members; do
      case $fr_member in
        [0-9]*) kill -s STOP "${fr_member%%:*}" 2>/dev/null ;;
      esac
    done
    look all
  done
}

# Signals, waits, looks again, until nothing is left or the time is over.
kill_all() {
  read_clock
  deadline=$((clock + grace * 100))
  ending=$signal
  pause=0.02
  idle=0
  after_kill=180
  look all
  send "$signal"
  while :; do
    read_clock
    look closing
    if [ -z "$members$closing" ]; then
      look all # the last look, with everything we have
      [ -n "$members" ] || return
    fi
    if [ "$clock" -ge "$deadline" ]; then
      if [ "$ending" = 9 ] && [ -n "$final" ]; then
        look all # a look may take long, and what it saw have ended since
        return
      fi
      ending=9
      final=1
      pause=0.02
      look all
      [ -z "$no_forks" ] || freeze
      send 9
      read_clock # looks may take long
      deadline=$((clock + after_kill)) # for processes: with the pauses not more than 2 s
    fi
    idle=$((idle + 1))
    if [ -z "$members" ] && [ $((idle % 5)) != 0 ]; then
      nap 0.01 # for supervisors alone, which are writing their results
      continue
    fi
    nap "$pause"
    case $pause in
      0.02) pause=0.05 ;;
      *) pause=0.1 ;;
    esac
    look new
    send "$ending"
  done
}

# One survivor as a line: pid, state, user, name. What is no process is a word with a colon.
survivor() {
  case $2 in
    [!0-9]*)
      say "survivor $1 ${2%:*}"
      return
      ;;
  esac
  IFS=:
  # shellcheck disable=SC2086
  set -- "$1" $2
  IFS=$blanks
  alive "$2" "$3" || return
  plain "$st_comm"
  if [ -n "$no_forks" ]; then
    set -- "$1" "$2"
  else
    set -- "$1" "$2" "$(stat -c %U "/proc/$2" 2>/dev/null)"
  fi
  case ${3:-?} in
    *[!A-Za-z0-9._-]*) set -- "$1" "$2" '?' ;;
  esac
  say "survivor $1 $2 $st_state $3 $plain"
}

# suspect ID MEMBER: the same for what may be of the job.
suspect() {
  sp_id=$1
  IFS=:
  # shellcheck disable=SC2086
  set -- $2
  IFS=$blanks
  [ "$3" = "$sp_id" ] && alive "$1" "$2" || return
  plain "$st_comm"
  [ -n "$login" ] || [ -n "$no_forks" ] || login=$(id -un 2>/dev/null)
  case ${login:-?} in
    *[!A-Za-z0-9._-]*) login='?' ;;
  esac
  say "suspect $3 $1 its+files+may+not+be+read,+but+it+began+while+the+job+ran,+and+has+no+parent $st_state ${login:-?} $plain"
}

# Dead processes of the jobs whose GPU memory is not yet given back, into $holders (PID:ID …), where there is a
# GPU to ask. The driver may need a moment.
gpu_holders() {
  for gh_try in 1 2 3 4; do
    [ "$gh_try" = 1 ] || nap 0.5
    holders=
    gpu_pids 5
    for gh_pid in $gpu_pids; do
      recall "mine_$gh_pid"
      [ -n "$recalled" ] && holders="$holders $gh_pid:${recalled#*:}"
    done
    [ -n "$holders" ] || return 0
  done
}

# left_of ID MEMBER…: those that are the job's and still there, into $left.
left_of() {
  lf_id=$1
  shift
  left=
  for lf_member; do
    case $lf_member in
      [!0-9]*":$lf_id") left="$left $lf_member" ;;
      *":$lf_id")
        lf_process=${lf_member%:*}
        alive "${lf_process%%:*}" "${lf_process#*:}" && left="$left $lf_member"
        ;;
    esac
  done
}

# record_survivors ID MEMBERS HOLDERS: for status, which is not to say that a job has ended while they live, or hold GPU
# memory. By rename, so that nobody reads half of it.
record_survivors() {
  if [ -z "$2$3" ]; then
    [ ! -e "$jobs/$1/survivors" ] || { printf '' >"$jobs/$1/survivors"; } 2>/dev/null
    [ ! -e "$jobs/$1/survivors" ] || [ -n "$no_forks" ] || rm -f "$jobs/$1/survivors"
    return
  fi
  [ -z "$no_forks" ] || return
  (
    umask 077
    {
      for rs_member in $2; do
        rs_process=${rs_member%:*}
        printf '%s %s\n' "${rs_process%%:*}" "${rs_process#*:}"
      done
      for rs_pid in $3; do
        printf '%s gpu\n' "$rs_pid"
      done
    } >"$jobs/$1/.survivors.$$" && mv -f "$jobs/$1/.survivors.$$" "$jobs/$1/survivors"
  ) 2>/dev/null
}

# wake_lifeline ID: a lifeline that somebody has stopped (SIGSTOP) cannot see that its ranks have ended, and would stay for ever.
wake_lifeline() {
  wl_pid=
  read -r wl_pid wl_start _ 2>/dev/null <"$jobs/$1/lifeline.pid" || return 0
  ! alive "$wl_pid" "$wl_start" || [ "$st_state" != T ] || kill -s CONT "$wl_pid" 2>/dev/null
}

# kill_told ID: says what came of it. Fails where something is left.
kill_told() {
  id=$1
  recall "had_$id" && had=$recalled
  recall "count_$id" && count=$recalled
  recall "stop_$id" && mine=$recalled
  recall "main_$id" && main=$recalled
  last=
  [ -z "$main" ] || recall "sent_$main" && last=${recalled#*:}
  # It had ended before, also where only what it left behind got a signal: then its end is not this kill's.
  if [ "$count" = 0 ] || { [ -n "$main" ] && [ -z "$last" ]; }; then
    had=1
  fi
  # shellcheck disable=SC2086
  left_of "$id" $members $closing
  held=
  for holder in $holders; do
    [ "${holder##*:}" = "$id" ] && held="$held ${holder%%:*}"
  done
  record_survivors "$id" "$left" "$held"
  if [ -n "$left$held" ]; then
    say "kill $id survivors $count"
    for member in $left; do
      survivor "$id" "$member"
    done
    for pid in $held; do
      say "survivor $id $pid X ? (gone, but its GPU memory is still held)"
    done
    return 1
  fi
  facts "$id"
  [ -n "$f_end" ] || state_of "$id" brief
  if [ -z "$f_end$had$keep" ] && [ "$phase" != ended ]; then
    # its supervisor is dead; this is the only one left to tell
    put_result "$id" signal "${last:-$signal}" kill
  fi
  [ -n "$keep" ] || leave_init_file "$jobs/$id" # where its supervisor is dead
  wake_lifeline "$id"
  if [ -n "$had" ]; then
    take_back_stop
    say "kill $id ended $count"
  else
    say "kill $id killed $count"
  fi
  for member in $suspects; do
    suspect "$id" "$member"
  done
  return 0
}

# take_back_stop: of a job that had ended before. Two may end a job at once, such as a lifeline and who follows the launch: then the signal
# was the other one's, which relies on this record.
take_back_stop() {
  if [ -n "$mine" ] && [ -z "$no_forks" ] && [ ! -e "$f_dir/stop.too" ]; then
    rm -f "$f_dir/stop" 2>/dev/null
    ! second_file "$id.stop" || rm -f "$second"
  fi
  [ -n "$mine" ] || [ -n "$no_forks" ] || rm -f "$f_dir/stop.too" 2>/dev/null # it was not this one's signal either
}

kill_finish() {
  blanks=$IFS
  final='' login='' kill_left=
  if [ -n "$targets" ]; then
    kill_all
    gpu_holders
    look_for_suspects
  fi
  for kf_id in $targets; do
    kill_told "$kf_id" || kill_left=1 kill_proven=
  done
  if [ -n "${status_too-}" ]; then
    proven=$kill_proven scanned=
    return
  fi
  trap - EXIT
  say end
}
