#!/bin/sh
# A login node of a real Slurm cluster with two nodes on this machine: its jobs and launches are queued, run, fail, are
# followed over a broken link and stopped as on other servers, and their states stay correct when a node or Slurm itself
# goes down.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
. "$REMOTE_SOURCE_DIR/tests/support/slurm.sh"
slurm_is_missing && skip "$slurm_missing"
slurm_folder=$(mktemp -d /tmp/remote-slurm.XXXXXX)
clean_up() {
  slurm_down
  rm -rf "$slurm_folder"
}
slurm_up "$slurm_folder" || fail "no cluster"

code 0 sandbox up --nodes 1
system_python
sed -i 's|^    hostname: 127.0.0.1|&\n    scheduler: slurm\n    partition: short\n    time: 10|' .remote/configs.yaml
home=$(homes)
# bash reads it in a session of sshd: a site sets up its module system there
printf 'export SLURM_CONF=%s\n' "$SLURM_CONF" >"$home/.bashrc"
state_is() { [ "$(job "$1" state)" = "$2" ]; }
reason_has() { job "$1" reason | grep -qF -- "$2"; }
number_of() { job "$1" reason | sed -n 's/.*Slurm job \([0-9]*\).*/\1/p'; }
nothing_runs() { [ "$(processes "$1")" = 0 ]; }
runs() { [ "$(processes "$1")" = "$2" ]; }

# --- single jobs: queued with a number, output, exit codes, signals
code 0 job-run --server node-1 --cmd 'echo out; echo err >&2; pwd'
grep -q '^job 1 queued (Slurm job [0-9]*) on node-1$' "$work/out" || fail "the first job is not queued"
code 0 job-tail --job 1
printed "out
$home/my project
"
grep -q '^err$' "$work/err" || fail "no stderr"
code 0 job-run --cmd 'exit 3'
code 1 job-wait --job 2
[ "$(job 2 state) $(job 2 exit_code)" = 'failed 3' ] || fail "exit 3"
[ "$(cat "$home/my project/.jobs/$(job 2 id)/slurm.used") $(job 2 usage)" = '- None' ] || fail "a usage without accounting"
code 0 job-run --cmd 'kill -SEGV $$'
code 1 job-wait --job 3
[ "$(job 3 state) $(job 3 signal)" = 'failed SIGSEGV' ] || fail "SIGSEGV"

# --- stopped while it waits, and while it runs
code 0 run --cmd 'scontrol update PartitionName=short State=DOWN'
code 0 job-run --cmd "exec sleep $mark.1"
until_true state_is 4 queued
until_true reason_has 4 PartitionDown
code 0 job-kill --job 4 --yes
[ "$(job 4 state)" = killed ] || fail "the waiting job is not killed"
[ -z "$(squeue -h -t pending)" ] || fail "Slurm still has it in its queue"
code 0 run --cmd 'scontrol update PartitionName=short State=UP'
code 0 job-run --cmd "sleep $mark.2 & exec sleep $mark.2"
until_true runs 2 2
until_true reason_has 5 ' on n'
code 0 job-kill --job 5 --yes
nothing_runs 2 || fail "job-kill left something"
[ "$(job 5 signal)" = SIGTERM ] || fail "not ended by SIGTERM"
# a job that ignores TERM, and jobs that other users cancel with scancel
code 0 job-run --cmd "trap '' TERM; sleep $mark.3; sleep $mark.3"
until_true runs 3 1
code 0 job-kill --job 6 --grace 1 --yes
nothing_runs 3 || fail "a stubborn job survives"
code 0 job-run --cmd "exec sleep $mark.4"
until_true runs 4 1
scancel "$(number_of 7)"
code 1 job-wait --job 7
{ [ "$(job 7 state)" = killed ] && reason_has 7 scancel; } || fail "scancel is not told: $(job 7 reason)"

# --- after another one
code 0 job-run --cmd 'sleep 1; echo first >order'
code 0 job-run --after 8 --cmd 'cat order'
code 0 job-tail --job 9
printed 'first
'
code 1 job-run --after 6 --cmd true
grep -q 'has not succeeded' "$work/err" || fail "a job begins after one that was killed"

