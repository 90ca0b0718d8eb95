#!/bin/sh
# One rank below mpirun: remote-mpi-rank COMMAND runs a line for the shell with torch's variables, made from those of mpirun,
# and with its output in this server's job. What it leaves of a failure (workers.sh) tells which rank failed first.
RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK-}}
WORLD_SIZE=${OMPI_COMM_WORLD_SIZE:-${PMI_SIZE-}}
LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID-}}
LOCAL_WORLD_SIZE=${OMPI_COMM_WORLD_LOCAL_SIZE:-${MPI_LOCALNRANKS-}}
for number in "$RANK" "$WORLD_SIZE" "$LOCAL_RANK" "$LOCAL_WORLD_SIZE"; do
  case $number in
    '' | *[!0-9]*)
      echo 'remote: mpirun told this process no rank: OMPI_COMM_WORLD_RANK (or PMI_RANK) and its like are missing' >&2
      exit 1
      ;;
  esac
done
export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE
if [ -n "${REMOTE_MPI_INTERFACE-}" ]; then
  OMPI_MCA_btl_tcp_if_include=$REMOTE_MPI_INTERFACE
  export OMPI_MCA_btl_tcp_if_include
fi
# Practice servers share a host name and /dev/shm: the shared memory of two servers' ranks would have the same names there.
if [ -n "${REMOTE_SANDBOX-}" ]; then
  OMPI_MCA_btl_vader_backing_directory=$REMOTE_JOB_FOLDER
  OMPI_MCA_btl_sm_backing_directory=$REMOTE_JOB_FOLDER
  OMPI_MCA_osc_sm_backing_directory=$REMOTE_JOB_FOLDER
  OMPI_MCA_osc_rdma_backing_directory=$REMOTE_JOB_FOLDER
  OMPI_MCA_coll=${OMPI_MCA_coll-^han} # in Open MPI 5 it takes the ranks of both for one machine's, and hangs
  export OMPI_MCA_coll OMPI_MCA_btl_vader_backing_directory OMPI_MCA_btl_sm_backing_directory
  export OMPI_MCA_osc_sm_backing_directory OMPI_MCA_osc_rdma_backing_directory
fi
folder=${REMOTE_RANK_FOLDER:-$(pwd)} # the second is that of mpirun, on its own server
mask=$(umask)
umask 077
cd "$REMOTE_JOB_FOLDER" || exit 1
# shellcheck source=src/server/lib/end.sh
. "$REMOTE_JOB_FOLDER/bin/end.sh"
exec </dev/null
command exec >>job.out 2>>job.err
command : >"open.rank.$RANK" # until it has ended (supervisor.sh)
# Caught, so that this outlives a signal to the whole group and the command gets the defaults.
trap : HUP INT TERM USR1 USR2

# label STREAM FIFO: the rank's lines into ranks/RANK.STREAM, and behind "[RANK] " to what stdout is. It ends with the last
# who writes, and not by a signal before, nor when MPICH kills the rank's process group. The lines of earlier attempts stay: sed's `w`
# would empty the file.
apart=
! command -v setsid >/dev/null || apart=setsid
label() {
  trap '' HUP INT TERM USR1 USR2
  if [ "${RESTART_COUNT:-0}" != 0 ]; then
    # shellcheck disable=SC2016,SC2086
    exec $apart sh -c 'tee -a "$1" <"$2" | stdbuf -oL sed "s/^/[$3] /"' sh "ranks/$RANK.$1" "$2" "$RANK"
  fi
  # shellcheck disable=SC2086
  exec $apart stdbuf -oL sed -e "w ranks/$RANK.$1" -e "s/^/[$RANK] /" <"$2"
}

# Where a server has several ranks, each line says whose it is.
labels='' words=/dev/null
[ "$LOCAL_WORLD_SIZE" -gt 1 ] || words=job.err
if [ "$LOCAL_WORLD_SIZE" -gt 1 ] && command -v stdbuf >/dev/null && mkdir -p ranks &&
  mkfifo "ranks/.$RANK.out" "ranks/.$RANK.err"; then
  words=ranks/$RANK.err
  label out "ranks/.$RANK.out" &
  labels=$!
  label err "ranks/.$RANK.err" >&2 &
  labels="$labels $!"
fi
earlier=0 # bytes that are there before it begins: of earlier attempts, or of the job's prologue
[ ! -s "$words" ] || earlier=$(wc -c <"$words")
echo "$$ $earlier ${labels##* }" >"open.rank.$RANK" # for mpi_open.sh

shell='sh'
command -v bash >/dev/null && shell='bash --norc'
exec 3>&2 2>/dev/null # this shell's own notes, such as "Terminated", are not the rank's
(
  if [ -n "$labels" ]; then
    command exec >"ranks/.$RANK.out" 2>"ranks/.$RANK.err" 3>&- || exit 127
  else
    exec 2>&3 3>&-
  fi
  cd "$folder" || exit 127
  umask "$mask"
  # shellcheck disable=SC2086
  exec $shell -c -- "$1"
)
code=$?
# When, in milliseconds where this server's date knows them.
ms=
[ "$code" = 0 ] || moment
# Where it raised an exception or called sys.exit(), it has failed by that (sitecustomize.py), whatever ended it while it hung.
raised=
if [ "$code" != 0 ] && [ -f "raised.rank.$RANK" ]; then
  read -r ms code <"raised.rank.$RANK"
  raised=1
fi
# One that failed stays open until that is on record: mpirun may kill this before.
[ "$code" != 0 ] || rm -f "open.rank.$RANK"
rm -f "raised.rank.$RANK"

# What it wrote last has to be there before this job ends; what it has left behind may hold on to its output for longer.
tries=0
for label in $labels; do
  while kill -0 "$label" 2>/dev/null && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
done
[ -z "$labels" ] || rm -f "ranks/.$RANK.out" "ranks/.$RANK.err"
[ "$code" != 0 ] || exit 0

exit_code=$code
ended_by "$code" mpirun
end_record "$kind" "$code" "$ms" mpirun
mkdir -p failures || exit "$exit_code"
{
  echo "$ms"
  # without what Open MPI 5 tells there of others
  tail -c "+$((earlier + 1))" "$words" | tail -c 16384 | grep -v '^\[[^] ]*:00000] ' | tail -n 50
  case "$kind $code${OMPI_COMM_WORLD_RANK+ OMPI}$raised" in # peer_words.sh knows both lines
    'signal 15'*) echo 'remote: ended by TERM, as mpirun does it when another rank has failed' ;;
    'exit 14 OMPI') echo 'remote: exited with 14, as ranks of Open MPI 5 do when another one has failed' ;;
  esac
} >"failures/.rank.$RANK" && mv "failures/.rank.$RANK" "failures/rank.$RANK"
printf '%s\n' "$RANK $end" >>failures/agent
rm -f "open.rank.$RANK"
# MPICH's mpirun lets the others go on when a process that is no MPI program exits with a code, also with that of this shell for a
# command that a signal ended; but not when the process itself is ended by a signal.
if [ -z "${OMPI_COMM_WORLD_RANK-}" ]; then
  trap - TERM
  kill -s TERM $$
fi
exit "$exit_code"
