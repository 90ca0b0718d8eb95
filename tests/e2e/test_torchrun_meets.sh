#!/bin/sh
# Agents of a c10d rendezvous find each other between two hosts that do not know each other's names, of which one takes its own
# for 127.0.1.1: real torch, the sample's training, hosts in namespaces.
# shellcheck disable=SC2016
if [ "${REMOTE_TEST_INSIDE-}" != yes ]; then
  if ! unshare --net --uts --mount --propagation private ip link set lo up 2>/dev/null; then
    echo 'skipped: no right to make namespaces'
    exit 77
  fi
  REMOTE_TEST_INSIDE=yes exec unshare --net --uts --mount --propagation private sh "$0"
fi
. "${0%/*}/support.sh"
python=/usr/bin/python3
"$python" -c 'import torch.distributed, sklearn' 2>/dev/null || skip 'torch and scikit-learn are not here'
servers=''
clean_up() {
  for server in $servers; do
    kill "$server" 2>/dev/null
  done
}

ip link set lo up
code 0 sandbox up --nodes 2
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
{ ip link add bridge type bridge && ip address add 10.77.0.254/24 dev bridge; } 2>"$work/why" || skip "no network: $(cat "$work/why")"
ip link set bridge up
for n in 1 2; do
  folder=$sandbox/node-$n
  kill "$(cat "$folder/sshd.pid")"
  sed "s/^ListenAddress .*/ListenAddress 10.77.0.$n:2222/; s|^PidFile .*|PidFile \"$work/sshd.$n\"|" "$folder/sshd_config" >"$work/config.$n"
  ip netns add "host$n"
  ip link add "to$n" type veth peer name eth0 netns "host$n"
  ip link set "to$n" master bridge up
  echo '127.0.0.1 localhost' >"$work/hosts.$n"
  ip netns exec "host$n" sh -c '
    ip link set lo up
    ip address add "10.77.0.$1/24" dev eth0
    ip link set eth0 up
    mount --bind "$2/hosts.$1" /etc/hosts
    exec unshare --uts sh -c "hostname nobody-knows-\$1; exec /usr/sbin/sshd -f \"\$2/config.\$1\" -D" sh "$1" "$2"' sh $n "$work" &
  servers="$servers $!"
done
echo '127.0.1.1 nobody-knows-1' >>"$work/hosts.1"
sed -i 's/hostname: 127.*/hostname: 10.77.0.N/; s/port: .*/port: 2222/' .remote/configs.yaml
sed -i '/node-1:/,/node-2:/s/10.77.0.N/10.77.0.1/; s/10.77.0.N/10.77.0.2/' .remote/configs.yaml
system_python
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
until_true remote rsync

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
