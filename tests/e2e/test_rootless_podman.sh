#!/bin/sh
# Jobs and launches in podman containers, started by an ordinary user without root's rights.
engine=podman
. "${0%/*}/container_support.sh"
enter_namespaces podman crun setpriv newuidmap

if [ "$(id -u)" = 0 ]; then # inside the namespaces, and not yet the user
  own_folders /run/user /dev/shm /etc/containers
  printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >/etc/containers/policy.json
  own_cgroups
  own_user
  # shellcheck disable=SC2154
  mkdir -m 700 "/run/user/$user"
  chown "$user:$user" "/run/user/$user"
  code=0
  as_user || code=$?
  exit "$code" # and all processes with it
fi

. "${0%/*}/support.sh"
# Otherwise each practice server would have its own storage, in its home.
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/user/%s/storage"\nrootless_storage_path = "/mnt/home/storage"\n' "$user" >/mnt/home/storage.conf
CONTAINERS_STORAGE_CONF=/mnt/home/storage.conf
XDG_RUNTIME_DIR=/run/user/$user
export CONTAINERS_STORAGE_CONF XDG_RUNTIME_DIR
skeleton | podman import --quiet - localhost/skeleton:latest >/dev/null 2>"$work/err" || skip "podman does not work here: $(tail -n 1 "$work/err")"
podman run --rm --network host --cgroups=disabled --userns keep-id -v /usr:/usr:ro localhost/skeleton true 2>"$work/err" ||
  skip "podman runs nothing here: $(tail -n 1 "$work/err")"

two_servers --cgroups=disabled
for_engine CONTAINERS_STORAGE_CONF $CONTAINERS_STORAGE_CONF XDG_RUNTIME_DIR "$XDG_RUNTIME_DIR"
try_jobs
try_failure
try_kill
try_orphan
try_client
try_clean
echo "podman without root: all well"
