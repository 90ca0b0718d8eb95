#!/bin/sh
# `remote check` does not wait long for a server that takes the connection and says nothing; connect_timeout in configs.yaml counts.
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
kill -CONT "$pid"
