# The backend `local`: how its jobs start.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts

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
      exec $setsid sh "$kept/lib/supervisor.sh" "$1" $facts_for_all
    ) | end_process "$middle"
  ) 3>&1
}

# local_start ID…: the supervisors write their ids to a pipe and let go of it once they stand; the main processes then
# write their pids into the job's FIFO. Nothing here polls or sleeps.
local_start() {
  setsid=
  command -v setsid >/dev/null 2>&1 && setsid=setsid
  # Where something above us ignores signals (nohup and the like), let the job have the defaults if we can: no sh
  # can take back what was ignored when it began. SIGQUIT is left out: bash and busybox ignore it themselves and
  # give their children the default back.
  stat_of self
  if [ $((st_ignored & ~4)) != 0 ] && env --default-signal true 2>/dev/null; then
    setsid="env --default-signal $setsid"
  fi
  # what the supervisors need to know and what costs a process to find out, once for all
  oom_source
  oom_kills
  moment
  read_clock
  facts_for_all="$mask ${ms%???} ${oom:--} $((ms - clock * 10))"
  fifos=
  for id; do
    fifos="$fifos $id/.alive"
  done
  # shellcheck disable=SC2086
  mkfifo $fifos 2>/dev/null
  trap - EXIT # from here on it is not true that nothing was started
  up=$(
    exec 2>/dev/null
    for id; do
      spawn "$id"
    done
  )
  for id; do
    case $up in
      *"+$id+"*)
        if [ -p "$jobs/$id/.alive" ] && open_alive "$jobs/$id/.alive"; then
          read -r _ <&5
          exec 5<&-
        fi
        facts "$id"
        if [ -e "$jobs/$id/queue" ]; then
          queued "$id" 'its turn'
        elif [ -e "$jobs/$id/spare" ]; then
          queued "$id" 'spare, until it replaces a server'
        else
          started "$id" "$f_pid"
        fi
        ;;
      *)
        why=
        read -r why 2>/dev/null <"$jobs/$id/job.err"
        [ -n "$why" ] || [ -s "$jobs/$id/supervisor" ] || why='its supervisor could not write in its folder: is the disk full?'
        not_started "$id" "${why:-the supervisor did not start}"
        ;;
    esac
  done
}
