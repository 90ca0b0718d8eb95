#!/bin/sh
# Ends jobs and proves it: kill_begin SIGNAL GRACE_S BY, kill_one ID for each, kill_finish. All jobs of a call are
# ended side by side.
#
# A process belongs to a job when one of these says so, and never when it carries another job's cookie:
# its cookie; the recorded pid and start time; job.out or job.err open for writing; its parent, session or process
# group belonging to the job; having belonged to it a moment ago. What is looked at in a round is valid in that
# round only: values are kept as ROUND:VALUE, so that nothing has to be cleared.
# shellcheck disable=SC2154

kill_begin() {
  # a loss of the connection must not stop this half-way
  trap : HUP PIPE
  signal=$1 grace=$2 by=$3
  [ "$signal" != 9 ] || grace=0
  stat_of self
  own_pgrp=$st_pgrp own_sid=$st_sid
  real_jobs=$(cd "$jobs" 2>/dev/null && pwd -P)
  targets=' '
  round=0
  line_end='
'
}

kill_one() {
  if ! facts "$1" || [ -z "$f_sup" ]; then
    # not there, or not yet: from now on it never starts, unless its supervisor was quicker
    if [ "$f_end" = never ] || claim "$1"; then
      say "kill $1 none 0"
      return
    fi
    nap 0.1
    facts "$1" || give_up "cannot write in $jobs: no right to, or the disk is full"
  fi
  [ -x "$f_dir/" ] || give_up "job $1 is another user's: its folder cannot be read"
  if [ "$f_end" = never ] || [ "$f_sup" = claimed ]; then
    say "kill $1 none 0"
    return
  fi
  if [ -n "$f_boot" ] && [ "$f_boot" != "$boot" ]; then
    say "kill $1 ended 0"
    return
  fi
  [ -n "$f_end" ] || record_stop "$signal $by $(now)" 2>/dev/null
  targets="$targets$1 "
  eval "sup_$1=\$f_sup sup_start_$1=\$f_sup_start sid_$1=\$f_sid main_$1=\$f_pid had_$1=\$f_end count_$1=0 quiet_$1="
  [ -n "$f_sup" ] && eval "mine_$f_sup=\$f_sup_start:\$1"
  [ -n "$f_pid" ] && eval "mine_$f_pid=\$f_pid_start:\$1"
}

# record_stop TEXT: the first one that asked stays. The disk may be full, so it is written into the room that the
# supervisor took for it; who renames that first, has it.
record_stop() {
  if mv "$f_dir/.stop" "$f_dir/.stop.$$"; then
    printf '%s\n' "$1" 1<>"$f_dir/.stop.$$" && ln "$f_dir/.stop.$$" "$f_dir/stop"
    rm -f "$f_dir/.stop.$$"
  else
    (
      umask 077
      set -C
      printf '%s\n' "$1" >"$f_dir/stop"
    )
  fi
}

# Hundredths of a second since the boot, into $clock: the wall clock may be set at any time.
read_clock() {
  read -r clock _ </proc/uptime
  clock=${clock%.*}${clock#*.}
}

# own PID ID PGRP SID: notes that a process belongs to the job, and with it its session and group. A job without
# a session of its own shares them with strangers: there only those count that its own processes lead.
own() {
  eval "own_$1=$round:$2 lone=\$sid_$2"
  if [ "$4" -gt 1 ] && [ "$4" != "$own_sid" ] && { [ "$lone" != - ] || [ "$4" = "$1" ]; }; then
    eval "session_$4=$round:$2"
  fi
  if [ "$3" -gt 1 ] && [ "$3" != "$own_pgrp" ] && { [ "$lone" != - ] || [ "$3" = "$1" ]; }; then
    eval "group_$3=$round:$2"
  fi
}

# Who has job.out or job.err of an asked job open for writing (a follower reads), into writes_PID.
scan_writers() {
  # shellcheck disable=SC2012
  wr_found=$(
    ls -l /proc/[0-9]*/fd 2>/dev/null |
      sed -n -e '/^\/proc\//h' -e "/^l.w.* -> .*\/job\.[eo][ru][rt]\$/{G;p;}"
  )
  wr_id=
  IFS=$line_end
  for wr_line in $wr_found; do
    IFS=$blanks
    case $wr_line in
      /proc/*)
        wr_pid=${wr_line#/proc/}
        [ -n "$wr_id" ] && eval "writes_${wr_pid%%/*}=$round:$wr_id"
        wr_id=
        ;;
      *)
        wr_file=${wr_line#* -> }
        wr_file=${wr_file%/job.*}
        wr_id=${wr_file##*/}
        case "$wr_file $targets" in
          "$real_jobs/$wr_id "*" $wr_id "*) ;;
          *) wr_id= ;;
        esac
        ;;
    esac
  done
  IFS=$blanks
}

