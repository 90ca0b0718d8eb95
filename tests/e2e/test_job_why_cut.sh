#!/bin/sh
# job-why where two servers do not reach each other any more, although this machine reaches both; and where a file system hangs. Hosts in namespaces.
. "${0%/*}/hosts_support.sh"
python=/usr/bin/python3
hosts 2
cat >train.py <<'PY'
import os, socket, sys, time

rank = int(os.environ["RANK"])


def all_reduce():
    """As a collective that is cut off: what is sent is not acknowledged, and the answer does not come."""
    peer.sendall(b"x")
    peer.recv(2)


def read_batch():
    open(sys.argv[2])


if sys.argv[1] == "hang":
    if rank == 1:
        read_batch()
    time.sleep(1000)
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
start() { code 0 launch --rsync --nproc-per-node 1 --enable-stacks --no-check --no-follow --on-failure leave --cmd "$python train.py $1"; }
met() { [ "$("$REMOTE" job-tail --launch last --all --no-follow 2>/dev/null | grep -c met)" = 2 ]; }
start cut
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

# A file system that never answers.
cat >"$work/hang.py" <<'PY'
import ctypes, os, struct, sys

fd = os.open("/dev/fuse", os.O_RDWR)
options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
if ctypes.CDLL(None, use_errno=True).mount(b"hang", sys.argv[1].encode(), b"fuse", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
while True:
    request = os.read(fd, 1 << 20)
    code, number = struct.unpack_from("IQ", request, 4)
    if code == 26:  # the first one, which is answered
        body = struct.pack("IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 65536, 1, 32, 0, 0, *[0] * 7)
        os.write(fd, struct.pack("IiQ", 16 + len(body), 0, number) + body)
PY
mkdir "$work/hung"
"$python" "$work/hang.py" "$work/hung" 2>"$work/fuse" &
fuse=$!
clean_up() {
  kill "$fuse" 2>/dev/null
  umount -l "$work/hung" 2>/dev/null
  for server in $servers; do
    kill "$server" 2>/dev/null
  done
}
# shellcheck disable=SC2016
if until_true sh -c '[ -s "$0" ] || mountpoint -q "$1"' "$work/fuse" "$work/hung" && [ ! -s "$work/fuse" ]; then
  start "hang '$work/hung/x'"
  tries=0
  while ! { remote job-why --between 2 && grep -q '^rank 1 on node-2 waits for a file system' "$work/out"; }; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || fail 'the file system that hangs is not seen'
  done
  kill "$fuse" # lets the rank go
  code 0 job-kill --launch last --yes
else
  echo "no file system can be made here: $(cat "$work/fuse")"
fi
echo 'job-why beside a cut: all good'
