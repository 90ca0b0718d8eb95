#!/bin/sh
# Answers about jobs: status_begin, status_one ID CLAIM(0|1) for each, status_end. With $proven, kill.sh has just proven that nothing of them
# lives: their processes are not looked for again.
# shellcheck disable=SC2034,SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/lifeline_run.sh
. "$remote_program/lib/lifeline_run.sh"
# shellcheck source=src/server/lib/peer_words.sh
. "$remote_program/lib/peer_words.sh"

status_begin() {
  look_for_room
  trap cannot_start EXIT
  sb_now=
  # busybox's date knows no parts of a second
  [ -n "$no_forks" ] || sb_now=$(date +%s.%3N)
  case $sb_now in
    *[!0-9.]*) sb_now= ;;
    [0-9]*.[0-9][0-9][0-9]) ;;
    *) sb_now= ;;
  esac
  [ -n "$sb_now" ] || read_now
  say "now ${sb_now:-$now}"
  revived='' abandoned='' accounted=''
}

# await_lifeline ID: waits until the lifeline of the job's launch on this server has told how it is, or the job is over;
# 4 s at most.
await_lifeline() {
  al_begin=$(now)
  while [ ! -s "$jobs/$1/lifeline" ] && [ ! -e "$jobs/$1/result" ] && [ $(($(now) - al_begin)) -lt 4 ]; do
    nap 0.02
  done
}

# status_sizes ID…: bytes of job.out and job.err of all asked jobs, in one process, into out_ID and err_ID; when the newer one was written, into
# last_ID (seconds); and for last_words when job.err and result were written, into wrote_ID and result_ID, where this stat tells parts of a
# second.
status_sizes() {
  [ -d "$jobs" ] && [ -z "$no_forks" ] || return 0
  cd "$jobs" || return 0
  sz_files=
  for sz_id; do
    sz_files="$sz_files $sz_id/job.out $sz_id/job.err $sz_id/result"
  done
  # shellcheck disable=SC2046,SC2086
  set -- $(stat -L -c '%n %s %.3Y' $sz_files 2>/dev/null)
  if [ $# -eq 0 ]; then
    for sz_file in $sz_files; do
      [ -f "$sz_file" ] && set -- "$@" "$sz_file" "$(($(wc -c <"$sz_file")))" -
    done
  fi
  while [ $# -ge 3 ]; do
    case $1 in
      */job.out)
        store "out_${1%/*}" "$2"
        store "last_${1%/*}" "${3%%[!0-9]*}"
        ;;
      */job.err)
        store "err_${1%/*}" "$2"
        store "wrote_${1%/*}" "$3"
        sz_last=${3%%[!0-9]*}
        recall "last_${1%/*}"
        [ "${recalled:-0}" -ge "${sz_last:-0}" ] || store "last_${1%/*}" "$sz_last"
        ;;
      */result) store "result_${1%/*}" "$3" ;;
    esac
    shift 3
  done
}

# phase_of ID CLAIM: as state_of. $phase is `none` for a job that never started and, with CLAIM, never will.
phase_of() {
  phase=none pid='' supervised=1 left='' leftovers='' reason=''
  if ! facts "$1"; then
    if [ -n "$no_forks" ]; then
      phase=unknown reason=$no_forks
      return
    fi
    if carries_cookie "$1"; then
      phase=running pid=$ck_pid
      reason="its folder is not there or cannot be seen"
      return
    fi
    [ "$2" = 1 ] && claim "$1" && return
    if ! facts "$1"; then
      if unseen "$1"; then
        phase=unknown
      elif [ "$2" = 1 ]; then
        phase=unknown reason="cannot write in $jobs"
      fi
      return
    fi
  fi
  if [ "$f_end" = never ] || { [ -z "$f_end" ] && [ "$f_sup" = claimed ]; }; then
    return
  fi
  if [ "$2" = 1 ] && [ -z "$f_sup" ] && [ -z "$f_end" ]; then
    state_of "$1" all
    [ "$phase" = starting ] || return
    # an empty supervisor file is one whose writer died between making and filling it
    if [ -z "$pid" ] && claim "$1"; then
      phase=none
    elif [ -z "$pid" ] && [ -e "$f_dir/supervisor" ]; then
      phase=abandoned
    fi
    pid=
    return
  fi
  if [ -n "${proven-}" ] && [ "$f_backend" = local ]; then
    state_of "$1" brief
  else
    state_of "$1"
  fi
}

