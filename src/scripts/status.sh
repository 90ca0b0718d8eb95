#!/bin/sh
# Answers about jobs: status_begin, status_one ID CLAIM(0|1) for each, status_finish.
# shellcheck disable=SC2154

status_begin() {
  # busybox's date knows no parts of a second
  sb_now=$(date +%s.%3N)
  case $sb_now in
    *[!0-9.]*) sb_now= ;;
    [0-9]*.[0-9][0-9][0-9]) ;;
    *) sb_now= ;;
  esac
  say "now ${sb_now:-$(now)}"
  scanned='' gpu_asked=''
}

# await_lifeline ID: until this server's lifeline of the job's launch has told how it is, or the job is over; about
# 3 s at most.
await_lifeline() {
  al_begin=$(now)
  while [ ! -s "$jobs/$1/lifeline" ] && [ ! -e "$jobs/$1/result" ] && [ $(($(now) - al_begin)) -lt 4 ]; do
    nap 0.02
  done
}

# sizes ID…: bytes of job.out and job.err of all asked jobs, in one process, into out_ID and err_ID.
status_sizes() {
  [ -d "$jobs" ] || return 0
  cd "$jobs" || return 0
  sz_files=
  for sz_id; do
    sz_files="$sz_files $sz_id/job.out $sz_id/job.err"
  done
  # shellcheck disable=SC2046,SC2086
  set -- $(stat -L -c '%n %s' $sz_files 2>/dev/null)
  if [ $# -eq 0 ]; then
    for sz_file in $sz_files; do
      [ -f "$sz_file" ] && set -- "$@" "$sz_file" "$(($(wc -c <"$sz_file")))"
    done
  fi
  while [ $# -ge 2 ]; do
    case $1 in
      */job.out) eval "out_${1%/*}=\$2" ;;
      */job.err) eval "err_${1%/*}=\$2" ;;
    esac
    shift 2
  done
}

# carries_cookie ID [BESIDE]
carries_cookie() {
  if [ -z "$scanned" ]; then
    scan_cookies
    scanned=1
  fi
  cookie_pid "$@"
}

# holds_gpu PID: whether GPU memory of this dead process is still held. It takes the driver a while to tell, and the
# laptop waits 3 s for the whole answer.
holds_gpu() {
  if [ -z "$gpu_asked" ]; then
    gpu_pids 2
    gpu_asked=1
  fi
  case "$gpu_pids " in
    *" $1 "*) ;;
    *) return 1 ;;
  esac
  ! stat_of "$1" || [ "$st_state" = Z ]
}

# left_behind ID: whether a process lives of a job that has a result and was told to end: one that job-kill could
# not end and put on record, or that it has not ended yet; also one whose GPU memory is still held. Into $left.
left_behind() {
  left=
  if [ -e "$f_dir/survivors" ]; then
    while read -r lb_pid lb_start; do
      if [ "$lb_start" = gpu ]; then
        holds_gpu "$lb_pid" && left=$lb_pid && break
      else
        alive "$lb_pid" "$lb_start" && left=$lb_pid && break
      fi
    done 2>/dev/null <"$f_dir/survivors"
  fi
  if [ -z "$left" ] && [ -e "$f_dir/stop" ] && carries_cookie "$1" "$f_sup"; then
    left=$ck_pid
  fi
  [ -n "$left" ]
}

# ended_or_left ID: the phase of a job that has a result.
ended_or_left() {
  phase=ended pid=$f_pid
  if [ "$f_end" = never ]; then
    phase=none
  elif [ "$f_boot" = "$boot" ] && left_behind "$1"; then
    phase=running pid=$left
  fi
}

# phase_of ID CLAIM: into phase, pid, supervised, left.
phase_of() {
  phase=none supervised=1 left=
  if ! facts "$1"; then
    [ "$2" = 1 ] && claim "$1" && return
    facts "$1" || return
  fi
  pid=$f_pid
  if [ -n "$f_end" ]; then
    ended_or_left "$1"
    return
  fi
  if [ -z "$f_sup" ]; then
    phase=starting
    if [ "$2" = 1 ] && ! carries_cookie "$1"; then
      # an empty supervisor file is one whose writer died between making and filling it
      if claim "$1" || { [ -e "$f_dir/supervisor" ] && status_abandoned "$1"; }; then
        phase=none
      fi
    fi
    return
  fi
  if [ "$f_sup" = claimed ]; then
    phase=none
    return
  fi
  if [ "$f_boot" != "$boot" ]; then
    phase=rebooted
    return
  fi
  if alive "$f_sup" "$f_sup_start"; then
    phase=running
    [ -n "$f_pid" ] || phase=starting
    return
  fi
  # It may have ended between the two looks: the result is written before the supervisor goes.
  if facts "$1" && [ -n "$f_end" ]; then
    ended_or_left "$1"
    return
  fi
  supervised=0
  pid=$f_pid
  if alive "$f_pid" "$f_pid_start"; then
    phase=running
  elif carries_cookie "$1"; then
    phase=running pid=$ck_pid
  else
    phase=gone
  fi
}

# A supervisor file that stays empty for a second while nothing carries the cookie.
status_abandoned() {
  sleep 1
  facts "$1"
  [ -z "$f_sup" ] && [ -z "$f_end" ] && put_result "$1" "never 0 $(now)"
}

# status_moments: when the job last wrote to its stderr and when its result was written, where this stat tells parts
# of a second: of a launch's failures the first is often ahead by less than one.
status_moments() {
  # shellcheck disable=SC2046
  set -- $(stat -L -c '%.3Y' "$f_dir/job.err" "$f_dir/result" 2>/dev/null)
  case $#:$1:$2 in
    *[!0-9.:]*) ;;
    2:*.[0-9][0-9][0-9]:*.[0-9][0-9][0-9]) line="$line wrote=$1 done=$2" ;;
  esac
}

status_one() {
  phase_of "$1" "$2"
  line="job $1 $phase"
  if [ "$phase" != none ]; then
    [ -n "$pid" ] && line="$line pid=$pid"
    [ $supervised = 1 ] || line="$line supervised=0"
    [ -z "$left" ] || line="$line left=1"
    if [ "$phase" = ended ]; then
      line="$line result=$f_end:$f_code"
      [ -z "$f_ended" ] || line="$line ended=$f_ended"
      [ "$f_end $f_code" = 'exit 0' ] || status_moments
    fi
    since=
    read -r since 2>/dev/null <"$f_dir/started" && [ -n "$since" ] && line="$line started=$since"
    number='' by='' at=''
    read -r number by at 2>/dev/null <"$f_dir/stop" && [ -n "$at" ] && line="$line stop=$number by=$by"
    [ -e "$f_dir/oom" ] && line="$line oom=1"
    if [ "$phase" = running ]; then
      word=ok
      trouble=
      read -r word trouble 2>/dev/null <"$f_dir/lifeline"
      [ "${word:-ok}" = ok ] || line="$line lifeline=$(printf '%s' "$word $trouble" | tr ' ' + | tr -c 'A-Za-z0-9._:,@+-' '?')"
    fi
    eval "line=\"\$line out=\${out_$1:-0} err=\${err_$1:-0}\""
  fi
  say "$line"
}

status_finish() {
  say end
}
