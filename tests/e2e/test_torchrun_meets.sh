#!/bin/sh
# Agents of a c10d rendezvous find each other between two hosts that do not know each other's names, of which one takes its own
# for 127.0.1.1: real torch, the sample's training, hosts in namespaces.
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
echo 'torchrun meets: all good'
