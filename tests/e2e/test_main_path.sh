#!/bin/sh
# A user's complete workflow on real sshd, in a folder with a space: init, prepare, run, jobs, launches. Does not need
# torch: the ranks run a small script that prints its environment.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
json() { python3 -m json.tool <"$work/out" >/dev/null || fail "stdout is no JSON"; }

# --- init, sandbox, prepare
code 0 init --name proj
[ -e .remote/configs.yaml ] || fail "init wrote no configs.yaml"
rm .remote/configs.yaml
code 0 sandbox up --nodes 2
cat >env.py <<'EOF'
import os
import sys

names = ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"]
print(" ".join(os.environ.get(n, "-") for n in names), sys.argv[1:], flush=True)
EOF
code 0 prepare
code 0 servers --json
[ "$(picks '[server["server"] for server in d]')" = "['node-1', 'node-2']" ] || fail "servers --json"

# --- run: exit codes, signals, stdin, values
code 0 run --server node-1 --cmd 'echo hello'
printed "hello
"
code 7 run --server node-1 --cmd 'exit 7'
code 143 run --server node-1 --cmd 'kill -TERM $$'
code 137 run --server node-1 --cmd 'kill -KILL $$'
code 1 run --cmd 'exit 7'
echo "not for it" | code 0 run --server node-1 --cmd 'cat; echo end'
printed "end
"
code 0 run --json --cmd 'echo "out {"; echo err >&2'
json
[ "$(picks '[e["stdout"] for e in d]')" = "['out {\\n', 'out {\\n']" ] || fail "run --json"
code 2 run --cmd ''
code 2 run
code 2 run --server nobody --cmd true
code 2 run --server ../x --cmd true
code 2 nonsense
odd=$(printf 'a "b" '\''c'\'' $HOME `id` \\ \n\ttwo  ü€ 日本 *;&|<>')
code 0 run --server node-1 --env ODD "$odd" --cmd 'printf %s "$ODD"'
printed "$odd"
for value in '[1,2]' '{}' '' '-x' '--server' '[]' '"q"' "'" 'a=b'; do
  code 0 run --server node-1 --env A "$value" --cmd 'printf %s "$A"'
  printed "$value"
done
code 0 run --server node-1 -e A=b=c -e B= --env C '[x]' --cmd 'printf %s "$A|$B|$C"'
printed 'b=c||[x]'
code 2 run --server node-1 -e A --cmd true
code 2 run --server node-1 --env '1A' x --cmd true
code 0 run --server node-1 --cmd "printf %s '$(printf 'x\ny')' \"\$(printf '\\\\')\" 'ü'"
printed "$(printf 'x\ny')\\ü"
code 127 run --server node-1 --cmd '-nonsense'

# --- an interrupted run leaves nothing behind on the server
dead() { [ "$(processes "$1")" = 0 ]; }
alive() { ! dead "$1"; }
"$REMOTE" run --server node-1 --cmd "sleep $mark.5" >/dev/null 2>&1 &
follower=$!
until_true alive 5
kill -TERM $follower
follower_ends 130
until_true dead 5

# --- jobs
code 0 job-run --server node-1 --tag one --tag -x --cmd 'echo begin; echo oops >&2; sleep 0.3; printf "last, no newline"; exit 3'
code 3 job-tail --job 1
printed "$(printf 'begin\nlast, no newline')"
grep -q oops "$work/err" || fail "stderr of the job is not on stderr"
code 3 job-tail --job 1 --no-follow --lines 1
printed 'last, no newline'
code 1 job-wait --job 1
code 0 job-list --stopped --json
json
[ "$(picks 'd[0]["state"], d[0]["exit_code"], d[0]["tags"]')" = "('failed', 3, ['one', '-x'])" ] || fail "the listing of job 1"
code 0 job-list --json
[ "$(picks d)" = "[]" ] || fail "an ended job is listed as unfinished"
code 0 job-run --server node-2 --tag "$odd" --env ODD "$odd" --cmd "printf %s \"\$ODD\" '$(printf 'a\\n"b"\nü $x')'" --json
json
code 0 job-wait --job 2
code 0 job-tail --job 2
printed "$odd$(printf 'a\\n"b"\nü $x')"
code 0 job-list --stopped --json
ODD=$odd python3 -c '
import json, os, sys
job = [j for j in json.load(open(sys.argv[1])) if j["key"] == 2][0]
assert job["tags"] == [os.environ["ODD"]], job
assert "\nü $x" in job["command"], job
' "$work/out" || fail "tags and command of job 2"
code 2 job-tail --job 99
code 2 job-run --server ../x --cmd true
code 2 job-run --server node-1 --cmd ''

# --- kill -9 of job-tail never ends the job
code 0 job-run --server node-1 --cmd 'echo here; while ! [ -e go ]; do sleep 0.3; done; echo done'
"$REMOTE" job-tail --job 3 >"$work/tail" 2>/dev/null &
follower=$!
until_true grep -q here "$work/tail"
kill -KILL $follower
follower_ends 137
[ "$(job 3 state)" = running ] || fail "kill -9 of job-tail ended the job"
code 0 run --server node-1 --cmd 'touch go'
code 0 job-tail --job 3
printed "here
done
"

# --- job-kill, with children in their own sessions
code 0 job-run --server node-2 --tag k --cmd "setsid sleep $mark.6 & trap '' TERM; sleep $mark.7; sleep $mark.7"
until_true alive 6
code 2 job-kill
code 0 job-kill --job 4 --grace 1
dead 6 || fail "job-kill left the child with its own session"
dead 7 || fail "job-kill left a child that ignores TERM"
[ "$(job 4 state)" = killed ] || fail "job 4 is not listed as killed"
code 137 job-tail --job 4 --no-follow

# --- a command that begins with '-' is not an option of a shell
code 0 job-run --server node-1 --cmd '-nonsense'
code 127 job-tail --job 5

# --- job-rsync
code 0 job-rsync
for key in 1 2 3; do
  id=$(job $key id)
  for stream in out err; do
    "$REMOTE" run --server "$(job $key server)" --cmd "cat .jobs/$id/job.$stream" >"$work/theirs" 2>/dev/null
    cmp -s "$work/theirs" ".remote/jobs/$id/job.$stream" || fail "job.$stream of job $key differs"
  done
done

# --- launches
code 0 torch-launch --nproc-per-node 2 --dry-run --json --cmd 'python3 env.py'
json
code 0 torch-launch --nproc-per-node 2 --dry-run --cmd 'python3 env.py'
code 0 job-list --json
[ "$(picks d)" = "[]" ] || fail "--dry-run started something"
code 0 torch-launch --nproc-per-node 2 --json --cmd 'python3 env.py --flag "a b"'
json
code 0 job-wait --tag env.py
code 0 job-list --stopped --tag env.py --json
[ "$(picks '[(j["rank"], j["world_size"], j["state"]) for j in sorted(d, key=lambda j: j["rank"])]')" = \
  "[(0, 4, 'succeeded'), (1, 4, 'succeeded'), (2, 4, 'succeeded'), (3, 4, 'succeeded')]" ] || fail "the four ranks"
last=$(picks '[j["key"] for j in d if j["rank"] == 3][0]')
code 0 job-tail --job "$last"
grep -q "^127.0.0.1 [0-9]* 4 3 1 2 1 1 \['--flag', 'a b'\]\$" "$work/out" || fail "the variables of rank 3"
code 0 torch-launch --nproc-per-node 2 --follow --cmd 'python3 env.py'
[ "$(grep -c '^127' "$work/out")" = 1 ] || fail "--follow shows another rank than 0"
grep -q '^[^ ]* [0-9]* 4 0 0 2 0 0 \[\]$' "$work/out" || fail "the variables of rank 0"
code 0 helper-torch-launch --nproc-per-node 2 --follow --cmd 'python3 env.py'
grep -q "\['--local_rank=0'\]\$" "$work/out" || fail "helper-torch-launch appends no --local_rank"
code 0 helper-torch-launch --use-env --nproc-per-node 2 --follow --cmd 'python3 env.py'
grep -q "\[\]\$" "$work/out" || fail "--use-env appends --local_rank"
# One rank fails: all are stopped, and the output says which failed first.
code 1 launch --nproc-per-node 2 --follow --cmd "sh -c 'if [ \$RANK = 2 ]; then exit 5; fi; exec sleep $mark.8'"
grep -q "rank 2 on node-2 failed first" "$work/err" || fail "the verdict does not name rank 2"
until_true dead 8

# --- an unreachable server: unknown, exit 1, and the other server works
"$REMOTE" job-run --server node-1 --cmd "exec sleep $mark.9" >/dev/null 2>&1
code 0 sandbox down
code 0 job-list --json
json
[ "$(picks 'd[0]["state"]')" = unknown ] || fail "silence is not unknown"
code 1 run --server node-1 --cmd true
code 0 sandbox up --nodes 2
code 0 job-list --json
# Taking down a sandbox kills its processes, as if a server were powered off.
case $(picks '[j["state"] for j in d]') in
  "['failed']" | "['lost']") ;;
  *) fail "after the server is back" ;;
esac
echo "main path: all well"
