#!/bin/sh
# Jobs and launches in containers of a real podman, which runs as root in a mount namespace of its own: its storage lies on file
# systems that go with this test. The image comes from no registry: a skeleton of links, in which the host's /usr is mounted.
# shellcheck disable=SC2016
if [ -z "${REMOTE_TEST_NAMESPACE-}" ]; then
  skip() { echo "skipped: $*" && exit 77; }
  [ "$(id -u)" = 0 ] || skip "this test runs podman as root"
  { command -v podman && command -v crun; } >/dev/null || skip "podman and crun are not installed"
  unshare --mount true 2>/dev/null || skip "no right to make a mount namespace"
  REMOTE_TEST_NAMESPACE=1 exec unshare --mount --propagation private sh "$0" "$@"
fi
. "${0%/*}/support.sh"

# --- what podman keeps, and the control groups as crun wants them
for folder in /var/lib/containers /run/libpod /run/containers /run/crun /etc/containers; do
  mkdir -p "$folder"
  mount -t tmpfs tmpfs "$folder" || skip "no right to mount"
done
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' >/etc/containers/storage.conf
printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >/etc/containers/policy.json
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
  umount -R /sys/fs/cgroup 2>/dev/null || true
  mount -t cgroup2 none /sys/fs/cgroup || skip "no right to mount control groups"
fi
skeleton="$work/skeleton"
(umask 022
  mkdir "$skeleton"
  cd "$skeleton"
  mkdir -p usr proc sys dev run tmp var/tmp root etc/alternatives
  chmod 1777 tmp var/tmp
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$name"; done
  cp /etc/passwd /etc/group etc)
tar -C "$skeleton" -c . | podman import --quiet - localhost/skeleton >/dev/null
options="--cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 -v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro"
# shellcheck disable=SC2086
podman run --rm $options localhost/skeleton true 2>"$work/err" || skip "podman runs nothing here: $(tail -n 1 "$work/err")"
clean_up() {
  [ -z "$(podman ps --all --quiet)" ] || podman rm --force --time 0 --all >/dev/null
}

# --- two servers with a container for their jobs
code 0 sandbox up --nodes 2
system_python
cat >>.remote/configs.yaml <<'EOF'
container:
  engine: podman
  image: localhost/skeleton
  args:
    [--cgroups=disabled, --ulimit, "nofile=1024:1024", --ulimit, "nproc=1000:1000", -v, "/usr:/usr:ro", -v,
     "/etc/alternatives:/etc/alternatives:ro"]
EOF
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
cat >wait.py <<'EOF'
import os
import subprocess
import sys
import time

print("first byte of rank", os.environ.get("RANK", "-"), flush=True)
if len(sys.argv) > 1:  # what leaves its session is in the container all the same
    subprocess.Popen(["setsid", "sleep", sys.argv[1]])
while not os.path.exists("go"):
    time.sleep(0.02)
print("last byte", flush=True)
EOF
code 0 rsync
# containers: how many there are
containers() { podman ps --all --quiet | wc -l; }
no_container() { [ "$(containers)" = 0 ]; }
containers_are() { [ "$(podman ps --quiet | wc -l)" = "$1" ]; }
dead() { [ "$(processes "$1")" = 0 ]; }
alive() { ! dead "$1"; }
shows() { grep -qa "$1" "$work/out"; }

# --- a job: inside, in the project's folder, with its variables, which nobody sees outside
code 3 job-run --server node-1 --follow -e NAME=s3cr3t-value -- sh -c 'echo "$container $NAME"; pwd; echo oops >&2; echo made >made; exit 3'
home=$(homes | head -n 1)
folder="$home/my project"
printed "job 1 started on node-1
podman s3cr3t-value
$folder
"
grep -q oops "$work/err" || fail "its stderr is not shown"
[ "$(stat -c %u "$folder/made")" = "$(id -u)" ] || fail "what it wrote is another user's"
until_true no_container
code 137 job-run --server node-1 --follow -- sh -c 'kill -KILL $$'
[ "$(job 2 signal)" = SIGKILL ] || [ "$(job 2 signal)" = 9 ] || fail "KILL is shown as $(job 2 signal)"
code 143 job-run --server node-1 --follow -- sh -c 'kill -TERM $$'
code 127 job-run --server node-1 --follow -- no-such-program
code 0 job-run --server node-1 --follow --image none -- sh -c '[ -z "${container-}" ]'

# --- what cannot run is found out before anything starts anywhere
jobs_before=$(of_jobs 'len(d)')
code 1 launch --image localhost/no-such-image -- true
grep -q '^error: node-1: cannot start a container: .*no-such-image' "$work/err" || fail "the missing image on node-1"
grep -q '^error: node-2: cannot start a container: .*no-such-image' "$work/err" || fail "the missing image on node-2"
code 2 launch --image -x -- true
code 1 job-run --server node-1 --image localhost/no-such-image -- true
[ "$(of_jobs 'len(d)')" = "$jobs_before" ] || fail "something was started"

