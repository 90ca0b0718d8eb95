# Stands first in what runs in the foreground of an SSH channel and must not outlive the client: a command of
# `remote run`, an installer. POSIX sh.
# shellcheck shell=sh

# The script came on stdin, and stdin stays open for as long as the client wants it to run: its end means that the
# client is gone. The watcher holds no output of the channel, so it never keeps the channel open.
exec 3<&0 </dev/null
(
  trap '' TERM HUP INT
  exec >/dev/null 2>&1
  read -r _ <&3
  # $$ is the script's pid, and that of the command which it becomes. It has ended: leave alone what it left in the
  # background.
  kill -0 $$ || exit 0
  kill -TERM -$$ || kill -TERM $$
  for _ in 1 2 3 4 5; do
    sleep 1
    kill -0 $$ || exit 0
  done
  kill -KILL -$$ || kill -KILL $$
) &
exec 3<&-
