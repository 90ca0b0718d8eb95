#!/bin/sh
# Practice servers as separate hosts, in network namespaces. End-to-end tests source this instead of support.sh.
# e2e: the folder of support.sh, if it is not the folder of the test.
# shellcheck disable=SC2016
if [ "${REMOTE_TEST_INSIDE-}" != yes ]; then
  if ! unshare --net --uts --mount --propagation private ip link set lo up 2>/dev/null; then
    echo 'skipped: no right to make namespaces'
    exit 77
  fi
  REMOTE_TEST_INSIDE=yes exec unshare --net --uts --mount --propagation private sh "$0" "$@"
fi
PATH=$PATH:/usr/sbin:/sbin
. "${e2e:-${0%/*}}/support.sh"
servers=''
clean_up() {
  for server in $servers; do
    kill "$server" 2>/dev/null
  done
}

# hosts COUNT [SH]: makes this many servers. node-N is in the namespace hostN with 10.77.0.N on eth0, behind a bridge
# whose port for it is toN.
# SH runs in each, with N as $1. The host name is host-N, or $host_names-N, and /etc/hosts is $work/hosts.N.
hosts() {
  ip link set lo up
  code 0 sandbox up --nodes "$1"
  mkdir -p /run/netns
  mount -t tmpfs tmpfs /run/netns
  { ip link add bridge type bridge && ip address add 10.77.0.254/24 dev bridge; } 2>"$work/why" || skip "no network: $(cat "$work/why")"
  ip link set bridge up
  sed -i 's/hostname: 127.*/hostname: 10.77.0.N/; s/port: .*/port: 2222/' .remote/configs.yaml
  n=0
  while [ $n -lt "$1" ]; do
    n=$((n + 1))
    folder=$sandbox/node-$n
    kill "$(cat "$folder/sshd.pid")"
    sed "s/^ListenAddress .*/ListenAddress 10.77.0.$n:2222/; s|^PidFile .*|PidFile \"$work/sshd.$n\"|" "$folder/sshd_config" >"$work/config.$n"
    ip netns add "host$n"
    ip link add "to$n" type veth peer name eth0 netns "host$n"
    ip link set "to$n" master bridge up
    [ -e "$work/hosts.$n" ] || echo '127.0.0.1 localhost' >"$work/hosts.$n"
    ip netns exec "host$n" sh -c '
      ip link set lo up
      ip address add "10.77.0.$1/24" dev eth0
      ip link set eth0 up
      eval "$3"
      mount --bind "$2/hosts.$1" /etc/hosts
      exec unshare --uts sh -c "hostname \$3-\$1; exec /usr/sbin/sshd -f \"\$2/config.\$1\" -D" sh "$1" "$2" "$4"' sh $n "$work" "${2-}" "${host_names:-host}" &
    servers="$servers $!"
    sed -i "/node-$n:/,/port:/s/10.77.0.N/10.77.0.$n/" .remote/configs.yaml
  done
  system_python
  until_true remote rsync
}
