#!/bin/sh
# Launches that reserve GPUs, and wait for them, on practice servers with a fake nvidia-smi.
# shellcheck disable=SC2016  # the ranks expand it
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
code 0 rsync
for node in node-1 node-2; do
  bin=$sandbox/$node/home/bin
  mkdir -p "$bin/gpus"
  cp "$REMOTE_SOURCE_DIR/tests/data/gpus/nvidia-smi.sh" "$bin/nvidia-smi"
  chmod +x "$bin/nvidia-smi"
  # The practice servers share this machine's leases, but have different GPUs.
  printf 'index, uuid, name\n0, GPU-%s-%s-0, A\n1, GPU-%s-%s-1, A\n' $$ $node $$ $node >"$bin/gpus/gpus.csv"
  : >"$bin/gpus/apps.csv"
  # shellcheck disable=SC2016  # the server's shell expands it
  echo 'PATH=$HOME/bin:$PATH' >"$sandbox/$node/home/.bashrc"
done
remote top --once --json
grep -q nvidia-smi "$work/out" || skip "the login shell reads no start file for a command, so it finds no pretended nvidia-smi"

# --- two names for one machine
cp "$sandbox/node-1/home/bin/gpus/gpus.csv" "$work/gpus.csv"
cp "$work/gpus.csv" "$sandbox/node-2/home/bin/gpus/gpus.csv"
code 1 launch --gpus 2 --wait --no-check -- true
grep -q 'node-1 and node-2 are one machine: 4 GPUs needed, and there are 2' "$work/err" || fail "one machine counts as two"
sed 's/node-1/node-2/' "$work/gpus.csv" >"$sandbox/node-2/home/bin/gpus/gpus.csv"

code 0 launch --gpus 2 --no-check -- sh -c 'echo $CUDA_VISIBLE_DEVICES; exec sleep 1000'
code 1 launch --gpus 1 --no-check -- true
grep -q '1 GPU needed, and 0 of 2 free: ' "$work/err" || fail "it does not say how many are free"
code 0 launch --gpus 1 --wait --no-check -- sh -c 'echo its turn: $CUDA_VISIBLE_DEVICES'
code 0 launch --gpus 1 --wait --no-check -- true
code 0 top --once
grep -q 'GPU 0.*leased by' "$work/out" || fail "top does not show the leases"
code 0 job-list
grep -q 'queued' "$work/out" || fail "nothing is queued"
code 0 job-kill --launch last --yes
code 0 job-kill --launch 1 --yes
code 0 job-wait --launch 5
code 0 job-tail --launch 5 --all --no-follow
[ "$(grep -c 'its turn: 0' "$work/out")" = 2 ] || fail "a rank has other GPUs than its own"
code 0 top --once
! grep -q 'GPU.*leased by' "$work/out" || fail "a lease is left"

# --- a lease lasts through all attempts of its launch, and ends with the last one
code 0 launch --name again --gpus 2 --restarts 1 --failure-grace 0 --no-check -- sh -c 'echo "attempt $RESTART_COUNT: $CUDA_VISIBLE_DEVICES"
  [ "$RESTART_COUNT" = 1 ] || { [ "$RANK" = 0 ] || exit 3; exec sleep 1000; }
  until [ -e "$HOME/done" ]; do sleep 0.1; done'
second() { remote job-tail again --all --no-follow && [ "$(grep -c 'attempt 1: 0,1$' "$work/out")" = 4 ]; }
until_true second
code 1 launch --gpus 1 --no-check -- true
grep -q '1 GPU needed, and 0 of 2 free: ' "$work/err" || fail "the second attempt has no lease"
touch "$sandbox/node-1/home/done" "$sandbox/node-2/home/done"
code 0 job-wait --launch again
code 0 launch --gpus 2 --no-check --follow -- true
