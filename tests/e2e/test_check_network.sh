#!/bin/sh
# `remote check` on networks on which a run would hang. Each problem is caused on four hosts in namespaces, and its
# suggested fix is applied: a firewall that drops, rejects or resets in one direction, packets that are too large for
# the path, a name that resolves to the host itself, a name with an unused IPv6 address, an address on a network that
# leads nowhere, and an address that every host has.
. "${0%/*}/hosts_support.sh"

for n in 1 2 3 4; do
  { echo '127.0.0.1 localhost' && echo '10.77.0.1 host-1'; } >"$work/hosts.$n"
done
# As on Debian: a host's own name resolves to its loopback address.
sed -i 's/10.77.0.1/127.0.1.1/' "$work/hosts.1"
# No other host is on eth1, and docker0 has the same network everywhere.
# shellcheck disable=SC2016  # each host's shell is to expand it
hosts 4 '
  ip link add eth1 type veth peer name nowhere
  ip address add "10.88.0.$1/24" dev eth1
  ip link set eth1 up
  ip link set nowhere up
  ip link add docker0 type bridge
  ip address add 172.17.0.1/16 dev docker0
  ip link set docker0 up'

# looked CODE: a full check exits with this code (any: -); its results go to $work/all, one per line: SERVER NAME STATUS
# DETAIL | FIX
looked() {
  got=0
  remote check --json || got=$?
  [ "$1" = - ] || [ "$got" = "$1" ] || fail "exit code $got, not $1"
  picks "'\n'.join('%s %s %s %s | %s' % (s['server'], c['name'], c['status'], c['detail'], c['fix']) for s in d for c in s['checks'])" >"$work/all"
}
# network FROM: prints that server's results about the network
network() { sed -n "s/^$1 network/network/p" "$work/all"; }
# says FROM TEXT: that server's network results have a line with the text
says() {
  network "$1" >"$work/lines"
  grep -qF -- "$2" "$work/lines" || fail "about $1 it does not say: $2
$(cat "$work/lines")"
}
# all_well: a full check finds no problem with the network
all_well() {
  looked -
  for n in 1 2 3 4; do
    says node-$n "network ok reaches all others"
    says node-$n "network-launch ok MASTER_ADDR=10.77.0.1, and unless they are set there, NCCL_SOCKET_IFNAME==eth0 GLOO_SOCKET_IFNAME=eth0"
    [ "$(network node-$n | wc -l)" = 2 ] || fail "a healthy network gives a finding: $(network node-$n)"
  done
}
all_well

# ---- firewalls, each in one direction ----------------------------------------------------------------
filter() {
  host=$1
  shift
  ip netns exec "host$host" iptables -A INPUT -s 10.77.0.1 -p tcp --syn --dport 1024:65535 "$@"
}
if filter 2 -j DROP 2>"$work/why" && filter 3 -j REJECT --reject-with icmp-admin-prohibited 2>"$work/why" &&
  filter 4 -j REJECT --reject-with tcp-reset 2>"$work/why"; then
  looked 1
  says node-1 'network-port fail node-2 at 10.77.0.2'
  says node-1 'no answer. A firewall drops the packets, or no machine has this address; the other direction works, node-2 reaches node-1'
  says node-1 'a firewall rejects the connection, with a message from 10.77.0.3; the other direction works'
  says node-1 'refused, although something listens there. A firewall resets the connection'
  for n in 2 3 4; do
    says node-$n 'network ok reaches all others'
  done
  network node-1 | sed -n 's/^network-port fail node-\([0-9]\).* | /\1 /p' >"$work/fixes"
  [ "$(wc -l <"$work/fixes")" = 3 ] || fail "other fixes: $(cat "$work/fixes")"
  while read -r n fix; do
    ip netns exec "host$n" sh -c "$fix" || fail "the fix fails: $fix"
  done <"$work/fixes"
  all_well
else
  echo "no firewall can be made here: $(cat "$work/why")"
fi

