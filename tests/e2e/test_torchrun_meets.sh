#!/bin/sh
# Agents with a c10d rendezvous find each other on two hosts that do not know each other's names; one resolves its own
# name to 127.0.1.1. Uses real torch, the sample's training, and hosts in namespaces.
. "${0%/*}/hosts_support.sh"
python=/usr/bin/python3
"$python" -c 'import torch.distributed, sklearn' 2>/dev/null || skip 'torch and scikit-learn are not here'
host_names=nobody-knows
printf '127.0.0.1 localhost\n127.0.1.1 nobody-knows-1\n' >"$work/hosts.1"
hosts 2
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
code 0 rsync

code 0 torch-launch --launcher torchrun --nproc-per-node 2 --rdzv c10d --follow -- "$python" train.py --epochs 8
grep -qx 'all ranks have the same parameters' "$work/out" || fail 'rank 0 did not say it'
grep -q '^rank 0 of 4 on nobody-knows-1' "$work/out" || fail 'rank 0 is not the first of the first server'
if grep -q '^\[\|^rank 1' "$work/out"; then
  fail 'the output of other ranks'
fi
grep -qx 'all 4 ranks succeeded' "$work/err" || fail 'the verdict'
code 0 job-tail --all --launch last --no-follow
for rank in 0 1 2 3; do
  grep -q "^\[$rank\] rank $rank of 4 on nobody-knows-$((rank / 2 + 1))" "$work/out" || fail "the line of rank $rank"
done

# An attacker who knows the rendezvous' address and id writes data to its store that torch would unpickle: none of it is
# executed, and the launch ends with an error. Neither id nor key is visible in `ps`.
cat >wait.py <<'PY'
import time

print("here", flush=True)
time.sleep(600)
PY
cat >"$work/stranger.py" <<'PY'
import base64
import os
import pickle
import sys
from datetime import timedelta

from torch.distributed import TCPStore


class Code:
    def __reduce__(self):
        return os.system, ("touch " + sys.argv[3],)


address, _, port = sys.argv[1].partition(":")
store = TCPStore(address, int(port), is_master=False, timeout=timedelta(seconds=10))
key = "torch.rendezvous." + sys.argv[2]
assert len(store.get(key)) > 100, "not the rendezvous' key"
store.set(key, base64.b64encode(pickle.dumps(Code())).decode())
PY
chmod 0755 "$work"
code 0 torch-launch --rsync --launcher torchrun --rdzv c10d -- "$python" wait.py
tail_has() { remote job-tail --launch last --no-follow && grep -qx here "$work/out"; }
until_true tail_has
pgrep -af remote_c10d >"$work/ps"
job=$(grep -l wait.py "$sandbox"/node-1/home/*/.jobs/*/spec.json | head -n 1)
# Not from `ps`, which also shows the processes of tests that run in parallel.
endpoint=$(sed -n 's/.*--rdzv_endpoint=\([0-9.:]*\).*/\1/p' "$job" | head -n 1)
value() { sed -n "s/.*{\"name\":\"$1\",\"value\":\"\([0-9a-f]*\)\"}.*/\1/p" "$job"; }
id=$(value PET_RDZV_ID)
key=$(value REMOTE_RENDEZVOUS_KEY)
[ "${#id} ${#key}" = '32 64' ] || fail "id $id, key $key"
grep -qF -e "$endpoint" "$work/ps" || fail "the endpoint $endpoint"
if grep -qe "$id" -e "$key" "$work/ps"; then
  fail 'the id or the key is to be seen in ps'
fi
setpriv --reuid=65534 --regid=65534 --clear-groups "$python" "$work/stranger.py" "$endpoint" "$id" "$work/broken-in" || fail 'the stranger'
code 1 job-wait --launch last
[ ! -e "$work/broken-in" ] || fail 'a stranger ran code as the user'
grep -q 'failed first (exit 1' "$work/err" || fail 'the verdict does not name the agent, which has ended its workers'
code 1 job-tail --launch last --no-follow
grep -q 'is not signed by this launch: another program wrote there' "$work/err" || fail 'the reason'
echo 'torchrun meets: all good'
