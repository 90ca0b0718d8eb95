#!/bin/sh
# Shared by the container tests: test_containers.sh and test_rootless_podman.sh (podman) and test_docker.sh source it
# after setting $engine. Each runs as root in its own mount and process namespaces, so that the engine's files and all
# processes disappear with the test. The image does not come from a registry: it is a skeleton of links, into which
# the host's /usr is mounted.
# shellcheck disable=SC2016,SC2034,SC2120,SC2154
missing() {
  echo "skipped: $*"
  exit 77
}

# enter_namespaces PROGRAM…: reruns the test inside the namespaces, unless it is there already. The programs must be
# installed.
enter_namespaces() {
  [ -z "${REMOTE_TEST_NAMESPACE-}" ] || return 0
  [ "$(id -u)" = 0 ] || missing "this test runs $engine as root"
  for program; do
    command -v "$program" >/dev/null || missing "$program is not installed"
  done
  set -- --mount --pid --fork --kill-child --propagation private --mount-proc
  unshare "$@" true 2>/dev/null || missing "no right to make namespaces"
  REMOTE_TEST_NAMESPACE=1 exec unshare "$@" sh "$0"
}

# own_folders FOLDER…: mounts empty folders over the machine's
own_folders() {
  for folder; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=1777 tmpfs "$folder" || missing "no right to mount"
  done
}

# skeleton: prints the image as a tar archive
skeleton() (
  umask 022
  folder=$(mktemp -d)
  cd "$folder" || exit
  mkdir -p usr proc sys dev run tmp var/tmp root etc/alternatives
  chmod 755 .
  chmod 1777 tmp var/tmp
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$name"; done
  cp /etc/passwd /etc/group etc
  tar -c .
  cd / && rm -rf "$folder"
)

# own_user: makes an ordinary user $user whose home folder /mnt/home contains everything the test creates
user=54321
own_user() {
  own_folders /mnt
  cp /etc/passwd /etc/group /etc/subuid /etc/subgid /mnt
  echo "tester:x:$user:$user::/mnt/home:/bin/sh" >>/mnt/passwd
  echo "tester:x:$user:" >>/mnt/group
  echo "tester:200000:65536" | tee -a /mnt/subuid >>/mnt/subgid
  for file in passwd group subuid subgid; do
    mount --bind "/mnt/$file" "/etc/$file"
  done
  mkdir -m 700 /mnt/home
  chown $user:$user /mnt/home
}

# as_user: reruns the test as that user
as_user() {
  HOME=/mnt/home TMPDIR=/mnt/home setpriv --reuid $user --regid $user --clear-groups sh "$0"
}

