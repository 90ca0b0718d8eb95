#!/bin/sh
# `remote check --burn` with real torch on two practice servers: what each rank computes and exchanges, by a launch that leaves
# nothing, also when it is interrupted; and a server on which the ranks cannot start.
. "${0%/*}/support.sh"
/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip 'torch is not here'

code 0 sandbox up --nodes 2
system_python
code 0 rsync

# Debian's torch with one thread a server: that is enough to see it go through.
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
grep -q 'rank 1 on node-2: there is no torch' "$work/lines" || fail "without torch: $(cat "$work/lines")"
until_true nothing_left
cp "$work/configs.yaml" .remote/configs.yaml

# Interrupted while the ranks compute.
"$REMOTE" check --burn 60 >"$work/out" 2>"$work/err" &
follower=$!
runs() { [ "$(of_jobs "sum(job['state'] == 'running' for job in d)")" = 2 ]; }
until_true runs
kill -TERM "$follower"
follower_ends 130
until_true nothing_left

code 2 check --burn 0
echo 'check of the devices: all good'
