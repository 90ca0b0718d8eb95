#!/bin/sh
# Jobs and launches in containers of a real podman that runs as root.
engine=podman
. "${0%/*}/container_support.sh"
enter_namespaces podman crun
. "${0%/*}/support.sh"

own_podman
# shellcheck disable=SC2086
two_servers $limits
try_jobs
try_fetch
try_missing no-such-image
try_training ranks 2
try_frozen
try_training torchrun 1
if command -v mpirun >/dev/null; then
  try_training mpi 2
  try_restart mpi
else
  echo "without mpi: mpirun is not installed"
fi
try_shared_file
try_failure
try_restart ranks
try_restart torchrun
try_link
try_kill
try_orphan
try_client
try_clean
echo "containers: all well"
