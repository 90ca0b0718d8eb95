#!/bin/sh
# `remote check` on servers that each have a different real problem: small file systems in the test's own mount
# namespace, missing programs, different packages. A healthy cluster comes first. Requires root.
# shellcheck disable=SC2016
if [ "${1-}" != in-namespace ]; then
  if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
    echo "skipped: only root may mount small disks"
    exit 77
  fi
  exec unshare -m sh "$0" in-namespace
fi
. "${0%/*}/support.sh"
clean_up() {
  for node in 2 3; do
    umount -l "$sandbox/node-$node/home/my project" 2>/dev/null
  done
  tries=0
  until [ ! -e "$work/cgroup/session-$$.scope" ] || rmdir "$work/cgroup/session-$$.scope" 2>/dev/null || [ $tries = 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  umount "$work/cgroup" 2>/dev/null
}
session='' # whether in_session has succeeded
# in_session: from now on all logins are in a control group named like logind's scope of a session
in_session() {
  mkdir "$work/cgroup"
  { mount -t cgroup2 none "$work/cgroup" && mkdir "$work/cgroup/session-$$.scope"; } 2>"$work/why" || return 1
  for node in 1 2 3 4 5 6 7 8; do
    cat "$sandbox/node-$node/sshd.pid" >"$work/cgroup/session-$$.scope/cgroup.procs" 2>"$work/why" || return 1
  done
  session=yes
}
home() { echo "$sandbox/node-$1/home"; }
# status NODE CHECK: the result of the last check
status() { picks "[c['status'] for s in d if s['server'] == 'node-$1' for c in s['checks'] if c['name'] == '$2'][0]"; }
# detail NODE CHECK, fix NODE CHECK
detail() { picks "[c['detail'] for s in d if s['server'] == 'node-$1' for c in s['checks'] if c['name'] == '$2'][0]"; }
fix() { picks "[c['fix'] for s in d if s['server'] == 'node-$1' for c in s['checks'] if c['name'] == '$2'][0]"; }
# not_well: prints the checks that warn or fail, one "SERVER CHECK STATUS" per line, except those that other work on
# this machine may affect
not_well() {
  picks "'\n'.join('%s %s %s' % (s['server'], c['name'], c['status']) for s in d for c in s['checks']
    if c['status'] in ('warn', 'fail') and c['name'] not in ('load', 'memory'))"
}
# is NODE CHECK STATUS WORDS FIX
is() {
  [ "$(status "$1" "$2")" = "$3" ] || fail "node-$1: $2 is $(status "$1" "$2"), not $3: $(detail "$1" "$2")"
  case $(detail "$1" "$2") in
    *"$4"*) ;;
    *) fail "node-$1: $2 does not say '$4': $(detail "$1" "$2")" ;;
  esac
  case $(fix "$1" "$2") in
    *"$5"*) ;;
    *) fail "node-$1: $2 is not mended by '$5': $(fix "$1" "$2")" ;;
  esac
}

mount -t tmpfs -o size=1g tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/systemd/system
[ ! -d /etc/systemd ] || mount -t tmpfs tmpfs /etc/systemd
code 0 sandbox up --nodes 8
system_python
short=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
for node in 1 2 3 4 5 6 7 8; do
  site="$(home $node)/.local/lib/$short/site-packages"
  mkdir -p "$site/numpy-2.0.1.dist-info" "$site/torch"
  echo "__version__ = '2.1.0+cu121'" >"$site/torch/version.py"
  echo "cuda = '12.1'" >>"$site/torch/version.py"
done
code 0 rsync

# ---- everything is fine
code 0 check --json
[ -z "$(not_well)" ] || fail "a healthy cluster gets: $(not_well)"
[ "$(picks 'd[0]["facts"]["torch"]["version"]')" = 2.1.0+cu121 ] || fail "torch was not read"
[ "$(picks 'd[7]["facts"]["packages"]["numpy"]')" = 2.0.1 ] || fail "packages were not read"
code 0 check
[ "$(grep -c '^node-' "$work/out")" = 8 ] || fail "not one row for each server"

