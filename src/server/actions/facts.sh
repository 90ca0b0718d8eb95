#!/bin/sh
# Tells what a server is and has, for `remote check`. Set before this text by src/servers/facts.cpp:
#   project, env  the folders of the project and of its Python environment
#   activate      sh text that enters that environment
#   root          put before the paths of the system's files; a test may name a folder with files of its own
#   shm           the folder of shared memory
# Answers in lines "@remote1 facts KEY …". gpus.sh and a call of end_facts follow. Nothing is written. It starts as few programs as it can:
# many servers are asked at once, and practice servers share one machine.
# shellcheck disable=SC2154  # the variables above
# shellcheck source=src/server/lib/room.sh
. "$remote_program/lib/room.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
# shellcheck source=src/server/lib/logind.sh
. "$remote_program/lib/logind.sh"
# shellcheck source=src/server/lib/gpus.sh
. "$remote_program/lib/gpus.sh"

LC_ALL=C
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin
export LC_ALL PATH

say() {
  printf '@remote1 facts %s\n' "$*"
}

echo
trap cannot_start EXIT
look_for_room
[ -z "$no_forks" ] || cannot_start
say "clock $(date +%s)"

# ---- the machine ----------------------------------------------------------------------------------------

facts_root=$root awk '
  function first(file,  line) {
    line = ""
    if ((getline line < file) <= 0) line = ""
    close(file)
    return line
  }
  function value_of(line) {
    sub(/^[^:=]*[:=][ \t]*/, "", line)
    return line
  }
  function tell(key, value) {
    if (value != "") print "@remote1 facts " key " " value
  }
  # How many numbers a list such as "0-3,8" has.
  function length_of(list,  part, n, i, ends, sum) {
    n = split(list, part, ",")
    for (i = 1; i <= n; i++) sum += (split(part[i], ends, "-") == 2) ? ends[2] - ends[1] + 1 : 1
    return sum
  }
  # The lowest limit on the way from a control group up to the root, of those that are numbers.
  function lowest(base, path, file,  value, low) {
    low = ""
    for (;;) {
      value = first(base path "/" file)
      if (value ~ /^[0-9]+/ && (low == "" || value + 0 < low + 0)) low = value
      if (path == "" || path == "/") return low
      sub(/\/[^\/]*$/, "", path)
    }
  }
  # Processors of a quota that control groups give: "QUOTA PERIOD".
  function lowest_quota(base, path, old,  value, low, part) {
    low = ""
    for (;;) {
      value = old ? first(base path "/cpu.cfs_quota_us") " " first(base path "/cpu.cfs_period_us") : first(base path "/cpu.max")
      if (value ~ /^[0-9]+ [0-9]+$/) {
        split(value, part, " ")
        if (part[2] > 0 && (low == "" || part[1] / part[2] < low)) low = part[1] / part[2]
      }
      if (path == "" || path == "/") return low
      sub(/\/[^\/]*$/, "", path)
    }
  }
  BEGIN {
    root = ENVIRON["facts_root"]
    proc = root "/proc"
    tell("host", first(proc "/sys/kernel/hostname"))
    tell("kernel", first(proc "/sys/kernel/osrelease"))
    while ((getline line < (root "/etc/os-release")) > 0)
      if (line ~ /^PRETTY_NAME=/) { line = value_of(line); gsub(/["\047]/, "", line); tell("os", line) }
    while ((getline line < (proc "/cpuinfo")) > 0) {
      if (line ~ /^processor/) threads++
      else if (line ~ /^model name/ && model == "") model = value_of(line)
      else if (line ~ /^physical id/) { package = value_of(line); sockets[package] = 1 }
      else if (line ~ /^core id/) cores[package " " value_of(line)] = 1
    }
    for (i in sockets) socket_count++
    for (i in cores) core_count++
    tell("cpu", model)
    tell("cores", (socket_count + 0) " " (core_count + 0) " " (threads + 0))
    while ((getline line < (proc "/self/status")) > 0) {
      if (line ~ /^Cpus_allowed_list:/) tell("usable", length_of(value_of(line)))
      else if (line ~ /^Uid:/) { split(value_of(line), part, "\t"); tell("uid", part[1]) }
    }
    nodes = first(root "/sys/devices/system/node/online")
    if (nodes != "") tell("numa", length_of(nodes))
    while ((getline line < (proc "/meminfo")) > 0) {
      split(line, part, " ")
      if (part[1] == "MemTotal:") total = part[2]
      else if (part[1] == "MemAvailable:") available = part[2]
    }
    if (total != "" && available != "") tell("memory", total " " available)
    load = first(proc "/loadavg")
    if (split(load, part, " ") >= 3) tell("load", part[1] " " part[2] " " part[3])
    while ((getline line < (proc "/self/limits")) > 0) {
      soft = substr(line, 27); sub(/ .*/, "", soft)
      if (line ~ /^Max open files /) tell("limit", "nofile " soft)
      else if (line ~ /^Max processes /) tell("limit", "nproc " soft)
      else if (line ~ /^Max locked memory /) tell("limit", "memlock " soft)
      else if (line ~ /^Max core file size /) tell("limit", "core " soft)
    }
    while ((getline line < (proc "/self/cgroup")) > 0) {
      n = index(line, ":"); rest = substr(line, n + 1)
      n = index(rest, ":"); kind = substr(rest, 1, n - 1); path = substr(rest, n + 1)
      base = root "/sys/fs/cgroup"
      if (kind == "") {
        if (memory == "") memory = lowest(base, path, "memory.max")
        if (quota == "") quota = lowest_quota(base, path, 0)
      }
      if (("," kind ",") ~ /,memory,/) memory = lowest(base "/memory", path, "memory.limit_in_bytes")
      if (("," kind ",") ~ /,cpu,/) quota = lowest_quota(base "/" kind, path, 1)
    }
    tell("memory_limit", memory)
    if (quota != "") tell("cpu_limit", sprintf("%d", quota * 100))
    tell("driver", first(root "/sys/module/nvidia/version"))
  }
' 2>/dev/null
tell_logind

say "user ${LOGNAME:-${USER:-unknown}}"
[ ! -e "$root/var/lib/systemd/linger/${LOGNAME:-${USER:-unknown}}" ] || say 'linger yes'
for program in rsync docker podman apptainer sbatch mpirun iperf3; do
  ! command -v "$program" >/dev/null 2>&1 || say "has $program"
done

for port in "$root"/sys/class/infiniband/*/ports/*; do
  [ -r "$port/state" ] || continue
  state='' rate='' layer=''
  read -r state <"$port/state"
  read -r rate <"$port/rate"
  read -r layer <"$port/link_layer"
  device=${port%/ports/*}
  say "infiniband ${device##*/} ${port##*/} ${layer:-unknown} ${state#*: }"
  [ -z "$rate" ] || say "rate ${device##*/} ${port##*/} $rate"
done 2>/dev/null

# ---- disks ----------------------------------------------------------------------------------------------

# The folder, or the nearest one above it that is there, into $place.
place() {
  place=$2
  [ -d "$place" ] && say "there $1"
  while [ ! -d "$place" ] && [ -n "$place" ]; do
    case $place in
      */*) place=${place%/*} ;;
      *) place= ;;
    esac
  done
  place=${place:-/}
  [ ! -w "$place" ] || say "writable $1"
}
# The kernel's number of a device, as MAJOR:MINOR. glibc packs both into one number.
disk_of() {
  major=$((($1 >> 8) & 4095)) minor=$((($1 & 255) | (($1 >> 12) & 1048320)))
  rotational=
  for folder in "$root/sys/dev/block/$major:$minor" "$root/sys/dev/block/$major:$minor/.."; do
    [ -r "$folder/queue/rotational" ] || continue
    read -r rotational <"$folder/queue/rotational"
    break
  done
  case $rotational in
    0) rotational=ssd ;;
    1) rotational=hdd ;;
    *) rotational=unknown ;;
  esac
}
# Sizes and devices by one call of stat each, or where one of the folders fails, by one for each folder.
tell_disks() {
  if ! sizes=$(stat -f -c '%S %b %a %c %d %T' "$@" 2>/dev/null) || ! devices=$(stat -L -c %d "$@" 2>/dev/null); then
    [ $# -gt 1 ] || return
    for one in "$@"; do
      tell_disks "$one"
      kinds=${kinds#* }
    done
    return
  fi
  while [ $# -gt 0 ]; do
    disk_of "${devices%%"$newline"*}"
    say "disk ${kinds%% *} ${devices%%"$newline"*} $rotational ${sizes%%"$newline"*}"
    say "path ${kinds%% *} $1"
    [ $# -gt 1 ] || break
    devices=${devices#*"$newline"} sizes=${sizes#*"$newline"} kinds=${kinds#* }
    shift
  done
}
newline='
'
place project "$project"
set -- "$place"
place environment "$env"
set -- "$@" "$place"
place tmp "${TMPDIR:-/tmp}"
set -- "$@" "$place"
kinds='project environment tmp '
if [ -d "$shm" ]; then
  place shm "$shm"
  set -- "$@" "$place"
  kinds="${kinds}shm "
fi
tell_disks "$@"

# ---- Python ---------------------------------------------------------------------------------------------

tell_packages() { # KIND FOLDER
  cd "$2" 2>/dev/null || return
  found_packages=1
  printf "@remote1 facts $1 %s\n" *.dist-info *.egg-info
  [ -z "$torch_told" ] && [ -r torch/version.py ] || return
  torch_told=1
  while read -r name rest; do
    case $name in
      __version__ | cuda | cuda:* | hip | hip:*) ;;
      *) continue ;;
    esac
    rest=${rest##*=}
    rest=${rest#"${rest%%[!"'\" "]*}"}
    rest=${rest%%["'\""]*}
    name=${name%:}
    case $name$rest in
      __version__[0-9]*) say "torch $rest" ;;
      cuda[0-9]*) say "cuda $rest" ;;
      hip[0-9]*) say "hip $rest" ;;
    esac
  done <torch/version.py
}

found=$(
  eval "$activate" >/dev/null 2>&1
  new_python && command -v "$python" && echo "Python $python_version"
)
program=${found%%"$newline"*}
version=${found#*"$newline"}
torch_told='' found_packages=''
case $program$version in
  /*Python\ [0-9]*)
    version=${version#*Python }
    version=${version%%[!0-9.]*}
    say "python $version $program"
    minor=${version#*.}
    short=${version%%.*}.${minor%%.*}
    prefix=${program%/bin/*}
    own_only=
    if [ -r "$prefix/pyvenv.cfg" ]; then
      own_only=1
      home=
      while read -r name _ rest; do
        case $name in
          home) home=$rest ;;
          include-system-site-packages) [ "$rest" != true ] || own_only= ;;
        esac
      done <"$prefix/pyvenv.cfg"
      tell_packages package "$prefix/lib/python$short/site-packages"
      prefix=${home%/bin}
    fi
    if [ -z "$own_only" ]; then
      tell_packages package "$HOME/.local/lib/python$short/site-packages"
      tell_packages package "$prefix/lib/python$short/site-packages"
      tell_packages package "$prefix/lib64/python$short/site-packages"
      if [ "$prefix" = /usr ] || [ -z "$prefix" ]; then
        tell_packages package "/usr/local/lib/python$short/dist-packages"
        tell_packages distribution /usr/lib/python3/dist-packages
      fi
    fi
    if [ -z "$found_packages" ]; then # a Python that keeps them elsewhere, or a shim before it
      folder=$(
        eval "$activate" >/dev/null 2>&1
        "$program" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null
      )
      tell_packages package "$folder"
    fi
    ;;
  *) say 'python none' ;;
esac
cd / || exit

# What is last, behind what gpus.sh tells.
end_facts() {
  ! command -v nvidia-smi >/dev/null 2>&1 || say 'has nvidia-smi'
  answer=$(printf yes)
  [ "$answer" = yes ] || cannot_start
  trap - EXIT
  printf '@remote1 end\n'
}
