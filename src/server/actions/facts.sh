#!/bin/sh
# What a server is and has: its parts serve a launch, check, servers and top. A request calls facts_begin, the parts that it wants
# (src/servers/facts.cpp), and facts_end; an action about jobs that sources this calls the parts alone. Set before:
#   root          put before the paths of the system's files; a test may name a folder with files of its own
#   project, env  the folders of the project and of its Python environment; shm: of shared memory (tell_disks)
#   activate      sh text that enters that environment (tell_python, tell_program, tell_mpi)
# Answers in lines "@remote1 facts KEY …" (docs/protocol.md). Nothing is opened, bound or written. As few programs as can be are started:
# many servers are asked at once, and top asks every second or two.
# shellcheck disable=SC2154  # the variables above
# shellcheck source=src/server/lib/room.sh
. "$remote_program/lib/room.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"
# shellcheck source=src/server/lib/logind.sh
. "$remote_program/lib/logind.sh"
# shellcheck source=src/server/lib/network.sh
. "$remote_program/lib/network.sh"
# shellcheck source=src/server/lib/gpus.sh
. "$remote_program/lib/gpus.sh"
# shellcheck source=src/server/lib/lease.sh
. "$remote_program/lib/lease.sh"

newline='
'

fact() {
  printf '@remote1 facts %s\n' "$*"
}

facts_begin() {
  LC_ALL=C
  PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/sbin:/sbin
  export LC_ALL PATH
  # What a login shell's start files printed may lack its last newline.
  echo
  trap cannot_start EXIT
  look_for_room
  [ -z "$no_forks" ] || cannot_start
}

# stay_heard SECONDS: for a client that gives up when nothing comes for so long, six at least: what is asked for may take longer (nvidia-smi: seven).
heard=
stay_heard() {
  {
    for _ in 1 2; do
      sleep 3 >/dev/null
      read -r sh_stat <"/proc/$$/stat" && case ${sh_stat##*)} in ' '[Tt]*) continue ;; esac # stopped: that is silence
      echo
    done
  } 2>/dev/null &
  heard=$!
}

# A shell that cannot start a process finds nothing out: that is no news of the server.
facts_end() {
  [ -z "$heard" ] || kill "$heard" 2>/dev/null
  fe_answer=$(printf yes)
  [ "$fe_answer" = yes ] || cannot_start
  trap - EXIT
  printf '@remote1 end\n'
}

tell_clock() {
  fact "clock $(date +%s)"
}

# ---- the machine ----------------------------------------------------------------------------------------

# How it is at this moment, by builtins alone.
tell_load() {
  tl_cpus=0 tl_busy=0 tl_total=0
  if read -r tl_one tl_five tl_fifteen _ 2>/dev/null <"$root/proc/loadavg"; then
    fact "load $tl_one $tl_five $tl_fifteen"
  fi
  while read -r tl_key tl_user tl_nice tl_system tl_idle tl_wait tl_irq tl_soft tl_steal _; do
    case $tl_key in
      cpu)
        tl_busy=$((tl_user + tl_nice + tl_system + ${tl_irq:-0} + ${tl_soft:-0} + ${tl_steal:-0}))
        tl_total=$((tl_busy + tl_idle + ${tl_wait:-0}))
        ;;
      cpu[0-9]*) tl_cpus=$((tl_cpus + 1)) ;;
      *) break ;;
    esac
  done 2>/dev/null <"$root/proc/stat"
  [ $tl_cpus -gt 0 ] || tl_cpus=1
  fact "ticks $tl_cpus $tl_busy $tl_total"
  while read -r tl_key tl_value _; do
    case $tl_key in
      MemTotal:) tl_total=$tl_value ;;
      MemAvailable:) fact "memory $tl_total $tl_value" && break ;;
    esac
  done 2>/dev/null <"$root/proc/meminfo"
}

# What tell_machine reads with.
awk_reading='
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
'

tell_machine() {
  # shellcheck disable=SC2016  # awk's
  facts_root=$root awk "$awk_reading"'
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
  tell_login
  tell_infiniband
}

tell_login() {
  tl_user=${LOGNAME:-${USER:-unknown}}
  fact "user $tl_user"
  [ ! -e "$root/var/lib/systemd/linger/$tl_user" ] || fact 'linger yes'
  for tl_program in rsync docker podman apptainer sbatch mpirun iperf3; do
    ! command -v "$tl_program" >/dev/null 2>&1 || fact "has $tl_program"
  done
}