# look [files]: finds every process of every asked job, into $members (PID:START:ID …) without the supervisors.
look() {
  round=$((round + 1))
  scan_cookies
  for lk_word in $cookies; do
    eval "cookie_${lk_word%%:*}=$round:${lk_word#*:}"
  done
  [ -n "$1" ] && scan_writers
  lk_stats=$(cat /proc/[0-9]*/stat 2>/dev/null)
  rows=
  lk_part=
  set -f
  IFS=$line_end
  for lk_line in $lk_stats; do
    IFS=$blanks
    if ! stat_line "$lk_part$lk_line"; then
      lk_part="$lk_part$lk_line "
      continue
    fi
    lk_part=
    if [ "$st_pid" -le 1 ] || [ "$st_pgrp" = "$own_pgrp" ] || [ "$st_sid" = "$own_sid" ]; then
      continue
    fi
    case $st_state in
      [ZXx]) continue ;;
    esac
    eval "lk_cookie=\${cookie_$st_pid:-} lk_mine=\${mine_$st_pid:-} lk_writes=\${writes_$st_pid:-}"
    lk_id=
    if [ "${lk_cookie%%:*}" = $round ]; then
      lk_id=${lk_cookie#*:}
      case $targets in
        *" $lk_id "*) ;;
        *) continue ;; # another job's: not ours, whatever else says so
      esac
    elif [ "${lk_mine%%:*}" = "$st_start" ]; then
      lk_id=${lk_mine#*:}
    elif [ "${lk_writes%%:*}" = $round ]; then
      lk_id=${lk_writes#*:}
    fi
    rows="$rows $st_pid:$st_ppid:$st_pgrp:$st_sid:$st_start"
    [ -n "$lk_id" ] && own "$st_pid" "$lk_id" "$st_pgrp" "$st_sid"
  done
  IFS=$blanks
  lk_more=1
  while [ -n "$lk_more" ]; do
    lk_more=
    members=
    for lk_row in $rows; do
      IFS=:
      # shellcheck disable=SC2086
      set -- $lk_row
      IFS=$blanks
      eval "lk_own=\${own_$1:-}"
      if [ "${lk_own%%:*}" != $round ]; then
        eval "lk_by=\"\${own_$2:-} \${session_$4:-} \${group_$3:-}\""
        lk_id=
        for lk_own in $lk_by; do
          [ "${lk_own%%:*}" = $round ] && lk_id=${lk_own#*:} && break
        done
        [ -n "$lk_id" ] || continue
        own "$1" "$lk_id" "$3" "$4"
        lk_own=$round:$lk_id
        lk_more=1
      fi
      lk_id=${lk_own#*:}
      eval "lk_sup=\$sup_$lk_id:\$sup_start_$lk_id"
      if [ "$1:$5" != "$lk_sup" ]; then
        members="$members $1:$5:$lk_id"
        eval "mine_$1=$5:$lk_id"
      fi
    done
  done
  set +f
}

# send SIGNAL (a number): to every member that has not had it, then CONT, without which a stopped process never sees it.
# A last look at pid and start time keeps the time in which a pid could be reused to microseconds.
send() {
  for sd_member in $members; do
    IFS=:
    # shellcheck disable=SC2086
    set -- "$1" $sd_member
    IFS=$blanks
    eval "sd_had=\${sent_$2:-}"
    if [ "$1" != 9 ] && [ "$sd_had" = "$3:$1" ]; then
      continue
    fi
    if alive "$2" "$3" && kill "-$1" "$2" 2>/dev/null; then
      [ "$1" = 9 ] || kill -s CONT "$2" 2>/dev/null
      [ "${sd_had%%:*}" = "$3" ] || eval "count_$4=\$((count_$4 + 1))"
      eval "sent_$2=\$3:\$1"
    fi
  done
}

# supervisors: looks after those whose job is gone, into $waiting (how many still live). They end by themselves
# within milliseconds; one that has not after two seconds (it was stopped, or its disk is full) is ended too.
supervisors() {
  waiting=0
  for sp_id in $targets; do
    eval "sp_pid=\$sup_$sp_id sp_start=\$sup_start_$sp_id sp_since=\$quiet_$sp_id"
    alive "$sp_pid" "$sp_start" || continue
    waiting=$((waiting + 1))
    case "$members " in
      *":$sp_id "*) continue ;;
    esac
    kill -s CONT "$sp_pid" 2>/dev/null
    if [ -z "$sp_since" ]; then
      eval "quiet_$sp_id=\$clock"
    elif [ $((clock - sp_since)) -ge 150 ]; then
      kill -s KILL "$sp_pid" 2>/dev/null
    fi
  done
}

# Signals, waits, looks again, until nothing is left or the time is over.
kill_all() {
  read_clock
  deadline=$((clock + grace * 100))
  ending=$signal
  pause=0.02
  idle=0
  look files
  send "$signal"
  while :; do
    read_clock
    supervisors
    if [ -z "$members" ] && [ $waiting = 0 ]; then
      look files # the last look, with everything we have
      [ -n "$members" ] || return
    fi
    if [ "$clock" -ge "$deadline" ]; then
      [ "$ending" = 9 ] && [ -n "$final" ] && return
      ending=9
      final=1
      deadline=$((clock + 180)) # with the pauses not more than 2 s
      pause=0.02
      look files
      send 9
    fi
    idle=$((idle + 1))
    if [ -z "$members" ] && [ $((idle % 5)) != 0 ]; then
      nap 0.01 # supervisors alone, which are writing their results
      continue
    fi
    nap "$pause"
    case $pause in
      0.02) pause=0.05 ;;
      *) pause=0.1 ;;
    esac
    look
    send "$ending"
  done
}

