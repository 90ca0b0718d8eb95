#!/bin/sh
# Servers whose clocks are an hour ahead and an hour behind (a fake `date`): ages and the order of failures use a single
# clock.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
for node in 1 2; do
  shift_by=$(((node * 2 - 3) * 3600)) # node-1 is behind, node-2 ahead
  bin="$sandbox/node-$node/home/bin"
  mkdir "$bin"
  printf '#!/bin/sh\nexec /bin/date -d "%s seconds" "$@"\n' "$shift_by" >"$bin/date"
  chmod +x "$bin/date"
done
sed -i '1i PATH=$HOME/bin:$PATH; export PATH' "$sandbox/entry.sh"
code 0 rsync
code 0 run --json --cmd 'date +%s'
python3 -c '
import json, sys, time
times = [int(server["stdout"]) - time.time() for server in json.load(open(sys.argv[1]))]
assert -3700 < times[0] < -3500 and 3500 < times[1] < 3700, times' "$work/out" || fail "the clocks are not wrong"

# Rank 0 runs on node-1, which is behind: according to the servers' clocks it would always be two hours before rank 1.
cat >fail.sh <<'SH'
if [ "$RANK" = 0 ]; then
  until [ -s ../../../node-2/home/failed ]; do sleep 0.4; done
  sleep 3 # whole seconds are compared, and two of them count as the same
  exit 8
fi
echo "the cause" >&2
echo yes >../failed
exit 7
SH
code 0 rsync
code 1 launch --nproc-per-node 1 --failure-grace 20 --follow --cmd 'sh fail.sh'
grep -q 'rank 1 on node-2 failed first (exit 7' "$work/err" || fail "the verdict names another rank"
grep -q 'the cause' "$work/err" || fail "the cause is not shown"
code 0 job-run --server node-1 --cmd 'exec sleep 300'
code 0 job-run --server node-2 --cmd 'exec sleep 300'
code 0 job-list --stopped --json
python3 -c '
import calendar, json, sys, time
for job in json.load(open(sys.argv[1])):
    for name in ("created_at", "started_at", "ended_at"):
        if job[name]:
            age = time.time() - calendar.timegm(time.strptime(job[name], "%Y-%m-%dT%H:%M:%SZ"))
            assert -3 < age < 120, (name, age, job)' "$work/out" || fail "a time in the JSON is wrong"
code 0 job-list --stopped
[ "$(grep -c 's ago ' "$work/out")" = 3 ] || fail "the ages are not seconds"
if grep -q '[0-9]h' "$work/out"; then fail "an age of hours"; fi
[ "$(of_jobs '[job["exit_code"] for job in d if job["rank"] == 0]')" = "[8]" ] || fail "rank 0 did not fail by itself"