# ---- each server has its own problem
cp -r "$(home 2)/my project" "$work/copy"
mount -t tmpfs -o size=2m tmpfs "$(home 2)/my project"
cat /dev/zero >"$(home 2)/my project/fill" 2>/dev/null || true
mount -t tmpfs -o size=8g,nr_inodes=30 tmpfs "$(home 3)/my project"
(cd "$(home 3)/my project" && for file in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo >$file; done)
rm -r "$(home 4)/.local/lib/$short/site-packages/numpy-2.0.1.dist-info"
mkdir "$(home 4)/.local/lib/$short/site-packages/numpy-1.26.4.dist-info"
echo "__version__ = '1.13.1'" >"$(home 5)/.local/lib/$short/site-packages/torch/version.py"
mkdir "$(home 6)/bin" "$(home 7)/programs"
for agent in "$(home 6)"/.cache/remote/*/remote-agent; do
  mv "$agent" "$agent.real"
  sed 's/"CHANGE"/"clock"/' "$REMOTE_SOURCE_DIR/tests/e2e/wrong_reply.py" >"$agent"
  chmod 700 "$agent"
done
for folder in /usr/bin /bin; do # all programs except one
  for program in "$folder"/*; do
    [ "${program##*/}" = rsync ] || [ -e "$(home 7)/programs/${program##*/}" ] || ln -s "$program" "$(home 7)/programs/"
  done
done
sed -i '1i PATH=$HOME/bin:$PATH; [ ! -d "$HOME/programs" ] || PATH=$HOME/programs; export PATH' "$sandbox/entry.sh"
# recorded data: a process that is not a job uses GPU memory
cp "$REMOTE_SOURCE_DIR/tests/data/gpus/nvidia-smi.sh" "$(home 6)/bin/nvidia-smi"
chmod +x "$(home 6)/bin/nvidia-smi"
cp -r "$REMOTE_SOURCE_DIR/tests/data/gpus/550" "$(home 6)/bin/gpus"
uuid=$(sed '/^#/d' "$(home 6)/bin/gpus/gpus.csv" | grep -o 'GPU-[^,]*' | head -n 1)
echo "$uuid, $$, 40000, python" >"$(home 6)/bin/gpus/apps.csv" # this test itself plays that process
rm -r "$(home 8)/my project"
mount -o remount,size=64m /dev/shm
mkdir -p /run/systemd/logind.conf.d
printf '[Login]\nKillUserProcesses=yes\nKillExcludeUsers=nobody\n' >/run/systemd/logind.conf.d/strict.conf
code 1 check --json
[ "$(status 1 logout)" = ok ] || fail "logins outside of any session end at logout: $(detail 1 logout)"
in_session || echo "no session can be pretended here: $(cat "$work/why")"
[ -z "$session" ] || code 1 check --json
is 1 shm warn '64 MiB of 64 MiB are free in /dev/shm' 'mount -o remount'
[ -z "$session" ] || is 1 logout fail 'KillUserProcesses=yes' 'KillExcludeUsers=nobody '
is 2 disk fail '0 B of 2.0 MiB are free where the project ' 'du -xhd 2 '
is 3 inodes fail ' of 30 inodes are free where the project' 'du --inodes '
numpy=numpy==2.0.1 torch=torch==2.1.0
[ ! -e "/usr/lib/$short/EXTERNALLY-MANAGED" ] || numpy='manager: venv' torch='manager: venv'
is 4 same-packages warn 'numpy 1.26.4 on node-4, 2.0.1 on the 7 others' "$numpy"
is 5 same-torch fail 'torch 1.13.1 on node-5, 2.1.0+cu121 on the 7 others' "$torch"
is 6 clock warn ' ahead of this machine' 'timedatectl'
is 6 gpu-busy warn "python (pid $$, " "kill $$"
is 7 rsync warn "is not on the login's PATH" 'add to PATH'
is 8 project warn 'is not there yet' 'mkdir -p '
for name in disk inodes rsync clock project same-packages same-torch; do
  [ "$(status 1 $name)" = ok ] || fail "the healthy node-1 gets $name: $(detail 1 $name)"
done

# ---- a launch stops before anything starts, or warns
launch() { remote launch --nproc-per-node 1 "$@" --cmd "touch ../started"; }
if [ -n "$session" ]; then
  if launch --server node-1; then fail "a launch whose ranks end at logout starts"; fi
  grep -q '^error: node-1: .*KillUserProcesses=yes' "$work/err" || fail "it does not say why"
  grep -q -e '--no-check' "$work/err" || fail "it does not say how to start it all the same"
fi
if launch --server node-2 --server node-8; then fail "a launch on a full disk starts"; fi
grep -q '^error: node-2: .*/.jobs cannot be written: its disk is full' "$work/err" || fail "the full disk is not told"
for node in 1 2 8; do
  [ ! -e "$(home $node)/started" ] || fail "something was started on node-$node"
done
mv /run/systemd/logind.conf.d/strict.conf "$work/"
code 0 launch --follow --nproc-per-node 1 --server node-1,node-5,node-6 --cmd true
grep -q '^warning: node-6: clock: [56][0-9] s ahead' "$work/err" || fail "the wrong clock is not told"
grep -q "^warning: node-6: gpu-busy: others hold memory of its GPUs: pid $$ of root" "$work/err" || fail "who holds a GPU is not told"
grep -q '^warning: node-5: same-torch: torch 1.13.1 on node-5, 2.1.0+cu121 on the 2 others' "$work/err" || fail "torch 1 is not told"
code 0 launch --follow --no-check --nproc-per-node 1 --server node-1,node-6 --cmd true
if grep -q '^warning: node-6: clock' "$work/err"; then fail "--no-check checks"; fi
mv "$work/strict.conf" /run/systemd/logind.conf.d/
code 1 check --json
mend_shm=$(fix 1 shm)
[ -z "$session" ] || mend_logout=$(fix 1 logout)
code 1 check
[ -z "$session" ] || grep -q '^fail  8 servers (node-1, node-2, node-3, …)  logout: ' "$work/out" || fail "what all have is not told once"

# ---- the suggested commands fix the problem
sh -c "$mend_shm"
if [ -d /etc/systemd ] && [ -n "$session" ]; then
  sh -c "${mend_logout% && systemctl *}" # does not restart the real logind
else
  rm /run/systemd/logind.conf.d/strict.conf
fi
rm "$(home 2)/my project/fill"
umount "$(home 3)/my project"
code 1 check --json
code 1 check --fix --yes
grep -q '^node-8: mkdir -p ' "$work/err" || fail "--fix does not say what it does"
grep -q '^# For root on node-6\.$' "$work/out" || fail "there is no script for root"
code 1 check --json
[ "$(status 8 project)" = ok ] || fail "--fix did not make the folder"
[ "$(status 1 shm)" = ok ] || fail "the larger /dev/shm is not seen: $(detail 1 shm)"
is 2 disk fail 'of 2.0 MiB' 'du '
[ "$(status 3 inodes)" = ok ] || fail "node-3: $(detail 3 inodes)"
[ "$(status 4 logout)" = ok ] || fail "node-4: $(detail 4 logout)"
