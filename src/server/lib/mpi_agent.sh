#!/bin/sh
# mpirun's remote agent, in the place of ssh: remote-mpi-agent HOST WORD…, where the words are a command line for that host. It
# gives them to the launch's lifeline on this server, and ends when that has sent them on. The lifeline answers "ok" or says
# why not; one that has died is started again by the next status of the job, and finds the order. MPICH's mpirun takes the end
# of its agent for the end of its daemon, as it would be with ssh: for that one it stays until the job on HOST has ended.
umask 077
cd "$REMOTE_JOB_FOLDER" || exit 1
while case $1 in -*) ;; *) false ;; esac do # MPICH gives options to ssh, such as -x
  shift
done
host=$1
answer=answer.$$
rm -f "$answer"
[ -p orders ] || mkfifo orders 2>/dev/null
mkfifo "$answer" || exit 1
# opened for both directions: nothing here waits for the other side
command exec 4<>"$answer" 5<>orders || exit 1
printf '%s\n' "$@" >".order.$$" && mv ".order.$$" "order.$$" || exit 1
echo >&5
read -r said <&4
case "$said $*" in
  'ok '*hydra_pmi_proxy*)
    printf '%s\n' "$host" >".until.$$" && mv ".until.$$" "until.$$" || exit 1
    echo >&5
    read -r _ <&4
    ;;
esac
rm -f "$answer"
[ "$said" = ok ] && exit
echo "remote: mpirun cannot start its daemon for $host: $said" >&2
exit 1
