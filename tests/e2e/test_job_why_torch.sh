#!/bin/sh
# job-why with real torch (gloo): a skipped all_reduce, collectives in a different order, a slow rank, and healthy runs
# without findings.
. "${0%/*}/support.sh"
command -v rsync >/dev/null || skip "rsync is not installed"
python=/usr/bin/python3
"$python" -c 'import torch.distributed' 2>/dev/null || skip 'torch is not here'

cat >train.py <<'PY'
import sys, time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(1)
how = sys.argv[1]
if how == "skip":
    for step in range(3):
        if (rank, step) != (2, 1):
            dist.all_reduce(x)  # reduced
    dist.barrier()
elif how == "swap":
    if rank == 1:
        dist.broadcast(x, 0)
    dist.all_reduce(x)
    if rank != 1:
        dist.broadcast(x, 0)
torch.set_num_threads(1)
work = torch.ones(200, 200)
while True:
    done = time.thread_time() + (0.3 if how == "slow" and rank == 3 else 0.06)
    while time.thread_time() < done:
        work @ work  # computed
    dist.all_reduce(x)
PY
line_of() { grep -n "$1" train.py | head -n 1 | cut -d: -f1; }
code 0 sandbox up --nodes 2
system_python
code 0 rsync
start() { code 0 launch --cmd "$python train.py $1" --nproc-per-node 2 --enable-stacks --no-check --no-follow; }
says() { remote job-why --between "$2" && grep -q -e "$1" "$work/out"; }
verdict() {
  tries=0
  until says "$1" "${2-2}"; do
    tries=$((tries + 1))
    [ $tries -lt 40 ] || fail "the verdict is not: $1"
  done
}
end() { code 0 job-kill --launch last --yes; }

start skip
verdict "^3 of 4 ranks wait in all_reduce (train.py:$(line_of reduced))\$" # they do not all get there at the same time
grep -q "^rank 2 on node-2 waits in barrier (train.py:$(line_of barrier))" "$work/out" || fail "for whom"
end

start swap
verdict 'wait in different collectives' # the ranks move until all of them are there
grep -q "^rank 1 on node-1 waits in broadcast (train.py:$(line_of broadcast))" "$work/out" || fail "who differs"
end

start slow
verdict '^the launch makes progress, but one rank needs [0-9.]* times as much time as the others' 5
grep -q '^rank 3 on node-2 ' "$work/out" || fail "the slow rank is not named"
end

# With other load on the machine: nothing is wrong, and nothing is reported.
for _ in 1 2; do
  "$python" -c 'while True: pass' &
  loads="${loads-} $!"
done
clean_up() {
  # shellcheck disable=SC2086
  kill $loads 2>/dev/null
}
runs=0
while [ $runs -lt "${HEALTHY_RUNS-1}" ]; do
  runs=$((runs + 1))
  start well
  verdict '^no rank hangs' # until all ranks have connected
  for _ in 1 2 3; do
    code 0 job-why --between 3 --json
    [ "$(picks "d['kind']")" = moving ] || fail "a healthy run: $(cat "$work/out")"
  done
  end
done
echo 'job-why with torch: all good'
