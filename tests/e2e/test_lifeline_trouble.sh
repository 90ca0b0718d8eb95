#!/bin/sh
# The lifeline where something is in its way: a first server that the others cannot reach, and servers whose only Python
# is the project's environment. And that nothing of it stays when its jobs are over.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
warns() {
  grep -q 'node-2: no lifeline: cannot reach node-1 at 192.0.2.1:[0-9]*: .' "$1" &&
    grep -q 'only while this machine follows' "$1" && grep -q 'internal_address' "$1"
}

code 0 sandbox up --nodes 2

# ---- all is well: nothing is said, and nothing stays after the end, be it by itself or by job-kill
code 0 launch --nproc-per-node 2 --cmd 'until [ -e ../go ]; do sleep 0.3; done'
until_true lifelines_stand 4
code 0 job-list --ranks
if grep -q lifeline "$work/out" "$work/err"; then fail "something is said of a lifeline that is well"; fi
lifelines_are 2 || fail "there is not one lifeline a server"
touch .remote/sandbox/node-1/home/go .remote/sandbox/node-2/home/go
code 0 job-wait
until_true lifelines_are 0
code 0 launch --nproc-per-node 2 --cmd 'sleep 300'
until_true lifelines_stand 8
code 0 job-kill --yes --grace 1
until_true lifelines_are 0

# ---- a wrong internal_address: the launch says so, who follows is told soon, and so is who lists; then it is over
# for all the same
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

# ---- a first server whose lifeline has died: the other one is cut off from that, and the network is not blamed
code 0 launch --cmd 'sleep 300' --nproc-per-node 1
until_true lifelines_stand 10
folder() { # of the job on this server
  find "$sandbox/$1" -path "*/.jobs/$("$REMOTE" --json job-list | evaluate "[job['id'] for job in d if job['server'] == '$1'][0]")"
}
first=$(folder node-1)
second=$(folder node-2)
kill -9 "$(cut -d ' ' -f 1 "$first/lifeline.pid")"
until_true grep -q 'cut off' "$second/lifeline"
code 0 job-list
grep -q 'node-1: its lifeline had died' "$work/err" || fail "a lifeline that died is not told"
! grep -q 'TCP ports' "$work/err" || fail "the network is blamed"
code 0 job-kill --yes --grace 1
until_true lifelines_are 0

# ---- a first server whose lifeline takes its time to begin, as on slow storage, is no closed way
mkdir "$work/slow"
cat >"$work/slow/python3" <<'END'
#!/bin/sh
case $* in *lifeline.py*) sleep 4 ;; esac
exec /usr/bin/python3 "$@"
END
chmod +x "$work/slow/python3"
cp "$sandbox/entry.sh" "$work/entry.sh"
sed -i "1i [ \"\$REMOTE_SANDBOX_NODE\" != node-1 ] || { PATH='$work/slow':\$PATH; export PATH; }" "$sandbox/entry.sh"
code 0 launch --cmd 'sleep 300' --nproc-per-node 1
if grep -q 'lifeline\|only while this machine follows' "$work/err"; then fail "a lifeline that still begins is called missing"; fi
until_true lifelines_stand 10
cp "$work/entry.sh" "$sandbox/entry.sh"
code 0 job-kill --yes --grace 1
until_true lifelines_are 0

# ---- no python3 on the servers' PATH: that of the project's environment holds the lifeline
mkdir "$work/bin"
find /bin/ /usr/bin/ -maxdepth 1 ! -type d ! -name 'python*' -print0 | xargs -0 ln -sf -t "$work/bin"
for node in node-1 node-2; do
  python3 -m venv --without-pip "$sandbox/$node/home/my project/.venv"
done
sed -i "1i PATH='$work/bin'; export PATH" "$sandbox/entry.sh"
remote run --cmd 'PATH=${PATH#*:}; command -v python3 || echo none' || true
[ "$(grep -c 'none$' "$work/out")" = 2 ] || fail "the servers have a python3 on their PATH"
remote launch --nproc-per-node 1 --failure-grace 0 --tag env --cmd 'until [ -e ../fail ]; do sleep 0.3; done; exit 3' ||
  fail "launch"
if grep -q 'no python3' "$work/err"; then fail "the environment's Python is not seen"; fi
until_true lifelines_stand 12
[ "$(lifelines | grep -c '/my project/\.venv/bin/python3* ')" = 2 ] || fail "another Python holds the lifeline: $(lifelines)"
touch .remote/sandbox/node-2/home/fail
until_true lifelines_are 0
remote job-list --ranks --stopped --tag env || true
grep -q 'ended after rank 1' "$work/out" || fail "the failure on node-2 did not end node-1's rank"
echo "lifeline trouble: all well"
