#!/bin/sh
# A job that eats memory in a cgroup with a limit is ended by the kernel's out-of-memory killer, for real, and that is
# told. Needs a memory cgroup (v2, or v1) in which this test may make one of its own.
# shellcheck disable=SC2016
set -eu
work=$(mktemp -d)
project="$work/my project"
group=
finish() {
  status=$?
  "$REMOTE" --quiet --project "$project" job-kill --yes --signal KILL >/dev/null 2>&1 || true
  "$REMOTE" --quiet --project "$project" sandbox down --purge >/dev/null 2>&1 || true
  [ -z "$group" ] || rmdir "$group" 2>/dev/null || true
  rm -rf "$work"
  exit $status
}
trap finish EXIT
mkdir -p "$project"
cd "$project"
: >"$work/out" && : >"$work/err"
fail() {
  echo "FAILED: $1" >&2
  head -c 4000 "$work/out" "$work/err" >&2
  exit 1
}
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err" </dev/null; }

# make_group PARENT FILE: a cgroup below PARENT with a limit of 64 MB, into $group
make_group() {
  group="$1/remote-test-$$"
  if mkdir "$group" 2>/dev/null; then
    if [ -w "$group/$2" ] && echo 67108864 >"$group/$2"; then
      for swap in memory.swap.max memory.memsw.limit_in_bytes; do
        [ ! -w "$group/$swap" ] || echo 67108864 >"$group/$swap" || true
      done
      return
    fi 2>/dev/null
    rmdir "$group"
  fi
  group=
  return 1
}
own_v2=$(sed -n 's/^0:://p' /proc/self/cgroup)
own_v1=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
make_group "/sys/fs/cgroup$own_v2" memory.max || make_group /sys/fs/cgroup memory.max ||
  make_group "/sys/fs/cgroup/memory$own_v1" memory.limit_in_bytes ||
  make_group /sys/fs/cgroup/memory memory.limit_in_bytes || {
  echo "skipped: no memory cgroup can be made here (it takes root, or a delegated cgroup v2)"
  exit 77
}

remote sandbox up --nodes 1 || fail "sandbox up"
remote rsync || fail "rsync"
remote job-run --server node-1 --env GROUP "$group" --cmd \
  'echo $$ >"$GROUP/cgroup.procs" || exit 9; exec python3 -c "
blocks = []
while True:
    blocks.append(bytearray(4 << 20))"' || fail "job-run"
code=0
remote job-wait --job 1 || code=$?
[ "$code" = 1 ] || fail "job-wait ends with $code"
remote job-list --stopped --json || fail "job-list"
grep -q '"state": "failed"' "$work/out" || fail "the job is not listed as failed"
grep -q '"signal": "SIGKILL"' "$work/out" || fail "the signal is not told"
remote job-list --stopped || fail "job-list"
grep -q 'failed .*SIGKILL (out of memory)' "$work/out" || fail "out of memory is not told"
# A SIGKILL of another origin is no lack of memory.
remote job-run --server node-1 --cmd 'kill -KILL $$' || fail "job-run"
remote job-wait --job 2 || true
remote job-list --stopped || fail "job-list"
grep -q '^ *2 .*failed .*SIGKILL *node' "$work/out" || fail "an ordinary SIGKILL is told otherwise"
echo "out of memory: all well ($group)"