# for_engine NAME VALUE…: sets variables for the engine on all servers
for_engine() {
  printf '    env:\n' >"$work/env"
  while [ $# -gt 0 ]; do
    printf '      %s: "%s"\n' "$1" "$2" >>"$work/env"
    shift 2
  done
  sed -i '/hostname:/r '"$work/env" .remote/configs.yaml
}

# own_cgroups: mounts control groups of version 2 only, as crun requires
own_cgroups() {
  [ ! -e /sys/fs/cgroup/cgroup.controllers ] || return 0
  umount -R /sys/fs/cgroup 2>/dev/null || true
  mount -t cgroup2 none /sys/fs/cgroup || missing "no right to mount control groups"
}

# own_podman: sets up a podman with its own storage and the image; the options that it needs here go to $limits
own_podman() {
  own_folders /var/lib/containers /run/libpod /run/containers /run/crun /etc/containers /dev/shm
  printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
    >/etc/containers/storage.conf
  printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >/etc/containers/policy.json
  own_cgroups
  skeleton | podman import --quiet - localhost/skeleton:latest >/dev/null
  limits="--cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000"
  # shellcheck disable=SC2086
  podman run --rm $limits -v /usr:/usr:ro localhost/skeleton true 2>"$work/err" || skip "podman runs nothing here: $(tail -n 1 "$work/err")"
}

# --- shortcuts of the tests
containers() { "$engine" ps --all --quiet | wc -l; }
no_container() { [ "$(containers)" = 0 ]; }
containers_are() { [ "$("$engine" ps --quiet | wc -l)" = "$1" ]; }
dead() { [ "$(processes "$1")" = 0 ]; }
alive() { ! dead "$1"; }
# processes_of SUFFIX: prints their pids
processes_of() { grep -lzx "${mark}[.]$1" /proc/[0-9]*/cmdline 2>/dev/null | sed 's#/proc/\([0-9]*\)/.*#\1#'; }
# on_servers COMMAND
on_servers() { "$REMOTE" --quiet run --cmd "$1" >/dev/null 2>"$work/err" || fail "$1"; }

# two_servers OPTION…: starts practice servers whose jobs run in a container with these options
two_servers() {
  code 0 sandbox up --nodes 2
  system_python
  printf 'container:\n  engine: %s\n  image: localhost/skeleton:latest\n  args:\n' "$engine" >>.remote/configs.yaml
  for option in "$@" -v /usr:/usr:ro -v /etc/alternatives:/etc/alternatives:ro; do
    printf '    - "%s"\n' "$option" >>.remote/configs.yaml
  done
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
  home=$(homes | head -n 1)
  folder="$home/my project"
}

# A job runs in the container, in the project's folder, as the login user, with its variables and its exit code.
try_jobs() {
  code 3 job-run --server node-1 --follow -e NAME=s3cr3t-value -- \
    sh -c 'echo "$NAME"; pwd; [ -e /etc/debian_version ]; echo $?; id -u; echo oops >&2; echo made >made; exit 3'
  printed "job 1 started on node-1
s3cr3t-value
$folder
1
$(id -u)
"
  grep -q oops "$work/err" || fail "its stderr is not shown"
  [ "$(stat -c %u "$folder/made")" = "$(id -u)" ] || fail "what it wrote is another user's"
  until_true no_container
  code 137 job-run --server node-1 --follow -- sh -c 'kill -KILL $$'
  grep -q SIGKILL "$work/err" || fail "KILL is not told"
  code 143 job-run --server node-1 --follow -- sh -c 'kill -TERM $$'
  grep -q SIGTERM "$work/err" || fail "TERM is not told"
  code 127 job-run --server node-1 --follow -- no-such-program
  code 0 job-run --server node-1 --follow --image none -- sh -c '[ -e /etc/debian_version ]'
}

# try_missing IMAGE: problems are reported before anything starts on any server.
try_missing() {
  before=$(of_jobs 'len(d)')
  code 1 launch --image "$1" -- true
  grep -q "^error: node-1, node-2: cannot start a container: cannot fetch the image .*no-such-image" "$work/err" ||
    fail "the missing image is not told once for both servers"
  code 2 launch --image -x -- true
  sed -i 's/^  args:$/  pull: never\n&/' .remote/configs.yaml
  code 1 job-run --server node-1 --image "$1" -- true
  grep -q "^error: node-1: cannot start a container: $engine has no image $1" "$work/err" || fail "an image that is not fetched"
  [ "$(of_jobs 'len(d)')" = "$before" ] || fail "something was started"
}

# try_fetch: pulls an image from our own small registry; only for podman as root
try_fetch() {
  podman push --quiet localhost/skeleton:latest "dir:$work/pushed"
  cat >"$work/registry.py" <<'EOF'
import hashlib
import http.server
import json
import os
import sys

folder, port_file = sys.argv[1:]
with open(os.path.join(folder, "manifest.json"), "rb") as file:
    manifest = file.read()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        place = self.path.split("/")  # /v2/NAME/manifests/WHICH or /v2/NAME/blobs/sha256:DIGEST
        body, kind = b"{}", "application/json"
        if "manifests" in place:
            body = manifest
            kind = json.loads(manifest).get("mediaType", "application/vnd.oci.image.manifest.v1+json")
        elif "blobs" in place:
            with open(os.path.join(folder, place[-1].split(":")[1]), "rb") as file:
                body = file.read()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", "sha256:" + hashlib.sha256(body).hexdigest())
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w", encoding="utf-8") as file:
    file.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
EOF
  python3 "$work/registry.py" "$work/pushed" "$work/port" >/dev/null 2>&1 &
  registry=$!
  until_true test -s "$work/port"
  image="127.0.0.1:$(cat "$work/port")/skeleton:latest"
  printf '[[registry]]\nlocation = "127.0.0.1:%s"\ninsecure = true\n' "$(cat "$work/port")" >/etc/containers/registries.conf
  code 0 job-run --server node-1 --follow --image "$image" -- true
  podman image exists "$image" || fail "the image was not fetched"
  kill "$registry"
  # the image is there now, so nothing is asked
  code 0 job-run --server node-1 --follow --image "$image" -- true
}

# try_frozen: runs in the tree of a frozen launch; new files are moved to the project's folder
try_frozen() {
  code 0 launch --frozen --follow --nproc-per-node 1 -- sh -c 'pwd; echo "$PYTHONPATH"; : >"frozen.$RANK"'
  [ "$(grep -c '/.jobs/.trees/' "$work/out")" = 2 ] || fail "the container does not run in the tree"
  [ -f "$(homes | head -n 1)/my project/frozen.0" ] || fail "what was written in the container's tree has not come home"
}

# try_training LAUNCHER RANKS: with this many ranks per server
try_training() {
  /usr/bin/python3 -c 'import torch, sklearn' 2>/dev/null || missing "there is no torch or no scikit-learn"
  code 0 torch-launch --follow --launcher "$1" --nproc-per-node "$2" -- python3 train.py --epochs 8
  grep -q 'all ranks have the same parameters' "$work/out" || fail "training by $1"
  grep -q 'all .* succeeded' "$work/err" || fail "the verdict of $1"
  until_true no_container
}

# The launch's shared file is outside the project: all containers have it, and nothing else from there.
try_shared_file() {
  mkdir "$work/common" "$work/common/other"
  code 0 launch --follow --nproc-per-node 2 --init-method file --init-dir "$work/common" -- \
    sh -c 'file=${INIT_METHOD#file://}; echo "$RANK" >>"$file"; tries=0; until [ "$(wc -l <"$file")" = 4 ]; do
      tries=$((tries + 1)); [ $tries -lt 100 ] || exit 4; sleep 0.3; done; [ ! -e "${file%/*/*}/other" ]; echo "met at $INIT_METHOD, apart: $?"'
  grep -q "^met at file://$work/common/.*, apart: 0\$" "$work/out" || fail "the ranks have not met at the shared file"
  [ "$(ls "$work/common")" = other ] || fail "the shared file stays"
}

# Names the first rank that failed, with its output.
try_failure() {
  code 1 launch --follow --nproc-per-node 2 --failure-grace 0 -- \
    sh -c 'if [ $RANK = 2 ]; then echo the cause >&2; exit 5; fi; sleep 300'
  for text in 'rank 2 on node-2 failed first (exit 5, ....-..-.. ..:..:.. UTC' '  the cause' '3 others were ended after it'; do
    grep -q "$text" "$work/err" || fail "the verdict does not say: $text"
  done
  until_true no_container
}

# try_restart LAUNCHER: the next attempt gets its own containers
try_restart() {
  cat >again.py <<'EOF'
import os
import sys
import time

rank, attempt = os.environ["RANK"], int(os.environ["RESTART_COUNT"])
if attempt == 0:
    time.sleep(300 if rank != "3" else 1)
    sys.exit(5)
print("rank %s of %s, attempt %d" % (rank, os.environ["WORLD_SIZE"], attempt))
EOF
  "$REMOTE" --quiet rsync
  code 0 launch --follow --launcher "$1" --nproc-per-node 2 --restarts 1 --failure-grace 0 -- python3 again.py
  grep -q '^attempt 1: rank 3 on node-2 failed (exit 5) after' "$work/err" || fail "the attempt of $1 is not told"
  code 0 job-tail --launch last --all --no-follow
  [ "$(grep -c 'rank [0-3] of 4, attempt 1$' "$work/out")" = 4 ] || fail "not all ranks of $1 ran again"
  until_true no_container
}

# Following from the first byte, over a link that breaks.
try_link() {
  code 0 launch --nproc-per-node 2 -- python3 wait.py
  in_background job-tail --all
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
  until_true grep -q lost "$work/err"
  on_servers 'touch go'
  follower_ends 0
  [ "$(grep -c 'first byte' "$work/out")$(grep -c 'last byte' "$work/out")" = 44 ] || fail "lines are lost, or there twice"
  on_servers 'rm go'
}
all_began() { [ "$(grep -c 'first byte' "$work/out")" = 4 ]; }

# Kill: also stops processes that left their session, and the containers. The variables are never visible to others.
try_kill() {
  code 0 torch-launch --nproc-per-node 2 -e TOKEN=s3cr3t-value -- python3 wait.py "$mark.1"
  until_true all_live
  # shellcheck disable=SC2046
  "$engine" inspect $("$engine" ps --quiet) >"$work/inspected"
  grep -q REMOTE_JOB_ID "$work/inspected" || fail "nothing is inspected"
  if grep -q s3cr3t "$work/inspected" || grep -lqa 's3cr3t-[v]alue' /proc/[0-9]*/cmdline 2>/dev/null; then
    fail "a variable of the job is seen from outside"
  fi
  code 0 job-stacks --launch last
  grep -q 'wait.py' "$work/out" || fail "no stacks"
  code 0 job-kill --launch last --yes
  gone 1
  [ "$(of_jobs '[job["state"] for job in d][-4:]')" = "['killed', 'killed', 'killed', 'killed']" ] || fail "they are not killed"
}
all_live() { [ "$(processes 1)" = 8 ]; } # the ranks and their children
# gone SUFFIX: no process and no container is left. The engine itself removes a container (--rm) a moment after its last
# process.
gone() {
  dead "$1" || fail "a process is left"
  until_true no_container
}

# waiting SUFFIX: starts a job that waits; sets $key and $id
waiting() {
  code 0 job-run --server node-1 -- python3 wait.py "$mark.$1"
  until_true alive "$1"
  key=$(of_jobs 'd[-1]["key"]')
  id=$(job "$key" id)
}

# If the supervisor and the client are killed, the container keeps running, is still recognized, and can be stopped.
try_orphan() {
  waiting 2
  kill -KILL "$(cut -d ' ' -f 1 "$folder/.jobs/$id/supervisor")" "$(cut -d ' ' -f 1 "$folder/.jobs/$id/pid")"
  [ "$(job "$key" state)" = running ] || fail "a job whose container runs is $(job "$key" state)"
  code 0 job-clean --older 0 --yes
  containers_are 1 || fail "cleaning removed a container that runs"
  code 0 job-kill --job "$key" --yes
  gone 2
}

# If only the client is killed, the supervisor stops the container, and the job has failed.
try_client() {
  waiting 3
  kill -KILL "$(cut -d ' ' -f 1 "$folder/.jobs/$id/pid")"
  code 137 job-tail --job "$key"
  gone 3
}

try_clean() {
  code 0 job-clean --older 0 --yes
  [ -z "$(find "$folder/.jobs" -mindepth 1 -maxdepth 1 ! -name .bin ! -name .trees)" ] || fail "job folders are left"
  [ -z "$(find "$folder/.jobs/.trees" -mindepth 1 -maxdepth 1 -type d 2>/dev/null)" ] || fail "trees are left"
}
