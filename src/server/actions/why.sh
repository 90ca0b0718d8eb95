#!/bin/sh
# Why a launch stands still: two looks at its processes, some seconds apart, and at what they need. Only read, but for the signal of stacks.sh.
# A request calls why_server, why_flight ID…, stacks_begin, why_stacks 0 ID…, why_look 0 ID…, why_pause SECONDS, why_look 1 ID…, why_stacks 1 ID… No process is
# signalled between the looks, as its answer would count as its work. why_server comes before anything opens a file of the project, whose file
# system may hang. docs/protocol.md tells the answers.
# shellcheck disable=SC2154
# shellcheck source=src/server/actions/stacks.sh
. "$remote_program/actions/stacks.sh"
# shellcheck source=src/server/lib/python.sh
. "$remote_program/lib/python.sh"

most_processes=512
why_hung=

# why_look ROUND ID…
why_look() {
  wl_round=$1 wl_count=0
  shift
  read_clock
  [ "$wl_round" != 0 ] || wl_begin=$clock
  say "look $wl_round $clock"
  scanned=
  for wl_id; do
    carries_cookie "$wl_id" || continue
    ranks_of "$wl_id"
    for wl_word in $ranks; do
      why_rank "$wl_id" "${wl_word%%:*}" "${wl_word#*:}"
    done
    for wl_word in $cookies; do
      [ "${wl_word#*:}" != "$wl_id" ] || why_process "${wl_word%%:*}"
    done
  done
}

# why_process PID: state and processor time of a process, and where in the kernel its main thread waits
why_process() {
  [ "$wl_count" -lt "$most_processes" ] && stat_of "$1" || return
  wl_count=$((wl_count + 1))
  # shellcheck disable=SC2086
  set -- "$1" $st_rest
  wp_ticks=$((${13} + ${14})) wp_wchan='' wp_written=-
  read -r wp_wchan 2>/dev/null <"/proc/$1/wchan" || :
  {
    while read -r wp_key wp_value; do
      [ "$wp_key" != wchar: ] || wp_written=$wp_value
    done <"/proc/$1/io"
  } 2>/dev/null
  case $wp_wchan in
    '' | 0 | *[!A-Za-z0-9_.]*) wp_wchan=- ;;
  esac
  say "state $wl_round $1 $st_ppid $st_state $wp_ticks $wp_written $wp_wchan"
  case $wp_wchan in
    *pipe_write) [ "$wl_round" = 0 ] || why_pipe "$1" ;;
  esac
}

# why_rank ID PID RANK: how long its threads waited for a processor, and what its control group withheld
why_rank() {
  wr_delay=0
  for wr_file in "/proc/$2/task"/*/schedstat; do
    { read -r _ wr_wait _ <"$wr_file"; } 2>/dev/null && wr_delay=$((wr_delay + wr_wait))
  done
  say "rank $wl_round $1 $2 $3 $wr_delay"
  while IFS=: read -r _ wr_kind wr_path; do
    case ",$wr_kind," in
      *,cpu,*) why_group "$2" "/sys/fs/cgroup/$wr_kind" "$wr_path" ;;
      ,,)
        wr_base=/sys/fs/cgroup
        [ -e $wr_base/cgroup.controllers ] || wr_base=/sys/fs/cgroup/unified
        why_group "$2" "$wr_base" "$wr_path"
        ;;
    esac
  done 2>/dev/null <"/proc/$2/cgroup"
}

# why_group PID BASE PATH: of the nearest group with a limit: for how many microseconds it has been throttled
why_group() {
  wg_path=$3
  while :; do
    wg_quota=
    { read -r wg_quota _ <"$2$wg_path/cpu.max" || read -r wg_quota _ <"$2$wg_path/cpu.cfs_quota_us"; } 2>/dev/null
    case $wg_quota in
      *[!0-9]* | '') ;;
      *)
        while read -r wg_key wg_value; do
          case $wg_key in
            throttled_usec) say "throttled $wl_round $1 $wg_value" ;;
            throttled_time) say "throttled $wl_round $1 $((wg_value / 1000))" ;;
          esac
        done <"$2$wg_path/cpu.stat"
        return
        ;;
    esac
    case $wg_path in
      */?*) wg_path=${wg_path%/*} ;;
      *) return ;;
    esac
  done
}

# why_pipe PID: into which of its pipes it writes, and who has the other end: `pipe PID FD READER`
why_pipe() {
  wi_reader=-
  read -r _ wi_fd _ 2>/dev/null <"/proc/$1/syscall" || return
  case $wi_fd in
    0x????* | *[!0-9a-fx]*) return ;;
    0x[0-9a-f]*) wi_fd=$((wi_fd)) ;;
    *) return ;;
  esac
  open_file "$1" "$wi_fd"
  wi_mount=$of_mount # that of all pipes; a look at another file may hang
  for wi_word in $cookies; do
    wi_pid=${wi_word%%:*}
    for wi_file in "/proc/$wi_pid/fd"/*; do
      open_file "$wi_pid" "${wi_file##*/}"
      case $of_mount:$of_flags in
        "$wi_mount:"*[12]) continue ;;
        "$wi_mount:"*) ;;
        *) continue ;;
      esac
      # shellcheck disable=SC3013  # dash, bash and busybox have it
      [ "$wi_file" -ef "/proc/$1/fd/$wi_fd" ] && wi_reader=$wi_pid && break 2
    done
  done
  say "pipe $1 $wi_fd $wi_reader"
}

