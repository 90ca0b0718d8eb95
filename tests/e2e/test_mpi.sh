#!/bin/sh
# --launcher mpi on two practice servers that are connected only by the launch's lifeline: mpirun starts the ranks on
# both.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
command -v mpirun >/dev/null || skip "mpirun is not installed (Debian: openmpi-bin)"
code 0 sandbox up --nodes 2
system_python
cp "${REMOTE_SOURCE_DIR:?}/sample/train.py" .
cat >ranks.py <<'PY'
"""Reads its rank as MPI programs do, and compares it with what torch's programs read."""
import os

rank, size = os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"]
assert (rank, size) == (os.environ["RANK"], os.environ["WORLD_SIZE"])
assert os.environ["LOCAL_RANK"] == os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]
print("rank %s of %s, server %s:" % (rank, size, os.environ["NODE_RANK"]), os.environ["WORD"], flush=True)
PY
cat >meet.py <<'PY'
import os
import torch.distributed as dist

method, rank, size = os.environ["INIT_METHOD"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
dist.barrier()
print("rank %d of %d met the others at %s" % (rank, size, method), flush=True)
PY
code 0 rsync
# mpi COMMAND WORDS...: launches 2 ranks on each server; an mpirun that is killed leaves its files behind
mkdir "$work/tmp"
mpi() { "$REMOTE" torch-launch --launcher mpi --nproc-per-node 2 -e "TMPDIR=$work/tmp" --cmd "$@" >"$work/out" 2>"$work/err"; }
succeeds() { "$@" || fail "exit code $?: $*"; }
# output KEY STREAM: prints the job's output
output() { find .remote/sandbox -path "*/.jobs/$(job "$1" id)/job.$2" -exec cat {} +; }
# left: prints the processes of mpirun or its ranks that belong to this test's servers
left() { grep -lzF "$work/my project" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3 | while read -r pid; do
  grep -qzE '^(.*/)?(mpirun|orted|prted|prterun|sleep|remote-mpi-.*)$' "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
done; }
nothing_left() { [ -z "$(left)" ]; }

# --- the ranks on both servers, in the order of the launch, with the user's variables; each server has the output of
# its own ranks
succeeds mpi 'python3 ranks.py' --follow -e 'WORD=a b' -e 'SECRET_TOKEN=s3cr3t'
grep -qx 'rank 0 of 4, server 0: a b' "$work/out" || fail "rank 0 is not followed"
output 1 out | sort >"$work/sorted"
printf '[0] rank 0 of 4, server 0: a b\n[1] rank 1 of 4, server 0: a b\n' | cmp -s - "$work/sorted" || fail "the first server's ranks"
output 2 out | sort >"$work/sorted"
printf '[2] rank 2 of 4, server 1: a b\n[3] rank 3 of 4, server 1: a b\n' | cmp -s - "$work/sorted" || fail "the second server's ranks"
code 0 job-tail --launch last --rank 3 --no-follow
printed 'rank 3 of 4, server 1: a b
'
code 0 job-list --stopped --json
[ "$(picks '[(job["rank"], job["ranks"]) for job in d]')" = '[(0, 2), (2, 2)]' ] || fail "job-list does not show its ranks: $(cat "$work/out")"

# --- the sample's program, unchanged
if remote run --cmd 'python3 -c "import sklearn, torch"'; then
  succeeds mpi 'python3 train.py --epochs 6' --follow
  grep -q 'all ranks have the same parameters' "$work/out" || fail "it has not trained on all ranks"
  # the ranks find each other through a shared file
  mkdir "$work/common"
  succeeds mpi 'python3 meet.py' --follow --init-method file --init-dir "$work/common"
  grep -q "^rank 0 of 4 met the others at file://$work/common/" "$work/out" || fail "they have not met at the file"
  key=6
else
  echo "without train.py: there is no torch"
  key=2
fi

# --- the first rank that failed, with its own exit code and output, although mpirun then stops all others
got=0
mpi 'sh -c "[ \$RANK = 3 ] || exec sleep 600; echo the disk of rank 3 is gone >&2; exit 9"' --follow || got=$?
[ "$got" = 1 ] || fail "exit code $got"
grep -q 'rank 3 on node-2 failed first (exit 9' "$work/err" || fail "the verdict names another rank"
grep -q 'the disk of rank 3 is gone' "$work/err" || fail "the verdict has not its last words"
until_true nothing_left
key=$((key + 2))
[ "$(job $key exit_code) $(job $((key - 1)) exit_code)" = '9 9' ] || fail "the exit codes are not that of the rank"

# --- a rank that raises an exception and then hangs, as mpi4py does in MPI_Finalize, is stopped, and named with its
# traceback
cat >raises.py <<'PY'
import atexit
import os
import time

if os.environ["RANK"] != "3":
    time.sleep(600)
atexit.register(time.sleep, 600)
raise ValueError("no such data")
PY
code 0 rsync
got=0
mpi 'python3 raises.py' --follow || got=$?
[ "$got" = 1 ] || fail "exit code $got"
grep -q 'rank 3 on node-2 failed first (exit 1' "$work/err" || fail "the verdict names another rank than the one that raised"
grep -q 'ValueError: no such data' "$work/err" || fail "the verdict has not its exception"
until_true nothing_left
key=$((key + 2))

# --- the same for a rank that ends by calling sys.exit(); MPI_Finalize runs after Python has ended
cat >exits.py <<'PY'
import os
import sys
import time


class Finalize:
    def __del__(self, sleep=time.sleep):
        sleep(600)


if os.environ["RANK"] != "3":
    time.sleep(600)
last = Finalize()
try:
    sys.exit(5)
except SystemExit:
    print("it goes on", flush=True)
sys.exit(7)
PY
code 0 rsync
got=0
mpi 'python3 exits.py' --follow || got=$?
[ "$got" = 1 ] || fail "exit code $got"
grep -q 'rank 3 on node-2 failed first (exit 7' "$work/err" || fail "the verdict has not the code of sys.exit()"
until_true nothing_left
key=$((key + 2))

# --- following from the first byte, through a link that breaks, until a kill that leaves nothing behind on either
# server
cat >slow.sh <<'SH'
echo "rank $RANK begins"
while [ ! -e ~/go ]; do sleep 0.3; done
echo "rank $RANK goes on"
exec sleep 600
SH
code 0 rsync
succeeds mpi 'sh slow.sh' --no-follow
in_background job-tail --launch last --all --lines 1000
all_say() { for rank in 0 1 2 3; do grep -q "rank $rank $1" "$work/out" || return 1; done; }
until_true all_say begins
break_links node-1
break_links node-2
"$REMOTE" --quiet run --cmd 'touch ~/go' || fail "touch"
until_true all_say 'goes on'
[ "$(grep -c 'rank 2 begins' "$work/out")" = 1 ] || fail "a line was lost or came twice"
code 0 job-kill --launch last --yes
follower_ends 1
nothing_left || fail "left: $(left)"
key=$((key + 2))
[ "$(job $key state)" = killed ] || fail "it is not killed, but $(job $key state)"

# --- mpirun itself is killed: nothing is left on the other server
succeeds mpi 'sleep 600' --no-follow
key=$((key + 2))
kill -KILL "$(job $((key - 1)) pid)"
until_true nothing_left
code 1 job-wait --launch last

# --- the user stops one of its jobs: that stops all, and no rank is blamed
both_begun() { output $key out | grep -q begun && output $((key - 1)) out | grep -q begun; }
for ended in 0 1; do
  succeeds mpi 'sh -c "echo begun; exec sleep 600"' --no-follow
  key=$((key + 2))
  until_true both_begun
  code 0 job-kill --job $((key - ended)) --yes
  code 1 job-wait --launch last
  grep -q "^ranks .* on node-$((2 - ended)): killed SIGTERM by .*: 2 others failed after it" "$work/err" || fail "the verdict on a job that was ended"
  ! grep -q 'failed first' "$work/err" || fail "somebody is blamed"
  until_true nothing_left
done

# --- over the servers' own ssh
mkdir "$work/ssh"
cat >"$work/ssh/ssh" <<SH
#!/bin/sh
echo "\$*" >>'$work/asked'
exec /usr/bin/ssh -F none -i '$(find "$PWD/.remote/sandbox" -name 'id_*' ! -name '*.pub')' -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "\$@"
SH
chmod +x "$work/ssh/ssh"
cp "$work/ssh/ssh" "$work/ssh.works"
printf 'prologue: "export PATH=\\"%s:$PATH\\""\n' "$work/ssh" >>.remote/configs.yaml
succeeds mpi 'python3 ranks.py' --follow -e WORD=ssh --mpi-agent ssh
key=$((key + 2))
[ "$(output $key out | sort | tr '\n' ' ')" = '[2] rank 2 of 4, server 1: ssh [3] rank 3 of 4, server 1: ssh ' ] || fail "the second server's ranks"
[ "$(wc -l <"$work/asked")" = 1 ] || fail "ssh was not asked once"
code 2 launch --launcher ranks --mpi-agent ssh -- true
printf '#!/bin/sh\nexit 255\n' >"$work/ssh/ssh"
got=0
mpi true --follow --mpi-agent ssh || got=$?
[ "$got" = 1 ] || fail "exit code $got where ssh is refused"
key=$((key + 2))
[ "$(job $key state)" = failed ] || fail "a job that mpirun never came to is $(job $key state)"
grep -q 'ranks 0-1 on node-1 failed first' "$work/err" || fail "the verdict does not name mpirun's job"
sed -i '/^prologue:/d' .remote/configs.yaml

# --- MPICH's mpirun, if it is installed
if ! mpirun.mpich --version >/dev/null 2>&1; then
  echo "without MPICH: there is no mpirun.mpich"
else
  mkdir "$work/mpich"
  ln -s "$(command -v mpirun.mpich)" "$work/mpich/mpirun"
  ln -s "$(command -v hydra_pmi_proxy)" "$work/mpich/hydra_pmi_proxy"
  cp "$work/ssh.works" "$work/mpich/ssh"
  printf 'prologue: "export PATH=\\"%s:$PATH\\""\n' "$work/mpich" >>.remote/configs.yaml
  for agent in lifeline ssh; do
    succeeds mpi 'sh -c "echo rank \$RANK of \$WORLD_SIZE, local \$LOCAL_RANK, \$PMI_RANK"' --follow --mpi-agent $agent
    key=$((key + 2))
    [ "$(output $key out | sort | tr '\n' ' ')" = '[2] rank 2 of 4, local 0, 2 [3] rank 3 of 4, local 1, 3 ' ] ||
      fail "the ranks of MPICH, with the agent $agent"
    nothing_left || fail "left by MPICH with the agent $agent: $(left)"

    for how in 'exit 9' 'kill -KILL \$\$'; do # neither is an MPI program
      got=0
      mpi "sh -c \"[ \\\$RANK = 3 ] || exec sleep 600; $how\"" --follow --mpi-agent $agent || got=$?
      [ "$got" = 1 ] || fail "exit code $got of MPICH with the agent $agent"
      grep -qE 'rank 3 on node-2 failed first \((exit 9|SIGKILL),' "$work/err" || fail "the verdict on MPICH with the agent $agent"
      until_true nothing_left
    done

    succeeds mpi 'sh -c "echo begun; exec sleep 600"' --no-follow --mpi-agent $agent
    key=$((key + 6))
    until_true both_begun
    code 0 job-kill --launch last --yes
    until_true nothing_left
  done
  sed -i '/^prologue:/d' .remote/configs.yaml
fi

# --- missing programs are reported before anything starts
mkdir "$work/bin"
ln -s /usr/bin/* "$work/bin"
rm "$work/bin/mpirun"
printf 'prologue: "export PATH=\\"%s\\""\n' "$work/bin" >>.remote/configs.yaml
code 1 launch --launcher mpi -- true
grep -q 'node-1: cannot launch with mpi: there is no supported mpirun' "$work/err" || fail "it does not say that mpirun is missing"
[ "$(of_jobs 'len(d)')" = "$key" ] || fail "something was started"
