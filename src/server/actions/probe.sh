#!/bin/sh
# Looks at a server before a launch. Set before this text by src/servers/probe.cpp:
#   addr  the master's address, as this server reaches it: an IP address or a name
#   port  on the master: the port wanted, 0 for any free one; empty on the other servers
#   activate  sh text that enters the Python environment
#   ip    the program ip(8); a test may name one that is not there
#   program  a name: is it found by a job?
#   mpi   not empty: mpirun is looked for
#   look  not empty: so is what would harm a launch, with project and env, the folders of the project and of its environment
#   root  put before the paths of the system's files; a test may name a folder with files of its own
# Answers in lines "@remote1 probe KEY …", at last "@remote1 end". Nothing is opened, bound or written.
# shellcheck disable=SC2154  # all of these are set before
# shellcheck source=src/server/lib/room.sh
. "$remote_program/lib/room.sh"
# shellcheck source=src/server/lib/processes.sh
. "$remote_program/lib/processes.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
# shellcheck source=src/server/lib/logind.sh
. "$remote_program/lib/logind.sh"
# shellcheck source=src/server/lib/login_path.sh
. "$remote_program/lib/login_path.sh"

LC_ALL=C
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin
export LC_ALL PATH
unset OMP_NUM_THREADS OMP_THREAD_LIMIT # nproc would tell them instead of the cores

say() {
  printf '@remote1 probe %s\n' "$*"
}

# What a login shell's start files printed may lack its last newline.
echo
trap cannot_start EXIT
look_for_room
[ -z "$no_forks" ] || cannot_start

host=
read -r host 2>/dev/null </proc/sys/kernel/hostname || host=$(hostname 2>/dev/null)
case $host in
  '' | *[!A-Za-z0-9._-]*) host=unknown ;;
esac
say "host $host"

cpus=$(nproc 2>/dev/null) || cpus=$(grep -c '^processor' /proc/cpuinfo 2>/dev/null)
case $cpus in
  '' | *[!0-9]* | 0) cpus=1 ;;
esac
say "cpus $cpus"

# What holds memory of a GPU and is no job of ours, with the GPU's index ("-": not known). Lines are "app GPU, PID, MiB";
# some MiB are a desktop's.
tell_holders() {
  th_count=0
  while IFS=', ' read -r th_kind th_gpu th_pid th_size _; do
    case $th_kind$th_pid,$th_size in
      app*[!0-9,]* | app,* | *,) continue ;;
      app*) ;;
      *) continue ;;
    esac
    if [ "$th_size" -lt 64 ] || [ $th_count -ge 32 ]; then continue; fi
    if [ -O "/proc/$th_pid" ] && tr '\000' '\n' 2>/dev/null <"/proc/$th_pid/environ" | grep -q '^REMOTE_JOB_ID='; then
      continue
    fi
    th_user=$(stat -c %U "/proc/$th_pid" 2>/dev/null)
    case $th_user in
      '' | *[!A-Za-z0-9._-]*) th_user=unknown ;;
    esac
    th_index=
    case $th_gpu in
      *[!A-Za-z0-9-]*) ;;
      *) th_index=$(printf '%s\n' "$found" | sed -n "s/^GPU \([0-9]*\): .*(UUID: $th_gpu)\$/\1/p" | head -n 1) ;;
    esac
    say "holder $th_pid $th_user ${th_index:--}"
    th_count=$((th_count + 1))
  done
}

# "KEY TEXT", where that is some text that can be printed.
tell_text() {
  case $2 in
    '' | *[!\ -~]*) return ;;
  esac
  [ ${#2} -gt 100 ] || say "$1 $2"
}

# Of "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-…)", each.
tell_models() {
  tm_count=0
  while read -r tm_line; do
    case $tm_line in
      'GPU '*': '*' (UUID: '*) [ $tm_count -lt 64 ] || continue ;;
      *) continue ;;
    esac
    tm_count=$((tm_count + 1))
    tm_line=${tm_line#*: }
    tell_text model "${tm_line%% (UUID: *}"
  done
}

gpus=0 job_path=$PATH
command -v nvidia-smi >/dev/null 2>&1 || add_login_path
if command -v nvidia-smi >/dev/null 2>&1; then
  # A driver that hangs must not hold up the launch.
  limit=
  command -v timeout >/dev/null 2>&1 && limit='timeout 10'
  found=$(
    [ -z "$look" ] || $limit nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits 2>/dev/null |
      sed 's/^/app /' &
    $limit nvidia-smi -L 2>/dev/null
    wait
  )
  gpus=$(printf '%s\n' "$found" | grep -c '^GPU ')
  [ -z "$look" ] || tell_models <<EOF
$found
EOF
  tell_holders <<EOF
$found
EOF
fi
PATH=$job_path
say "gpus $gpus"

# The environment's first: a job runs with that one.
version=$(
  eval "$activate" >/dev/null 2>&1
  new_python && echo "$python_version"
) || version=$(new_python && echo "$python_version") || version=none
say "python $version"

