#!/bin/sh
# Real full disks: small tmpfs in the test's own mount namespace, (a) as the laptop's .remote, (b) as a server's home.
# Requires root.
# shellcheck disable=SC2016
if [ "${1-}" != in-namespace ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: only root may mount a small disk"
    exit 77
  fi
  exec unshare -m sh "$0" in-namespace
fi
. "${0%/*}/support.sh"
sandbox="$work/servers/.remote/sandbox" # not below the .remote that is full
home="$sandbox/node-1/home"
clean_up() {
  umount "$project/.remote" 2>/dev/null
  umount "$home" 2>/dev/null || umount -l "$home" 2>/dev/null
}
mkdir -p .remote "$work/servers"
mount -t tmpfs -o size=2m,mode=755 tmpfs .remote
fill() { cat /dev/zero >"$1/fill" 2>/dev/null || true; }
error_says() { grep -q "^error: .*$1" "$work/err" || fail "the error does not say: $1"; }
# states TAG: prints the states of the jobs, in the order of their keys
states() { of_jobs '" ".join(job["state"] for job in sorted(d, key=lambda job: job["key"]))' --tag "$1"; }

code 0 --project "$work/servers" sandbox up --nodes 2
mount -t tmpfs -o size=8m tmpfs "$home" # three copies of the agent, 1.4 MiB each, the scripts, 0.5 MiB each, and some free space
sed "s#\./\.remote/sandbox#$sandbox#" "$work/servers/.remote/configs.yaml" >.remote/configs.yaml
code 0 trust --yes # known_hosts is outside the project
system_python
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
[ "$(processes 5)" = 2 ] || fail "something was started without a record: $(processes 5) processes"
code 0 job-list --json
[ "$(states old)" = "running running" ] || fail "the other jobs are $(states old)"
[ -z "$(states new)" ] || fail "a job is listed that was not started"
echo second >file.txt
code 0 prepare # only its logs are missing
[ "$(cat "$home"/*/file.txt)" = second ] || fail "prepare sent nothing"
rm .remote/fill
code 0 job-run --server node-1 --tag again --cmd true
code 0 job-wait --tag again

# ---- enough disk space for the records but not for their update: the start is reported anyway
mkdir -p "$work/few/.remote/jobs"
cp .remote/configs.yaml "$work/few/.remote/configs.yaml"
inodes=6
code=1
until [ "$code" = 0 ]; do # finds the smallest disk on which it starts
  inodes=$((inodes + 1))
  [ "$inodes" -lt 30 ] || fail "nothing starts on a small disk"
  mount -t tmpfs -o nr_inodes="$inodes" tmpfs "$work/few/.remote/jobs"
  code=0
  remote --project "$work/few" trust --yes >/dev/null 2>&1
  remote --project "$work/few" launch --no-check --nproc-per-node 1 --cmd "sleep $mark.6" >"$work/out" 2>"$work/err" || code=$?
  if [ "$code" = 0 ]; then
    grep -q '^warning: .*No space left' "$work/err" || fail "it does not say that the start is not recorded"
    grep -q 'remote job-kill --launch 1' "$work/err" || fail "it does not say how to stop the jobs"
    remote --project "$work/few" job-kill --launch 1 >"$work/out" 2>"$work/err" || fail "the jobs cannot be stopped"
  fi
  umount "$work/few/.remote/jobs"
done
[ "$(processes 6)" = 0 ] || fail "processes are left"

# ---- (b) a server's home is full, while a job runs there and fills it
code 0 job-run --server node-1 --tag filler --cmd 'until [ -e ../go ]; do sleep 0.3; done; cat /dev/zero >../fill; exit 5'
touch "$home/go"
code 1 job-wait --tag filler
[ "$(states filler)" = failed ] || fail "the job that filled the disk is $(states filler)"
[ "$(of_jobs 'd[0]["exit_code"]' --tag filler)" = 5 ] || fail "its result is not recorded"
of_jobs 'd[0]["reason"]' --tag filler | grep -q 'the disk there was full' || fail "it is not told that the disk was full"
fill "$home"
code 1 job-run --server node-1 --tag new --cmd "exec sleep $mark.5"
error_says 'node-1: .*/\.jobs.*\(full\|No space left\)'
if grep -q 'No space left' "$work/err"; then
  grep -q 'hint: .*free some space' "$work/err" || fail "the hint is another one"
fi
code 1 launch --nproc-per-node 1 --tag new --cmd "sleep $mark.5"
error_says 'node-1: .*/\.jobs.*\(full\|No space left\)'
[ "$(processes 5)" = 2 ] || fail "ranks of a launch that could not start run on"
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
[ "$(processes 5)" = 0 ] || fail "processes are left"
rm "$home/fill"
code 0 prepare
code 0 launch --nproc-per-node 1 --tag last --cmd 'cat big.bin'
code 0 job-wait --tag last

# ---- if there are blocks for only a part of what a launch needs, nothing of it is left, not even a lifeline
for left in 2 4 6; do
  head -c $((($(stat -f -c %a "$home") - left) * $(stat -f -c %S "$home"))) /dev/zero >"$home/fill"
  remote launch --no-check --nproc-per-node 2 --tag "part-$left" --cmd "sleep $mark.7" || true
  rm "$home/fill"
  remote job-kill --tag "part-$left" --grace 1 || true
done
[ "$(processes 7)" = 0 ] || fail "processes are left"
until_true lifelines_are 0

# ---- (c) a server's home has inodes for only a part of what a job needs: no command waits for it, and each job is
# reported as failed
cp "$REMOTE" "$work/remote" # hides a clone in /var/tmp
REMOTE=$work/remote
mount -t tmpfs -o size=2m tmpfs /var/tmp # the fallback folder for results
used() { echo $(($(stat -f -c '%c - %d' "$home"))); }
for left in 3 5 6 8; do
  mount -o "remount,nr_inodes=$(($(used) + left))" "$home"
  remote job-run --server node-1 --tag "few-$left" --cmd 'exit 5' || true
  if grep -q 'no answer' "$work/err"; then fail "with $left inodes the start hangs"; fi
  remote job-wait --tag "few-$left" || true
  case $(states "few-$left") in
    lost | failed) ;;
    *) fail "with $left inodes the job is $(states "few-$left")" ;;
  esac
  if [ "$(of_jobs 'd[0].get("exit_code")' --tag "few-$left")" = 127 ]; then
    of_jobs 'd[0]["reason"]' --tag "few-$left" | grep -q 'folder cannot be written' || fail "with $left inodes it is not told why it did not start"
    few_told=1
  fi
  mount -o "remount,nr_inodes=$(($(used) + 100))" "$home"
done
[ "${few_told-}" ] || fail "no job was without room for its pid"
echo "full disk: all well"