# ---- a name with an IPv6 address that does not answer, and an IPv4 address that does -------------------
# internal N ADDRESS: sets internal_address of node-N
internal() {
  sed -i "/internal_address: .* # $1\$/d; s/^\( *\)hostname: 10.77.0.$1\$/&\n\1internal_address: $2 # $1/" .remote/configs.yaml
}
v6=yes
for n in 1 2 3 4; do
  ip netns exec "host$n" ip -6 address add "fd77::$n/64" dev eth0 nodad 2>"$work/why" || v6=
  { echo 'fd77::99 both-2' && echo '10.77.0.2 both-2'; } >>"$work/hosts.$n"
done
if [ -n "$v6" ]; then
  internal 2 both-2
  looked 1
  says node-1 'network-route fail node-2 at fd77::99'
  says node-1 'no machine on that network has this address'
  says node-1 '| in .remote/configs.yaml, under node-2: internal_address: 10.77.0.2'
  says node-3 'network-route fail node-2 at fd77::99'
  says node-2 'network ok reaches all others'
  fix=$(network node-1 | sed -n 's/.* under node-2: internal_address: //p')
  internal 2 "$fix"
else
  echo "no IPv6 can be had here: $(cat "$work/why")"
fi
for n in 1 2 3 4; do
  ip netns exec "host$n" ip -6 address flush dev eth0
done
all_well

# ---- a path that takes smaller packets than its ends assume ------------------------------------------
ip link set to3 mtu 1200
looked 1
says node-1 'it connects, but packets of 1500 bytes do not pass on the way there; packets of 1200 bytes do'
says node-3 'network-mtu fail node-1'
says node-2 'network ok reaches node-1, node-4'
for n in 1 2 3 4; do
  network node-$n | sed -n "s/^network-mtu fail .* | /$n /p"
done | sort -u >"$work/fixes"
[ "$(wc -l <"$work/fixes")" = 4 ] || fail "other fixes: $(cat "$work/fixes")"
while read -r n fix; do
  ip netns exec "host$n" sh -c "$fix" || fail "the fix fails: $fix"
done <"$work/fixes"
all_well

# ---- addresses that mean something else --------------------------------------------------------------
internal 1 host-1
internal 2 10.88.0.2
internal 3 172.17.0.1
looked 1
says node-1 'network-name fail MASTER_ADDR=host-1 is 127.0.1.1 on this server itself, and 10.77.0.1 on the others'
says node-1 '| in .remote/configs.yaml, under node-1: internal_address: 10.77.0.1'
says node-4 'network-route fail node-2 at 10.88.0.2'
says node-4 'by eth1: no machine on that network has this address'
says node-4 '| in .remote/configs.yaml, under node-2: internal_address: 10.77.0.2'
says node-4 'network-identity fail node-3 at 172.17.0.1'
says node-4 "this server itself answers there, so the address is not node-3's alone"
says node-4 '| in .remote/configs.yaml, under node-3: internal_address: 10.77.0.3'
for n in 1 4; do
  network node-$n
done | sed -n 's/.* under node-\([0-9]\): internal_address: /\1 /p' | sort -u >"$work/fixes"
[ "$(wc -l <"$work/fixes")" = 3 ] || fail "other fixes: $(cat "$work/fixes")"
while read -r n address; do
  internal "$n" "$address"
done <"$work/fixes"
all_well

# ---- a server that answers nonsense -----------------------------------------------------------------
for agent in "$sandbox/node-2/home"/.cache/remote/*/remote-agent; do
  mv "$agent" "$agent.real"
  sed 's/"CHANGE"/"ports"/' "$REMOTE_SOURCE_DIR/tests/e2e/wrong_reply.py" >"$agent"
  chmod 700 "$agent"
done
looked 1
for agent in "$sandbox/node-2/home"/.cache/remote/*/remote-agent; do
  mv "$agent.real" "$agent"
done
says node-2 "network fail the server's answer is not understood: 'server.ports[0]' is out of range"
says node-1 'network skip could not try node-2'
says node-1 'network ok reaches node-3, node-4'
all_well

# ---- nothing is left behind --------------------------------------------------------------------------
for n in 1 2 3 4; do
  ip netns exec "host$n" ss -Hltn >"$work/listeners"
  if grep -v ':2222 ' "$work/listeners"; then
    fail "node-$n still listens"
  fi
done
echo 'check of the network: all good'
