#!/bin/sh
# Hard cases for job-tail: its output is not read, bytes that are not text, lines of 10 MB, several jobs on one screen,
# and the verdict of a failed launch.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
[ -r /proc/self/status ] || skip "there is no /proc"
code 0 sandbox up --nodes 2
system_python
code 0 rsync
home=$(homes | head -n 1)
# log KEY STREAM: prints the path of the job's file on the first server
log() { find "$home" -path "*/.jobs/$(job "$1" id)/job.$2"; }
# larger FILE BYTES
larger() { [ "$(wc -c <"$1")" -gt "$2" ]; }

# --- output that is not read: it waits on the server, not in memory, and Ctrl-C stops following immediately
code 0 job-run --server node-1 --cmd 'echo begin; while :; do head -c 1000000 /dev/zero; echo oops >&2; sleep 0.01; done'
out=$(log 1 out)
mkfifo "$work/fifo"
exec 9<>"$work/fifo"
# held WHERE: follows with stdout, or with both outputs, writing into the pipe that is not read
held() {
  case $1 in
    stdout) "$REMOTE" job-tail --job 1 >"$work/fifo" 2>"$work/err" 9<&- & ;;
    both) "$REMOTE" job-tail --job 1 >"$work/fifo" 2>&1 9<&- & ;;
  esac
  follower=$!
}
resident() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB$/\1/p' "/proc/$follower/status"; }
# full: whether the pipe is full
full() { python3 -c 'import select, sys; sys.exit(9 in select.select([], [9], [], 0)[1])' 9>&9; }
# listens: whether it handles SIGINT by now; a shell starts background commands with SIGINT ignored
listens() { grep -q '^SigCgt:.*[2367abef]$' "/proc/$follower/status"; }
gone() { [ ! -e "/proc/$follower" ] || grep -q "^State:.Z" "/proc/$follower/status" 2>/dev/null; }
held stdout
until_true listens
until_true full
until_true larger "$out" $(($(wc -c <"$out") + 30000000))
before=$(resident)
until_true larger "$out" $(($(wc -c <"$out") + 400000000))
after=$(resident)
[ $((after - before)) -lt 20000 ] || fail "its memory has grown from $before to $after kB"
# less than what was written; a sanitizer build needs part of this for itself
[ "$after" -lt $(($(wc -c <"$out") / 1000)) ] || fail "it takes $after kB"
kill -INT $follower
until_true gone
follower_ends 130
grep -q 'stopped following; the job keeps running' "$work/err" || fail "it does not say that the job goes on"
# The same if stderr is not read either: the message is lost, but the command ends.
held both
until_true listens
until_true full
kill -INT $follower
until_true gone
follower_ends 130
exec 9<&-
[ "$(job 1 state)" = running ] || fail "the job did not go on"
code 0 job-kill --job 1 --grace 0
rm -f "$out"

# --- one job: every byte unchanged, while followed and afterwards
cat >hard.py <<'EOF2'
import os
import sys
import time

go = os.path.expanduser("~/go")
rank = int(os.environ.get("RANK", "0"))
out = sys.stdout.buffer
out.write(b"ready\n")
out.flush()
while not os.path.exists(go):
    time.sleep(0.02)
for step in range(0, 101, 10):
    out.write(b"\r%3d%% of rank %d" % (step, rank))
    out.flush()
out.write(b"\n")
out.write(bytes(byte for byte in range(256) if byte not in b"\r\n") * 4000 + b"\n")
out.write(b"<" + b"x%d" % rank * 5000000 + b">\n")
out.write(b"\xff\x00 no newline at the end")
EOF2
code 0 rsync
code 0 job-run --server node-1 --cmd 'python3 hard.py'
in_background job-tail --job 2
until_true grep -q ready "$work/out"
for server in node-1 node-2; do
  "$REMOTE" run --server "$server" --cmd 'touch ~/go' >/dev/null 2>"$work/err" || fail "touch"
done
follower_ends 0
cmp -s "$work/out" "$(log 2 out)" || fail "what was followed is not what was written"
larger "$work/out" 11000000 || fail "job 2 wrote too little"
code 0 job-tail --job 2 --no-follow --lines 1000000000
cmp -s "$work/out" "$(log 2 out)" || fail "what is shown is not what was written"
code 0 job-tail --job 2 --no-follow --lines 2
tail -n 2 "$(log 2 out)" | cmp -s - "$work/out" || fail "the last two lines, one of 10 MB"

# --- several jobs: whole lines with their rank, the last state of progress bars, nothing lost
code 0 launch --nproc-per-node 2 --cmd 'python3 hard.py' --tag several
code 0 job-wait --tag several
code 0 job-tail --all --no-follow --lines 1000000 --job 3
python3 - "$work/out" <<'EOF2' || fail "job-tail --all"
import re
import sys