# "KEY FOLDER": the room on its file system, or on that of the nearest folder above it.
tell_room() {
  tr_folder=$2
  while [ ! -d "$tr_folder" ]; do
    case $tr_folder in
      */?*) tr_folder=${tr_folder%/*} ;;
      *) tr_folder=/ ;;
    esac
    tr_folder=${tr_folder:-/}
  done
  tr_room=$(stat -f -c '%S %a %c %d' "$tr_folder" 2>/dev/null) && say "$1 $tr_room"
}

look_for_trouble() {
  say "clock $(date +%s)"
  tell_room room "$project"
  [ ! -d /dev/shm ] || tell_room shm /dev/shm
  tell_logind
}
[ -z "$look" ] || look_for_trouble

# What a report of the launch says of this server. No process is started for that.
tell_versions() {
  if [ -r "$root/etc/os-release" ]; then
    while IFS='=' read -r name value; do
      [ "$name" = PRETTY_NAME ] || continue
      value=${value#["'\""]}
      tell_text os "${value%["'\""]}"
      break
    done <"$root/etc/os-release"
  fi
  for file in kernel:/proc/sys/kernel/osrelease "driver:$root/sys/module/nvidia/version"; do
    value=
    [ ! -r "${file#*:}" ] || read -r value <"${file#*:}"
    tell_text "${file%%:*}" "$value"
  done
  # pyvenv.cfg is of venv ("version") and virtualenv ("version_info"), conda-meta of conda.
  value=
  if [ -r "$env/pyvenv.cfg" ]; then
    while read -r name _ version; do
      case $name in
        version | version_info) value=$version && break ;;
      esac
    done <"$env/pyvenv.cfg"
  else
    for file in "$env"/conda-meta/python-[0-9]*-*.json; do
      [ -r "$file" ] || continue
      value=${file##*/python-}
      value=${value%%-*}
    done
  fi
  value=${value%%[!0-9.]*}
  value=${value%.}
  [ -z "$value" ] || say "env_python $value"
}
[ -z "$look" ] || tell_versions

tell_torch() {
  torch='' cuda='' hip=''
  while read -r name rest; do
    rest=${rest##*=}
    rest=${rest#"${rest%%[!"'\" "]*}"}
    rest=${rest%%["'\""]*}
    case $rest in
      *[!0-9A-Za-z.+_-]*) continue ;;
      [0-9]*) ;;
      *) continue ;;
    esac
    case $name in
      __version__) torch=$rest ;;
      cuda | cuda:) cuda=$rest ;;
      hip | hip:) hip=$rest ;;
    esac
  done <"$1"
  [ -z "$torch" ] || say "torch $torch"
  [ -z "$cuda" ] || say "cuda $cuda"
  [ -z "$hip" ] || say "hip $hip"
}

if [ -n "$look" ]; then
  # The distribution's torch is there for an environment that has no Python of its own, or goes on to the system's packages.
  system=/usr/lib/python3/dist-packages/torch/version.py
  if [ -x "$env/bin/python" ] && ! grep -qi '^include-system-site-packages *= *true' "$env/pyvenv.cfg" 2>/dev/null; then
    system=
  fi
  for file in "$env"/lib/python3*/site-packages/torch/version.py "$HOME"/.local/lib/python3*/site-packages/torch/version.py \
    /usr/local/lib/python3*/dist-packages/torch/version.py "$system"; do
    [ -n "$system" ] || case $file in /usr/local/*) continue ;; esac
    [ ! -r "$file" ] || { tell_torch "$file" && break; }
  done
fi

# Whether a job finds the program. Entering the environment may cost a second, and is not needed where it is there.
look_for_program() {
  if [ -x "$env/bin/$program" ] || command -v "$program" >/dev/null 2>&1; then return; fi
  (
    eval "$activate" >/dev/null 2>&1
    command -v "$program" >/dev/null 2>&1
  ) || say "missing $program"
}
[ -z "$program" ] || look_for_program

# mpirun and its daemon, as a job finds them.
look_for_mpi() {
  lm_found=$(
    eval "$activate" >/dev/null 2>&1
    mpirun --version </dev/null 2>/dev/null
    for lm_daemon in orted prted hydra_pmi_proxy; do
      command -v "$lm_daemon" >/dev/null && echo daemon && break
    done
  )
  case $lm_found in
    *'(Open MPI) '[0-9]*) lm_kind=openmpi lm_version=${lm_found#*'(Open MPI) '} ;;
    HYDRA*Version:*) lm_kind=hydra lm_version=${lm_found#*Version:} ;;
    *'Intel(R) MPI Library'*Version\ *) lm_kind=hydra lm_version=${lm_found#*Version } ;;
    *) say "mpi none" && return ;;
  esac
  lm_version=${lm_version#"${lm_version%%[0-9]*}"}
  lm_version=${lm_version%%[!0-9A-Za-z._-]*}
  [ -n "$lm_version" ] || { say "mpi none" && return; }
  lm_whole=client
  case $lm_found in *daemon) lm_whole=whole ;; esac
  lm_user=user
  [ "$(id -u)" != 0 ] || lm_user=root
  say "mpi $lm_kind $lm_version $lm_whole $lm_user"
}
[ -z "$mpi" ] || look_for_mpi

# ---- the way to the master ------------------------------------------------------------------------------

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

dev='' src=''
resolve "$addr"
if [ -z "$address" ]; then
  say "route unresolved"
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
    '' | *[!A-Za-z0-9._-]*) say "route unknown $address" ;;
    *) say "route via $dev $address${src:+ $src}" ;;
  esac
fi

# ---- the master's port ----------------------------------------------------------------------------------

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

if [ -n "$port" ]; then
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
        say "port $port taken $user $who"
      else
        say "port $port taken $user"
      fi
    else
      say "port $port free"
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
  [ $# -ge 1 ] && say "suggest $1"
  [ $# -ge 2 ] && say "second $2"
fi
# A shell that cannot start a process finds nothing out: that is no news about ports.
answer=$(printf yes)
[ "$answer" = yes ] || cannot_start
trap - EXIT
printf '@remote1 end\n'
