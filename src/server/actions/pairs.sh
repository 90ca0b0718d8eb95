#!/bin/sh
# Looks at a server's network for `remote check`. Set by src/servers/pairs.cpp:
#   activate  sh text that enters the Python environment
#   bandwidth  1: what is sent is measured, too; may be empty
#   own       this server's number
#   token     by which its listeners prove whose they are
#   master    the first server, as a launch would call it
#   port      the port that all servers try first to listen on
#   python    the names that Python may have, where not the usual ones: a test names one that is not there
# and after it a call of pairs_without_python for each server, for where there is no python3, and of pairs_end.
# Answers in lines "@remote1 pairs …" (docs/protocol.md), at last "@remote1 end".
# shellcheck disable=SC2154  # these variables are set before
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
LC_ALL=C
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin
export LC_ALL PATH

# What a login shell's start files printed may lack its last newline.
echo
names=$python
# shellcheck disable=SC2086  # words
found=$(
  new_python $names || {
    eval "$activate" >/dev/null 2>&1
    new_python $names
  } && command -v "$python"
) || found=
for firewall in ufw firewall-cmd iptables nft none; do
  command -v "$firewall" >/dev/null 2>&1 && break
done
# Of nft also the chain that drops, where this user may look: nft-FAMILY-TABLE-CHAIN.
if [ "$firewall" = nft ]; then
  chain=$( (nft list ruleset || sudo -n nft list ruleset) 2>/dev/null </dev/null | awk '
    $1 == "table" { family = $2; table = $3 }
    $1 == "chain" { chain = $2; input = 0; drops = 0 }
    / hook input / { input = 1; if (/policy drop/) drops = 1 }
    / (drop|reject)/ { drops = 1 }
    $1 == "}" && input && drops { print "nft-" family "-" table "-" chain; exit }')
  case $chain in *[!A-Za-z0-9._-]*) ;; ?*) firewall=$chain ;; esac
fi
printf '@remote1 pairs firewall %s\n' "$firewall"
for device in /dev/nvidia[0-9]* /dev/kfd; do
  [ ! -e "$device" ] || { printf '@remote1 pairs gpus\n' && break; }
done
if [ -n "$found" ]; then
  # one module in several files
  program=$(cd "$remote_program/python" && cat pairs.py pairs_loop.py pairs_ways.py ${bandwidth:+pairs_bandwidth.py}) || exit
  program="$program
Server().run()"
  options='-S -I' # it needs the standard library alone; a Python that is told where that is, has to listen
  [ -z "${PYTHONHOME-}" ] || options=-S
  # shellcheck disable=SC2086
  exec "$found" $options -c "$program" "$own" "$token" "$master" "$port"
fi
printf '@remote1 pairs nopython\n'

# pairs_without_python INDEX NAME: what can be said of another server without a socket.
pairs_without_python() {
  addresses=$(getent ahosts "$2" 2>/dev/null | sed -n 's/^\([0-9A-Fa-f.:]*\)[^0-9A-Fa-f.:].*/\1/p' | awk '!seen[$0]++' | head -n 8)
  # shellcheck disable=SC2086
  set -- "$1" $addresses
  dev=- src=-
  if [ $# -gt 1 ]; then
    way=$(ip route get "$2" 2>/dev/null | head -n 1)
    index=$1
    # shellcheck disable=SC2086
    set -- $way
    while [ $# -ge 2 ]; do
      case $1 in
        dev) dev=$2 ;;
        src) src=$2 ;;
      esac
      shift
    done
    # shellcheck disable=SC2086
    set -- "$index" $addresses
  fi
  index=$1
  shift
  case $dev in *[!A-Za-z0-9._-]*) dev=- ;; esac
  printf '@remote1 pairs way %s %s %s%s\n' "$index" "$dev" "$src" "${*:+ $*}"
}

pairs_end() {
  printf '@remote1 end\n'
}