# One survivor as a line: pid, state, user, name.
survivor() {
  IFS=:
  # shellcheck disable=SC2086
  set -- "$1" $2
  IFS=$blanks
  alive "$2" "$3" || return
  # shellcheck disable=SC2046,SC2012
  set -- "$1" "$2" $(ls -ld "/proc/$2" 2>/dev/null)
  say "survivor $1 $2 $st_state ${5:-?} $(printf %s "$st_comm" | tr '\000-\037\177' '?')"
}

# Dead processes of the jobs whose GPU memory is not yet given back, into $holders (PID:ID …), where there is a
# GPU to ask. The driver may need a moment.
gpu_holders() {
  for gh_try in 1 2 3 4; do
    [ "$gh_try" = 1 ] || nap 0.5
    holders=
    gpu_pids 5
    for gh_pid in $gpu_pids; do
      eval "gh_mine=\${mine_$gh_pid:-}"
      [ -n "$gh_mine" ] && holders="$holders $gh_pid:${gh_mine#*:}"
    done
    [ -n "$holders" ] || return 0
  done
}

# record_survivors ID MEMBERS HOLDERS: for status, which is not to say that a job has ended while they live, or hold GPU
# memory. By rename, so that nobody reads half of it.
record_survivors() {
  if [ -z "$2$3" ]; then
    [ ! -e "$jobs/$1/survivors" ] || rm -f "$jobs/$1/survivors"
    return
  fi
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

kill_finish() {
  blanks=$IFS
  members=
  final=
  if [ "$targets" != ' ' ]; then
    kill_all
    gpu_holders
  fi
  for id in $targets; do
    eval "had=\$had_$id count=\$count_$id main=\$main_$id"
    left=
    for member in $members; do
      [ "${member##*:}" = "$id" ] && left="$left $member"
    done
    eval "sup=\$sup_$id sup_start=\$sup_start_$id"
    alive "$sup" "$sup_start" && left="$left $sup:$sup_start:$id"
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
      continue
    fi
    facts "$id"
    if [ -z "$f_end" ]; then
      # its supervisor is dead; this is the only one left to tell
      last=
      [ -n "$main" ] && eval "last=\${sent_$main:-}"
      last=${last#*:}
      put_result "$id" "signal ${last:-$signal} $(now)"
    fi
    if [ -n "$had" ] || [ "$count" = 0 ]; then
      say "kill $id ended $count"
    else
      say "kill $id killed $count"
    fi
  done
  say end
}
