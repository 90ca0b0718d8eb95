#!/bin/sh
# The job of a launch by mpirun on each server but the first: it waits until mpirun's order for this server has come over the
# lifeline (or by ssh), and runs the daemon that it names as a part of this job.
REMOTE_RANK_FOLDER=$(pwd)
export REMOTE_RANK_FOLDER
umask 077
cd "$REMOTE_JOB_FOLDER" || exit 1
# shellcheck source=src/server/lib/end.sh
. "$REMOTE_JOB_FOLDER/bin/end.sh"
[ -p orders ] || mkfifo orders 2>/dev/null
[ -p orders ] || exit 1
command exec 4<>orders || exit 1
until [ -e order ]; do
  read -r _ <&4
done
exec 4<&-
if ! [ -s order ]; then
  echo 'remote: mpirun has ended without having started its daemon here' >&2
  exit 1
fi
set --
while IFS= read -r word; do
  set -- "$@" "$word"
done <order
case ${1-} in
  orted | prted | hydra_pmi_proxy) ;;
  *)
    echo "remote: the order of mpirun is for none of its daemons" >&2
    exit 1
    ;;
esac
# mpirun's own value comes with the order, and this server's interface may have another name
REMOTE_MPI_INTERFACE=${OMPI_MCA_btl_tcp_if_include-}
export REMOTE_MPI_INTERFACE
cd "$REMOTE_RANK_FOLDER" || exit 1
# Not ignored but caught, so that the daemon gets the defaults: it has to end its ranks before this job is over.
trap : HUP INT TERM USR1 USR2
(exec "$@")
code=$?
# The daemon's own exit code does not tell how its ranks ended. The first one counts that did not fail because of another one.
record='' said=''
while read -r rank end; do
  line=$(tail -n 1 "$REMOTE_JOB_FOLDER/failures/rank.$rank")
  case $line in # mpi_rank.sh's
    'remote: ended by TERM, as '* | 'remote: exited with 14, as '*) ;;
    *) record=$end said='' && break ;;
  esac
  [ -n "$record" ] || record=$end said=$line
done 2>/dev/null <"$REMOTE_JOB_FOLDER/failures/agent"
if read_end <<END; then
$record
END
  code=$f_code
  [ "$f_end" = signal ] && code=$((128 + f_code))
  [ -z "$said" ] || echo "$said" >&2
fi
exit "$code"
