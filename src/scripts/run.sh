# Runs one command in the foreground of an SSH channel. Set before: project, command, enter().
# shellcheck shell=sh
# shellcheck disable=SC2154

# What stands before these lines is the login shell's own: see run_command.cpp.
printf '\n@remote1 run\n'
printf '\n@remote1 run\n' >&2

# The script came on stdin, and stdin stays open for as long as the client wants the command: its end means that
# the client is gone. The watcher holds no output of the channel, so it never keeps the channel open.
exec 3<&0 </dev/null
(
  trap '' TERM HUP INT
  exec >/dev/null 2>&1
  read -r _ <&3
  # $$ is the command's pid: the shell below execs it. It has ended: leave alone what it left in the background.
  kill -0 $$ || exit 0
  kill -TERM -$$ || kill -TERM $$
  for _ in 1 2 3 4 5; do
    sleep 1
    kill -0 $$ || exit 0
  done
  kill -KILL -$$ || kill -KILL $$
) &
exec 3<&-
cd -- "$project" 2>/dev/null || {
  echo "remote: the project's folder $project is not on this server; run: remote rsync" >&2
  exit 127
}
enter || exit 127
# --norc: within a session of sshd, bash -c reads .bashrc, which may print, and undo what enter() set.
if command -v bash >/dev/null 2>&1; then
  exec bash --norc -c -- "$command"
fi
exec sh -c -- "$command"
