#!/bin/sh
# mpirun's remote agent for --mpi-agent ssh: remote-mpi-ssh HOST WORD… brings the order to the job on that host by the ssh of this
# server, whose keys and settings count. Behind it goes mpi_order.sh. The file mpi-hosts has a line "HOST USER ADDRESS PORT
# FOLDER" for each host.
quoted() {
  printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"
}
cd "$REMOTE_JOB_FOLDER" || exit 1
while case $1 in -*) ;; *) false ;; esac do # MPICH gives options to ssh, such as -x
  shift
done
wanted=$1
shift
while read -r host user address port folder; do
  [ "$host" != "$wanted" ] || break
done <mpi-hosts
if [ "$host" != "$wanted" ]; then
  echo "remote: mpirun asks for $wanted, which is no server of this launch" >&2
  exit 1
fi
# Its stdin comes to no end as long as this agent lives: mpi_order.sh ends when it has nothing more to wait for.
umask 077
mkfifo "stdin.$$" || exit 1
command exec 4<>"stdin.$$" && command exec 5<"stdin.$$" || exit 1
rm -f "stdin.$$"
{
  printf 'folder=%s\nline=%s\n' "$(quoted "$folder")" "$(quoted "$*")"
  cat bin/remote-mpi-order
} >&4 5<&- &
ssh -o BatchMode=yes -p "$port" -l "$user" -- "$address" 'exec sh -s' <&5 4>&- 5<&-
code=$?
[ "$code" = 0 ] || echo "remote: the order for $address was not brought there by ssh (exit code $code)" >&2
exit "$code"
