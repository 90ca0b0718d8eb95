# The way to the master of a launch and the ports there: parts of actions/facts.sh, whose fact() tells them.
# shellcheck shell=sh
# shellcheck disable=SC2154  # variables are shared between the parts
# shellcheck source=src/server/lib/processes.sh
. "$remote_program/lib/processes.sh"

# The first address of a name, into $address.
resolve() {
  case $1 in
    *:* | *[0-9].*[0-9]) # an address, unless it has a letter that no IPv4 address has
      case $1 in
        *:*) address=$1 && return ;;
        *[!0-9.]*) ;;
        *) address=$1 && return ;;
      esac
      ;;
  esac
  address=$(getent ahosts "$1" 2>/dev/null)
  address=${address%%[!0-9A-Fa-f.:]*}
  [ -n "$address" ] && return
  address=$(awk -v name="$1" '!/^#/ { for (i = 2; i <= NF; i++) if ($i == name) { print $1; exit } }' \
    /etc/hosts 2>/dev/null)
}

# The interface that has an address, into $dev: the route to one's own address is lo, but the others cannot reach
# a process that listens there.
own_interface() {
  own=$("$ip" -o addr show 2>/dev/null |
    awk -v a="$1" '{ split($4, net, "/"); if (net[1] == a) { sub(/@.*/, "", $2); print $2; exit } }')
  [ -n "$own" ] && dev=$own
}

# The way by /proc/net/route alone: the longest prefix wins, then the lowest metric.
kernel_route() {
  case $1 in
    127.*) dev=lo && return ;;
    *[!0-9.]*) return ;;
  esac
  dev=$(awk -v address="$1" '
    function hex(text,  i, value) {
      value = 0
      for (i = 1; i <= length(text); i++)
        value = value * 16 + index("0123456789ABCDEF", toupper(substr(text, i, 1))) - 1
      return value
    }
    BEGIN { split(address, octet, "."); best = -1 }
    NR > 1 && hex($4) % 2 == 1 {
      fits = 1
      bits = 0
      for (i = 0; i < 4; i++) { # little endian: the last two digits are the first octet
        width = 256 - hex(substr($8, 7 - 2 * i, 2))
        if (octet[i + 1] - octet[i + 1] % width != hex(substr($2, 7 - 2 * i, 2))) fits = 0
        bits += 256 - width
      }
      if (fits && (bits > best || (bits == best && $7 + 0 < metric))) {
        best = bits; metric = $7 + 0; dev = $1
      }
    }
    END { print dev }' /proc/net/route 2>/dev/null)
}

# tell_route ADDRESS IP: the way to the master, by the program ip(8) where it is there.
tell_route() {
  ip=$2
  dev='' src=''
  resolve "$1"
  if [ -z "$address" ]; then
    fact "route unresolved"
  else
    if command -v "$ip" >/dev/null 2>&1; then
      way=$("$ip" route get "$address" 2>/dev/null)
      # shellcheck disable=SC2086
      set -- $way
      [ "${1-}" = local ] && is_local=1 || is_local=
      while [ $# -ge 2 ]; do
        case $1 in
          dev) dev=${dev:-$2} ;;
          src) src=${src:-$2} ;;
        esac
        shift
      done
      [ -n "$is_local" ] && own_interface "$address"
    else
      kernel_route "$address"
    fi
    case $dev in
      '' | *[!A-Za-z0-9._-]*) fact "route unknown $address" ;;
      *) fact "route via $dev $address${src:+ $src}" ;;
    esac
  fi
}

# All TCP sockets of the server: "PORT STATE UID INODE", in hexadecimal as the kernel has the first two.
sockets() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk '$2 ~ /:[0-9A-F][0-9A-F][0-9A-F][0-9A-F]$/ { print substr($2, length($2) - 3), $4, $8, $10 }'
}

# Who holds the socket of an inode: "PID NAME", where it is a process of this user's.
holder() {
  own_processes
  if find_open "$own_pids" "socket:\\[$1\\]"; then
    pid=${opened# }
    pid=${pid%%:*}
  else
    pid=
    for process in $own_pids; do
      for file in "/proc/$process/fd"/*; do
        open_file "$process" "${file##*/}"
        case $of_flags in
          *2) [ ! -S "$file" ] || [ "$(readlink "$file" 2>/dev/null)" != "socket:[$1]" ] || { pid=$process && break 2; } ;;
        esac
      done
    done
  fi
  [ -n "$pid" ] || return 1
  name=$(tr -d '\000-\037\177' 2>/dev/null <"/proc/$pid/comm")
  printf '%s %s' "$pid" "${name:-unknown}"
}

# tell_port PORT: whether the port that is wanted is free on the master, and who holds it; 0: any. And two that are free.
tell_port() {
  port=$1
  all=$(sockets)
  if [ "$port" -gt 0 ]; then
    hex=$(printf '%04X' "$port")
    taken=$(printf '%s\n' "$all" | awk -v p="$hex" '$1 == p && $2 == "0A" { print $3, $4; exit }')
    if [ -n "$taken" ]; then
      uid=${taken%% *}
      user=$(getent passwd "$uid" 2>/dev/null || grep "^[^:]*:[^:]*:$uid:" /etc/passwd 2>/dev/null)
      user=${user%%:*}
      case $user in
        '' | *[!A-Za-z0-9._-]*) user=$uid ;;
      esac
      if who=$(holder "${taken#* }"); then
        fact "port $port taken $user $who"
      else
        fact "port $port taken $user"
      fi
    else
      fact "port $port free"
    fi
  fi
  # Another one: outside of the range from which the kernel takes ports for outgoing connections, or a connection
  # might have it by the time that it is needed.
  low=0 high=0
  read -r low high 2>/dev/null </proc/sys/net/ipv4/ip_local_port_range
  seed=$(od -An -N3 -tu4 /dev/urandom 2>/dev/null) || seed=$$
  # And a second one, for the lifeline.
  free=$(printf '%s\n' "$all" | awk -v seed="${seed:-$$}" -v low="${low:-0}" -v high="${high:-0}" -v p="$port" '
    { used[$1] = 1 }
    END {
      used[sprintf("%04X", p)] = 1
      first = 20000; count = 12768 # up to 32767
      for (pass = 0; pass < 2; pass++) { # in the second, the range does not matter: it may be all there is
        for (i = 0; i < count; i++) {
          port = first + (seed + i * 7919) % count # 7919 is a prime: all are tried
          if (pass == 0 && port >= low && port <= high) continue
          if (!(sprintf("%04X", port) in used)) {
            print port
            used[sprintf("%04X", port)] = 1
            if (++found == 2) exit
          }
        }
      }
    }')
  # shellcheck disable=SC2086
  set -- $free
  [ $# -ge 1 ] && fact "suggest $1"
  [ $# -ge 2 ] && fact "second $2"
}
