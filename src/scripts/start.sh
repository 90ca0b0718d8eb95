#!/bin/sh
# Starts jobs: start_begin, start_one ID JOB_TEXT BACKEND for each, start_finish. Set before: project, jobs,
# supervisor_name, supervisor_text; with a lifeline also lifeline (its request, which holds a secret),
# lifeline_activate, lifeline_name, lifeline_text, ender_name, ender_text.
# shellcheck disable=SC2034,SC2154

start_begin() {
  # Not ignored but caught: a loss of the connection must not stop this half-way, and what is started below
  # gets the defaults back (an ignored signal stays ignored for ever, a caught one does not).
  trap : HUP PIPE TERM
  mask=$(umask)
  [ -d "$project" ] || mkdir -p "$project" 2>/dev/null || give_up "cannot make the folder $project"
  umask 077
  bin=$jobs/.bin/$supervisor_name
  put_program "$bin" "$supervisor_text"
  if [ -n "${lifeline-}" ]; then
    put_program "$jobs/.bin/$ender_name" "$ender_text"
    put_program "$jobs/.bin/$lifeline_name" "$lifeline_text"
  fi
  cd -P "$jobs" || give_up "cannot enter $jobs"
  used=
}

# put_program FILE TEXT: by rename, once.
put_program() {
  [ -s "$1" ] && return
  {
    { [ -d "$jobs/.bin" ] || mkdir -p "$jobs/.bin"; } && printf '%s\n' "$2" >"$1.$$" && mv -f "$1.$$" "$1"
  } 2>/dev/null || give_up "cannot write in $jobs (no right to, or the disk is full)"
}

start_one() {
  dir=$jobs/$1
  if why=$(mkdir "$dir" 2>&1); then
    if {
      { [ "$3" = local ] || printf '%s\n' "$3" >"$dir/backend"; } &&
        printf '%s' "$2" >"$dir/job.sh" && printf '' >"$dir/job.out" && printf '' >"$dir/job.err"
    } 2>/dev/null; then
      for_backend "$3" "$1"
    else
      rm -rf "$dir"
      say "start $1 failed - cannot write in $dir: is the disk full?"
    fi
  elif facts "$1"; then
    say "start $1 exists ${f_pid:--}"
  else
    say "start $1 failed - $why"
  fi
}

# The lifeline of the launch: beside the supervisors, in a session of its own, without a job's cookie and without
# a descriptor of the channel. Nobody waits for it. The request goes through a pipe: no argument and no file has it.
start_lifeline() {
  python=python3
  command -v python3 >/dev/null || python=$(
    exec 2>/dev/null
    command -v python && exit
    eval "$lifeline_activate" >/dev/null
    command -v python3 || command -v python
  ) || return
  # -S and -I: it needs the standard library alone. A Python that is told where that is, has to listen.
  options='-S -I'
  [ -z "${PYTHONHOME-}" ] || options=-S
  {
    # shellcheck disable=SC2086
    printf '%s\n' "$lifeline" |
      exec "$python" $options "$PWD/.bin/$lifeline_name" "$PWD" "$PWD/.bin/$ender_name"
  } >/dev/null 2>&1 &
}

# started ID PID, queued ID REASON, not_started ID REASON: what a backend's start says of each job; PID may be empty.
started() {
  say "start $1 started ${2:--}"
}

queued() {
  say "start $1 queued - $2"
}

not_started() {
  claim "$1"
  say "start $1 failed - $2"
}

start_finish() {
  for backend in $used; do
    eval "${backend}_start \$ids_$backend"
  done
  [ -z "$used" ] || [ -z "${lifeline-}" ] || start_lifeline
  say end
}