# --- an array: one job per number, each with its own output and end
code 0 job-run --array 0-4:2%2 --tag sweep --cmd 'echo task $SLURM_ARRAY_TASK_ID; exit $SLURM_ARRAY_TASK_ID'
code 1 job-wait --tag sweep
[ "$(of_jobs '[job["exit_code"] for job in d if "sweep" in job["tags"]]')" = '[0, 2, 4]' ] || fail "the array's ends"
code 4 job-tail --no-follow --tag array-4
printed 'task 4
'
code 2 job-run --array 3-1 --cmd true

# --- a sweep is an array: one Slurm job, one row, points with values and numbers, stopped as a whole
code 0 sweep --param a=1,2 --param b='x y,z' --slots 3 --tag grid -- sh -c 'echo "loss 0.$1$SWEEP_POINT"; [ "$1 $2" != "2 z" ] || exit 3' point '{a}' '{b}'
grep -q 'started: 4 points on node-1$' "$work/out" || fail "the sweep does not begin: $(cat "$work/out")"
code 1 job-wait --launch last
code 0 sweep --results last --csv points.csv
[ "$(cut -d , -f 1,3-7 points.csv | tr '\n' ' ')" = 'point,a,b,state,exit,loss 0,1,x y,succeeded,0,0.1 1,1,z,succeeded,0,0.11 2,2,x y,succeeded,0,0.22 3,2,z,failed,3,0.23 ' ] ||
  fail "the results: $(cat points.csv)"
code 0 job-list --stopped
grep -q '4 of 4 done, 1 failed, best loss 0.1 at a=1 b=x y' "$work/out" || fail 'the row of the sweep is wrong'
code 2 sweep --resume last
code 2 sweep --param a=1 --retry 1 -- true
code 0 sweep --param n=0..5 --slots 2 -- sleep "$mark.7"
until_true runs 7 2
[ "$(squeue -h -t pending,running -r -o %F | sort -u | wc -l)" = 1 ] || fail 'the sweep is not one array'
code 0 job-kill --launch last --yes
nothing_runs 7 || fail 'a point survives'
[ -z "$(squeue -h -t pending,running)" ] || fail 'Slurm still has points of it'
remote --json sweep --results last
[ "$(picks "{job['state'] for job in d['points']}")" = "{'killed'}" ] || fail 'not all points were killed'

# --- out of memory, according to slurmstepd
code 0 job-run --cmd 'echo "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=8.batch" >&2; kill -KILL $$'
key=$(of_jobs 'd[-1]["key"]')
code 1 job-wait --job "$key"
reason_has "$key" 'out of memory' || fail "out of memory is not told: $(job "$key" reason)"

# --- sbatch options for a single start, and the expected start time
code 0 job-run --tag options --partition short --time 7 --sbatch '--comment=mine --begin=now+1hour' --cmd true
key=$(of_jobs 'd[-1]["key"]')
[ "$(squeue -h -j "$(number_of "$key")" -o '%P %l %k')" = 'short 7:00 mine' ] || fail "the options did not reach Slurm"
until_true reason_has "$key" ', expected to start 20'
code 0 job-kill --job "$key" --yes
code 2 job-run --sbatch '--wrap=ls' --cmd true
code 1 job-run --sbatch --bogus --cmd true
grep -q "was not started: sbatch: unrecognized option '--bogus'" "$work/err" || fail "the wrong option is not named"
grep -q "^ hint: resources of the cluster: remote run --server node-1 --cmd 'sinfo " "$work/err" || fail "no hint for a wrong option"
# no node has this much memory: it never runs
code 1 job-run --sbatch --mem=100 --follow --cmd true
[ "$(of_jobs 'd[-1]["state"]') $(of_jobs 'd[-1]["exit_code"]')" = 'failed 1' ] || fail "a job that never ran has a signal"
code 0 launch --nodes 1 --nproc-per-node 1 --gpus-per-node a100:2 --dry-run --cmd true
grep -q '#SBATCH --gpus-per-node=a100:2' "$work/out" || fail "a type of GPU is lost"

# --- a shell on a node
printf 'echo "on $SLURMD_NODENAME of $SLURM_JOB_ID"\nexit\n' | timeout 60 script -qec "'$REMOTE' shell node-1 --allocate '--time=3'" /dev/null >"$work/out" 2>&1 ||
  fail "no shell on a node: $(cat "$work/out")"
grep -q 'on n[12] of [0-9]' "$work/out" || fail "the shell is not on a node: $(cat "$work/out")"

