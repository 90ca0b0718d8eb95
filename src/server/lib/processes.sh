# The processes of this user, and what they have open. Part of every script about jobs, and of probe.sh.
# The path of an open file, a process's arguments, environment and name are chosen by whoever runs it: nothing here prints or splits them.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2254  # variables are shared between the parts; patterns are wanted

# own_processes: the pids of this user's processes, into $own_pids. A test of the shell each, so no process is started.
own_processes() {
  own_pids=
  for op_dir in /proc/[0-9]*; do
    [ ! -O "$op_dir" ] || own_pids="$own_pids ${op_dir#/proc/}"
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

# open_by "PID…" PATTERN…: which of these processes have a file open for writing whose path matches, into $opened: " PID:N …" with N for the
# Nth pattern. GNU find compares the paths and prints numbers only; without it, links are read one at a time.
open_by() {
  opened=
  ob_pids=$1
  shift
  [ -n "$ob_pids" ] || return 0
  if find / -maxdepth 0 -lname x -printf '' 2>/dev/null; then
    ob_count=0
    for ob_pattern; do
      shift
      ob_count=$((ob_count + 1))
      [ $ob_count = 1 ] || set -- "$@" -o
      set -- "$@" -lname "$ob_pattern" -perm -200 -printf "%h:$ob_count "
    done
    # shellcheck disable=SC2046,SC2086
    ob_found=$(find $(printf '/proc/%s/fd ' $ob_pids) -maxdepth 1 "$@" 2>/dev/null)
    for ob_word in $ob_found; do
      ob_pid=${ob_word#/proc/}
      ob_pid=${ob_pid%%/*}
      if is_number "$ob_pid" && is_number "${ob_word##*:}"; then
        opened="$opened $ob_pid:${ob_word##*:}"
      fi
    done
    return
  fi
  for ob_pid in $ob_pids; do
    for ob_file in "/proc/$ob_pid/fd"/*; do
      ob_flags=
      { read -r _ && read -r _ ob_flags; } 2>/dev/null <"/proc/$ob_pid/fdinfo/${ob_file##*/}"
      case $ob_flags in
        *[12]) ob_path=$(readlink "$ob_file" 2>/dev/null && echo .) || continue ;;
        *) continue ;;
      esac
      ob_path=${ob_path%??} # the newline of readlink, and the dot that keeps those of the path
      ob_count=0
      for ob_pattern; do
        ob_count=$((ob_count + 1))
        case $ob_path in
          $ob_pattern) opened="$opened $ob_pid:$ob_count" ;;
        esac
      done
    done
  done
}
