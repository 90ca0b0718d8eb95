# Runs one command in the foreground of an SSH channel. Set before: project, command, and environment, which is the sh text that exports
# the variables and enters the Python environment.
# shellcheck shell=sh
# shellcheck disable=SC2154
# shellcheck source=src/server/lib/job.sh
. "$remote_program/lib/job.sh"

# What stands before these lines is the login shell's own: see run_command.cpp. lib/tty.sh has said it on a terminal.
if ! [ -t 0 ]; then
  printf '\n@remote1 run\n'
  printf '\n@remote1 run\n' >&2
fi
cd -- "$project" 2>/dev/null || {
  echo "remote: the project's folder $project is not on this server; send it there first" >&2
  exit 127
}
eval "$environment" || exit 127
prologue_is_well
job_workdir
job_command "$command"