# --- requeued by Slurm
code 0 job-run --requeue --tag again --cmd "echo begun >>begun; exec sleep $mark.8"
until_true runs 8 1
key=$(of_jobs 'd[-1]["key"]')
number=$(number_of "$key")
scontrol requeue "$number"
until_true reason_has "$key" BeginTime
# Not immediately: a node starts nothing of a job that it was told to stop in the same second.
until_true scontrol update JobId="$number" StartTime=now+3
until_true state_is "$key" running
until_true runs 8 1
[ "$(wc -l <"$home/my project/begun")" = 2 ] || fail "it did not begin twice"
code 0 job-kill --job "$key" --yes
nothing_runs 8 || fail "it survives"
code 0 report --job "$key" --json
[ "$(grep -c '"kind": "requeued"' "$work/out")" = 1 ] || fail "the timeline does not show when it began anew"

# --- two nodes with two ranks each train
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
cat >fails.py <<'PY'
import os, time
print("ready", flush=True)
while not os.path.exists(os.path.expanduser("~/fail")):
    time.sleep(0.05)
if os.environ["RANK"] == "3":
    raise ValueError("a bad batch")
time.sleep(600)
PY
code 0 prepare
if [ "$(/usr/bin/python3 -c 'import torch, sklearn; print("there")' 2>/dev/null)" = there ]; then
  code 0 torch-launch --nodes 2 --nproc-per-node 2 --cmd 'train.py --epochs 12' --follow
  grep -q '^all ranks have the same parameters$' "$work/out" || fail "no training"
  grep -q '^rank 0 of 4 ' "$work/out" || fail "not from the first byte on"
  code 0 torch-launch --nodes 2 --nproc-per-node 2 --launcher torchrun --cmd 'train.py --epochs 12' --follow
  grep -q '^all ranks have the same parameters$' "$work/out" || fail "no training by torchrun"
else
  echo 'without torch and sklearn for the system python, nothing is trained'
fi

# --- a rank fails; before that, the follower's link is cut
in_background torch-launch --nodes 2 --nproc-per-node 2 --failure-grace 0 --cmd fails.py --follow
until_true grep -q ready "$work/out"
listener=$(cat .remote/sandbox/node-1/sshd.pid)
for session in $(ps -o pid= --ppid "$listener"); do
  kill -KILL "$session" "$(ps -o pid= --ppid "$session" | head -n 1 | tr -d ' ')" 2>/dev/null || true
done
until_true grep -q 'lost' "$work/err"
stacks_of_all() { [ "$("$REMOTE" --quiet job-stacks --launch last --json | evaluate 'len([one for group in d["groups"] for one in group["members"]])')" = 4 ]; }
until_true stacks_of_all
key=$(of_jobs 'd[-1]["key"]')
touch "$home/fail"
follower_ends 1
[ "$(grep -c ready "$work/out")" = 1 ] || fail "the link's loss doubled or lost output"
grep -q 'rank 3 on n2 failed first (exit 1' "$work/err" || fail "the verdict does not name rank 3"
grep -q 'ValueError: a bad batch' "$work/err" || fail "the verdict has no traceback"
grep -qx "its output: remote job-tail --job $key --rank 3" "$work/err" || fail "where its output is"
# each rank's own output
code 1 job-tail --job "$key" --rank 3
printed 'ready
'
grep -q 'ValueError: a bad batch' "$work/err" || fail "rank 3's stderr is not shown"
code 2 job-tail --job "$key" --rank 4
code 1 job-tail --launch "$key" --all
[ "$(sort "$work/out")" = "$(printf '[%d] ready\n' 0 1 2 3)" ] || fail "not the output of all ranks: $(cat "$work/out")"
grep -q '^\[3\] ValueError: a bad batch' "$work/err" || fail "rank 3's stderr is not among those of all ranks"

