#!/bin/sh
# The parent of one job: sh .../.jobs/.bin/DIGEST/lib/supervisor.sh ID UMASK TIME OOM BORN (when it was
# started, the count of oom.sh then, and the milliseconds since the epoch at the boot). Started by start.sh in a session of
# its own; its stdout is a pipe to the starter, let go as soon as this stands.
# shellcheck disable=SC2154  # $oom is oom.sh's
# Signals: caught with a no-op, so that this survives them while the job below gets the defaults.
trap : HUP INT QUIT USR1 USR2 PIPE ALRM TERM
exec 3>&- 4>&- 5>&- 6>&- 8>&- 9>&-
umask 077
id=$1
mask=$2
time=$3
before=$4
born=$5
cd "${0%/.bin/*}/$id" || exit 1
# The lease (lib/lease.sh). The job inherits it: it is not free while anything of the job lives.
[ -e devices ] || exec 7>&-
REMOTE_JOB_ID=$id
export REMOTE_JOB_ID

# own_stat: pid, session and start time of the process that calls it, a shell, from one read and without a fork.
own_stat() {
  read -r stat </proc/self/stat
  pid=${stat%% *}
  # shellcheck disable=SC2086
  set -- ${stat#*') '}
  session=$4 start=${20}
}

remote_program=${0%/lib/*}
# shellcheck source=src/server/lib/oom.sh
. "$remote_program/lib/oom.sh"
# shellcheck source=src/server/lib/second.sh
. "$remote_program/lib/second.sh"
# shellcheck source=src/server/lib/end.sh
. "$remote_program/lib/end.sh"
# shellcheck source=src/server/lib/init_file.sh
. "$remote_program/lib/init_file.sh"
# shellcheck source=src/server/lib/container.sh
. "$remote_program/lib/container.sh"
# shellcheck source=src/server/lib/tree.sh
. "$remote_program/lib/tree.sh"
# shellcheck source=src/server/lib/again.sh
[ ! -e again ] || . "$remote_program/lib/again.sh"
# shellcheck source=src/server/lib/retry.sh
[ ! -e retry ] || . "$remote_program/lib/retry.sh"

own_stat
[ "$session" = "$pid" ] || session=-
boot=
read -r boot </proc/sys/kernel/random/boot_id || boot=unknown

# The one lock between this start, a repeated one, and a status or kill that says "never": who creates the
# file (O_EXCL) wins.
set -C
printf '%s\n' "$pid $start $boot $session" >supervisor || exit 0
set +C
# Room for the result, for the shell's note below and for kill.sh's stop, taken while there is room: a job that fills
# the disk still gets its result, and its stop is on record.
printf '%100s\n' '' >.result
printf '%200s\n' '' >.note
printf '%300s\n' '' >.stop
# Whoever reads this FIFO gets its end when this process ends: followers wait so for the job's end.
[ -p .alive ] && command exec 5<>.alive
printf '+%s+' "$id"
exec >/dev/null

# A session, and so a process group, of its own: a job that kills its group (kill -9 0) does not kill this.
apart=
command -v setsid >/dev/null && apart=setsid
shell='sh'
command -v bash >/dev/null && shell=bash
[ -n "$time" ] && printf '%s\n' "$time" >started

idle=
[ ! -e again ] || again_begin || idle=1
while [ -z "$idle" ]; do
  # The job, in the foreground: a background one would ignore SIGINT and SIGQUIT. It puts itself on record and
  # only then becomes the command, so nothing runs unrecorded. This shell's own stderr is the note: the shell
  # writes "Killed", "Terminated" … there if a signal ended its child, and nothing for an exit code of 128+N.
  [ -f .note ] && command exec 2<>.note
  (
    command exec 2>>job.err || exit 127
    own_stat
    # Not job.pid: labml_remote's watcher on the server reads every file of that name.
    if ! printf '%s\n' "$pid $start" >pid; then
      echo "remote: cannot write the job's folder: is the disk full?" >&2
      exit 127
    fi
    [ -p .alive ] && printf '%s\n' "$pid" >.alive
    command exec 5>&- 6>&- >>job.out || exit 127
    umask "$mask"
    # shellcheck disable=SC2086
    exec $apart $shell job.sh
  )
  code=$?
  # Open MPI 5 ends with 0 also when it has lost a daemon, and the ranks with it (mpi_rank.sh).
  if [ "$code" = 0 ]; then
    for rank in open.rank.*; do
      [ ! -e "$rank" ] || code=1
    done
    [ "$code" = 0 ] || echo 'remote: mpirun has ended before its ranks' >>job.err
  fi
  # When it ended, for the order of failures, and without a process: on a busy server that may take a while, and by then others have failed
  # because of it. The uptime is in hundredths; the clock may have been set since the start.
  read -r clock _ </proc/uptime
  ended=$((born + ${clock%.*}${clock#*.} * 10 + 10))
  exec 2>/dev/null
  unset REMOTE_JOB_ID # what is started below is none of the job's
  # A kill that is just looking takes this process for one of the job's.
  tries=0
  until moment || [ $tries -ge 50 ]; do
    tries=$((tries + 1))
  done
  [ $((ms - ended)) -ge 0 ] && [ $((ms - ended)) -lt 30000 ] || ended=$ms

  if [ "$code" != 0 ]; then
    for rank in open.rank.*; do
      [ -s "$rank" ] || continue
      # shellcheck source=src/server/lib/mpi_open.sh
      . "$remote_program/lib/mpi_open.sh"
      open_ranks
      break
    done
  fi
  note=
  read -r note <.note
  ended_by "$code" "$note"
  oom_source
  oom_kills
  if [ "$kind $code" != 'exit 0' ] && [ -n "$oom" ] && [ "$before" != - ] && [ "$oom" -gt "$before" ]; then
    printf '%s\n' "$((oom - before))" >oom
  fi
  end_record "$kind" "$code" "$ended" supervisor
  if ! { [ -e again ] && again_next; } && ! { [ -e retry ] && retry_next; }; then
    break
  fi
done
if [ -n "$idle" ]; then
  exec 2>/dev/null
  moment
  kind='exit' code=0
  end_record "$kind" "$code" "$ms" supervisor
fi
tree_left # who sees the result may look for what the job wrote
tries=0
own_uid
until { printf '%s\n' "$end" 1<>.result && mv -f .result result; } ||
  { [ -e job.sh ] && write_second "$id.result" "$end"; }; do
  tries=$((tries + 1))
  # in vain when the folder has been removed
  if ! [ -e job.sh ] || [ $tries -ge 600 ]; then
    break
  fi
  sleep 1
done
rm -f .note .stop
# A container ends with its command, and goes. Where its client was killed, or lost its way to the engine, it may go on.
# shellcheck disable=SC2034  # for container.sh
jobs=..
if [ "$kind" = signal ] || [ "$code" -ge 125 ]; then
  ! box_of "$id" || remove_box "$id"
fi
leave_init_file "$PWD"
