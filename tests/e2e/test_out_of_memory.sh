#!/bin/sh
# A job that exceeds the memory limit of its cgroup is killed by the real out-of-memory killer of the kernel, and that
# is reported. Needs a memory cgroup (v2, or v1) in which this test can create its own.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
group=
clean_up() { [ -z "$group" ] || rmdir "$group"; }

# make_group PARENT FILE: makes a cgroup below PARENT with a limit of 64 MB, and sets $group
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
  make_group /sys/fs/cgroup/memory memory.limit_in_bytes ||
  skip "no memory cgroup can be made here (it takes root, or a delegated cgroup v2)"

code 0 sandbox up --nodes 1
code 0 rsync
remote job-run --server node-1 --env GROUP "$group" --cmd \
  'echo $$ >"$GROUP/cgroup.procs" || exit 9; exec python3 -c "
blocks = []
while True:
    blocks.append(bytearray(4 << 20))"' || fail "job-run"
code 1 job-wait --job 1
[ "$(job 1 state)" = failed ] || fail "the job is not listed as failed"
[ "$(job 1 signal)" = SIGKILL ] || fail "the signal is not told"
code 0 job-list --stopped
grep -q 'failed .*SIGKILL (out of memory)' "$work/out" || fail "out of memory is not told"
# Another SIGKILL does not count as out of memory.
code 0 job-run --server node-1 --cmd 'kill -KILL $$'
remote job-wait --job 2 || true
code 0 job-list --stopped
grep -q '^ *2 .*failed .*SIGKILL *node' "$work/out" || fail "an ordinary SIGKILL is told otherwise"
echo "out of memory: all well ($group)"
