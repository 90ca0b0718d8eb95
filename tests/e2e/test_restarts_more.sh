#!/bin/sh
# Restarts of torchrun's agents (with a fake torch), a spare server that replaces a lost one, exit codes that end a
# launch, and a training with checkpoints that survives five faults: it ends with the same parameters as an undisturbed
# one.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 3
system_python
printf '%s\n' 'spares: [node-3]' "outputs: ['état 100%/a=b/']" "checkpoint: {files: 'étape = *.json', complete: 'étape = *.done'}" >>.remote/configs.yaml

# ---- torchrun: an attempt consists of all agents
mkdir -p torch/distributed
: >torch/__init__.py
: >torch/distributed/__init__.py
cat >torch/distributed/run.py <<'PY'
"""As much of torchrun as this test needs: starts the workers, and gives up when one fails."""
import os
import subprocess
import sys
import time

words = sys.argv[1:]
options = {}
while words[0].startswith("-"):
    name, _, value = words.pop(0).partition("=")
    options[name] = value if value or name not in ("-r", "-t") else words.pop(0)
node, nodes, count = int(options["--node_rank"]), int(options["--nnodes"]), int(options["--nproc_per_node"])
workers = []
for local in range(count):
    env = dict(os.environ, RANK=str(node * count + local), LOCAL_RANK=str(local), WORLD_SIZE=str(nodes * count))
    env.update(MASTER_PORT=options["--master_port"], TORCHELASTIC_RESTART_COUNT="0", RDZV=os.environ["PET_RDZV_ID"])
    workers.append(subprocess.Popen([sys.executable, "-u"] + words, env=env))
while not any([worker.poll() for worker in workers]) and None in [worker.poll() for worker in workers]:
    time.sleep(0.05)
codes = [worker.poll() for worker in workers]
for worker in workers:
    worker.terminate()
    worker.wait()
sys.exit(any(codes))
PY
cat >worker.py <<'PY'
import os
import sys
import time

of = os.environ
if of["RESTART_COUNT"] == "0":
    sys.exit(3) if of["RANK"] == "2" else time.sleep(300)
print("worker %s of %s in %s at %s" % (of["RANK"], of["WORLD_SIZE"], of["RDZV"][32:], of["MASTER_PORT"]))
PY
"$REMOTE" --quiet rsync
code 0 torch-launch --launcher torchrun --nproc-per-node 2 --restarts 1 --failure-grace 0 --follow -- python3 worker.py
grep -q '^attempt 1: rank 2 on node-2 failed (exit 3) after ' "$work/err" || fail 'the first attempt is not told'
code 0 job-tail --launch last --all --no-follow
[ "$(sed -n 's/.*worker \([0-3]\) of 4 in -1 at .*/\1/p' "$work/out" | sort | tr -d '\n')" = 0123 ] || fail 'not all workers ran again'
[ "$(sed -n 's/.* at \([0-9]*\)$/\1/p' "$work/out" | sort -u | wc -l)" = 1 ] || fail 'they do not have one port'
code 0 show --json last
[ "$(picks '[(a["number"], a["cause"], a["rank"], a["server"], a["exit_code"]) for j in d["jobs"] for a in j.get("attempts", [])]')" = \
  "[(1, 'exit', 2, 'node-2', 3)]" ] || fail 'the record does not have the attempt'
[ "$(of_jobs '[(job["server"], job["state"], job["pid"]) for job in d if job["server"] == "node-3"]')" = \
  "[('node-3', 'killed', None)]" ] || fail 'the spare has run'

# A worker's output from an earlier attempt is not its last words, and does not make its failure a consequence of
# another rank's
cat >worker.py <<'PY'
import os
import sys
import time

if os.environ["RANK"] != "2":
    time.sleep(300)
if os.environ["RESTART_COUNT"] == "0":
    sys.exit("Connection closed by peer")
os.kill(os.getpid(), 9)
PY
code 0 rsync
code 1 torch-launch --launcher torchrun --nproc-per-node 2 --restarts 1 --failure-grace 0 --follow -- python3 worker.py
grep -q '^rank 2 on node-2 failed first (SIGKILL, ' "$work/err" || fail 'the verdict on the second attempt is another'
! grep -q 'last lines of its stderr' "$work/err" || fail 'it had none'

# ---- an exit code that ends it
code 1 launch --restarts 3 --no-restart-exit 2,7 --failure-grace 0 --follow --cmd 'echo "attempt $RESTART_COUNT"; [ $RANK = 0 ] && sleep 300; exit 7'
[ "$(grep -c '^attempt' "$work/out")" = 1 ] || fail 'it began anew after an exit that ends it'
grep -q '^not started again: --no-restart-exit names this exit code$' "$work/err" || fail 'it is not said why'

