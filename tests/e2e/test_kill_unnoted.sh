#!/bin/sh
# job-kill when the job's folder or its local record is missing or damaged; a key file that other users can read.
# shellcheck disable=SC2016  # the servers expand them
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 1
system_python
code 0 rsync
home=$(homes)
jobs="$home/my project/.jobs"
run_now() { [ "$(processes "$1")" = "$2" ]; } # run_now NUMBER COUNT

# --- the job's folder is gone: job-list agrees with job-kill that the job was killed
code 0 job-run --server node-1 --cmd "exec sleep $mark.1"
until_true run_now 1 1
rm -r "${jobs:?}/$(job 1 id)"
code 0 job-kill 1
grep -q '^job 1 on node-1: killed$' "$work/out" || fail "job-kill says something else"
[ "$(processes 1)" = 0 ] || fail "it lives"
[ "$(job 1 state) $(job 1 signal)" = 'killed SIGTERM' ] || fail "job-list calls it $(job 1 state) $(job 1 signal)"
code 0 job-list --stopped
grep -q 'killed SIGTERM by ' "$work/out" || fail "the table says something else"

# --- the local record is damaged: job-kill says how to stop the job, and that works
code 0 job-run --server node-1 --cmd "exec sleep $mark.2"
until_true run_now 2 1
id=$(job 2 id)
: >".remote/jobs/$id/job.json"
code 0 job-kill --yes
grep -q "^warning: .*/$id/job.json: it is empty" "$work/err" || fail "the damaged record is not named"
sed -n "s/.* remote run --server NAME --cmd '\(.*\)'\$/\1/p" "$work/err" | sed "s/ID/$id/" >"$work/line"
[ -s "$work/line" ] || fail "it does not say how to end its job"
code 0 run --server node-1 --cmd "$(cat "$work/line")"
until_true run_now 2 0

# --- the project's folder is missing for a while, so the server knows nothing of its jobs: the same
code 0 job-run --server node-1 --cmd "exec sleep $mark.3"
number=$(sed -n 's/^job \([0-9]*\) .*/\1/p' "$work/out")
until_true run_now 3 1
mv "$home/my project" "$home/away"
code 0 job-kill "$number"
grep -q "^job $number on node-1: killed\$" "$work/out" || fail "job-kill says something else"
[ "$(processes 3)" = 0 ] || fail "it lives"
for place in away "my project"; do
  [ -d "$home/$place" ] || mv "$home/away" "$home/$place"
  [ "$(job "$number" state) $(job "$number" signal)" = 'killed SIGTERM' ] || fail "job-list calls it $(job "$number" state) $(job "$number" signal)"
done

# --- a key that other users can read: one fact, one hint
key=.remote/sandbox/id_ed25519
chmod 644 $key
code 1 run --server node-1 --cmd true
[ "$(grep -c 'chmod 600' "$work/err")" = 1 ] || fail "the hint is not there once"
grep -q "^ hint: chmod 600 .*id_ed25519'*\$" "$work/err" || fail "the hint is something else"
grep -q 'others may read it (mode 0644)' "$work/err" || fail "the fact is not told"
chmod 600 $key