# --- the same with torchrun, whose agents have two ranks each
rm "$home/fail"
code 0 torch-launch --nodes 2 --nproc-per-node 2 --launcher torchrun --failure-grace 0 --cmd fails.py
key=$(of_jobs 'd[-1]["key"]')
"$REMOTE" job-tail --job "$key" --rank 2 >"$work/out" 2>"$work/err" & # before the rank has started
follower=$!
until_true grep -qx ready "$work/out"
touch "$home/fail"
follower_ends 1
[ "$(cat "$work/out")" = ready ] || fail "rank 2 of torchrun is not shown"
code 1 job-wait --job "$key"
code 1 job-tail --launch "$key" --all --lines 1000
[ "$(grep -x '\[.\] ready' "$work/out" | sort)" = "$(printf '[%d] ready\n' 0 1 2 3)" ] || fail "not the output of all of torchrun's ranks: $(cat "$work/out")"
code 1 job-tail --launch "$key" --all --jsonl
[ "$(grep -c '"text":"ready"' "$work/out")" = 4 ] || fail "not the events of all ranks"
code 1 job-wait --job "$key"
grep -q 'rank 3 on n2 failed first (exit 1' "$work/err" || fail "the verdict of torchrun does not name rank 3"
grep -q 'ValueError: a bad batch' "$work/err" || fail "the verdict of torchrun has no traceback"
rm "$home/fail"

# --- a launch is stopped on all nodes
code 0 launch --nodes 2 --nproc-per-node 2 --cmd "exec sleep $mark.5" --tag sleepers --env MODE=quick
code 0 report --launch last --json
[ "$(evaluate '[one["values"][0]["value"] for one in d["environment"]["variables"] if one["name"] == "MODE"]' <"$work/out")" = "['quick']" ] ||
  fail "the report does not say what the ranks got"
until_true runs 5 4
code 0 job-kill --tag sleepers --yes
nothing_runs 5 || fail "ranks survive"

# --- the setting is removed from configs.yaml: its jobs are still Slurm's
code 0 job-run --cmd "exec sleep $mark.9"
until_true runs 9 1
key=$(of_jobs 'd[-1]["key"]')
cp .remote/configs.yaml "$work/configs.yaml"
sed -i '/^    \(scheduler\|partition\|time\):/d' .remote/configs.yaml
state_is "$key" running || fail "a job of Slurm without the key: $(job "$key" reason)"
code 0 job-kill --job "$key" --yes
nothing_runs 9 || fail "it survives"
cp "$work/configs.yaml" .remote/configs.yaml

# --- Slurm is down: no job is considered dead; it returns; it has forgotten everything
code 0 job-run --cmd "sleep $mark.6; echo never" --tag away
until_true runs 6 1
key=$(of_jobs 'd[-1]["key"]')
kill "$slurm_controller"
wait "$slurm_controller" || true
until_true state_is "$key" unknown
reason_has "$key" 'Slurm does not answer' || fail "why is not said: $(job "$key" reason)"
code 1 job-kill --job "$key" --yes --grace 0
slurm_controller_up
until_true state_is "$key" running
code 0 job-run --cmd 'sleep 2; exit 5' --tag forgotten
key5=$(of_jobs 'd[-1]["key"]')
until_true state_is "$key5" running
kill "$slurm_controller"
wait "$slurm_controller" || true
until_true has_ended "$home/my project/.jobs/$(job "$key5" id)"
state_is "$key5" failed || fail "the result is no proof"
[ "$(job "$key5" exit_code)" = 5 ] || fail "the exit code was lost"
slurm_controller_up
until_true state_is "$key" running
code 0 job-kill --job "$key" --yes
nothing_runs 6 || fail "it survives"

# --- a node goes down while it runs a job
until_true slurm_nodes_idle
code 0 job-run --cmd "exec sleep $mark.7" --tag node
until_true runs 7 1
key=$(of_jobs 'd[-1]["key"]')
scontrol update NodeName=n1,n2 State=DOWN Reason=test
until_true reason_has "$key" NODE_FAIL
state_is "$key" failed || fail "a job whose node went down: $(job "$key" state)"
scontrol update NodeName=n1,n2 State=RESUME 2>/dev/null || true # they may have returned on their own
until_true nothing_runs 7
until_true slurm_nodes_idle

# --- unsupported options are refused before anything is submitted
code 2 torch-launch --server node-1 --cmd train.py
grep -q 'gpus_per_node' "$work/err" || fail "auto is not refused"
code 2 torch-launch -H node-1:2 --cmd train.py
code 0 torch-launch --nodes 2 --nproc-per-node 2 --cmd train.py --dry-run
grep -q '#SBATCH --ntasks-per-node=2' "$work/out" || fail "the batch script is not shown"

# --- nothing is left behind
# except the job that was refused, whose id is kept for a minute
remote job-clean --yes || true
[ "$(find "$home/my project/.jobs" -mindepth 1 -maxdepth 1 ! -name .bin | wc -l)" -le 1 ] || fail "folders of jobs stay"
