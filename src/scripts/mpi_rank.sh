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
REMOTE_MPI_RANK=$RANK
export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE REMOTE_MPI_RANK
if [ -n "${REMOTE_MPI_INTERFACE-}" ]; then
  OMPI_MCA_btl_tcp_if_include=$REMOTE_MPI_INTERFACE
  export OMPI_MCA_btl_tcp_if_include
fi
cd "$REMOTE_PROJECT_FOLDER" || exit 1
exec >>"$REMOTE_JOB_FOLDER/job.out" 2>>"$REMOTE_JOB_FOLDER/job.err"

# Caught, so that this outlives a signal to the whole group and the command gets the defaults.
trap : HUP INT TERM USR1 USR2
shell='sh'
command -v bash >/dev/null && shell='bash --norc'
# shellcheck disable=SC2086
(exec $shell -c -- "$1")
code=$?
[ "$code" != 0 ] || exit 0

# When, in milliseconds where this server's date knows them. A traceback (sitecustomize.py) has told it more exactly.
umask 077
cd "$REMOTE_JOB_FOLDER" && mkdir -p failures || exit "$code"
at=$(date +%s%3N)
case $at in
  *[!0-9]* | ??????????) at=$(date +%s)999 ;;
esac
kind='exit' number=$code
if [ "$code" -gt 128 ] && [ "$code" -le 192 ]; then
  kind=signal number=$((code - 128))
fi
# mpirun ends the others by TERM when one has failed: to the second is good enough for these, and keeps them behind it
if [ "$kind $number" != 'signal 15' ] && ! [ -e "failures/rank.$RANK" ]; then
  printf '%s\n' "$at" >"failures/.rank.$RANK" && mv "failures/.rank.$RANK" "failures/rank.$RANK"
fi
printf '%s\n' "$RANK $kind $number ${at%???}" >>failures/agent
exit "$code"
