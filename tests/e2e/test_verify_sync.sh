#!/bin/sh
# rsync --verify lists the differences by server; torch-launch --verify-sync starts nothing if the code differs.
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
system_python
echo 'print("hello")' >train.py
remote rsync --verify || fail "a fresh project differs"
remote launch --verify-sync --nproc-per-node 1 --cmd true || fail "nothing differs, and it does not start"

# Same length and time, but other content on one server: rsync leaves it alone.
theirs="$(homes | tail -n 1)/my project/train.py"
printf 'print("HELLO")\n' >"$theirs"
touch -r train.py "$theirs"
code 1 rsync --verify
grep -q 'node-2: differs from here' "$work/err" || fail "the server is not named"
grep -q 'train.py' "$work/err" || fail "the file is not named"
if grep -q 'node-1: differs' "$work/err"; then fail "node-1 does not differ"; fi
before=$(find .remote/jobs -name job.json | wc -l)
code 1 torch-launch --verify-sync --nproc-per-node 1 --cmd train.py
grep -q 'node-2: differs from here' "$work/err" || fail "the launch does not name the server"
[ "$(find .remote/jobs -name job.json | wc -l)" = "$before" ] || fail "something was started"
remote launch --nproc-per-node 1 --cmd true || fail "without the flag nothing is compared"
echo "verify-sync: all well"
