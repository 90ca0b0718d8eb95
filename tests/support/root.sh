# Root folders with a release of Debian, for tests/on and tests/packages, which source this file. Requires root.
# REMOTE_ROOTS   where the root folders and their packages are kept (default: /var/cache/remote-tests)
# DEBIAN_MIRROR  the Debian mirror (default: this machine's mirror)
# shellcheck shell=sh
roots=${REMOTE_ROOTS:-/var/cache/remote-tests}

# roots_possible: whether this machine allows the mounts and namespaces
roots_possible() {
  as_root=
  [ "$(id -u)" = 0 ] || as_root='sudo -n'
  $as_root unshare --mount --propagation private --pid --fork --mount-proc mount -t tmpfs tmpfs /mnt 2>/dev/null
}

# in_namespaces NAME PROGRAM WORDS...: replaces this process with `PROGRAM WORDS...` in its own mount and process
# namespaces, so that no process or mount is left however it ends. It does nothing if it already ran with this name.
in_namespaces() {
  [ "${REMOTE_TESTS_INSIDE-}" != "$1" ] || return 0
  export REMOTE_TESTS_INSIDE="$1"
  shift
  exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$@"
}

# make_root RELEASE [NAME]: makes $roots/NAME (default: RELEASE) if it does not exist
make_root() {
  name=${2:-$1}
  [ ! -d "$roots/$name" ] || return 0
  printf '\n== %s: the base system\n' "$1"
  mkdir -p "$roots"
  # shellcheck disable=SC2016  # apt-get expands it
  mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/*$' | head -n 1)}
  unfinished=$(mktemp -d "$roots/$name.XXXXXX")
  debootstrap --variant=minbase --include=ca-certificates "$1" "$unfinished" "${mirror:-http://deb.debian.org/debian}"
  chmod 0755 "$unfinished"
  mv "$unfinished" "$roots/$name"
}

# mount_root FOLDER: mounts the file systems of a running system
mount_root() {
  mount --rbind /dev "$1/dev"
  mount -t proc proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
  mount -t tmpfs -o mode=0755 tmpfs "$1/run"
  mkdir -p "$1/run/sshd"
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# in_root FOLDER COMMAND...: runs it in the root folder, with a new environment and this environment's proxies
in_root() {
  folder=$1
  shift
  chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    ${JOBS:+JOBS="$JOBS"} ${TEST_JOBS:+TEST_JOBS="$TEST_JOBS"} "$@"
}
