#!/bin/sh
# Servers whose clocks are an hour ahead and an hour behind (a `date` of their own): ages and the order of failures are
# told on one clock.
# shellcheck disable=SC2016
set -eu
work=$(mktemp -d)
project="$work/my project"
finish() {
  status=$?
  "$REMOTE" --quiet --project "$project" job-kill --yes --signal KILL >/dev/null 2>&1 || true
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
remote sandbox up --nodes 2 || fail "sandbox up"
for node in 1 2; do
  shift_by=$(((node * 2 - 3) * 3600)) # node-1 is behind, node-2 ahead
  bin="$project/.remote/sandbox/node-$node/home/bin"
  mkdir "$bin"
  printf '#!/bin/sh\n[ "$*" = +%%s ] && exec /bin/date -d "@$(($(/bin/date +%%s) + %s))" +%%s\nexec /bin/date "$@"\n' "$shift_by" >"$bin/date"
  chmod +x "$bin/date"
done
{
  echo 'PATH=$HOME/bin:$PATH; export PATH'
  cat .remote/sandbox/entry.sh
} >"$work/entry.sh"
cp "$work/entry.sh" .remote/sandbox/entry.sh
remote rsync || fail "rsync"
remote run --json --cmd 'date +%s' || fail "run"
python3 -c '
import json, sys, time
times = [int(server["stdout"]) - time.time() for server in json.load(open(sys.argv[1]))]
assert -3700 < times[0] < -3500 and 3500 < times[1] < 3700, times' "$work/out" || fail "the clocks are not wrong"

# Rank 0 runs on node-1, which is behind: by their own words it would be two hours before rank 1 at all times.
cat >fail.sh <<'SH'
if [ "$RANK" = 0 ]; then
  until [ -s ../../../node-2/home/failed ]; do sleep 0.1; done
  sleep 3 # whole seconds are compared, and two of them count as the same
  exit 8
fi
echo "the cause" >&2
echo yes >../failed
exit 7
SH
remote rsync || fail "rsync"
code=0
remote launch --nproc-per-node 1 --failure-grace 20 --follow --cmd 'sh fail.sh' || code=$?
[ "$code" = 1 ] || fail "exit code $code"
grep -q 'rank 1 on node-2 failed first (exit 7' "$work/err" || fail "the verdict names another rank"
grep -q 'the cause' "$work/err" || fail "the cause is not shown"
remote job-run --server node-1 --cmd 'exec sleep 300' || fail "job-run"
remote job-run --server node-2 --cmd 'exec sleep 300' || fail "job-run"
remote job-list --stopped --json || fail "job-list"
python3 -c '
import calendar, json, sys, time
for job in json.load(open(sys.argv[1])):
    for name in ("created_at", "started_at", "ended_at"):
        if job[name]:
            age = time.time() - calendar.timegm(time.strptime(job[name], "%Y-%m-%dT%H:%M:%SZ"))
            assert -3 < age < 120, (name, age, job)' "$work/out" || fail "a time in the JSON is wrong"
remote job-list --stopped || fail "job-list"
[ "$(grep -c 's ago ' "$work/out")" = 4 ] || fail "the ages are not seconds"
if grep -q '[0-9]h' "$work/out"; then fail "an age of hours"; fi
remote job-list --stopped --json || fail "job-list"
grep -q '"exit_code": 8' "$work/out" || fail "rank 0 did not fail by itself"
