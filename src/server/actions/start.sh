#!/bin/sh
# Starts jobs: start_begin, start_one ID JOB_TEXT BACKEND [FILE TEXT…] for each, start_finish: FILE is one more file of the job's folder.
# Set before: project, jobs, supervisor_name, supervisor_text; with a lifeline also lifeline (its request, which holds a secret),
# lifeline_activate, lifeline_name, lifeline_text, ender_name, ender_text.
# shellcheck disable=SC2034,SC2154

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
  bin=$jobs/.bin/$supervisor_name
  set -- "$supervisor_name" "$supervisor_text"
  [ -z "${lifeline-}" ] || set -- "$@" "$ender_name" "$ender_text" "$lifeline_name" "$lifeline_text"
  programs_are_ours "$@" || make_programs "$@"
  cd -P "$jobs" || give_up "cannot enter $jobs"
  used=
}

# programs_are_ours NAME TEXT…: whether these stand in .bin with these texts, are this login's own like the folders they are
# in, and nobody else may write to any of these. A digest in a file's name says nothing about who made the file.
programs_are_ours() {
  pr_names='' pr_texts='' pr_end='
'
  [ -O "$jobs" ] && [ -O "$jobs/.bin" ] && ! [ -L "$jobs/.bin" ] || return 1
  while [ $# -gt 0 ]; do
    [ -f "$jobs/.bin/$1" ] && [ -O "$jobs/.bin/$1" ] && ! [ -L "$jobs/.bin/$1" ] || return 1
    pr_names="$pr_names $1"
    pr_texts="$pr_texts$2$pr_end"
    shift 2
  done
  # shellcheck disable=SC2012,SC2086  # no odd names here; two processes for all
  pr_found=$(cd "$jobs/.bin" && ls -ld .. . $pr_names && echo && cat $pr_names && echo end) 2>/dev/null || return 1
  pr_modes=$pr_end${pr_found%%"$pr_end$pr_end"*}
  case $pr_modes in
    *"$pr_end"?????w* | *"$pr_end"????????w*) return 1 ;;
  esac
  [ "$pr_end$pr_found" = "$pr_modes$pr_end$pr_end${pr_texts}end" ]
}

# make_programs NAME TEXT…: makes them anew, by rename. What was there before somebody else may have made.
make_programs() {
  [ -d "$jobs/.bin" ] || mkdir -p "$jobs/.bin" 2>/dev/null || give_up "cannot write in $jobs: no right to, or the disk is full"
  for mp_dir in "$jobs" "$jobs/.bin"; do
    [ -O "$mp_dir" ] || give_up "$mp_dir belongs to another user, who could change what runs from it; remove it, or use another folder"
  done
  ! [ -L "$jobs/.bin" ] || give_up "$jobs/.bin is a symbolic link, and programs are run from it: remove it"
  chmod go-w "$jobs" "$jobs/.bin" 2>/dev/null
  for mp_name; do
    case $mp_name in
      supervisor-*.sh | ender-*.sh | lifeline-*.py) mp_file=$jobs/.bin/$mp_name ;;
      *)
        {
          # machines with one home may do this at once, with the same pid
          mp_new=$(mktemp "$mp_file.XXXXXX") && printf '%s\n' "$mp_name" >"$mp_new" && mv -f "$mp_new" "$mp_file"
        } 2>/dev/null || give_up "cannot write in $jobs (no right to, or the disk is full)"
        ;;
    esac
  done
  programs_are_ours "$@" || give_up "other users may change the programs in $jobs/.bin: look at who owns them, and at their modes"
}

start_one() {
  dir=$jobs/$1
  if why=$(mkdir "$dir" 2>&1); then
    if {
      { [ "$3" = local ] || printf '%s\n' "$3" >"$dir/backend"; } &&
        printf '%s' "$2" >"$dir/job.sh" && printf '' >"$dir/job.out" && printf '' >"$dir/job.err" && more_files "$@"
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
  new_python || python=$(
    exec 2>/dev/null
    eval "$lifeline_activate" >/dev/null
    new_python && command -v "$python"
  ) || return
  # for status.sh; for the owner only, as it proves who belongs to the launch
  # shellcheck disable=SC2154
  for id in $ids_local; do
    printf '%s\n' "python $python" "program $lifeline_name" "ender $ender_name" "$lifeline" >"$id/lifeline.request"
  done 2>/dev/null
  {
    printf '%s\n' "$lifeline" | run_lifeline "$python" "$lifeline_name" "$ender_name"
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
    recall "ids_$backend"
    # shellcheck disable=SC2086
    "${backend}_start" $recalled
  done
  [ -z "$used" ] || [ -z "${lifeline-}" ] || start_lifeline
  trap - EXIT
  say end
}