# last_lines ID…: what these jobs wrote last, for top.
last_lines() {
  for ll_id; do
    ll_file=$jobs/$ll_id/job.out
    # shellcheck disable=SC3013  # dash, bash and busybox have it
    [ "$jobs/$ll_id/job.err" -nt "$ll_file" ] && [ -s "$jobs/$ll_id/job.err" ] && ll_file=$jobs/$ll_id/job.err
    [ -s "$ll_file" ] || continue
    # progress bars end their lines with a carriage return
    ll_text=$(tail -c 400 "$ll_file" 2>/dev/null | tr '\r\000' '\n ' | sed -n -e '/[^[:space:]]/h' -e '${' -e x -e p -e '}')
    [ -z "$ll_text" ] || printf '@remote1 last %s |%s\n' "$ll_id" "$ll_text"
  done
}

# status_end: what is to be waited for, and the end of the answer. A supervisor file that stays empty for a second while
# nothing carries the cookie is nobody's; all of them are waited for together.
status_end() {
  if [ -n "$abandoned" ]; then
    sleep 1
    scanned=
    for se_id in $abandoned; do
      facts "$se_id"
      if [ -z "$f_sup" ] && [ -z "$f_end" ] && ! carries_cookie "$se_id"; then
        put_result "$se_id" never 0 claim
      fi
      status_one "$se_id" 0
    done
  fi
  # shellcheck disable=SC2086  # words
  [ -z "$accounted" ] || slurm_usage $accounted
  trap - EXIT
  say end
}

# last_words ID: when the job last wrote to its stderr, where this stat tells parts of a second, and by a clock that is the server's: on a
# network file system it may be another's, which the time of the result shows. The line that divides attempts (docs/resilience.md) is none of its.
last_words() {
  if [ -e "$f_dir/attempt" ] && [ -z "$no_forks" ]; then
    case $(tail -c 1000 "$f_dir/job.err" | tail -n 1) in
      'remote: the ranks begin anew ('*) return 0 ;;
    esac
  fi
  recall "result_$1"
  if [ -z "$recalled" ]; then # it has ended since all of them were looked at
    [ -z "$no_forks" ] || return
    status_sizes "$1"
  fi
  recall "result_$1"
  lw_result=$recalled
  recall "wrote_$1"
  case $recalled:$lw_result in
    *[!0-9.:]*) ;;
    *.[0-9][0-9][0-9]:*.[0-9][0-9][0-9])
      lw_off=$((${lw_result%.*} - ${f_ms:-0} / 1000))
      [ $lw_off -lt -2 ] || [ $lw_off -gt 2 ] || line="$line wrote=$recalled"
      ;;
  esac
}

# lifeline_of ID: how the lifeline of the job's launch is, into $lifeline, and as what key of the answer, into $lifeline_key; empty where
# all is well, or there is none. One that has died is started again; what it has to say then is the next answer's.
lifeline_of() {
  lifeline='' lifeline_key=lifeline
  read -r lifeline 2>/dev/null <"$f_dir/lifeline"
  [ "$lifeline" != ok ] || lifeline=
  ll_pid=
  read -r ll_pid ll_start ll_boot 2>/dev/null <"$f_dir/lifeline.pid"
  if [ -n "$ll_pid" ] && [ -z "$no_forks" ] && [ "$ll_boot" = "$boot" ] && ! alive "$ll_pid" "$ll_start"; then
    # one start for all ranks of the launch
    if [ "$revived" != "$ll_pid:$ll_start" ]; then
      revived=$ll_pid:$ll_start
      revive_lifeline "$1"
    fi
    lifeline=$revival lifeline_key=$revival_key
  fi
}

