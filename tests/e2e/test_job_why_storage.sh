#!/bin/sh
# job-why when the file system with a rank's data hangs: sshfs with a stopped server.
. "${0%/*}/support.sh"
command -v rsync >/dev/null || skip "rsync is not installed"
command -v sshfs >/dev/null || skip "sshfs is not installed"
sftp=/usr/lib/openssh/sftp-server
[ -x $sftp ] || skip "there is no sftp-server"
cat >"$work/mount.py" <<'PY'
import socket, subprocess, sys

here, there = socket.socketpair()
server = subprocess.Popen([sys.argv[1]], stdin=here, stdout=here)
disk = subprocess.Popen(["sshfs", ":" + sys.argv[2], sys.argv[3], "-f", "-o", "passive,dir_cache=no"], stdin=there, stdout=there)
with open(sys.argv[4], "w") as file:
    file.write("%d %d\n" % (server.pid, disk.pid))
here.close()
there.close()
server.wait()
disk.wait()
PY
mkdir "$work/data" "$work/mounted"
echo batch >"$work/data/batch"
python3 "$work/mount.py" "$sftp" "$work/data" "$work/mounted" "$work/pids" 2>"$work/why" &
mounter=$!
clean_up() {
  read -r server disk <"$work/pids" && kill -KILL "$server" "$disk"
  umount -l "$work/mounted"
  wait
} 2>/dev/null
is_mounted() { [ -e "$work/mounted/batch" ] || ! kill -0 "$mounter" 2>/dev/null; }
until_true is_mounted
[ -e "$work/mounted/batch" ] || skip "no file system can be mounted here: $(cat "$work/why")"

cat >train.py <<'PY'
import os, sys, threading, time


def all_reduce():
    threading.Event().wait()


def load_batch():
    print("loads", flush=True)
    while True:
        with open(sys.argv[1]) as file:
            file.read()
        time.sleep(0.05)


if os.environ["RANK"] == "1":
    load_batch()
all_reduce()
PY
code 0 sandbox up --nodes 2
system_python
code 0 rsync
code 0 launch --nproc-per-node 1 --enable-stacks --no-check --no-follow --on-failure leave -- /usr/bin/python3 train.py "$work/mounted/batch"
loads() { "$REMOTE" job-tail --launch last --all --no-follow 2>/dev/null | grep -q loads; }
until_true loads
read -r server _ <"$work/pids"
kill -STOP "$server"
tries=0
while ! { remote job-why --between 1 && grep -q '^rank 1 on node-2 waits for a file system' "$work/out"; }; do
  tries=$((tries + 1))
  [ $tries -lt 20 ] || fail "the verdict is another one"
done
grep -q '^rank 0 on node-1 waits in all_reduce (train.py:' "$work/out" || fail "who waits for it"
grep -q '^next: remote check$' "$work/err" || fail "the next step"
kill -CONT "$server"
code 0 job-kill --launch last --yes
echo 'job-why with a file system that hangs: all good'
