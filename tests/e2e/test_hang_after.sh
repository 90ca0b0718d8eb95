#!/bin/sh
# --hang-after: the servers notice that a launch hangs, keep the data that job-why needs, and leave it, stop it or
# restart it. Nothing is reported about a healthy launch.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
command -v rsync >/dev/null || skip "rsync is not installed"
python=/usr/bin/python3
"$python" -c 'import torch.distributed' 2>/dev/null || skip 'torch is not here'

cat >train.py <<'PY'
import os, sys, threading, time

import torch
import torch.distributed as dist


def spin():
    while True: pass


how = sys.argv[1]
again = os.environ.get("RESTART_COUNT", "0") != "0"
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
x = torch.ones(1)
print("met", flush=True)
if how == "spins" and rank == 3:
    threading.Thread(target=spin, daemon=True).start()
if how != "well" and not again:
    for step in range(3):
        if (rank, step) != (2, 1):
            dist.all_reduce(x)  # reduced
    dist.barrier()
work = torch.ones(200, 200)
end = time.monotonic() + (15 if how == "well" else 1)
going = torch.ones(1)
while going.item() > 0:
    done = time.thread_time() + 0.05
    while time.thread_time() < done:
        work @ work
    going.fill_(1 if time.monotonic() < end or rank != 0 else -100)
    dist.all_reduce(going)
print("done", flush=True)
PY
line_of() { grep -n "$1" train.py | head -n 1 | cut -d: -f1; }
code 0 sandbox up --nodes 2
system_python
echo 'notify: {command: "cat >>\"$HOME/news\"; echo >>\"$HOME/news\""}' >>.remote/configs.yaml
code 0 rsync
news=$(homes | head -n 1)/news
state_of_news() { sed -n "$1p" "$news" | evaluate 'd["state"]'; }
arrived() { [ "$(grep -c . "$news" 2>/dev/null)" -ge "$1" ]; }
start() {
  how=$1
  shift
  code "$@" --cmd "$python train.py $how" --nproc-per-node 2 --enable-stacks --no-check
}
verdict_is_kept() {
  grep -q '^as it was at .*, after [0-9ms ]* without progress:' "$work/out" || fail "when"
  grep -q "^3 of 4 ranks wait in all_reduce (train.py:$(line_of reduced))\$" "$work/out" || fail "who waits"
  grep -q "^rank 2 on node-2 waits in barrier (train.py:$(line_of barrier))" "$work/out" || fail "for whom"
}

# ---- one server without Python: idle and silent is enough
code 1 launch --server node-1 --hang-after 0.05 --on-hang kill --follow --no-check -- sleep 600
grep -q 'hung: ended after [0-9ms ]* without progress' "$work/err" || fail "the verdict"
code 0 job-why --launch last
grep -q 'sleeps' "$work/out" || fail "what it did"
until_true arrived 1
[ "$(state_of_news 1)" = hung ] || fail "other news: $(cat "$news")"

# ---- stopped
start skips 1 launch --hang-after 0.1 --on-hang kill --follow
grep -q 'hung: ended after [0-9ms ]* without progress' "$work/err" || fail "the verdict"
grep -q 'remote job-why --launch [0-9]' "$work/err" || fail "the hint"
code 0 job-why --launch last
verdict_is_kept
code 0 job-why --launch last --json
[ "$(picks "d['kind'], d['as_of'] is not None, d['hung_s'] >= 6")" = "('mismatch', True, True)" ] || fail "the JSON"
# one may fail while the others are stopped
[ "$(of_jobs "'killed' in {j['state'] for j in d[-4:]} <= {'killed', 'failed'} and all(j['hung']['seconds'] >= 6 for j in d[-4:])")" = True ] || fail "the records"
found=$(find .remote/sandbox -name why -path '*/.jobs/*')
[ "$(echo "$found" | wc -l)" = 3 ] || fail "the evidence is: $found"
[ "$(find .remote/sandbox -name why -path '*/.jobs/*' ! -perm 600 | wc -l)" = 0 ] || fail "others can read it"
until_true arrived 2
[ "$(state_of_news 2)" = hung ] || fail "other news: $(cat "$news")"
code 0 history
grep -q 'killed\|hung' "$work/out" || fail "the history"

# ---- restarted
start skips 0 launch --hang-after 0.1 --on-hang restart --restarts 1 --follow
grep -q 'begin anew (restart 1) at .* after [0-9]* \(s\|min\) without progress' "$work/out" "$work/err" || fail 'the restart is not told'
code 0 job-why --launch last
verdict_is_kept
until_true arrived 4
[ "$(state_of_news 3) $(state_of_news 4)" = 'hung succeeded' ] || fail "other news: $(cat "$news")"

# ---- left running; a rank uses a full processor while it waits
start spins 0 launch --hang-after 0.1 --no-follow
hangs() { [ "$(of_jobs "all(j['state'] == 'running' and j['hung'] for j in d[-4:]) and 'hung'")" = hung ]; }
until_true hangs
code 0 job-list
grep -q 'running (hung: no progress since .*)' "$work/out" || fail "the list"
code 0 job-why --kept --launch last
verdict_is_kept
code 0 job-kill --launch last --yes
until_true arrived 6
[ "$(state_of_news 5) $(state_of_news 6)" = 'hung killed' ] || fail "other news: $(cat "$news")"

# ---- silent for a long time, but healthy: it computes
start well 0 launch --hang-after 0.05 --on-hang kill --follow
[ "$(of_jobs "[j['hung'] for j in d[-4:]]")" = '[None, None, None, None]' ] || fail "an alarm"
code 2 job-why --kept --launch last

# ---- invalid combinations
code 2 launch --on-hang kill --cmd true
code 2 launch --hang-after 1 --on-hang restart --cmd true
code 2 launch --hang-after 1 --on-hang restart --restarts 1 --restart-on exit --cmd true
code 2 launch --hang-after 1 --on-hang kill --on-failure leave --cmd true
code 2 launch --restarts 1 --restart-on hang --cmd true
code 2 launch --hang-after 1 --image x --cmd true
echo 'hang-after: all good'
