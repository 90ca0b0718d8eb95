#!/bin/sh
# Jobs and launches in containers of a real docker daemon, which runs as root, started by an ordinary user. So no
# process in a container is a child of the job's processes, and the login user cannot signal one that runs as root.
# shellcheck disable=SC2016
engine=docker
. "${0%/*}/container_support.sh"
enter_namespaces docker dockerd containerd setpriv

if [ "$(id -u)" = 0 ]; then # inside the namespaces, and not yet the user
  own_folders /var/lib/docker /var/run/docker /run/containerd /var/lib/containerd /dev/shm
  own_user
  DOCKER_HOST=unix:///mnt/docker.sock
  export DOCKER_HOST
  dockerd --host $DOCKER_HOST --data-root /var/lib/docker --exec-root /mnt/exec --pidfile /mnt/docker.pid --storage-driver vfs \
    --iptables=false --ip6tables=false --bridge=none >/mnt/log 2>&1 &
  daemon=$!
  until docker info >/dev/null 2>&1; do
    kill -0 $daemon 2>/dev/null || missing "dockerd does not run here: $(tail -n 1 /mnt/log)"
    sleep 0.1
  done
  chmod 666 /mnt/docker.sock
  skeleton | docker import - localhost/skeleton:latest >/dev/null
  docker run --rm --network host -v /usr:/usr:ro localhost/skeleton:latest true 2>/mnt/err || missing "docker runs nothing here: $(tail -n 1 /mnt/err)"
  code=0
  as_user || code=$?
  [ -z "$(docker ps --all --quiet)" ] || docker ps --all --quiet | xargs docker rm --force >/dev/null
  exit "$code" # and all processes with it
fi

. "${0%/*}/support.sh"
# shellcheck disable=SC2119
two_servers
for_engine DOCKER_HOST "$DOCKER_HOST"
try_jobs
try_missing localhost/no-such-image
try_failure
try_kill
try_client

# --- as another user: the login user cannot signal any of its processes, so the engine does it
sed -i 's/^  args:$/&\n    - "--user=root"/' .remote/configs.yaml
waiting 4
[ "$(stat -c %u "/proc/$(processes_of 4 | tail -n 1)")" = 0 ] || fail "it does not run as root"
code 0 job-kill --job "$key" --yes --grace 30
gone 4
[ "$(job "$key" signal)" = SIGTERM ] || [ "$(job "$key" signal)" = 15 ] || fail "it ended by $(job "$key" signal)"
try_orphan
try_clean

# --- no access to the socket, and no daemon
DOCKER_HOST=unix:///mnt/no.sock
sed -i "s#unix://[^\"]*#$DOCKER_HOST#" .remote/configs.yaml
code 1 launch -- true
grep -q '^error: node-1, node-2: cannot start a container: docker cannot be used: ' "$work/err" || fail "no daemon"
DOCKER_HOST=unix:///mnt/docker.sock
echo "docker: all well"
