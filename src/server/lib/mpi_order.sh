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
# MPICH's mpirun takes the end of its agent for the end of its daemon, so this stays until the job's supervisor has ended, or the
# agent is gone: that ends stdin. Nothing may stand behind it, as this script itself comes by stdin.
stay() {
  exec 3<&0
  cat <&3 >/dev/null &
  reader=$!
  while [ -e order ] && ! [ -e result ] && kill -0 "$reader" 2>/dev/null; do
    if read -r watched _ 2>/dev/null <./supervisor && ! kill -0 "$watched" 2>/dev/null; then
      break
    fi
    sleep 0.2 2>/dev/null || sleep 1
  done
  kill "$reader" 2>/dev/null
  exit 0
}
read -r name <order
[ "$name" = hydra_pmi_proxy ] || exit 0
stay
