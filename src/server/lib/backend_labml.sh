# The backend `labml`: a job that labml_remote started in the same project, which is only looked at and ended here. Its folder has
# job.out, job.err and job.pid with the pid alone (lib.sh knows it by that). The pid may be another process's by now, so a process
# counts only while it has the job's files open.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # variables are shared between the parts
# shellcheck disable=SC3013  # dash, bash and busybox know -ef

# labml_state ID [HOW]
labml_state() {
  pid=$f_pid
  if [ -n "$f_end" ]; then
    phase=ended
  elif ! stat_of "$f_pid" || [ "$st_state" = Z ]; then
    phase=gone
  elif [ "/proc/$f_pid/fd/1" -ef "$f_dir/job.out" ] || [ "/proc/$f_pid/fd/2" -ef "$f_dir/job.err" ]; then
    phase=running
  elif [ -x "/proc/$f_pid/fd" ] && [ -e "$f_dir/job.out" ]; then
    phase=gone # that is somebody else's process
  else
    reason="it cannot be told whether process $f_pid is still the job's"
  fi
}

# labml_members HOW ID…
labml_members() {
  [ "$1" = closing ] || local_members "$@"
}

labml_signal() {
  local_signal "$@"
}