# revive_lifeline ID: starts it again, as start.sh did; how that went into $revival_key (`restarted` or `dead`) and $revival.
revive_lifeline() {
  rv_python='' rv_program='' rv_ender=''
  while read -r rv_key rv_value; do
    case $rv_key in
      python) rv_python=$rv_value ;;
      program) rv_program=${rv_value#"$jobs/.bin/"} ;;
      ender) rv_ender=${rv_value#"$jobs/.bin/"} ;;
    esac
  done 2>/dev/null <"$f_dir/lifeline.request"
  revival_key=dead revival='its request is not there any more'
  [ -n "$rv_program" ] || return
  revival="the programs in $jobs/.bin are not as they were"
  # files of a version, or of an older build, which had them in .bin itself
  for rv_file in "$rv_program" "$rv_ender"; do
    case $rv_file in
      /* | *..*) return ;;
    esac
    for rv_path in "$jobs/.bin" "$jobs/.bin/${rv_file%%/*}" "$jobs/.bin/$rv_file"; do
      [ -O "$rv_path" ] && ! [ -L "$rv_path" ] || return
    done
  done
  revival="$rv_python is not there any more"
  command -v "$rv_python" >/dev/null 2>&1 || return
  (
    cd -P "$jobs" && run_lifeline "$rv_python" "$rv_program" "$rv_ender"
  ) <"$f_dir/lifeline.request" >/dev/null 2>&1 &
  revival='it ends at once'
  rv_tries=0
  while [ $rv_tries -lt 100 ]; do
    read -r ll_pid ll_start ll_boot 2>/dev/null <"$f_dir/lifeline.pid"
    if [ "$ll_pid:$ll_start" != "$revived" ] && alive "$ll_pid" "$ll_start"; then
      revival_key=restarted revival=1
      return
    fi
    rv_tries=$((rv_tries + 1))
    nap 0.02
  done
}

# waits_of ID: a line for each of its threads that waits in a debugger (debugger.py). Of a process in a container, only that knows the id.
waits_of() {
  wo_count=0
  for wo_record in "$f_dir/debug"/[0-9]*; do
    case ${wo_record##*/} in
      *[!0-9.]*) continue ;;
    esac
    wo_pid=''
    IFS=' ' read -r wo_pid wo_start wo_rank wo_line wo_error wo_file 2>/dev/null <"$wo_record" || continue
    case $wo_pid:$wo_line:${wo_rank#-} in
      *[!0-9:]* | :* | *::* | *:*:*:*) continue ;;
    esac
    case $wo_error in
      *[!A-Za-z0-9_.?-]* | '') continue ;;
    esac
    [ $((${#wo_line} > 9 || ${#wo_rank} > 9 || ${#wo_file} > 4000 || wo_count >= 64)) = 0 ] || continue
    [ -e "$f_dir/container" ] || alive "$wo_pid" "$wo_start" || continue
    wo_count=$((wo_count + 1))
    say "waits $1 ${wo_record##*/} $wo_rank $wo_line $wo_error |$wo_file"
  done
}

# word TEXT: the text as one word, into $word_text.
word() {
  wd_rest=$1 word_text=
  while [ -n "$wd_rest" ]; do
    wd_next=${wd_rest#?}
    wd_char=${wd_rest%"$wd_next"}
    case $wd_char in
      ' ') word_text=$word_text+ ;;
      [A-Za-z0-9._:,@+/~-] | '[' | ']' | '(' | ')') word_text=$word_text$wd_char ;;
      *) word_text="$word_text?" ;;
    esac
    wd_rest=$wd_next
  done
}

# stop_of ID: who asked for its end, into $number, $by and $at (milliseconds; older builds wrote seconds).
stop_of() {
  read -r number by at 2>/dev/null <"$f_dir/stop" ||
    { second_file "$1.stop" && read -r number by at 2>/dev/null <"$second"; } || return
  case $at in
    '' | *[!0-9]*) return 1 ;;
    ???????????) at=${at}000 ;;
    ??????????) at=${at}000 ;;
  esac
}

# raised_of: when an exception of it was raised that then waited for a debugger, onto $line (debugger.py).
raised_of() {
  ra_at=
  read -r ra_at 2>/dev/null <"$f_dir/raised" || return 0
  case $ra_at in
    *[!0-9]* | ????????????????*) ;;
    ????*) line="$line raised=$ra_at" ;;
  esac
}

