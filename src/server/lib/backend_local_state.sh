# The backend `local`: how a job is.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts

gpu_asked=

# holds_gpu PID: whether GPU memory of this dead process is still held. It takes the driver a while to tell, and the
# laptop waits 3 s for the whole answer.
holds_gpu() {
  if [ -z "$gpu_asked" ]; then
    gpu_pids 2
    gpu_asked=1
  fi
  case "$gpu_pids " in
    *" $1 "*) ;;
    *) return 1 ;;
  esac
  ! stat_of "$1" || [ "$st_state" = Z ]
}

# left_behind ID HOW: whether a process of a job that has a result lives, into $left: one that job-kill has put on record
# because it could not end it, or, of a job that was told to end, one that has not ended yet. One whose GPU memory is still
# held counts too. With HOW `all`, any process of the job.
left_behind() {
  left=
  if [ -e "$f_dir/survivors" ]; then
    while read -r lb_pid lb_start; do
      if [ "$lb_pid" = container ]; then
        box_up "$1" && left=$f_pid && break
      elif [ "$lb_start" = gpu ]; then
        holds_gpu "$lb_pid" && left=$lb_pid && break
      else
        alive "$lb_pid" "$lb_start" && left=$lb_pid && break
      fi
    done 2>/dev/null <"$f_dir/survivors"
  fi
  if [ -z "$left" ] && { [ -e "$f_dir/stop" ] || [ "$2" = all ] || second_file "$1.stop"; } && carries_cookie "$1" "$f_sup"; then
    left=$ck_pid
  fi
  [ -n "$left" ] || [ "$2" != all ] || ! box_up "$1" || left=$f_pid
  [ -n "$left" ]
}

# local_state ID [HOW]
local_state() {
  pid=$f_pid
  if [ -n "$f_end" ]; then
    phase=ended
    # The supervisor takes room for the result beforehand; without room for a pid it starts no command, nor can job.err say so.
    [ "$f_end:$f_code" != 'exit:127' ] || [ "$f_by" != supervisor ] || [ -n "$f_pid" ] ||
      reason='it did not start, as its folder takes no files: is the disk full?'
    if [ "$2" != brief ] && { [ "$f_boot" = "$boot" ] || [ "$2$f_boot" = all ]; }; then
      if left_behind "$1" "$2"; then
        phase=running pid=$left
      elif [ ! -e "$f_dir/stop" ] && ! second_file "$1.stop" && carries_cookie "$1" "$f_sup"; then
        leftovers=$ck_count
      fi
    fi
  elif [ -z "$f_sup" ]; then
    phase=starting
    if [ "$2" = all ] && carries_cookie "$1"; then
      pid=$ck_pid
    fi
  elif [ "$f_boot" != "$boot" ]; then
    phase=rebooted
  elif alive "$f_sup" "$f_sup_start"; then
    phase=running
    if [ -z "$f_pid" ]; then
      phase=starting
      [ ! -e "$f_dir/spare" ] || phase=queued reason='spare, until it replaces a server'
    fi
    if [ -e "$f_dir/queue" ]; then
      # as the first job of the launch here knows (job_queue)
      phase=queued ls_first=
      read -r ls_first <"$f_dir/queue"
      read -r reason <"$jobs/$ls_first/turn"
    fi 2>/dev/null
  elif facts "$1" && [ -n "$f_end" ]; then
    # It has ended between the two looks: the result is written before the supervisor goes.
    local_state "$@"
  else
    supervised=0 pid=$f_pid
    if alive "$f_pid" "$f_pid_start"; then
      phase=running
    elif [ "$2" != brief ] && carries_cookie "$1"; then
      phase=running pid=$ck_pid
    elif [ "$2" != brief ] && box_up "$1"; then
      phase=running
    elif [ "$2" != brief ] && [ -n "$no_forks" ]; then
      phase=unknown reason=$no_forks
    else
      phase=gone
      # A kill that is under way tells how it ended.
      if read -r ls_pid ls_start 2>/dev/null <"$f_dir/ending"; then
        if alive "$ls_pid" "$ls_start"; then
          phase=running
        elif facts "$1" && [ -n "$f_end" ]; then
          supervised=1
          local_state "$@"
        fi
      fi
    fi
  fi
}