# --- training, by ranks and by torchrun
if python3 -c 'import torch, sklearn' 2>/dev/null; then
  for launcher in ranks torchrun; do
    code 0 torch-launch --follow --launcher $launcher --nproc-per-node 2 -- python3 train.py --epochs 8
    grep -q 'all ranks have the same parameters' "$work/out" || fail "training by $launcher"
    grep -q 'all .* succeeded' "$work/err" || fail "the verdict of $launcher"
  done
  until_true no_container
fi

# --- the first rank that failed
code 1 launch --follow --nproc-per-node 2 --failure-grace 0 -- sh -c 'if [ $RANK = 2 ]; then echo the cause >&2; exit 5; fi; sleep 300'
for text in 'rank 2 on node-2 failed first (exit 5, ..:..:..' '  the cause' '3 others were ended after it'; do
  grep -q "$text" "$work/err" || fail "the verdict does not say: $text"
done
until_true no_container

# --- following from the first byte, over a link that breaks
code 0 launch --nproc-per-node 2 -- python3 wait.py
"$REMOTE" job-tail --all >"$work/out" 2>"$work/err" &
follower=$!
all_began() { [ "$(grep -c 'first byte' "$work/out")" = 4 ]; }
until_true all_began
python3 - "$sandbox" <<'EOF'
import os
import signal
import sys

parents, daemons = {}, set()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        continue
    if name.startswith("sshd"):
        parents[int(pid)] = int(rest.split()[1])
        if sys.argv[1].encode() in words:
            daemons.add(int(pid))
links = [pid for pid, parent in parents.items() if parent in daemons]
links += [pid for pid, parent in parents.items() if parent in links]
assert links, "there is no link"
for pid in links:
    os.kill(pid, signal.SIGKILL)
EOF
lost() { grep -q 'lost' "$work/err"; }
until_true lost
for server in node-1 node-2; do
  "$REMOTE" run --server $server --cmd 'touch go' >/dev/null 2>&1 || fail "touch"
done
follower_ends 0
[ "$(grep -c 'first byte' "$work/out")$(grep -c 'last byte' "$work/out")" = 44 ] || fail "lines are lost, or there twice"
for server in node-1 node-2; do
  "$REMOTE" run --server $server --cmd 'rm go' >/dev/null 2>&1 || fail "rm"
done

# --- kill: what left its session goes, and the containers with it
code 0 torch-launch --nproc-per-node 2 -e TOKEN=s3cr3t-value -- python3 wait.py "$mark.1"
all_live() { [ "$(processes 1)" = 8 ]; } # ranks, and what they began
until_true all_live
# shellcheck disable=SC2046
podman inspect $(podman ps --quiet) >"$work/inspected"
grep -q REMOTE_JOB_ID "$work/inspected" || fail "nothing is inspected"
if grep -q s3cr3t "$work/inspected" || grep -lqa 's3cr3t-[v]alue' /proc/[0-9]*/cmdline 2>/dev/null; then
  fail "a variable of the job is seen from outside"
fi
code 0 job-stacks --launch last
grep -q 'wait.py' "$work/out" || fail "no stacks"
code 0 job-kill --launch last --yes
dead 1 || fail "a process is left"
no_container || fail "a container is left"
[ "$(of_jobs '[job["state"] for job in d][-4:]')" = "['killed', 'killed', 'killed', 'killed']" ] || fail "they are not killed"

# --- its supervisor and the engine's client are killed: the container goes on, is still known, and is ended
code 0 job-run --server node-1 -- python3 wait.py "$mark.2"
until_true alive 2
key=$(of_jobs 'd[-1]["key"]')
id=$(job "$key" id)
kill -KILL "$(cut -d ' ' -f 1 "$folder/.jobs/$id/supervisor")" "$(cut -d ' ' -f 1 "$folder/.jobs/$id/job.pid")"
[ "$(job "$key" state)" = running ] || fail "a job whose container runs is $(job "$key" state)"
code 0 job-clean --older 0 --yes
containers_are 1 || fail "cleaning removed a container that runs"
code 0 job-kill --job "$key" --yes
dead 2 || fail "a process is left"
no_container || fail "a container is left"

# --- only the client is killed: the supervisor ends the container, and the job has failed
code 0 job-run --server node-1 -- python3 wait.py "$mark.3"
until_true alive 3
key=$(of_jobs 'd[-1]["key"]')
kill -KILL "$(cut -d ' ' -f 1 "$folder/.jobs/$(job "$key" id)/job.pid")"
code 137 job-tail --job "$key"
dead 3 || fail "a process is left"
no_container || fail "a container is left"

code 0 job-clean --older 0 --yes
[ -z "$(find "$folder/.jobs" -mindepth 1 -maxdepth 1 ! -name .bin)" ] || fail "job folders are left"
echo "containers: all well"
