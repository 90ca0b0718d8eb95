#!/bin/sh
# Problems of the lifeline: a first server that the others cannot reach, and servers without Python. The lifeline always
# ends with its jobs.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
warns() {
  grep -q 'node-2: no lifeline: cannot reach node-1 at 192.0.2.1:[0-9]*: .' "$1" &&
    grep -q 'only while this machine follows' "$1" && grep -q 'internal_address' "$1"
}

code 0 sandbox up --nodes 2

# ---- no problem: nothing is reported, and nothing is left after the launch ends, on its own or by job-kill
code 0 launch --nproc-per-node 2 --cmd 'until [ -e ../go ]; do sleep 0.3; done'
until_true lifelines_stand 4
code 0 job-list --ranks
if grep -q lifeline "$work/out" "$work/err"; then fail "something is said of a lifeline that is well"; fi
until_true lifelines_are 2 # one per server; a new watchdog may not have its name yet
touch .remote/sandbox/node-1/home/go .remote/sandbox/node-2/home/go
code 0 job-wait
until_true lifelines_are 0
code 0 launch --nproc-per-node 2 --cmd 'sleep 300'
until_true lifelines_stand 8
code 0 job-kill --yes --grace 1
until_true lifelines_are 0

# ---- a wrong internal_address: the launch warns, and soon so do following and listing; the launch can still be stopped
# everywhere
cp .remote/configs.yaml "$work/configs.yaml"
sed 's/^  node-1:/&\n    internal_address: 192.0.2.1/' "$work/configs.yaml" >.remote/configs.yaml
code 0 launch --lost-after 5 --cmd 'sleep 300' --nproc-per-node 1
warns "$work/err" || fail "the launch does not warn"
code 0 job-kill --yes --grace 1
until_true lifelines_are 0
: >"$work/follow"
"$REMOTE" launch --follow --lost-after 5 --cmd 'sleep 300' --nproc-per-node 1 >"$work/out" 2>"$work/follow" &
follower=$!
until_true warns "$work/follow"
code 0 job-list --json
warns "$work/err" || fail "job-list does not warn"
python3 -m json.tool <"$work/out" >/dev/null || fail "the warning is in the JSON"
code 0 job-list --ranks
[ "$(grep -c '(no lifeline) ' "$work/out")" = 2 ] || fail "the table does not mark the ranks"
kill -INT "$follower"
follower_ends 130
code 0 job-kill --yes --grace 1
until_true lifelines_are 0
cp "$work/configs.yaml" .remote/configs.yaml

# ---- the lifeline on the first server has died: the other one is cut off from it, and the network is not blamed
code 0 launch --cmd 'sleep 300' --nproc-per-node 1
until_true lifelines_stand 10
folder() { # of the job on this server
  find "$sandbox/$1" -path "*/.jobs/$("$REMOTE" --json job-list | evaluate "[job['id'] for job in d if job['server'] == '$1'][0]")"
}
first=$(folder node-1)
second=$(folder node-2)
kill_lifeline "$(cut -d ' ' -f 1 "$first/lifeline.pid")"
until_true grep -q 'cut off' "$second/lifeline"
code 0 job-list
grep -q 'node-1: its lifeline had died' "$work/err" || fail "a lifeline that died is not told"
! grep -q 'TCP ports' "$work/err" || fail "the network is blamed"
until_true grep -qx ok "$second/lifeline"

# ---- a lifeline that dies alone is replaced immediately, without a message
died=$(cut -d ' ' -f 1 "$second/lifeline.pid")
kill -9 "$died"
is_replaced() { [ "$(cut -d ' ' -f 1 "$second/lifeline.pid")" != "$died" ]; }
until_true is_replaced
until_true grep -qx ok "$second/lifeline"
until_true lifelines_are 2 # one per server; a new watchdog may not have its name yet
code 0 job-list
! grep -q lifeline "$work/err" || fail "a lifeline that was replaced is told"
code 0 job-kill --yes --grace 1
until_true lifelines_are 0

# ---- a lifeline on the first server that starts slowly, as on slow storage, does not count as a blocked connection. It
# is stopped at different steps of its start, the last of which may be too late to be noticed.
cat >"$work/slow.py" <<'END'
import os, signal, sys, time
while True:
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"supervise-launch" in words and any(word.startswith(sys.argv[1].encode()) for word in words):
            time.sleep(float(sys.argv[2]))  # the step at which it is stopped
            os.kill(pid, signal.SIGSTOP)
            time.sleep(4)
            os.kill(pid, signal.SIGCONT)
            sys.exit()
END
stand=8
for delay in 0 0.004 0.02; do
  timeout 30 python3 "$work/slow.py" "$sandbox/node-1/" "$delay" &
  slow=$!
  code 0 launch --cmd 'sleep 300' --nproc-per-node 1
  if grep -q 'lifeline\|only while this machine follows' "$work/err"; then
    fail "a lifeline that still begins is called missing"
  fi
  wait "$slow" || fail "no lifeline was stopped"
  stand=$((stand + 2))
  until_true lifelines_stand "$stand"
  code 0 job-kill --yes --grace 1
  until_true lifelines_are 0
done

# ---- servers without Python
mkdir "$work/bin"
find /bin/ /usr/bin/ -maxdepth 1 ! -type d ! -name 'python*' -print0 | xargs -0 ln -sf -t "$work/bin"
sed -i "1i PATH='$work/bin'; export PATH" "$sandbox/entry.sh"
remote run --cmd 'PATH=${PATH#*:}; command -v python3 || echo none' || true
[ "$(grep -c 'none$' "$work/out")" = 2 ] || fail "the servers have a python3 on their PATH"
remote launch --nproc-per-node 1 --failure-grace 0 --tag env --cmd 'until [ -e ../fail ]; do sleep 0.3; done; exit 3' ||
  fail "launch"
if grep -q 'lifeline' "$work/err"; then fail "a lifeline is called missing"; fi
until_true lifelines_stand $((stand + 2))
touch .remote/sandbox/node-2/home/fail
until_true lifelines_are 0
remote job-list --ranks --stopped --tag env || true
grep -q 'ended after rank 1' "$work/out" || fail "the failure on node-2 did not end node-1's rank"
echo "lifeline trouble: all well"