# hung_of: when its launch was found to stand still, onto $line (lifeline_evidence.py).
hung_of() {
  hu_at='' hu_seconds='' hu_moved=''
  read -r hu_at hu_seconds hu_moved 2>/dev/null <"$f_dir/hung" || return
  [ $((${#hu_at} > 15 || ${#hu_seconds} > 9 || ${#hu_moved} > 15)) = 0 ] || return
  case $hu_at:$hu_seconds:$hu_moved in
    *[!0-9:]*) return ;;
    ????*:?*:) line="$line hung=${hu_at%???}:$hu_seconds:" ;;
    ????*:?*:????*) line="$line hung=${hu_at%???}:$hu_seconds:${hu_moved%???}" ;;
  esac
}

# bring_home ID: what the second place has of an ended job goes into its folder, where that can be written by now.
bring_home() {
  [ -z "$no_forks" ] && second_file "$1.result" && [ -w "$f_dir" ] || return
  (
    umask 077
    for bh_name in stop result; do
      if ! [ -e "$f_dir/$bh_name" ] && second_file "$1.$bh_name"; then
        cat "$second" >"$f_dir/.$bh_name.$$" && mv -f "$f_dir/.$bh_name.$$" "$f_dir/$bh_name" || exit 1
      fi
    done
  ) 2>/dev/null && drop_second "$1"
}

status_one() {
  phase_of "$1" "$2"
  if [ "$phase" = abandoned ]; then
    abandoned="$abandoned $1"
    return
  fi
  line="job $1 $phase"
  if [ "$phase" != none ]; then
    [ "$f_backend" = local ] || line="$line backend=$f_backend"
    if [ -n "$reason" ]; then
      word "$reason"
      line="$line reason=$word_text"
    fi
    [ -n "$pid" ] && line="$line pid=$pid"
    [ "$supervised" = 1 ] || line="$line supervised=0"
    [ -z "$left" ] || line="$line left=1"
    [ -z "$leftovers" ] || line="$line leftovers=$leftovers"
    case $phase in
      gone | rebooted) leave_init_file "$f_dir" ;; # there was nobody to do it
    esac
    if [ "$phase" = ended ]; then
      bring_home "$1"
      line="$line end=$f_end:$f_code:$f_ms:$f_by"
      # without processes of its own this script cannot look for those of the job
      [ -z "$no_forks" ] || [ -n "$leftovers" ] || line="$line unseen=1"
      [ "$f_backend" != slurm ] || [ -n "$no_forks" ] || accounted="$accounted $1:${f_ms%???}"
      if [ "$f_end $f_code" != 'exit 0' ] || [ -e "$f_dir/stop" ]; then
        last_words "$1"
        raised_of
        [ -n "$no_forks" ] || ! tells_of_peer "$f_dir/job.err" || line="$line peer=1"
      fi
    fi
    since=
    read -r since 2>/dev/null <"$f_dir/started" && [ -n "$since" ] && line="$line started=$since"
    number='' by='' at=''
    stop_of "$1" && line="$line stop=$number by=$by at=$at"
    [ -e "$f_dir/oom" ] && line="$line oom=1"
    [ ! -e "$f_dir/hung" ] || hung_of
    if [ "$phase" = running ] || [ "$phase" = queued ]; then
      recall "last_$1"
      [ "${recalled:-0}" = 0 ] || line="$line wrote=$recalled.000"
      lifeline_of "$1"
      if [ -n "$lifeline" ]; then
        word "$lifeline"
        line="$line $lifeline_key=$word_text"
      fi
    elif [ -e "$f_dir/notify" ]; then
      lifeline_of "$1" # it is to tell of the end
    fi
    recall "out_$1"
    line="$line out=${recalled:-0}"
    recall "err_$1"
    line="$line err=${recalled:-0}"
  fi
  say "$line"
  [ "$phase" != running ] || ! [ -d "$f_dir/debug" ] || waits_of "$1"
  [ "$phase" = none ] || ! [ -s "$f_dir/attempts" ] || attempts_of "$1"
}

# attempts_of ID: a line for each attempt before the present one (lifeline_acts.py).
attempts_of() {
  ao_count=0
  while IFS=' ' read -r ao_number ao_began ao_failed ao_next ao_cause ao_code ao_rank ao_left ao_server; do
    case $ao_number:$ao_began:$ao_failed:$ao_next:$ao_left in
      *[!0-9:]* | :* | *::* | *:) continue ;;
    esac
    case $ao_cause:$ao_code:$ao_rank:$ao_server in
      *[!A-Za-z0-9%._@:-]* | :* | *::* | *:) continue ;;
    esac
    ao_count=$((ao_count + 1))
    [ $ao_count -le 1001 ] || return 0
    say "attempt $1 $ao_number $ao_began $ao_failed $ao_next $ao_cause $ao_code $ao_rank $ao_left $ao_server"
  done 2>/dev/null <"$f_dir/attempts"
}