# ---- a rank whose end is unknown: no attempt ran without its server, so the launch has not succeeded
code 0 launch --restarts 1 --min-servers 1 --failure-grace 30 --cmd 'echo up; sleep 6'
job=$(of_jobs 'max((job for job in d if job["rank"] == 1), key=lambda job: job["key"])["id"]')
job=$(find .remote/sandbox -type d -path "*/.jobs/$job")
until_true grep -q up "$job/job.out"
kill -9 "$(cut -d ' ' -f 1 "$job/supervisor")" "$(cut -d ' ' -f 1 "$job/pid")"
code 1 job-wait --launch last
grep -q '^rank 1 on node-2 failed first (lost, ' "$work/err" || fail 'the lost rank is not named'
code 0 show --json last
[ "$(picks 'd["state"]')" = lost ] || fail "history has it as $(picks 'd["state"]')"

# ---- five faults
cat >train.py <<'PY'
"""Fits a line; after each ten steps all ranks keep what they have. It waits to be hit in each attempt but the last one."""
import json
import os
import random
import sys
import time

sys.path.insert(0, ".")
RANK, WORLD, ATTEMPT = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "RESTART_COUNT"))
from tiny import mean, meet

peers = meet()
first, slope, offset = 1, 0.0, 0.0
if os.environ.get("RESUME_FROM"):
    first, slope, offset = json.load(open(os.environ["RESUME_FROM"]))
print("attempt %d from %d" % (ATTEMPT, first), flush=True)
for step in range(first, 121):
    points = random.Random("%d.%d" % (RANK, step))
    xs = [points.uniform(-1, 1) for _ in range(64)]
    errors = [(slope * x + offset) - (3 * x + 1) for x in xs]
    by_slope, by_offset = mean(peers, [sum(e * x for e, x in zip(errors, xs)) / 64, sum(errors) / 64])
    slope, offset = slope - 0.05 * by_slope, offset - 0.05 * by_offset
    if step % 10 == 0:
        os.makedirs("état 100%/a=b", exist_ok=True)
        name = "état 100%%/a=b/étape = %03d" % step
        with open(name + ".part", "w") as file:
            json.dump([step + 1, slope, offset], file)
        os.rename(name + ".part", name + ".json")
        open(name + ".done", "w").close()
    if step == 20 * ATTEMPT + 15 and ATTEMPT < int(os.environ["HITS"]):
        print("holds %d" % ATTEMPT, flush=True)
        time.sleep(300)
print("parameters %r %r" % (slope, offset))
PY
sed -e '/^main()/d' "$REMOTE_SOURCE_DIR/sample/tiny/train.py" >tiny.py
"$REMOTE" --quiet rsync
code 0 launch --restarts 1 -e HITS=0 --follow --cmd 'python3 train.py'
alone=$(grep parameters "$work/out" | sort -u)
[ "$(printf '%s\n' "$alone" | wc -l)" = 1 ] || fail 'the ranks differ'
homes | while read -r home; do rm -rf "$home"/*/état*; done
code 0 launch --restarts 5 --lost-after 3 --failure-grace 0 -e HITS=5 --cmd 'python3 train.py'
launch=$(of_jobs 'max(d, key=lambda job: job["key"])["launch"]')
of_launch() { of_jobs "[job$2 for job in d if job['launch'] == '$launch' and job['rank'] == $1][0]"; }
# folder RANK: prints its job's folder; the spare's job has rank 2
folder() { find .remote/sandbox -type d -path "*/.jobs/$(of_launch "$1" "['id']")"; }
first=$(folder 0) second=$(folder 1) third=$(folder 2)
holds() { grep -q "holds $2" "$1/job.out"; }
for hit in 0 1 2 3; do
  until_true holds "$first" $hit
  until_true holds "$second" $hit
  [ $((hit % 2)) = 0 ] && struck=$second || struck=$first
  kill -9 "$(cut -d ' ' -f 1 "$struck/pid")"
done
until_true holds "$second" 4
[ "$(of_launch 2 "['state']")" = queued ] || fail 'the spare does not wait'
code 0 job-why --launch last --between 1 --json
[ "$(picks 'sorted(rank["server"] for group in d["groups"] for rank in group["ranks"])')" = "['node-1', 'node-2']" ] || fail 'job-why counts the spare'
server=$(of_launch 1 "['server']")
vanish "$server"
ended() { grep -q parameters "$1/job.out"; }
until_true ended "$first"
until_true ended "$third"
[ "$(grep -h parameters "$first/job.out" "$third/job.out" | sort -u)" = "$alone" ] || fail "it ends elsewhere than $alone"
grep -q 'attempt 3 from [2-9]1$' "$first/job.out" || fail 'it did not go on from a checkpoint'
until_true eval '[ "$(of_launch 0 "[\"state\"]")" = succeeded ]'
[ "$(of_launch 0 "['attempts'].__len__()")" = 5 ] || fail 'not all attempts are told'
[ "$(of_launch 0 "['attempts'][4]['cause']")" = lost ] || fail 'the loss is not told'
