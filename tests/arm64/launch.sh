#!/bin/sh
# A launch and a kill on practice servers with another architecture: they install the agent for aarch64, which runs in
# qemu.
# shellcheck disable=SC2016
[ -e /proc/sys/fs/binfmt_misc/tests-aarch64 ] || exec "${0%/*}/emulate" sh "$0" # with mounts of its own
. "${0%/*}/../e2e/support.sh"

# The uname program of the servers.
uname=$(realpath "$(command -v uname)")
cp "$uname" "$work/own uname"
cat >"$work/uname" <<EOF
#!/bin/sh
[ "\$*" != -m ] || exec echo aarch64
exec "$work/own uname" "\$@"
EOF
chmod +x "$work/uname"
mount --bind "$work/uname" "$uname"

code 0 sandbox up --nodes 2
system_python
code 0 rsync
code 0 run --server node-1 --cmd 'echo hello'
printed 'hello
'
code 7 run --server node-2 --cmd 'exit 7'
# agents: prints the machine that each installed agent is built for, from its ELF header
agents() { find "$sandbox" -name remote-agent -exec od -An -tx1 -j18 -N2 {} \; ; }
[ "$(agents)" = ' b7 00
 b7 00' ] || fail "the servers did not install the agent for aarch64"
# emulated: prints the processes on these servers that run in qemu
emulated() {
  for process in /proc/[0-9]*; do
    case $(readlink "$process/exe") in
      */qemu-aarch64*) grep -laF "$work" "$process/cmdline" 2>/dev/null || true ;;
    esac
  done
}
none_emulated() { [ -z "$(emulated)" ]; }

# --- a launch that succeeds, and one of whose ranks fails
code 0 launch --nproc-per-node 2 --follow --cmd "sh -c 'echo rank \$RANK of \$WORLD_SIZE'"
grep -qx 'rank 0 of 4' "$work/out" || fail "rank 0 printed nothing"
code 1 launch --nproc-per-node 2 --follow --cmd "sh -c 'if [ \$RANK = 2 ]; then exit 5; fi; exec sleep $mark.1'"
grep -q 'rank 2 on node-2 failed first' "$work/err" || fail "the verdict does not name rank 2"
gone() { [ "$(processes "$1")" = 0 ]; }
until_true gone 1

# --- kill, with a child in its own session
code 0 launch --nproc-per-node 2 --tag k --cmd "sh -c 'setsid sleep $mark.2 & trap \"\" TERM; while :; do sleep $mark.3; done'"
running() { [ "$(processes 2) $(processes 3)" = '4 4' ]; }
until_true running
[ "$(of_jobs '[job["state"] for job in d]' --tag k)" = "['running', 'running', 'running', 'running']" ] || fail "the ranks are not running"
! none_emulated || fail "qemu does not run the agents"
code 0 job-kill --tag k --grace 1
gone 2 || fail "job-kill left a child in a session of its own"
gone 3 || fail "job-kill left a rank that ignores TERM"
[ "$(of_jobs '[job["state"] for job in d]' --tag k)" = "['killed', 'killed', 'killed', 'killed']" ] || fail "the ranks are not listed as killed"
until_true none_emulated
echo "launch and kill on aarch64: all well"