tell_infiniband() {
  for ti_port in "$root"/sys/class/infiniband/*/ports/*; do
    [ -r "$ti_port/state" ] || continue
    ti_state='' ti_rate='' ti_layer=''
    read -r ti_state <"$ti_port/state"
    read -r ti_rate <"$ti_port/rate"
    read -r ti_layer <"$ti_port/link_layer"
    ti_device=${ti_port%/ports/*}
    fact "infiniband ${ti_device##*/} ${ti_port##*/} ${ti_layer:-unknown} ${ti_state#*: }"
    [ -z "$ti_rate" ] || fact "rate ${ti_device##*/} ${ti_port##*/} $ti_rate"
  done 2>/dev/null
}

# tell_others: the running jobs of this user's other projects, by their supervisors: "sh PROJECT/JOBS/.bin/DIGEST/lib/supervisor.sh ID …".
# A process that is being forked from one has the same words.
tell_others() {
  set --
  for to_process in "$root"/proc/[0-9]*; do
    [ -O "$to_process" ] && set -- "$@" "$to_process/cmdline"
  done
  [ $# -gt 0 ] || return 0
  cat "$@" 2>/dev/null | tr '\0' '\n' |
    sed -n '/^\/.*\/\.bin\/[0-9a-f]*\/lib\/supervisor\.sh$/{N;s/^\(.*\)\/[^/]*\/\.bin\/[0-9a-f]*\/lib\/supervisor\.sh\n\([0-9a-f]\{32\}\)$/\1\/\2/p;}' |
    sort -u | {
    to_folder='' to_count=0
    while IFS= read -r to_job; do
      if [ "${to_job%/*}" != "$to_folder" ]; then
        tell_other "$to_folder" $to_count
        to_folder=${to_job%/*} to_count=0
      fi
      to_count=$((to_count + 1))
    done
    tell_other "$to_folder" $to_count
  }
}

# tell_other FOLDER COUNT: one of them. Practice servers on one machine see each other's processes.
tell_other() {
  case $1 in
    "$HOME"/*) to_shown=\~${1#"$HOME"} ;;
    '' | */.remote/sandbox/*) return ;;
    *) to_shown=$1 ;;
  esac
  # shellcheck disable=SC3013  # dash, bash and busybox have it
  [ "$1" -ef "$project" ] || fact "other $2 $to_shown"
}

# ---- disks ----------------------------------------------------------------------------------------------

# The folder, or the nearest one above it that is there, into $place.
find_place() {
  place=$2
  [ ! -d "$place" ] || fact "there $1"
  while [ ! -d "$place" ] && [ -n "$place" ]; do
    case $place in
      */*) place=${place%/*} ;;
      *) place= ;;
    esac
  done
  place=${place:-/}
  [ ! -w "$place" ] || fact "writable $1"
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
# disk_lines PLACE…, of $kinds: sizes and devices by one call of stat each, or where one of the folders fails, by one for each folder.
disk_lines() {
  if ! sizes=$(stat -f -c '%S %b %a %c %d %T' "$@" 2>/dev/null) || ! devices=$(stat -L -c %d "$@" 2>/dev/null); then
    [ $# -gt 1 ] || return
    for one in "$@"; do
      disk_lines "$one"
      kinds=${kinds#* }
    done
    return
  fi
  case $devices in
    '' | *[!0-9"$newline"]*) return ;;
  esac
  while [ $# -gt 0 ]; do
    disk_of "${devices%%"$newline"*}"
    fact "disk ${kinds%% *} ${devices%%"$newline"*} $rotational ${sizes%%"$newline"*}"
    fact "path ${kinds%% *} $1"
    [ $# -gt 1 ] || break
    devices=${devices#*"$newline"} sizes=${sizes#*"$newline"} kinds=${kinds#* }
    shift
  done
}

# tell_disks WHAT…: of project, environment, tmp and shm.
tell_disks() {
  kinds=
  for td_what; do
    shift
    case $td_what in
      project) place=$project ;;
      environment) place=$env ;;
      tmp) place=${TMPDIR:-/tmp} ;;
      *)
        place=$shm
        [ -d "$place" ] || continue
        ;;
    esac
    find_place "$td_what" "$place"
    kinds="$kinds$td_what "
    set -- "$@" "$place"
  done
  disk_lines "$@"
}

# tell_jobs FOLDER: of the jobs, in the project's; whether it cannot be written in, and whether a launch has left this server out
# (lifeline_acts.py).
tell_jobs() {
  if [ -e "$project/$1" ] || [ -L "$project/$1" ]; then
    { [ -d "$project/$1" ] && [ -w "$project/$1" ] && [ -x "$project/$1" ]; } || fact 'jobs closed'
  fi
  [ -f "$project/$1/.sick" ] || return 0
  ts_mark=
  read -r ts_mark _ 2>/dev/null <"$project/$1/.sick" || return 0
  case $ts_mark in gpu | ecc | xid | disk) fact "sick $ts_mark" ;; esac
}

# ---- Python ---------------------------------------------------------------------------------------------

# read_packages KIND FOLDER: torch, and the list of packages where $listed is not empty.
read_packages() {
  cd "$2" 2>/dev/null || return
  found_packages=1
  [ -z "$listed" ] || printf "@remote1 facts $1 %s\n" *.dist-info *.egg-info
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
      *[!0-9A-Za-z.+_-]*) ;;
      __version__[0-9]*) fact "torch $rest" ;;
      cuda[0-9]*) fact "cuda $rest" ;;
      hip[0-9]*) fact "hip $rest" ;;
    esac
  done <torch/version.py
}

# tell_python [packages]: the environment's, which a job runs with, else the server's. With `packages`, their list too.
tell_python() {
  listed=${1-}
  found=$(
    eval "$activate" >/dev/null 2>&1
    new_python && command -v "$python" && echo "Python $python_version"
  ) || found=$(new_python && command -v "$python" && echo "Python $python_version")
  program=${found%%"$newline"*}
  version=${found#*"$newline"}
  torch_told='' found_packages=''
  case $program$version in
    /*Python\ [0-9]*)
      version=${version#*Python }
      version=${version%%[!0-9.]*}
      fact "python $version $program"
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
        read_packages package "$prefix/lib/python$short/site-packages"
        prefix=${home%/bin}
      fi
      if [ -z "$own_only" ]; then
        read_packages package "$HOME/.local/lib/python$short/site-packages"
        read_packages package "$prefix/lib/python$short/site-packages"
        read_packages package "$prefix/lib64/python$short/site-packages"
        if [ "$prefix" = /usr ] || [ -z "$prefix" ]; then
          read_packages package "/usr/local/lib/python$short/dist-packages"
          read_packages distribution /usr/lib/python3/dist-packages
        fi
      fi
      if [ -z "$found_packages" ]; then # a Python that keeps them elsewhere, or a shim before it
        folder=$(
          eval "$activate" >/dev/null 2>&1
          "$program" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null
        )
        read_packages package "$folder"
      fi
      ;;
    *) fact 'python none' ;;
  esac
  cd / || exit
}

# ---- programs -------------------------------------------------------------------------------------------

# Whether a job finds the program. Entering the environment may cost a second, and is not needed where it is there.
tell_program() { # NAME
  if [ -x "$env/bin/$1" ] || command -v "$1" >/dev/null 2>&1; then return; fi
  (
    eval "$activate" >/dev/null 2>&1
    command -v "$1" >/dev/null 2>&1
  ) || fact "missing $1"
}

# mpirun and its daemon, as a job finds them.
tell_mpi() {
  tm_found=$(
    eval "$activate" >/dev/null 2>&1
    mpirun --version </dev/null 2>/dev/null
    for tm_daemon in orted prted hydra_pmi_proxy; do
      command -v "$tm_daemon" >/dev/null && echo daemon && break
    done
  )
  case $tm_found in
    *'(Open MPI) '[0-9]*) tm_kind=openmpi tm_version=${tm_found#*'(Open MPI) '} ;;
    HYDRA*Version:*) tm_kind=hydra tm_version=${tm_found#*Version:} ;;
    *'Intel(R) MPI Library'*Version\ *) tm_kind=hydra tm_version=${tm_found#*Version } ;;
    *) fact "mpi none" && return ;;
  esac
  tm_version=${tm_version#"${tm_version%%[0-9]*}"}
  tm_version=${tm_version%%[!0-9A-Za-z._-]*}
  [ -n "$tm_version" ] || { fact "mpi none" && return; }
  tm_whole=client
  case $tm_found in *daemon) tm_whole=whole ;; esac
  tm_user=user
  [ "$(id -u)" != 0 ] || tm_user=root
  fact "mpi $tm_kind $tm_version $tm_whole $tm_user"
}
