#!/bin/sh
# Starts jobs: start_begin, start_one ID JOB_TEXT for each, start_finish. Set before: project, jobs,
# supervisor_name, supervisor_text; with a lifeline also lifeline (its request, which holds a secret),
# lifeline_activate, lifeline_name, lifeline_text, ender_name, ender_text.
# shellcheck disable=SC2154

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
  setsid=
  command -v setsid >/dev/null 2>&1 && setsid=setsid
  # Where something above us ignores signals (nohup and the like), let the job have the defaults if we can: no sh
  # can take back what was ignored when it began. SIGQUIT is left out: bash and busybox ignore it themselves and
  # give their children the default back.
  stat_of self
  if [ $((st_ignored & ~4)) != 0 ] && env --default-signal true 2>/dev/null; then
    setsid="env --default-signal $setsid"
  fi
  cd -P "$jobs" || give_up "cannot enter $jobs"
  # what the supervisors need to know and what costs a process to find out, once for all
  oom_source
  oom_kills
  facts_for_all="$mask $(now) ${oom:--}"
  waiting=
  fifos=
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
      printf '%s' "$2" >"$dir/job.sh" && printf '' >"$dir/job.out" && printf '' >"$dir/job.err"
    } 2>/dev/null; then
      waiting="$waiting $1"
      fifos="$fifos $1/.alive"
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

end_process() {
  kill -s KILL "$1"
}

# spawn ID: the supervisor as a process that nobody here waits for. A background job ('&') of a shell without
# job control would have SIGINT and SIGQUIT ignored, and so would the user's command; the members of a
# foreground pipeline have not. So the supervisor is one member, and the other ends the subshell that would
# wait for it.
spawn() {
  (
    read -r middle _ </proc/self/stat
    (
      exec >&3 3>&-
      REMOTE_JOB_ID=$1
      export REMOTE_JOB_ID
      # shellcheck disable=SC2086
      exec $setsid sh "$bin" "$1" $facts_for_all
    ) | end_process "$middle"
  ) 3>&1
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

# The supervisors write their ids to a pipe and let go of it once they stand; the main processes then write
# their pids into the job's FIFO. Nothing here polls or sleeps.
start_finish() {
  if [ -n "$waiting" ]; then
    # shellcheck disable=SC2086
    mkfifo $fifos 2>/dev/null
    up=$(
      exec 2>/dev/null
      for id in $waiting; do
        spawn "$id"
      done
    )
    for id in $waiting; do
      case $up in
        *"+$id+"*)
          if [ -p "$jobs/$id/.alive" ]; then
            # opened for both first, or the open would wait when the supervisor is dead already
            fifo=$jobs/$id/.alive
            exec 4<>"$fifo"
            exec 5<"$fifo" 4>&-
            read -r _ <&5
            exec 5<&-
          fi
          facts "$id"
          say "start $id started ${f_pid:--}"
          ;;
        *)
          why=
          read -r why 2>/dev/null <"$jobs/$id/job.err"
          claim "$id"
          say "start $id failed - ${why:-the supervisor did not start}"
          ;;
      esac
    done
    [ -z "${lifeline-}" ] || start_lifeline
  fi
  say end
}
