# A lease of GPUs, cores and memory (python/lease.py, docs/sharing.md). Who sources this has gpus.sh and python.sh.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154

# take_lease FOLDER…: takes what $lease says, as descriptor 7, which the supervisors inherit, and their jobs: the lease lives as long as one of
# them. Each job's folder gets the file `devices`. Fails, with $reason, where it is not to be had.
take_lease() {
  reason='there is no Python of 3.6 or later, which leases need'
  any_python "$lifeline_activate" || return
  tl_path=$PATH
  find_gpu_programs
  # shellcheck disable=SC2086
  reason=$("$python" $python_options "$remote_program/python/lease.py" make 2>/dev/null) || return
  # Nobody can put another file in its place: it is this user's, in a folder of root's with the sticky bit.
  tl_file=$reason
  reason="cannot open $tl_file"
  { command exec 7<>"$tl_file"; } 2>/dev/null || return
  case " $lease " in
    *' wait '*)
      queue_lease "$@"
      return
      ;;
  esac
  # shellcheck disable=SC2086
  reason=$("$python" $python_options "$remote_program/python/lease.py" take 7 $lease 2>/dev/null) || {
    rm -f "$tl_file"
    exec 7>&-
    PATH=$tl_path
    [ -n "$reason" ] || reason='the lease could not be taken'
    return 1
  }
  PATH=$tl_path
  for tl_folder; do
    printf '%s\n' "$reason" >"$tl_folder/devices" || return
  done 2>/dev/null
}

# queue_lease ID…: the jobs are to wait for it themselves (job_queue), the first one for all of them.
queue_lease() {
  reason='cannot write in the folders of its jobs: is the disk full?'
  ql_python=$(command -v "$python")
  for ql_id; do
    mkfifo "$ql_id/.turn" && printf '' >"$ql_id/devices" &&
      printf '%s\n' "$1" "$ql_python" "$python_options" "$lease" "$*" "$PATH" >"$ql_id/queue" || return
  done 2>/dev/null
  PATH=$tl_path
}

# tell_leases [WORD…]: what is leased here, and with words (as lease.py reads them), how much of that is free.
tell_leases() {
  if [ $# = 0 ]; then
    tl_some=
    for tl_file in /run/lock/.remote-lease.* /tmp/.remote-lease.* /var/tmp/.remote-lease.* "${REMOTE_LEASES:-/run/lock}"/.remote-lease.*; do
      [ ! -e "$tl_file" ] || tl_some=1
    done
    [ -n "$tl_some" ] || return 0
  fi
  if ! any_python "${activate-}"; then
    [ $# = 0 ] || fact 'noleases there is no Python of 3.6 or later, which leases need'
    return 0
  fi
  tl_path=$PATH
  find_gpu_programs
  # shellcheck disable=SC2086
  "$python" $python_options "$remote_program/python/lease.py" look "$@" 2>/dev/null || fact 'noleases lease.py has failed'
  PATH=$tl_path
}
