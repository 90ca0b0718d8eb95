#!/bin/sh
# --init-method file: torch's ranks on two servers find each other through a shared file, which is removed however the
# launch ends.
. "${0%/*}/support.sh"
python=/usr/bin/python3
"$python" -c 'import torch, sklearn' 2>/dev/null || skip "this machine has no torch"
mkdir "$work/shared disk"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
"$REMOTE" --quiet rsync
nothing_shared() { [ -z "$(ls -A "$work/shared disk")" ]; }
shared() { set -- "$work/shared disk"/.remote-init-*/"$1" && [ -e "$1" ]; }

# The homes of practice servers are not shared; this is reported before anything starts.
code 1 torch-launch --init-method file --nproc-per-node 1 -- true
grep -q '^error: node-2: .*there is no folder .*/\.jobs' "$work/err" || fail "the server that does not share it is not named"
grep -q 'nothing was started' "$work/err" || fail "it is not said that nothing was started"
grep -q -- '--init-dir DIR' "$work/err" || fail "no way out is named"
[ "$(of_jobs 'len(d)')" = 0 ] || fail "something was started"
homes | while read -r home; do
  [ -z "$(find "$home" -name '.remote-init-*')" ] || fail "left in $home"
done

# A dry run prints the file and does not create it.
code 0 torch-launch --init-dir "$work/shared disk" --nproc-per-node 2 --dry-run -- train.py
grep -q "INIT_METHOD=.*file://$work/shared disk/.remote-init-[0-9a-f]*/store" "$work/out" || fail "not in the plan"
nothing_shared || fail "a dry run leaves something"

# A run that is killed does not leave its file behind ...
cat >wait.py <<END
import datetime, os, time
import torch.distributed as dist
dist.init_process_group("gloo", init_method=os.environ["INIT_METHOD"], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]), timeout=datetime.timedelta(seconds=60))
open("up." + os.environ["RANK"], "w").close()
time.sleep(600)
END
"$REMOTE" --quiet rsync
up() { [ "$(find .remote/sandbox -name "up.$1" | wc -l)" = 1 ]; }
remote torch-launch --init-method file --init-dir "$work/shared disk" --nproc-per-node 1 -- "$python" wait.py
until_true up 1
until_true up 0
shared store || fail "the ranks have met without the file"
code 0 job-kill --launch 1 --yes
nothing_shared || fail "a killed launch leaves its file"
# ... nor does a run that loses a server: the first server's lifeline takes care of the file. (All processes of the
# launch on node-2 die at once.)
# shellcheck disable=SC2016  # the ranks' shells expand it
remote launch --init-dir "$work/shared disk" --lost-after 2 --cmd ': >"${INIT_METHOD#file://}" && exec sleep 600'
until_true shared store
folder=$(find .remote/sandbox -path "*/.jobs/$(of_jobs "[job['id'] for job in d if job['rank'] == 1][-1]")")
until_true grep -qx ok "$folder/lifeline"
read -r supervisor _ <"$folder/supervisor"
read -r rank _ <"$folder/pid"
read -r lifeline _ <"$folder/lifeline.pid"
# shellcheck disable=SC2046
kill_all "$lifeline" "$supervisor" "$rank" $(pgrep -P "$lifeline" -x remote-watchdog)
until_true nothing_shared
code 1 job-wait --launch 3

# An attempt after a failure has its own file, and neither file is left behind.
cat >again.py <<'END'
import os
import sys
import torch.distributed as dist
method, rank, attempt = os.environ["INIT_METHOD"], int(os.environ["RANK"]), int(os.environ["RESTART_COUNT"])
dist.init_process_group("gloo", init_method=method, rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
dist.barrier()
print("rank %d met the others in attempt %d at %s" % (rank, attempt, method.rpartition("/")[2]), flush=True)
if attempt == 0 and rank == 1:
    sys.exit(3)
dist.barrier()
END
"$REMOTE" --quiet rsync
for launcher in ranks torchrun mpi; do
  if [ $launcher = mpi ] && ! command -v mpirun >/dev/null; then
    break
  fi
  set --
  [ $launcher != torchrun ] || set -- -e "TMPDIR=$work" # a torchrun that is killed leaves its folder of logs
  code 0 torch-launch --launcher $launcher --init-dir "$work/shared disk" --nproc-per-node 1 --restarts 1 --failure-grace 0 --follow "$@" -- "$python" again.py
  code 0 job-tail --launch last --all --no-follow
  [ "$(sed -n 's/.*rank [01] met the others in attempt \([01] at .*\)$/\1/p' "$work/out" | sort -u | tr '\n' ' ')" = '0 at store 1 at store.1 ' ] ||
    fail "the attempts of $launcher did not meet at their files"
  until_true nothing_shared
done

# The next launch trains. Without a lifeline the jobs themselves take care of the file.
code 0 torch-launch --init-method file --init-dir "$work/shared disk" --nproc-per-node 2 --on-failure leave --follow -- "$python" train.py --epochs 8
grep -q 'all ranks have the same parameters' "$work/out" || fail "it did not train"
nothing_shared || fail "a launch that ends well leaves its file"
# The workers of torchrun's agents get the same variable.
code 0 torch-launch --init-dir "$work/shared disk" --launcher torchrun --nproc-per-node 2 --follow -- "$python" train.py --epochs 8
grep -q 'all ranks have the same parameters' "$work/out" || fail "it did not train under torchrun"
nothing_shared || fail "torchrun's launch leaves its file"

# shellcheck disable=SC2016  # the ranks' shells expand it
code 0 launch --init-method tcp --follow --cmd '[ "$INIT_METHOD" = "tcp://$MASTER_ADDR:$MASTER_PORT" ] && echo equal'
grep -qx equal "$work/out" || fail "INIT_METHOD is not the URL"
