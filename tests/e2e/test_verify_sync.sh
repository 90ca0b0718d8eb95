#!/bin/sh
# rsync --verify names what differs on which server; torch-launch --verify-sync starts nothing on mixed code.
set -eu
work=$(mktemp -d)
project="$work/project"
mkdir -p "$project"
finish() {
  "$REMOTE" --quiet --project "$project" sandbox down || true
  rm -rf "$work"
}
trap finish EXIT
fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" "$work/err" >&2
  exit 1
}
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err"; }
cd "$project"
remote sandbox up --nodes 2 || fail "up"
sed -i 's/manager: venv .*/manager: system/; /system_site_packages/d' .remote/configs.yaml
echo 'print("hello")' >train.py
remote rsync --verify || fail "a fresh project differs"
remote launch --verify-sync --nproc-per-node 1 --cmd true || fail "nothing differs, and it does not start"

# Same length, same time, newer on one server: only the content tells, and rsync leaves it alone.
second_home=$("$REMOTE" sandbox status --json | sed -n 's/^ *"home": "\(.*\)",*$/\1/p' | tail -n 1)
printf 'print("HELLO")\n' >"$second_home/project/train.py"
touch -r train.py "$second_home/project/train.py"
code=0
remote rsync --verify || code=$?
[ "$code" = 1 ] || fail "rsync --verify: exit code $code"
grep -q 'node-2: differs from here' "$work/err" || fail "the server is not named"
grep -q 'train.py' "$work/err" || fail "the file is not named"
if grep -q 'node-1: differs' "$work/err"; then fail "node-1 does not differ"; fi
before=$(find .remote/jobs -name job.json | wc -l)
code=0
remote torch-launch --verify-sync --nproc-per-node 1 --cmd train.py || code=$?
[ "$code" = 1 ] || fail "torch-launch --verify-sync: exit code $code"
grep -q 'node-2: differs from here' "$work/err" || fail "the launch does not name the server"
[ "$(find .remote/jobs -name job.json | wc -l)" = "$before" ] || fail "something was started"
remote launch --nproc-per-node 1 --cmd true || fail "without the flag nothing is compared"
echo "verify-sync: all well"
