#!/bin/sh
# job-why: the test makes a launch hang in a known way, and the verdict names the rank, the line and the reason.
# shellcheck disable=SC2016
if [ "${REMOTE_TEST_INSIDE-}" != yes ]; then
  # its own small /dev/shm, which can be filled
  if unshare --mount --propagation private mount -t tmpfs -o size=64k tmpfs /dev/shm 2>/dev/null; then
    REMOTE_TEST_INSIDE=yes exec unshare --mount --propagation private sh -c 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec sh "$0"' "$0"
  fi
fi
. "${0%/*}/support.sh"
command -v rsync >/dev/null || skip "rsync is not installed"

cat >train.py <<'PY'
import os, subprocess, sys, threading, time


def all_reduce():
    threading.Event().wait()


def load_batch():
    time.sleep(1000)


def deadlock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def log_step():
    read, write = os.pipe()
    subprocess.Popen(["sleep", "1000"], stdin=read)
    os.close(read)
    while True:
        os.write(write, b"x" * 65536)


def save():
    while True:
        try:
            with open("/dev/shm/fill", "ab") as file:
                file.write(b"x" * 4096)
        except OSError:
            time.sleep(1000)


def compute():
    while True:
        pass


def leave():
    sys.exit(0)


if os.environ["RANK"] == "2":
    globals()[sys.argv[1]]()
all_reduce()
PY
line_of() { grep -n "^ *$1\$" train.py | tail -n 1 | cut -d: -f1; }
wait_line=$(line_of 'threading.Event().wait()')

code 0 sandbox up --nodes 2
system_python
code 0 rsync

# planted FUNCTION: starts a launch whose rank 2, on node-2, runs it while the others wait
planted() {
  code 0 launch --cmd "/usr/bin/python3 train.py $1" --nproc-per-node 2 --enable-stacks --no-check --no-follow --on-failure leave
}
# verdict TEXT: repeats job-why until it prints this
verdict() {
  tries=0
  while ! { remote job-why --between 1 && grep -q -e "$1" "$work/out"; }; do
    tries=$((tries + 1))
    [ $tries -lt 20 ] || fail "the verdict is not: $1"
  done
}
end() { code 0 job-kill --launch last --yes; }

planted load_batch
verdict "^rank 2 on node-2 sleeps in load_batch (train.py:$(grep -n -m 1 'time.sleep(1000)' train.py | cut -d: -f1))"
grep -q "^3 of 4 ranks wait in all_reduce (train.py:$wait_line)\$" "$work/out" || fail "who waits is not said"
grep -q ': it used no processor time in [0-9.]* s' "$work/out" || fail "the proof"
code 0 job-why --between 1 --evidence
grep -q '^rank 2 on node-2, PID [0-9]*: sleeping in load_batch .*did not move' "$work/out" || fail "the evidence"
code 0 job-why --between 1 --json
[ "$(picks "(d['kind'], d['groups'][0]['doing'], d['groups'][0]['odd'], [r['rank'] for r in d['groups'][0]['ranks']], len(d['groups'][1]['ranks']))")" = "('held_up', 'sleeping', True, [2], 3)" ] || fail "the JSON"

# SIGSTOP
pid=$(picks "d['groups'][0]['ranks'][0]['pid']")
kill -STOP "$pid"
verdict '^rank 2 on node-2 is stopped by a signal'
grep -q "^next: remote run --server node-2 --cmd 'kill -CONT $pid'" "$work/err" || fail "the next step"
kill -CONT "$pid"
end

planted deadlock
verdict "^rank 2 on node-2 waits for a lock in deadlock (train.py:$(line_of 'lock.acquire()'))"
end

planted log_step
verdict "^rank 2 on node-2 writes into a full pipe in log_step (train.py:$(line_of 'os.write(write, b"x" \* 65536)')): descriptor [0-9]*; PID [0-9]* does not read it"
end

planted leave
verdict '^rank 2 on node-2 has ended (exit 0)'
[ "$(remote job-why --between 1 --json; picks "d['kind']")" = ended ] || fail "an ended rank"
end

planted compute
verdict "^rank 2 on node-2 computes in compute (train.py:"
code 0 job-why --between 1 --json
# Its control group allows it a tenth of a processor.
group=/sys/fs/cgroup/cpu/remote-why.$$
if mkdir "$group" 2>/dev/null && echo 10000 >"$group/cpu.cfs_quota_us"; then
  clean_up() { rmdir "$group" 2>/dev/null; }
  pid=$(picks "[rank['pid'] for group in d['groups'] for rank in group['ranks'] if rank['rank'] == 2][0]")
  echo "$pid" >"$group/cgroup.procs"
  verdict '^rank 2 on node-2 is throttled by its control group in compute (train.py:[0-9]*): its control group withheld'
else
  echo 'no control group can be made here'
fi
end

if [ "${REMOTE_TEST_INSIDE-}" = yes ]; then
  planted save
  verdict '^the disk of /dev/shm on node-2 is full'
  verdict "^rank 2 on node-2 sleeps in save (train.py:"
  rm -f /dev/shm/fill
  end
else
  echo 'no right to make a small disk'
fi
echo 'job-why: all good'
