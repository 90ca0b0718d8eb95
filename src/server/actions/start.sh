#!/bin/sh
# Starts jobs: start_begin, start_one ID JOB_TEXT BACKEND [FILE TEXT…] for each, start_finish: FILE is one more file of the job's folder.
# Set before: job_head and job_tail, what stands before and behind each job's own text in its job.sh; with a lifeline also
# lifeline (its request, which holds a secret), with a lease lease (the words of lib/lease.sh), and with either lifeline_activate.
# shellcheck disable=SC2034,SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"
# shellcheck source=src/server/lib/keep.sh
. "$remote_program/lib/keep.sh"
# shellcheck source=src/server/lib/oom.sh
. "$remote_program/lib/oom.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
# shellcheck source=src/server/lib/lifeline_run.sh
. "$remote_program/lib/lifeline_run.sh"
# shellcheck source=src/server/lib/tree.sh
. "$remote_program/lib/tree.sh"

start_begin() {
  # Not ignored but caught: a loss of the connection must not stop this half-way, and what is started below
  # gets the defaults back (an ignored signal stays ignored for ever, a caught one does not).
  trap : HUP PIPE TERM
  trap cannot_start EXIT
  look_for_room
  [ -z "$no_forks" ] || cannot_start
  mask=$(umask)
  [ -d "$project" ] || mkdir -p "$project" 2>/dev/null || give_up "cannot make the folder $project"
  umask 077
  keep_program
  cd -P "$jobs" || give_up "cannot enter $jobs"
  used=
}

start_one() {
  dir=$jobs/$1
  if why=$(mkdir "$dir" 2>&1); then
    if {
      { [ "$3" = local ] || printf '%s\n' "$3" >"$dir/backend"; } &&
        printf '%s' "$job_head$2$job_tail" >"$dir/job.sh" && printf '' >"$dir/job.out" && printf '' >"$dir/job.err" && more_files "$@" && tree_use "$dir"
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

# more_files ID JOB_TEXT BACKEND [FILE TEXT…]: writes these into $dir.
more_files() {
  shift 3
  while [ $# -ge 2 ]; do
    printf '%s' "$2" >"$dir/$1" || return 1
    shift 2
  done
}

# The lifeline of the launch: beside the supervisors, in a session of its own, without a job's cookie and without
# a descriptor of the channel. Nobody waits for it. Its request holds a secret, so no argument has it.
start_lifeline() {
  any_python "$lifeline_activate" || return
  # for status.sh; for the owner only, as it proves who belongs to the launch
  # shellcheck disable=SC2154
  for id in $ids_local; do
    printf '%s\n' "python $python" "program $kept_name/python/lifeline.py" "ender $kept_name/lib/ender.sh" "$lifeline" >"$id/lifeline.request"
  done 2>/dev/null
  {
    printf '%s\n' "$lifeline" | run_lifeline "$python" "$kept_name/python/lifeline.py" "$kept_name/lib/ender.sh"
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
  # Its supervisor, which has ended, has an empty file on a full disk. A lifeline would wait for it for ever; without a folder it does not.
  claim "$1" || [ -s "$jobs/$1/supervisor" ] || rm -rf "${jobs:?}/$1"
  say "start $1 failed - $2"
}

start_finish() {
  if [ -n "${lease-}" ]; then
    # shellcheck source=src/server/lib/gpus.sh
    . "$remote_program/lib/gpus.sh"
    # shellcheck source=src/server/lib/lease.sh
    . "$remote_program/lib/lease.sh"
  fi
  for backend in $used; do
    recall "ids_$backend"
    start_ids=$recalled
    # shellcheck disable=SC2086
    if [ -n "${lease-}" ] && ! take_lease $start_ids; then
      for id in $start_ids; do
        not_started "$id" "$reason"
      done
      lifeline=
    else
      "${backend}_start" $start_ids
    fi
  done
  [ -z "$used" ] || [ -z "${lifeline-}" ] || start_lifeline
  trap - EXIT
  say end
}
