#!/bin/sh
# Answers about jobs: status_begin, status_one ID CLAIM(0|1) for each.
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
}

# await_lifeline ID: waits until the lifeline of the job's launch on this server has told how it is, or the job is over;
# 4 s at most.
await_lifeline() {
  al_begin=$(now)
  while [ ! -s "$jobs/$1/lifeline" ] && [ ! -e "$jobs/$1/result" ] && [ $(($(now) - al_begin)) -lt 4 ]; do
    nap 0.02
  done
}

# status_sizes ID…: bytes of job.out and job.err of all asked jobs, in one process, into out_ID and err_ID.
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

# phase_of ID CLAIM: as state_of. $phase is `none` for a job that never started and, with CLAIM, never will.
phase_of() {
  phase=none pid='' supervised=1 left='' reason=''
  if ! facts "$1"; then
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
    if [ -z "$pid" ] && { claim "$1" || { [ -e "$f_dir/supervisor" ] && status_abandoned "$1"; }; }; then
      phase=none
    fi
    pid=
    return
  fi
  state_of "$1"
}

# A supervisor file that stays empty for a second while nothing carries the cookie.
status_abandoned() {
  sleep 1
  facts "$1"
  [ -z "$f_sup" ] && [ -z "$f_end" ] && put_result "$1" "never 0 $(now)"
}

# status_moments: when the job last wrote to its stderr and when it ended, where this stat tells parts of a second: the first
# failure of a launch is often less than a second ahead of the others.
status_moments() {
  sm_end=$f_dir/died
  [ -e "$sm_end" ] || sm_end=$f_dir/result
  # shellcheck disable=SC2046
  set -- $(stat -L -c '%.3Y' "$f_dir/job.err" "$sm_end" 2>/dev/null)
  case $#:$1:$2 in
    *[!0-9.:]*) ;;
    2:*.[0-9][0-9][0-9]:*.[0-9][0-9][0-9]) line="$line wrote=$1 done=$2" ;;
  esac
}

# word TEXT: the text as one word.
word() {
  printf '%s' "$1" | tr ' ' + | tr -c 'A-Za-z0-9._:,@+/~-' '?'
}

status_one() {
  phase_of "$1" "$2"
  line="job $1 $phase"
  if [ "$phase" != none ]; then
    [ -z "$reason" ] || line="$line reason=$(word "$reason")"
    [ -n "$pid" ] && line="$line pid=$pid"
    [ $supervised = 1 ] || line="$line supervised=0"
    [ -z "$left" ] || line="$line left=1"
    if [ "$phase" = ended ]; then
      line="$line result=$f_end:$f_code"
      [ -z "$f_ended" ] || line="$line ended=$f_ended"
      if [ "$f_end $f_code" != 'exit 0' ]; then
        status_moments
        tells_of_peer "$f_dir/job.err" && line="$line peer=1"
      fi
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
      [ "${word:-ok}" = ok ] || line="$line lifeline=$(word "$word $trouble")"
    fi
    eval "line=\"\$line out=\${out_$1:-0} err=\${err_$1:-0}\""
  fi
  say "$line"
}
