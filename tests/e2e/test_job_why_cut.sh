#!/bin/sh
# job-why when two servers cannot reach each other, although this machine reaches both. Uses hosts in namespaces.
. "${0%/*}/hosts_support.sh"
python=/usr/bin/python3
hosts 2
cat >train.py <<'PY'
import os, socket, time

rank = int(os.environ["RANK"])


def all_reduce():
    """As a collective that is cut off: what is sent is not acknowledged, and the answer does not come."""
    peer.sendall(b"x")
    while peer.recv(1):  # the first byte arrives in the direction that is not cut
        pass


server = socket.create_server(("", int(os.environ["MASTER_PORT"]))) if rank == 0 else None
if server:
    peer = server.accept()[0]
else:
    while True:
        try:
            peer = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            break
        except OSError:
            time.sleep(0.1)
for _ in range(3):
    peer.sendall(b"x")
    peer.recv(1)
print("met", flush=True)
while not os.path.exists("go"):
    time.sleep(0.1)
all_reduce()
PY
start() { code 0 launch --rsync --nproc-per-node 1 --enable-stacks --no-check --no-follow --on-failure leave --cmd "$python train.py"; }
met() { [ "$("$REMOTE" job-tail --launch last --all --no-follow 2>/dev/null | grep -c met)" = 2 ]; }
start
until_true met
ip netns exec host1 iptables -A INPUT -s 10.77.0.2 -j DROP 2>"$work/why" || skip "no firewall can be made here: $(cat "$work/why")"
code 0 run --cmd 'touch go'
tries=0
while ! { remote job-why --between 2 && grep -q '^node-[12] gets no answer from node-[12]$' "$work/out"; }; do
  tries=$((tries + 1))
  [ $tries -lt 30 ] || fail 'the cut is not seen'
done
grep -q 'wait in all_reduce (train.py:' "$work/out" || fail 'where the ranks wait is not said'
grep -q '^next: remote check$' "$work/err" || fail 'the next step'
code 0 job-kill --launch last --yes
ip netns exec host1 iptables -D INPUT -s 10.77.0.2 -j DROP
echo 'job-why beside a cut: all good'
