# The processes of this user, and what they have open. Part of every script about jobs, and of network.sh.
# The path of an open file, a process's arguments, environment and name are chosen by whoever runs it: nothing here prints or splits them.
# shellcheck shell=sh
# shellcheck disable=SC2034  # variables are shared between the parts

# own_processes: the pids of this user's processes, into $own_pids, and all others, into $other_pids. A test of the shell each, so no process is
# started.
own_processes() {
  own_pids='' other_pids=''
  for op_dir in /proc/[0-9]*; do
    if [ -O "$op_dir" ]; then
      own_pids="$own_pids ${op_dir#/proc/}"
    else
      other_pids="$other_pids ${op_dir#/proc/}"
    fi
  done
}

# children_of PID: of all its threads, into $children. Linux without CONFIG_PROC_CHILDREN does not tell.
children_of() {
  children=
  for ch_file in "/proc/$1/task"/[0-9]*/children; do
    ch_line=
    { read -r ch_line; } 2>/dev/null <"$ch_file" # there is no newline at its end
    children="$children $ch_line"
  done
}

# is_number WORD
is_number() {
  case $1 in
    '' | *[!0-9]*) return 1 ;;
  esac
}

# as_pattern TEXT: a pattern that matches this text alone, into $pattern.
as_pattern() {
  ap_rest=$1 pattern=
  while [ -n "$ap_rest" ]; do
    ap_next=${ap_rest#?}
    ap_char=${ap_rest%"$ap_next"}
    case $ap_char in
      [][*?\\]) pattern="$pattern\\$ap_char" ;;
      *) pattern=$pattern$ap_char ;;
    esac
    ap_rest=$ap_next
  done
}

# find_open "PID…" PATTERN…: which of these processes have a file open for writing whose path matches, into $opened: " PID:N …" with N for the
# Nth pattern. GNU find compares the paths, and prints numbers only. Fails where find is another.
find_open() {
  opened=
  find / -maxdepth 0 -lname x -printf '' 2>/dev/null || return 1
  fo_pids=$1 fo_count=0
  shift
  for fo_pattern; do
    shift
    fo_count=$((fo_count + 1))
    [ $fo_count = 1 ] || set -- "$@" -o
    set -- "$@" -lname "$fo_pattern" -perm -200 -printf "%h:$fo_count "
  done
  [ -n "$fo_pids" ] || return 0
  # shellcheck disable=SC2046,SC2086
  fo_found=$(find $(printf '/proc/%s/fd ' $fo_pids) -maxdepth 1 "$@" 2>/dev/null)
  for fo_word in $fo_found; do
    fo_pid=${fo_word#/proc/}
    fo_pid=${fo_pid%%/*}
    if is_number "$fo_pid" && is_number "${fo_word##*:}"; then
      opened="$opened $fo_pid:${fo_word##*:}"
    fi
  done
}

# open_file PID FD: how a process has it open, from /proc/PID/fdinfo: into $of_flags, the flags of open(2), and $of_mount, the number of the mount
# that the file is on.
open_file() {
  of_flags='' of_mount=''
  { read -r _ && read -r _ of_flags && read -r _ of_mount; } 2>/dev/null <"/proc/$1/fdinfo/$2"
}