ranks = {}
with open(sys.argv[1], "rb") as file:
    for line in file.read().split(b"\n")[:-1]:
        found = re.match(rb"\[(\d)\] (.*)$", line, re.S)
        assert found, line[:80]
        assert len(line) < 70000, len(line)
        ranks.setdefault(int(found[1]), []).append(found[2])
assert sorted(ranks) == [0, 1, 2, 3], sorted(ranks)
for rank, lines in ranks.items():
    assert lines[0] == b"ready", lines[0]
    assert lines[1] == b"100%% of rank %d" % rank, lines[1]
    assert lines[-1] == b"\xff\x00 no newline at the end", lines[-1]
    rest = b"".join(lines[2:-1])
    binary = bytes(byte for byte in range(256) if byte not in b"\r\n") * 4000
    assert rest == binary + b"<" + b"x%d" % rank * 5000000 + b">", (rank, len(rest))
EOF2
grep -q 'all 4 ranks succeeded' "$work/err" || fail "the verdict of a launch that succeeded"

# --- the verdict, while followed and afterwards
for server in node-1 node-2; do
  "$REMOTE" run --server "$server" --cmd 'rm -f ~/go' >/dev/null 2>"$work/err" || fail "rm"
done
code 0 launch --nproc-per-node 2 --failure-grace 0 --cmd \
  'echo ready; while ! [ -e ~/go ]; do sleep 0.3; done; if [ $RANK = 1 ]; then echo the cause >&2; exit 5; fi; exec sleep 300'
in_background job-tail --all
ready() { [ "$(grep -c ready "$work/out")" = 4 ]; }
until_true ready
"$REMOTE" run --server node-1 --cmd 'touch ~/go' >/dev/null 2>&1 || fail "touch"
follower_ends 1
# told WHEN: the verdict comes last
told() {
  tail -n 4 "$work/err" >"$work/end"
  grep -q "^rank 1 on node-1 failed first (exit 5, .*: 3 others were ended after it\$" "$work/end" || fail "who was first and the others, $1"
  [ "$(grep -c 'the cause$' "$work/err")" = 1 ] || fail "its last lines are not there once, $1"
  grep -q '^its output: remote job-tail --job 8$' "$work/end" || fail "where more is, $1"
}
told followed
code 1 job-tail --all --no-follow --job 7
told afterwards
# For a single rank, the same verdict of its launch.
code 5 job-tail --job 8
told 'of one rank'

# --- job-run --follow shows one job as job-tail does, and exits with its exit code
code 4 job-run --server node-1 --cmd 'echo here; exit 4' --follow
grep -qx here "$work/out" || fail "its output is not shown"

# --- output since a point in time: the lifeline records the length of the output
cat >since.py <<'EOF2'
import os
import time


def until(name):
    while not os.path.exists(os.path.expanduser(name)):
        time.sleep(0.02)


print("old", flush=True)
until("~/new")
print("new", flush=True)
until("~/end")
EOF2
code 0 rsync --server node-1
code 0 launch --server node-1 --nproc-per-node 1 --tag since --cmd 'python3 since.py'
note_is_old() {
  note=$(find "$sandbox/node-1/home" -name marks -newer "$project/since.py")
  [ -n "$note" ] && [ $(($(date +%s) - $(cut -c 1-10 "$note" | tail -n 1))) -gt 6 ]
}
until_true note_is_old
moment=$(date +%s)
"$REMOTE" run --server node-1 --cmd 'touch ~/new' >/dev/null 2>&1 || fail "touch"
is_there() { code 0 job-tail --tag since --no-follow && grep -q new "$work/out"; }
until_true is_there
# however long all this took on a busy machine: 5 s before that moment
code 0 job-tail --tag since --no-follow --since "$(($(date +%s) - moment + 5))s"
printed 'new
'
code 0 job-tail --tag since --no-follow --since 2h
printed 'old
new
'
code 2 job-tail --tag since --since soon
grep -q "give an age such as 12h" "$work/err" || fail "what --since takes"
code 2 job-tail --tag since --since 2h --lines 3
"$REMOTE" run --server node-1 --cmd 'touch ~/end' >/dev/null 2>&1 || fail "touch"
code 0 job-wait --tag since

# --- a reader that stops reading: no error message
code 0 job-run --server node-1 --tag enough --cmd 'yes'
"$REMOTE" job-tail --tag enough 2>"$work/err" | head -n 1 >"$work/out"
if grep -q rror "$work/err"; then fail "a closed pipe is called an error"; fi
code 0 job-kill --tag enough --grace 0
echo "following: all well"
