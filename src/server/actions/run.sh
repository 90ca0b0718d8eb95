# Runs one command in the foreground of an SSH channel; after guard.sh and job.sh. Set before: project, command, and environment,
# which is the sh text that exports the variables and enters the Python environment.
# shellcheck shell=sh
# shellcheck disable=SC2154

#part streams
# What stands before these lines is the login shell's own: see run_command.cpp.
printf '\n@remote1 run\n'
printf '\n@remote1 run\n' >&2

#part command
cd -- "$project" 2>/dev/null || {
  echo "remote: the project's folder $project is not on this server; send it there first" >&2
  exit 127
}
eval "$environment" || exit 127
prologue_is_well
job_command "$command"
