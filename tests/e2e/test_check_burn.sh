#!/bin/sh
# `remote check --burn` with real torch on two practice servers: what each rank computes and exchanges, in a launch that
# leaves nothing behind, even when interrupted; and a server on which the ranks cannot start.
. "${0%/*}/support.sh"
/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip 'torch is not here'

code 0 sandbox up --nodes 2
system_python
code 0 rsync

# Debian's torch with one thread per server is enough for a complete run.
code 0 check --burn 1 --json
[ "$(picks "[(x['rank'], x['type'], x['tflops'] > 0, x['promised_tflops'], s['facts']['burn']['backend']) for s in d for x in s['facts']['burn']['devices']]")" = "[(0, 'float32', True, None, 'gloo'), (1, 'float32', True, None, 'gloo')]" ] || fail 'the devices'
[ "$(picks "all(s['facts']['burn']['bus_gbit_s'] > 0 for s in d)")" = True ] || fail 'the all-reduce'
[ "$(picks "[(l['from'], l['to'], l['gbit_s'] > 0) for s in d for l in s['facts']['burn']['links']]")" = '[(0, 1, True)]' ] || fail 'the link'
nothing_left() {
  [ "$(of_jobs 'len(d)')" = 0 ] || return 1
  homes | while read -r home; do
    find "$home/my project/.jobs" -mindepth 1 -maxdepth 1 ! -name '.*'
  done >"$work/left"
  [ ! -s "$work/left" ] && lifelines_are 0
}
until_true nothing_left

# A server without torch: it is named, and the other rank does not wait for it.
mkdir "$work/no torch"
echo 'raise ImportError' >"$work/no torch/torch.py"
cp .remote/configs.yaml "$work/configs.yaml"
sed -i "/^  node-2:/a\\    env: {PYTHONPATH: '$work/no torch'}" .remote/configs.yaml
code 1 check --burn 1 --json
picks "[c['detail'] for s in d for c in s['checks'] if c['name'] == 'burn'][0]" >"$work/lines"
grep -q 'rank 1 on node-2: the environment of the servers has no torch' "$work/lines" || fail "without torch: $(cat "$work/lines")"
until_true nothing_left
cp "$work/configs.yaml" .remote/configs.yaml

# One server has CUDA and the other does not (simulated on the CPU): all ranks use gloo, and the finding says why.
mkdir "$work/cuda torch"
cat >"$work/cuda torch/torch.py" <<'END'
import sys
sys.path.remove(__file__.rpartition("/")[0])
del sys.modules["torch"]
import torch
def is_nccl_available():
    return True
real_device, real_randn = torch.device, torch.randn
torch.distributed.is_nccl_available = is_nccl_available
torch.device = lambda kind, index=0: real_device("cpu")
torch.randn = lambda *size, **options: real_randn(64, 64)
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = torch.cuda.synchronize = lambda *which: None
torch.cuda.get_device_name = lambda: "NVIDIA A100-SXM4-80GB"
torch.cuda.get_device_capability = lambda: (8, 0)
END
sed -i "/^  node-2:/a\\    env: {PYTHONPATH: '$work/cuda torch'}" .remote/configs.yaml
code 0 check --burn 1 --json
[ "$(picks "[(x['type'], s['facts']['burn']['backend']) for s in d for x in s['facts']['burn']['devices']]")" = "[('float32', 'gloo'), ('bfloat16', 'gloo')]" ] || fail 'mixed devices'
picks "[(c['name'], c['status'], c['detail']) for s in d for c in s['checks'] if c['name'].startswith('burn')]" >"$work/lines"
grep -q '(gloo, as there is no CUDA on node-1): [0-9.e+]* Gbit/s' "$work/lines" || fail "mixed devices: $(cat "$work/lines")"
grep -q "'burn-backend', 'warn', 'torch sees no CUDA here" "$work/lines" || fail "mixed devices: $(cat "$work/lines")"
cp "$work/configs.yaml" .remote/configs.yaml

# Interrupted while the ranks compute.
in_background check --burn 60
runs() { [ "$(of_jobs "sum(job['state'] == 'running' for job in d)")" = 2 ]; }
until_true runs
kill -TERM "$follower"
follower_ends 130
until_true nothing_left

code 2 check --burn 0
echo 'check of the devices: all good'
