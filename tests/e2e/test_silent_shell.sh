#!/bin/sh
# A server whose sshd is alive but whose login shell never answers: every command gives up after ten seconds, says what
# it waited for, and does its work on the other servers. Here all of them wait at the same time. (`check` and `servers`
# have their own limit: test_check_silent.sh.)
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 3
system_python
code 0 rsync
code 0 job-run --server node-1 --cmd "exec sleep $mark.1"
code 0 job-run --server node-2 --cmd "exec sleep $mark.1"
both_run() { [ "$(processes 1)" = 2 ]; }
until_true both_run

# A startup file that sleeps forever (hanging storage below the home folder looks the same from here), and a slow one.
sed -i 's/^cd "\$HOME"/case $REMOTE_SANDBOX_NODE in node-2) exec sleep 1000 ;; node-3) sleep 5 ;; esac\n&/' "$sandbox/entry.sh"
mkdir "$work/by"
# all_at_once LINE...: one command per line
all_at_once() {
  waiting=
  for line; do
    name=${line%% *}
    # shellcheck disable=SC2086
    { got=0 && { "$REMOTE" $line >"$work/by/$name.out" 2>"$work/by/$name.err" || got=$?; } && echo $got >"$work/by/$name.code"; } &
    waiting="$waiting $!"
  done
  # shellcheck disable=SC2086
  wait $waiting
}
all_at_once 'run --cmd hostname' 'job-tail --job 2 --no-follow' 'job-wait --job 2' 'job-kill --all --yes' 'launch --cmd true' 'rsync' 'top --once' \
  'job-pull --job 2 out'
for name in run job-tail job-wait job-kill launch rsync top job-pull; do
  for stream in out err; do
    cp "$work/by/$name.$stream" "$work/$stream"
  done
  [ "$(cat "$work/by/$name.code")" = 1 ] || fail "$name exits with $(cat "$work/by/$name.code")"
  cat "$work/out" "$work/err" | grep -q 'node-2.* no answer: its login shell printed nothing for 10 s' || fail "$name says something else"
  cat "$work/out" "$work/err" | grep -q 'hint: .*log in with ssh: a start file of the shell may be waiting' || fail "$name has no hint"
done
grep -q '^node-1 | ' "$work/by/run.out" || fail "run has not run on the other server"
grep -q '^job 1 on node-1: killed' "$work/by/job-kill.out" || fail "job-kill has not ended the other server's job"
grep -q '^job 2 on node-2: may still be running' "$work/by/job-kill.out" || fail "job-kill does not say which job it could not end"
grep -q '^node-3: ok rsync' "$work/by/rsync.err" || fail "rsync has not sent to the others"
grep -q '^node-1 ' "$work/by/top.out" || fail "top does not show the other server"
grep -q '^node-3 | ' "$work/by/run.out" || fail "a slow start file makes a server unusable"
