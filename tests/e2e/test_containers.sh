#!/bin/sh
# Jobs and launches in containers of a real podman, which runs as root.
engine=podman
. "${0%/*}/container_support.sh"
enter_namespaces podman crun
. "${0%/*}/support.sh"

own_folders /var/lib/containers /run/libpod /run/containers /run/crun /etc/containers /dev/shm
printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n' \
  >/etc/containers/storage.conf
printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >/etc/containers/policy.json
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then # crun wants control groups of version 2 alone
  umount -R /sys/fs/cgroup 2>/dev/null || true
  mount -t cgroup2 none /sys/fs/cgroup || skip "no right to mount control groups"
fi
skeleton | podman import --quiet - localhost/skeleton:latest >/dev/null
limits="--cgroups=disabled --ulimit nofile=1024:1024 --ulimit nproc=1000:1000"
# shellcheck disable=SC2086
podman run --rm $limits -v /usr:/usr:ro localhost/skeleton true 2>"$work/err" || skip "podman runs nothing here: $(tail -n 1 "$work/err")"

# shellcheck disable=SC2086
two_servers $limits
try_jobs
try_missing no-such-image
try_training ranks 2
try_training torchrun 1
try_failure
try_link
try_kill
try_orphan
try_client
try_clean
echo "containers: all well"
