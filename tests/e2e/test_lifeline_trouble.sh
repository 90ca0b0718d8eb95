#!/bin/sh
# The lifeline where something is in its way: a first server that the others cannot reach, and servers whose only Python
# is the project's environment. And that nothing of it stays when its jobs are over.
# shellcheck disable=SC2016
set -eu
work=$(mktemp -d)
project="$work/my project"
follower=
finish() {
  status=$?
  [ -z "$follower" ] || kill -KILL "$follower" 2>/dev/null || true
  "$REMOTE" --quiet --project "$project" sandbox down --purge >/dev/null 2>&1 || true
  rm -rf "$work"
  exit $status
}
trap finish EXIT
mkdir -p "$project"
cd "$project"
: >"$work/out" && : >"$work/err"
fail() {
  echo "FAILED: $1" >&2
  head -c 4000 "$work/out" "$work/err" >&2
  exit 1
}
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err" </dev/null; }
# until_true WORDS...: until the command succeeds, at most 30 seconds
until_true() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "waited too long: $*"
    sleep 0.1
  done
}
# lifelines: command lines of this project's lifeline processes
lifelines() {
  grep -la "lifeline-" /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
    { tr "\0" " " <"$file" && echo; } 2>/dev/null
  done | grep "$work" || true
}
count_is() { [ "$(lifelines | wc -l)" -eq "$1" ]; }
# told COUNT: whether the lifelines of so many jobs stand
told() { [ "$(find .remote -path '*/.jobs/*/lifeline' -exec grep -lx ok {} + | wc -l)" -ge "$1" ]; }
warns() {
  grep -q 'node-2: no lifeline: cannot reach node-1 at 192.0.2.1:[0-9]*: .' "$1" &&
    grep -q 'only while this machine follows' "$1" && grep -q 'internal_address' "$1"
}

remote sandbox up --nodes 2 || fail "sandbox up"

# ---- all is well: nothing is said, and nothing stays after the end, be it by itself or by job-kill
remote launch --nproc-per-node 2 --cmd 'until [ -e ../go ]; do sleep 0.05; done' || fail "launch"
until_true told 4
remote job-list || fail "job-list"
if grep -q lifeline "$work/out" "$work/err"; then fail "something is said of a lifeline that is well"; fi
count_is 2 || fail "there is not one lifeline a server"
touch .remote/sandbox/node-1/home/go .remote/sandbox/node-2/home/go
remote job-wait || fail "job-wait"
until_true count_is 0
remote launch --nproc-per-node 2 --cmd 'sleep 300' || fail "launch"
until_true told 8
remote job-kill --yes --grace 1 || fail "job-kill"
until_true count_is 0

# ---- a wrong internal_address: the launch says so, who follows is told soon, and so is who lists; then it is over
# for all the same
cp .remote/configs.yaml "$work/configs.yaml"
sed 's/^  node-1:/&\n    internal_address: 192.0.2.1/' "$work/configs.yaml" >.remote/configs.yaml
remote launch --lost-after 5 --cmd 'sleep 300' --nproc-per-node 1 || fail "launch"
warns "$work/err" || fail "the launch does not warn"
remote job-kill --yes --grace 1 || fail "job-kill"
until_true count_is 0
: >"$work/follow"
"$REMOTE" launch --follow --lost-after 5 --cmd 'sleep 300' --nproc-per-node 1 >"$work/out" 2>"$work/follow" &
follower=$!
until_true warns "$work/follow"
remote job-list --json || fail "job-list"
warns "$work/err" || fail "job-list does not warn"
python3 -m json.tool <"$work/out" >/dev/null || fail "the warning is in the JSON"
remote job-list || fail "job-list"
[ "$(grep -c '(no lifeline) ' "$work/out")" = 2 ] || fail "the table does not mark the ranks"
kill -INT "$follower"
code=0
wait "$follower" || code=$?
follower=
[ "$code" = 130 ] || fail "an interrupted --follow ends with $code"
remote job-kill --yes --grace 1 || fail "job-kill"
until_true count_is 0
cp "$work/configs.yaml" .remote/configs.yaml

# ---- no python3 on the servers' PATH: that of the project's environment holds the lifeline
mkdir "$work/bin"
find /bin/ /usr/bin/ -maxdepth 1 ! -type d ! -name 'python*' -print0 | xargs -0 ln -sf -t "$work/bin"
for node in node-1 node-2; do
  home="$project/.remote/sandbox/$node/home"
  python3 -m venv --without-pip "$home/my project/.venv"
done
{
  printf "PATH='%s'\nexport PATH\n" "$work/bin"
  cat .remote/sandbox/entry.sh
} >"$work/entry.sh"
cp "$work/entry.sh" .remote/sandbox/entry.sh
remote run --cmd 'PATH=${PATH#*:}; command -v python3 || echo none' || true
[ "$(grep -c 'none$' "$work/out")" = 2 ] || fail "the servers have a python3 on their PATH"
remote launch --nproc-per-node 1 --failure-grace 0 --tag env --cmd 'until [ -e ../fail ]; do sleep 0.05; done; exit 3' ||
  fail "launch"
if grep -q 'no python3' "$work/err"; then fail "the environment's Python is not seen"; fi
until_true told 10
[ "$(lifelines | grep -c '/my project/\.venv/bin/python3* ')" = 2 ] || fail "another Python holds the lifeline: $(lifelines)"
touch .remote/sandbox/node-2/home/fail
until_true count_is 0
remote job-list --stopped --tag env || true
grep -q 'ended after rank 1' "$work/out" || fail "the failure on node-2 did not end node-1's rank"
echo "lifeline trouble: all well"
