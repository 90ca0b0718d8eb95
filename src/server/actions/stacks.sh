#!/bin/sh
# The Python stacks of running jobs: stacks_begin, stacks_one ID for each. Processes are only read, except that
# signal 50 goes to those that catch it and have the file for its answer open: they were started with --enable-stacks.
# Set before: activate, the sh text that enters the project's Python environment.
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/jobs.sh
. "$remote_program/lib/jobs.sh"

stacks_begin() {
  # of the server or of the project's environment; never from the PATH of the process that is looked at
  st_pyspy=$(
    command -v py-spy && exit
    exec 2>/dev/null
    eval "$activate" >/dev/null
    command -v py-spy
  )
  st_tab=$(printf '\t')
  most_bytes=262144
}

# show PID: the lines on stdin as lines of the answer.
show() {
  head -c "$most_bytes" | tr '\000-\010\013-\037\177' '?' | sed "s/^/@remote1 line $1 |/"
  # the last line may have come without its newline
  echo
}

# variable PID NAME: a variable of a process's environment, into $va_value.
variable() {
  va_value=$(tr '\n\000' '?\n' 2>/dev/null <"/proc/$1/environ" | sed -n "s/^$2=//p" | head -n 1)
}

is_python() {
  ip_exe=$(readlink "/proc/$1/exe" 2>/dev/null) || return 1
  case ${ip_exe##*/} in
    python* | pypy*) return 0 ;;
  esac
  grep -q 'libpython[0-9.]*\.so' "/proc/$1/maps" 2>/dev/null
}

by_pyspy() {
  [ -n "$st_pyspy" ] || {
    py_why='there is no py-spy'
    return 1
  }
  py_limit=
  command -v timeout >/dev/null 2>&1 && py_limit='timeout 20'
  if py_text=$($py_limit "$st_pyspy" dump --pid "$1" 2>&1) && [ -n "$py_text" ]; then
    return 0
  fi
  py_why="py-spy failed: $(printf '%s' "$py_text" | tr '\n' ' ' | tr '\000-\037\177' '?' | head -c 200)"
  return 1
}

# answers PID FILE: whether the process catches signal 50 and has the file open for its stacks.
answers() {
  an_caught=
  while IFS=":$st_tab" read -r an_key an_rest; do
    [ "$an_key" = SigCgt ] && an_caught=$an_rest
  done 2>/dev/null <"/proc/$1/status"
  case $an_caught in
    ???[2367abef]????????????) ;;
    *) return 1 ;;
  esac
  for an_fd in "/proc/$1/fd"/*; do
    [ "$(readlink "$an_fd" 2>/dev/null)" != "$2" ] || return 0
  done
  # The root folder of a container may be a part of the path.
  for an_fd in "/proc/$1/fd"/*; do
    # shellcheck disable=SC3013  # all shells here know -ef
    [ "$an_fd" -ef "$2" ] && return
  done
  return 1
}

size_of() {
  sz_bytes=$(($(wc -c <"$1")))
}

# by_signal PID FILE: asks for the stacks and waits until they stand in the file: up to 3 s for the first byte.
by_signal() {
  bs_why=
  answers "$1" "$2" || {
    bs_why='it was not started with --enable-stacks'
    return 1
  }
  if stat_of "$1" && [ "$st_state" = T ]; then
    bs_why='it is stopped and takes no signal'
    return 1
  fi
  size_of "$2"
  bs_from=$sz_bytes
  kill -50 "$1" 2>/dev/null || {
    bs_why='it takes no signal'
    return 1
  }
  bs_tries=0
  bs_last=$bs_from
  while [ $bs_tries -lt 30 ]; do
    sleep 0.1 2>/dev/null || sleep 1
    size_of "$2"
    [ "$sz_bytes" -gt "$bs_from" ] && [ "$sz_bytes" = "$bs_last" ] && return 0
    bs_last=$sz_bytes
    bs_tries=$((bs_tries + 1))
  done
  bs_why='it did not answer the signal within 3 s'
  return 1
}

# by_kernel PID: what the kernel says of its threads, as far as we may read it.
by_kernel() {
  bk_count=0
  for bk_task in "/proc/$1/task"/*; do
    bk_count=$((bk_count + 1))
    [ $bk_count -le 20 ] || {
      echo '… and more threads'
      break
    }
    bk_name='' bk_state='' bk_wchan='' bk_call=''
    {
      read -r bk_name <"$bk_task/comm"
      while IFS=":$st_tab" read -r bk_key bk_rest; do
        [ "$bk_key" = State ] && bk_state=$bk_rest
      done <"$bk_task/status"
      read -r bk_wchan <"$bk_task/wchan" || :
      read -r bk_call _ <"$bk_task/syscall"
    } 2>/dev/null
    bk_line="thread ${bk_task##*/} ($bk_name): state $bk_state"
    case $bk_wchan in
      0 | '') ;;
      *) bk_line="$bk_line, waits in $bk_wchan" ;;
    esac
    case $bk_call in
      '' | running | -1) ;;
      *) bk_line="$bk_line, system call $bk_call" ;;
    esac
    printf '%s\n' "$bk_line"
  done
}

# process ID PID RANK: one process of a job.
process() {
  if by_pyspy "$2"; then
    say "process $1 $2 $3 py-spy"
    printf '%s\n' "$py_text" | show "$2"
    return
  fi
  # as the process has it open, without symlinks
  pr_file=$(cd "$f_dir" 2>/dev/null && pwd -P)/stacks
  if by_signal "$2" "$pr_file"; then
    say "process $1 $2 $3 faulthandler"
    tail -c "+$((bs_from + 1))" "$pr_file" | show "$2"
    return
  fi
  say "process $1 $2 $3 kernel $py_why, and $bs_why"
  by_kernel "$2" | show "$2"
}

# ranks_of ID: its Python processes whose parent is none of the same rank, as PID:RANK, into $ranks: the ranks themselves, not the data
# loaders that they forked. RANK may be `-`. Only after carries_cookie.
ranks_of() {
  ro_pythons=' '
  for ro_word in $cookies; do
    ro_pid=${ro_word%%:*}
    if [ "${ro_word#*:}" = "$1" ] && is_python "$ro_pid"; then
      if [ -n "${SLURMD_NODENAME-}" ]; then
        # several nodes may be one machine: each tells of its own processes
        variable "$ro_pid" SLURMD_NODENAME
        [ "$va_value" = "$SLURMD_NODENAME" ] || continue
      fi
      variable "$ro_pid" RANK
      case $va_value in
        *[!0-9]* | '') va_value=- ;;
      esac
      ro_pythons="$ro_pythons$ro_pid:$va_value "
    fi
  done
  ranks=
  for ro_word in $ro_pythons; do
    stat_of "${ro_word%%:*}" || continue
    case $ro_pythons in
      *" $st_ppid:${ro_word#*:} "*) ;;
      *) ranks="$ranks $ro_word" ;;
    esac
  done
}

# stacks_one ID
stacks_one() {
  carries_cookie "$1"
  so_carried=$?
  if { ! facts "$1" && [ $so_carried != 0 ]; } || [ -n "$f_end" ]; then
    say "ended $1"
    return
  fi
  ranks_of "$1"
  for so_word in $ranks; do
    process "$1" "${so_word%%:*}" "${so_word#*:}"
  done
  if [ -z "$ranks" ]; then
    if alive "$f_pid" "$f_pid_start"; then
      say "process $1 $f_pid - kernel it is not a Python process"
      by_kernel "$f_pid" | show "$f_pid"
    else
      say "ended $1"
    fi
  fi
}
