#!/bin/sh
# `remote check --bandwidth` between four hosts in namespaces whose interfaces are throttled, one of them more: the
# results agree with iperf3, the slow host is named, a host without iperf3 works, and nothing is left behind, even after
# an interruption.
. "${0%/*}/hosts_support.sh"
command -v iperf3 >/dev/null || skip 'iperf3 is not installed'

# shellcheck disable=SC2016  # each host's shell is to expand it
hosts 4 '
  rate=80mbit # a busy machine still reaches this
  [ "$1" != 3 ] || rate=20mbit
  tc qdisc add dev eth0 root tbf rate $rate burst 64kb latency 20ms || touch "$2/no-tbf"
  [ "$1" != 4 ] || mount --bind /dev/null "$(command -v iperf3)"'
[ ! -e "$work/no-tbf" ] || skip 'this kernel cannot slow an interface down (tbf)'

# left: processes that still listen or run on the hosts
left() {
  for n in 1 2 3 4; do
    ip netns exec "host$n" ss -Hltn | grep -v ':2222 ' || true
    for pid in $(ip netns pids "host$n"); do
      { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep '^iperf3' || true
    done
  done
}
nothing_left() { [ -z "$(left)" ]; }

# flow FROM TO FIELD
flow() { picks "[f['$3'] for s in d if s['server'] == 'node-$1' for f in s['facts']['network']['bandwidth']['to'] if f['to'] == 'node-$2'][0]"; }
# measures WORDS...: the measured values must match the setup. On a machine that is busy with other work a second may be
# far off. Then it is measured again, at most three times, by the same rules.
measures() {
  tries=1
  until "$@"; do
    [ $tries -lt 4 ] || fail "$*: $(cat "$work/flows")"
    tries=$((tries + 1))
  done
}
# The rate that tbf allows, which of the servers is slow, and the same result as iperf3.
all_pairs() {
  remote check --bandwidth --json --svg "$work/heat map.svg" || [ $? = 1 ] || fail 'the measurement'
  nothing_left || fail "there still is: $(left)"
  picks "[(s['server'], f['to'], f['method'], f['gbit_s'], f['outlier'], f['error']) for s in d for f in s['facts']['network']['bandwidth']['to']]" >"$work/flows"
  picks "'\n'.join(c['detail'] for s in d for c in s['checks'] if s['server'] == 'node-3' and c['name'] == 'bandwidth')" >"$work/lines"
  cat "$work/lines" >>"$work/flows"
  # The same pair, measured by hand with iperf3.
  ip netns exec host2 timeout 20 iperf3 -s -1 -p 5201 >"$work/iperf" &
  follower=$!
  until_true sh -c 'ip netns exec host2 ss -Hltn | grep -q ":5201 "'
  by_hand=$(ip netns exec host1 iperf3 -c 10.77.0.2 -p 5201 -t 2 -J | evaluate "d['end']['sum_received']['bits_per_second'] / 1e9")
  follower_ends 0
  echo "1 to 2 by hand: $by_hand" >>"$work/flows"
  [ "$(flow 1 2 method)" = iperf3 ] && [ "$(flow 3 1 outlier)" = True ] && [ "$(flow 1 3 outlier)" = False ] &&
    [ "$(picks "all(0.06 < f['gbit_s'] < 0.09 and f['latency_us'] > 0 for s in d for f in s['facts']['network']['bandwidth']['to'] if s['server'] != 'node-3')")" = True ] &&
    grep -q 'Gbit/s to node-1; the median of all is 0.07' "$work/lines" &&
    [ "$(picks "abs($(flow 1 2 gbit_s) / $by_hand - 1) < 0.1")" = True ]
}
measures all_pairs
grep -q '"median_gbit_s"' .remote/bandwidth.json || fail 'the result is not kept for reports'
[ "$(picks "sum(len(s['facts']['network']['bandwidth']['to']) for s in d)")" = 12 ] || fail 'not all pairs were measured'
[ "$(flow 1 4 method)" = own ] || fail 'who measured where there is no iperf3?'
[ "$(flow 4 1 method)" = own ] || fail 'who measured on a host without iperf3?'

python3 -c 'import sys, xml.dom.minidom as x; assert len(x.parse(sys.argv[1]).getElementsByTagName("rect")) == 17' "$work/heat map.svg" || fail 'the heat map'

# Servers with GPUs need more bandwidth.
sed -i 's/^\( *\)port: 2222$/&\n\1gpus: 1/' .remote/configs.yaml
slow_for_gpus() {
  "$REMOTE" check --bandwidth --server node-1,node-2 >"$work/out" 2>"$work/err" || true
  cp "$work/out" "$work/flows"
  grep -q 'bandwidth-gpu: only 0.07.* both have GPUs: below 10 Gbit/s a run waits for the network; .*eth0' "$work/out" &&
    grep -q '^1 node-1 .* 0.07' "$work/out"
}
measures slow_for_gpus

# ---- usage errors, and an interruption -----------------------------------------------------------------
code 2 check --svg "$work/x.svg"
code 2 check --bandwidth --svg "$work/none/x.svg"
[ ! -e "$work/x.svg" ] || fail 'it was written'
in_background check --bandwidth
measuring() { [ -n "$(ip netns exec host2 ss -Htn state established sport != :2222 dport != :2222)" ]; }
until_true measuring
kill -TERM "$follower"
follower_ends 130
until_true nothing_left
echo 'check of the bandwidth: all good'