# why_server: its load, disks and connections. A disk that does not answer within 3 s hangs.
why_server() {
  tell_load
  tell_gpus brief
  why_connections
  ws_base=$(umask 077 && mktemp -d "${TMPDIR:-/tmp}/remote-why.XXXXXX" 2>/dev/null) || return 0
  { tell_disks project tmp shm >"$ws_base/disks" && command : >"$ws_base/done"; } </dev/null >/dev/null 2>&1 &
  ws_tries=0
  while [ ! -e "$ws_base/done" ] && [ $ws_tries -lt 30 ]; do
    nap 0.1
    ws_tries=$((ws_tries + 1))
  done
  if [ -e "$ws_base/done" ]; then
    cat "$ws_base/disks"
  else
    why_hung=1
    say hangs
  fi
  rm -f "$ws_base/disks" "$ws_base/done"
  rmdir "$ws_base" 2>/dev/null
}

# why_connections: this user's TCP connections: the addresses here, and those whose data nobody acknowledges. Numbers are as the kernel writes them.
why_connections() {
  [ -n "$own_uid" ] || own_uid
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v uid="$own_uid" '
    $1 !~ /^[0-9]+:$/ || $8 != uid || $2 ~ /^(0100007F|0+1000000):/ { next }
    ($4 == "01" || $4 == "02") && !seen[substr($2, 1, index($2, ":"))]++ { print "@remote1 address " substr($2, 1, index($2, ":") - 1) }
    $4 == "01" && ($6 ~ /^01:/ && $7 !~ /^0000000[01]$/ || $6 ~ /^04:/ && $9 > 1) || $4 == "02" && $7 !~ /^00000000$/ { print "@remote1 silent " substr($3, 1, index($3, ":") - 1) }'
}

# why_stacks ROUND ID…
why_stacks() {
  say "stacks $1"
  [ -z "$why_hung" ] || return 0
  shift
  for wk_id; do
    stacks_one "$wk_id"
  done
}

# why_flight ID…: what PyTorch's flight recorder has of their collectives; only where a rank has made a pipe for it (sitecustomize.py). It comes
# first, as the dump is a rank's work.
why_flight() {
  [ -z "$why_hung" ] || return 0
  for wf_id; do
    for wf_pipe in "$jobs/$wf_id/flight"/pipe.*.pipe; do
      if ! [ -p "$wf_pipe" ] || ! new_python; then continue; fi
      "$python" -I -S -B "$remote_program/python/flight.py" "$jobs" "$@" </dev/null 2>/dev/null
      return 0
    done
  done
}

# why_pause SECONDS: until so long after the first look
why_pause() {
  wu_until=$((wl_begin + $1 * 100))
  read_clock
  while [ "$clock" -lt $wu_until ]; do
    nap 0.2
    read_clock
  done
}
