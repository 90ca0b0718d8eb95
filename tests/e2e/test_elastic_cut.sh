#!/bin/sh
# An elastic launch whose second server loses its network: it continues in time, and later commands report that it
# succeeded, and without which server. Uses real torch, hosts in namespaces.
. "${0%/*}/hosts_support.sh"
python=/usr/bin/python3
"$python" -c 'import torch.distributed' 2>/dev/null || skip 'torch is not here'
hosts 2
cat >train.py <<'PY'
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
alone = dist.get_world_size() == 1
for step in range(20 if alone else 100000):
    dist.all_reduce(torch.ones(1))
    if step == 0:
        print("began with", dist.get_world_size(), "at", int(time.time()), "restart", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
    time.sleep(0.1)
PY
lost_after=20 # torch itself takes 15 s to consider a node gone
code 0 torch-launch --rsync --launcher torchrun --nnodes 1:2 --lost-after $lost_after --nproc-per-node 1 -- "$python" train.py
began() { remote job-tail --launch last --no-follow && grep -q "^began with $1 " "$work/out"; }
until_true began 2
cut=$(date +%s)
ip link set to2 down
i=0
until began 1; do
  i=$((i + 1))
  [ $i -lt 400 ] || fail 'it does not begin again'
  sleep 0.1
done
again=$(date -d "$(sed -n 's/.*the workers begin anew (restart [0-9]*) at \([^ ]*\).*/\1/p' "$work/err")" +%s)
echo "its workers were started again $((again - cut)) s after the cut"
[ $((again - cut)) -le $((lost_after + 5)) ] || fail 'that is late'
sleep 5 # the cut-off server stops its ranks on its own
ip link set to2 up
code 0 job-wait --launch last
grep -qx 'the launch succeeded with 1 rank; it continued without node-2' "$work/err" || fail 'the verdict'
if grep -q 'loss of\|lost' "$work/err"; then
  fail 'a server is called lost'
fi
remote job-list --launch last
cat "$work/out"
echo 'elastic cut: all good'
