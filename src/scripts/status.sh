#!/bin/sh
# Answers about jobs: status_begin, status_one ID CLAIM(0|1) for each, status_finish.
# shellcheck disable=SC2154

status_begin() {
  say "now $(now)"
  scanned=
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

carries_cookie() {
  if [ -z "$scanned" ]; then
    scan_cookies
    scanned=1
  fi
  cookie_pid "$1"
}

# phase_of ID CLAIM: into phase, pid, supervised.
phase_of() {
  phase=none supervised=1
  if ! facts "$1"; then
    [ "$2" = 1 ] && claim "$1" && return
    facts "$1" || return
  fi
  pid=$f_pid
  if [ -n "$f_end" ]; then
    phase=ended
    [ "$f_end" = never ] && phase=none
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
    phase=ended pid=$f_pid
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

status_one() {
  phase_of "$1" "$2"
  line="job $1 $phase"
  if [ "$phase" != none ]; then
    [ -n "$pid" ] && line="$line pid=$pid"
    [ $supervised = 1 ] || line="$line supervised=0"
    [ "$phase" = ended ] && line="$line result=$f_end:$f_code ended=$f_ended"
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
