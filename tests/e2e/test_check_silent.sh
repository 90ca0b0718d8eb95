#!/bin/sh
# `remote check` does not wait long for a server that accepts the connection and then stays silent, or whose login shell
# hangs. connect_timeout in configs.yaml is respected. The results of the other servers are shown meanwhile.
. "${0%/*}/support.sh"
mkdir .remote
code 0 sandbox up --nodes 2
system_python
pid=$(cat .remote/sandbox/node-2/sshd.pid)
kill -STOP "$pid"
code 1 check
grep -q 'node-2 .*no SSH server answered within 4 s' "$work/out" || fail "it waits longer"
grep -q '^node-1 ' "$work/out" || fail "the other server is not there"
sed -i '1i connect_timeout: 1' .remote/configs.yaml
code 1 check
grep -q 'node-2 .*no SSH server answered within 1 s' "$work/out" || fail "connect_timeout does not count"

# The results of the other server are shown while it waits.
sed -i 's/^connect_timeout: .*/connect_timeout: 120/' .remote/configs.yaml
grep -q '^node-2: ' "$work/err" || fail "the findings are not shown as they come"
in_background check --json
until_true grep -q '^node-1: ' "$work/err"
kill -0 "$follower" || fail "it has ended"
! [ -s "$work/out" ] || fail "stdout has something before the end"
! grep -q '^node-2: ' "$work/err" || fail "the silent one has answered"
kill -CONT "$pid"
got=0
wait "$follower" || got=$?
follower=
[ "$got" -le 1 ] || fail "exit code $got"
[ "$(picks '[server["server"] for server in d]')" = "['node-1', 'node-2']" ] || fail "stdout is not one value"
grep -q '^node-2: ' "$work/err" || fail "the last one's findings are not shown"

# A server that stops between the first request and the network check, while node-1, which is queried at the same time,
# is late.
sed -i '/^connect_timeout:/d' .remote/configs.yaml
cp "$sandbox/entry.sh" "$work/entry.sh"
cat >"$sandbox/entry.sh" <<'END'
echo $$ >"$HOME/shell"
[ "$REMOTE_SANDBOX_NODE" != node-1 ] || kill -STOP $$
END
cat "$work/entry.sh" >>"$sandbox/entry.sh"
check_with_stopped() { # check_with_stopped PROGRAM...: the program prints the processes that stop after node-2's first answer
  rm -f .remote/sandbox/node-?/home/shell
  in_background check
  until_true grep -q '^node-2: ' "$work/err"
  until_true [ -s .remote/sandbox/node-1/home/shell ]
  stopped=$("$@")
  # shellcheck disable=SC2086
  kill -STOP $stopped
  kill -CONT "$(cat .remote/sandbox/node-1/home/shell)"
  follower_ends 1
  # shellcheck disable=SC2086
  kill -KILL $stopped 2>/dev/null || true
  grep -q 'node-2  network: .*the server sent nothing for 6 s' "$work/out" || fail "it waits longer for what has stopped ($1)"
  grep -q '^node-1  warn ' "$work/out" || fail "the other server is not there"
}
sessions() { # sshd processes that hold the connections to node-2
  for login in $(pgrep -P "$(cat .remote/sandbox/node-2/sshd.pid)"); do
    echo "$login"
    pgrep -P "$login" sshd || true
  done
}
check_with_stopped sessions
check_with_stopped cat .remote/sandbox/node-2/home/shell # only the agent, which has replaced the shell
cp "$work/entry.sh" "$sandbox/entry.sh"
# shellcheck disable=SC2016
sed -i '1i [ "$REMOTE_SANDBOX_NODE" != node-2 ] || { echo $$ >"$HOME/stopped" && kill -STOP $$; }' "$sandbox/entry.sh"
code 1 servers
kill -KILL "$(cat .remote/sandbox/node-2/home/stopped)"
grep -q '^error: node-2: no answer: its login shell printed nothing for 10 s' "$work/err" || fail "servers waits longer for a stopped shell"
grep -q '^node-1 ' "$work/out" || fail "the other server is not there"
cp "$work/entry.sh" "$sandbox/entry.sh"

# A login shell that hangs.
# shellcheck disable=SC2016
sed -i 's/^cd "\$HOME"/[ "$REMOTE_SANDBOX_NODE" != node-2 ] || sleep 300\n&/' "$sandbox/entry.sh"
code 1 check
grep -q 'node-2 .*the server sent nothing for 6 s' "$work/out" || fail "it waits longer for the shell"
grep -q '^node-1 ' "$work/out" || fail "the other server is not there"
code 1 --quiet check
! [ -s "$work/err" ] || fail "--quiet shows what is found as it comes"
