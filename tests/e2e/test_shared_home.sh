#!/bin/sh
# Two servers with one home, as on NFS: a bind mount in the test's own mount namespace. Requires root.
# shellcheck disable=SC2016
if [ "${1-}" != in-namespace ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: only root may mount one home for two servers"
    exit 77
  fi
  exec unshare -m sh "$0" in-namespace
fi
. "${0%/*}/support.sh"
first="$sandbox/node-1/home"
second="$sandbox/node-2/home"
clean_up() { umount "$second" 2>/dev/null || umount -l "$second" 2>/dev/null; }
states() { of_jobs '" ".join(job["state"] for job in sorted(d, key=lambda job: job["key"]))' --tag "$1"; }
code 0 sandbox up --nodes 2
mount --bind "$first" "$second"
system_python
echo 'print("trained")' >train.py
echo old >old.txt

# ---- prepared once, and reported
code 0 prepare
grep -q 'node-1 and node-2 share one home: prepared once' "$work/err" || fail "it is not said that they share a home"
rm old.txt
code 0 rsync --delete
[ ! -e "$second/my project/old.txt" ] || fail "what was removed here is there still"

# ---- a launch: the failure of a rank stops the ranks on the other server through the lifeline
code 0 launch --tag one --nproc-per-node 2 --failure-grace 0 \
  --cmd "if [ \$RANK = 3 ]; then until [ -e go ]; do sleep 0.3; done; exit 7; fi; exec sleep $mark.7"
until_true lifelines_stand 4
lifelines_are 2 || fail "there are $(lifelines | wc -l) lifelines, not one a server"
touch "$first/my project/go"
until_true have_ended "$first" 4
code 0 job-list
[ "$(states one)" = "killed killed killed failed" ] || fail "the ranks are: $(states one)"
until_true lifelines_are 0
[ "$(processes 7)" = 0 ] || fail "processes are left"

# ---- each server has its own jobs: kill and clean leave the other's alone
code 0 job-run --server node-1 --tag stays --cmd "exec sleep $mark.7"
code 0 job-run --server node-2 --tag goes --cmd "exec sleep $mark.7"
code 0 job-kill --tag goes
[ "$(states stays) $(states goes)" = "running killed" ] || fail "the jobs are: $(states stays), $(states goes)"
[ "$(processes 7)" = 1 ] || fail "$(processes 7) processes run, not one"
code 0 job-clean --tag goes --yes
[ "$(states stays)" = running ] || fail "the job of the other server is $(states stays)"
[ "$(find "$first/my project/.jobs" -mindepth 1 -maxdepth 1 -type d ! -name ".*" | wc -l)" = 5 ] ||
  fail "job-clean left or took too much: $(ls -A "$first/my project/.jobs")"
code 0 job-kill --tag stays
echo "shared home: all well"
