# On another server of a launch by mpirun, with --mpi-agent ssh: puts the order where the job waits for it (mpi_member.sh). Set
# before: folder, of the job; line, the command line of mpirun's daemon. Only its name and arguments are taken from that: no
# path, no variable, nothing for a shell. It is what lifeline_orders.py does.
# shellcheck shell=sh
# shellcheck disable=SC2154
umask 077
tries=0
until cd "$folder" 2>/dev/null; do # the start on this server may be a moment later
  tries=$((tries + 1))
  [ $tries -lt 300 ] || {
    echo "remote: there is no job's folder $folder" >&2
    exit 1
  }
  sleep 0.1
done
name=
printf '%s\n' "$line" | xargs printf '%s\n' | while IFS= read -r word; do
  if [ -z "$name" ]; then
    # before it there may be assignments: "PATH=/opt/x/bin:$PATH;export PATH;/opt/x/bin/orted"
    name=${word##*;}
    name=${name##*/}
    case $name in
      orted | prted | hydra_pmi_proxy) word=$name ;;
      *) name='' && continue ;;
    esac
  fi
  printf '%s\n' "$word"
done >.order
if ! [ -s .order ]; then
  echo "remote: the order is for none of mpirun's daemons" >&2
  exit 1
fi
[ -p orders ] || mkfifo orders 2>/dev/null
[ -e order ] || mv .order order
echo 1<>orders
