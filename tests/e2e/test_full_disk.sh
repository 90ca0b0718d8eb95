#!/bin/sh
# Full disks for real: small tmpfs in a mount namespace of this test's own, (a) as the laptop's .remote, (b) as a
# server's home. Needs root.
# shellcheck disable=SC2016
set -eu
if [ "${1-}" != in-namespace ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: only root may mount a small disk"
    exit 77
  fi
  exec unshare -m sh "$0" in-namespace
fi
work=$(mktemp -d)
farm="$work/servers"
project="$work/my project"
finish() {
  status=$?
  "$REMOTE" --quiet --project "$project" job-kill --yes --signal KILL >/dev/null 2>&1 || true
  "$REMOTE" --quiet --project "$farm" sandbox down >/dev/null 2>&1 || true
  cd /
  umount "$project/.remote" 2>/dev/null || true
  umount "$farm/.remote/sandbox/node-1/home" 2>/dev/null || umount -l "$farm/.remote/sandbox/node-1/home" 2>/dev/null || true
  rm -rf "$work"
  exit $status
}
trap finish EXIT
mkdir -p "$project/.remote" "$farm"
mount -t tmpfs -o size=2m tmpfs "$project/.remote"
: >"$work/out" && : >"$work/err"
fail() {
  echo "FAILED: $1" >&2
  head -c 4000 "$work/out" "$work/err" >&2
  exit 1
}
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err" </dev/null; }
code() {
  wanted=$1
  shift
  got=0
  remote "$@" || got=$?
  [ "$got" = "$wanted" ] || fail "exit code $got, not $wanted: $*"
}
fill() { cat /dev/zero >"$1/fill" 2>/dev/null || true; }
error_says() { grep -q "^error: .*$1" "$work/err" || fail "the error does not say: $1"; }
# states TAG: of the jobs, in the order of their keys
states() {
  "$REMOTE" --quiet job-list --stopped --tag "$1" --json 2>/dev/null |
    python3 -c 'import json, sys; print(*[job["state"] for job in sorted(json.load(sys.stdin), key=lambda job: job["key"])])'
}
mark=$(python3 -c 'import random; print(random.randint(10**6, 10**7))')
# processes: how many commands with the mark run (not this grep: its own argument is another text)
processes() { grep -lzx "${mark}[.]5" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; }

"$REMOTE" --project "$farm" sandbox up --nodes 2 >"$work/out" 2>"$work/err" || fail "sandbox up"
home="$farm/.remote/sandbox/node-1/home"
mount -t tmpfs -o size=2m tmpfs "$home"
cd "$project"
sed -e "s#\./\.remote/sandbox#$farm/.remote/sandbox#" -e '/^python:/,$d' "$farm/.remote/configs.yaml" >.remote/configs.yaml
echo 'python: {manager: system}' >>.remote/configs.yaml
echo one >file.txt
code 0 prepare
code 0 job-run --server node-2 --tag old --cmd "exec sleep $mark.5"
code 0 job-run --server node-1 --tag old --cmd "exec sleep $mark.5"

# ---- (a) the laptop's .remote is full
fill .remote
code 1 job-run --server node-1 --tag new --cmd "exec sleep $mark.5"
error_says '/\.remote/jobs.*No space left'
code 1 torch-launch --nproc-per-node 1 --tag new --cmd "sleep $mark.5"
error_says '/\.remote/jobs.*No space left'
[ "$(processes)" = 2 ] || fail "something was started without a record: $(processes) processes"
code 0 job-list --json
[ "$(states old)" = "running running" ] || fail "the other jobs are $(states old)"
[ -z "$(states new)" ] || fail "a job is listed that was not started"
echo two >file.txt
code 0 prepare # only its logs are missing
[ "$(cat "$home"/*/file.txt)" = two ] || fail "prepare sent nothing"
rm .remote/fill
code 0 job-run --server node-1 --tag again --cmd true
code 0 job-wait --tag again

# ---- (b) a server's home is full, while a job runs there and fills it
code 0 job-run --server node-1 --tag filler --cmd 'until [ -e ../go ]; do sleep 0.05; done; cat /dev/zero >../fill; exit 5'
touch "$home/go"
code 1 job-wait --tag filler
[ "$(states filler)" = failed ] || fail "the job that filled the disk is $(states filler)"
remote job-list --stopped --tag filler --json
grep -q '"exit_code": 5' "$work/out" || fail "its result is not recorded"
fill "$home"
code 1 job-run --server node-1 --tag new --cmd "exec sleep $mark.5"
error_says 'node-1: .*/\.jobs.*full'
code 1 launch --nproc-per-node 1 --tag new --cmd "sleep $mark.5"
error_says 'node-1: .*/\.jobs.*full'
[ "$(processes)" = 2 ] || fail "ranks of a launch that could not start run on"
echo more >"more.txt"
head -c 100000 /dev/urandom >big.bin
code 1 prepare --server node-1
grep -q 'node-1.*No space left' "$work/err" || fail "prepare does not say why"
code 0 job-list
[ "$(states old)" = "running running" ] || fail "the other jobs are $(states old)"
code 0 job-run --server node-2 --tag other --cmd true
code 0 job-wait --tag other
code 0 job-kill --tag old --grace 1
[ "$(states old)" = "killed killed" ] || fail "jobs of a full server cannot be killed: $(states old)"
[ "$(processes)" = 0 ] || fail "processes are left"
rm "$home/fill"
code 0 prepare
code 0 launch --nproc-per-node 1 --tag last --cmd 'cat big.bin'
code 0 job-wait --tag last
echo "full disk: all well"
