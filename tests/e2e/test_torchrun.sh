#!/bin/sh
# The handling of torchrun's agents: how their ranks are counted, listed, followed and judged, what happens to an
# elastic launch that loses a server, and the fallback for old versions of torch. Torch itself is fake, so that this
# takes seconds; test_torchrun_meets.sh uses the real one.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
system_python
mkdir -p torch/distributed
: >torch/__init__.py
: >torch/distributed/__init__.py
cat >torch/distributed/run.py <<'PY'
"""As much of torchrun as this test needs: starts the workers, and gives up when one fails."""
import os
import signal
import subprocess
import sys
import time

words = sys.argv[1:]
options = {}
while words[0].startswith("-"):
    name, _, value = words.pop(0).partition("=")
    options[name] = value if value or name not in ("-r", "-t") else words.pop(0)
count = int(options["--nproc_per_node"])
node = int(os.environ["NODE_RANK"])
print("the agent of node %d stands" % node)


def run(attempt):
    """Whether all workers succeed."""
    workers = []
    for local in range(count):
        env = dict(os.environ, RANK=str(node * count + local), LOCAL_RANK=str(local), TORCHELASTIC_RUN_ID="x")
        env.update(TORCHELASTIC_RESTART_COUNT=str(attempt), WORLD_SIZE=str(2 * count))
        workers.append(subprocess.Popen([sys.executable, "-u"] + words, env=env))
    while True:
        codes = [worker.poll() for worker in workers]
        if any(codes) or None not in codes:
            break
        try:  # the other node's workers begin anew, and these with them, which torch does not count
            os.unlink(os.path.join(os.environ["ORDERS"], "anew-%d" % node))
        except OSError:
            time.sleep(0.1)
            continue
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
            worker.wait()
        return run(attempt)
    for worker in workers:
        if worker.poll() is None:
            worker.send_signal(signal.SIGTERM)
        worker.wait()
    return not any(codes)


if not any(run(attempt) for attempt in range(int(options.get("--max_restarts", "0")) + 1)):
    raise RuntimeError("a worker has failed")
PY
cat >train.py <<'PY'
"""Says where it stands, and then does what the file that is named as its argument says, once that is there."""
import os
import sys
import time

rank = os.environ["RANK"]
print("rank %s begins" % rank)
sys.stdout.write("no end of rank %s" % rank)
sys.stdout.flush()
path = os.path.join(os.environ["ORDERS"], "all")
own = os.path.join(os.environ["ORDERS"], rank)
while not os.path.exists(path) and not os.path.exists(own):
    time.sleep(0.02)
print()
if os.path.exists(own):
    print("rank %s has its order" % rank, file=sys.stderr)
    with open(own) as file:
        exec(file.read())
PY
code 0 rsync
mkdir "$work/orders"
launch() { code 0 torch-launch --launcher torchrun --nproc-per-node 2 -e "ORDERS=$work/orders" "$@" -- python3 train.py; }
has() { # has TEXT [out|err]
  grep -qF -- "$1" "$work/${2:-out}" || fail "std${2:-out} lacks: $1"
}
lacks() {
  if grep -qF -- "$1" "$work/${2:-out}"; then
    fail "std${2:-out} has: $1"
  fi
}
tells() { # tells TEXT KEY...: whether job-tail shows this text for these jobs
  text=$1
  shift
  remote job-tail --no-follow "$@" && grep -qF -- "$text" "$work/out"
}

# all_begin KEY: waits for all ranks of its launch
all_begin() {
  for rank in 0 1 2 3; do
    until_true tells "[$rank] rank $rank begins" --launch "$1" --all
  done
}

# order RANK TEXT: tells this rank what to do. Ranks may read it at any time.
order() {
  printf '%s\n' "$2" >"$work/order"
  mv "$work/order" "$work/orders/$1"
}
# workers_are_gone RANKS: whether no process of this test's launches has such a rank
workers_are_gone() {
  grep -lz "^RANK=$1\$" /proc/[0-9]*/environ 2>/dev/null | xargs -r grep -lzF "$work/orders" >"$work/left" 2>/dev/null
  ! [ -s "$work/left" ]
}

# --- ranks are counted, not agents, and each is found
launch
all_begin 1
has '[0-1] the agent of node 0 stands'
code 0 job-tail --launch 1 --no-follow
has 'rank 0 begins'
has 'the agent of node 0 stands'
lacks '['
lacks 'rank 1'
code 0 job-tail --launch 1 --rank 3 --no-follow
has 'rank 3 begins'
lacks 'rank 2'
lacks '['
code 2 job-tail --launch 1 --rank 4 --no-follow
has 'there is no rank 4' err
code 0 job-list
has '4 running'
code 0 job-list --ranks
has ' 2-3 '
[ "$(of_jobs '[(job["rank"], job["ranks"], job["world_size"]) for job in d]')" = '[(0, 2, 4), (2, 2, 4)]' ] ||
  fail 'the ranks of the agents'
# a line without a newline is not shown until the end
echo >"$work/orders/all"
code 0 job-wait --launch 1
has 'all 4 ranks succeeded' err
code 0 job-tail --launch 1 --rank 2 --no-follow
has 'no end of rank 2'
code 0 job-list --stopped
has '4 ended'
rm "$work/orders/all"

# --- the rank that failed on its own is named, with its last words, and nothing is left behind
launch --failure-grace 0
all_begin 3
order 2 'os.kill(os.getpid(), 11)'
code 1 job-wait --launch 3
has 'rank 2 on node-2 failed first (SIGSEGV, ' err
has '  rank 2 has its order' err
has '2 others were ended after it, 1 failed after it' err
has 'its output: remote job-tail --job 4 --rank 2' err
rm "$work/orders/2"

# --- a worker failure that the agent handles does not fail the launch; no line is repeated
launch --max-restarts 1
all_begin 5
for rank in 1 2; do
  order $rank 'sys.exit(int(os.environ["TORCHELASTIC_RESTART_COUNT"]) < 1)'
done
echo >"$work/orders/all"
code 0 job-wait --launch 5
for rank in 0 1 2 3; do
  code 0 job-tail --launch 5 --rank $rank --no-follow
  [ "$(grep -c "rank $rank begins" "$work/out")" = 2 ] || fail "how often rank $rank began"
done
code 0 report --launch 5 --json
[ "$(grep -c '"kind": "restarted"' "$work/out")" = 2 ] || fail 'the timeline does not show when both agents began their workers anew'
rm "$work"/orders/*

# --- an elastic launch survives the loss of a server, and the remains of its agent are stopped
launch --nnodes 1:2
all_begin 7
until_true lifelines_stand 8
kill -KILL "$(job 8 pid)"
until_true workers_are_gone '[23]'
[ "$(job 7 state)" = running ] || fail 'the launch ended with the server that it does not need'
echo >"$work/orders/all"
code 0 job-wait --launch 7
has 'the launch succeeded with 2 ranks; it continued without node-2' err
rm "$work/orders/all"

# --- the loss of the first server ends it, because the others could not find each other
launch --nnodes 1:2 --failure-grace 0
all_begin 9
until_true lifelines_stand 10
kill -KILL "$(job 9 pid)"
code 1 job-wait --launch 9
[ "$(job 10 state)" = killed ] || fail 'the launch goes on without its first server'

# --- a link that breaks in the middle: every line of rank 0 arrives once, from the first line on
order 0 'for n in range(150): print("line %d" % n); time.sleep(0.02)'
echo >"$work/orders/all"
"$REMOTE" torch-launch --launcher torchrun --nproc-per-node 2 -e "ORDERS=$work/orders" --follow -- python3 train.py >"$work/follow" 2>"$work/err" &
follower=$!
until_true grep -q '^line 20$' "$work/follow"
break_links node-1
follower_ends 0
grep '^line ' "$work/follow" >"$work/lines" || fail 'no line'
seq -f 'line %g' 0 149 | cmp -s - "$work/lines" || fail 'the lines are not each there once'
rm "$work"/orders/*

# --- job-kill leaves nothing behind on any server
launch
all_begin 13
code 0 job-kill --launch 13 --yes
workers_are_gone '[0-3]' || fail "left: $(cat "$work/left")"
[ "$(of_jobs '{job["state"] for job in d if job["key"] > 12}')" = "{'killed'}" ] || fail 'the states of what was killed'

# --- a server that goes silent does not end an elastic launch; when it returns, it stops the processes that the launch
# continued without
launch --nnodes 1:2 --lost-after 3
all_begin 15
first="$sandbox/node-1/home/my project/.jobs/$(job 15 id)"
second="$sandbox/node-2/home/my project/.jobs/$(job 16 id)"
for folder in "$first" "$second"; do
  until_true grep -qx ok "$folder/lifeline"
done
# on_node_2 SIGNAL: signals everything that runs there, including its sshd and its lifeline
on_node_2() {
  all_of node-2 | while read -r pid; do
    kill -"$1" "$pid" 2>/dev/null || true
  done
}
on_node_2 STOP
until_true grep -qsxF 'node-2 lost:node-2' "$first/left"
! has_ended "$first" || fail 'the launch ended with a silent server that it does not need'
echo >"$work/orders/all"
until_true has_ended "$first"
rm "$work/orders/all"
on_node_2 CONT
until_true workers_are_gone '[23]'
code 0 job-wait --launch 15
has 'the launch succeeded with 2 ranks; it continued without node-2' err

# --- workers that restart because those on another server do: no line is repeated, and their earlier end is forgotten
launch
all_begin 17
touch "$work/orders/anew-1"
again() { tells 'rank 2 begins' --launch 17 --rank 2 && tells 'rank 3 begins' --launch 17 --rank 3 && [ "$(grep -c 'rank 3 begins' "$work/out")" -ge 2 ]; }
until_true again
order 3 'sys.exit(3)'
code 1 job-wait --launch 17
has 'rank 3 on node-2 failed first (exit 3, ' err
code 0 job-list --launch 17 --ranks
has 'ended after rank 3'
code 1 job-tail --launch 17 --rank 2 --no-follow
[ "$(grep -c 'rank 2 begins' "$work/out")" = 2 ] || fail 'a line comes twice'
code 0 report --launch 17 --json
has '"text": "restart 1"'
rm "$work/orders/3"

# --- invalid options are refused before anything starts
code 2 torch-launch --launcher torchrun --nnodes 1:3 -- train.py
has '2 servers are chosen' err
code 2 torch-launch --max-restarts 2 -- train.py
has 'only the launcher torchrun' err
code 2 torch-launch --launcher torchrun --rdzv static --nnodes 1:2 -- train.py

# --- torch 1.8 and older
rm torch/distributed/run.py
cat >torch/distributed/launch.py <<'PY'
import sys


def main():
    print("started with", *sys.argv[1:])


if __name__ == "__main__":
    main()
PY
code 0 rsync
remote run -- rm -rf torch/distributed/run.py torch/distributed/__pycache__
launch
code 0 job-wait --launch 19
code 0 job-tail --job 19 --no-follow
grep -qx 'started with --use_env --nnodes=2 --nproc_per_node=2 --node_rank=0 --master_addr=[^ ]* --master_port=[0-9]* train.py' \
  "$work/out" || fail 'the arguments of torch.distributed.launch'
launch --rdzv c10d
code 1 job-wait --launch 21
has 'this torch is older than 1.9' err
echo 'torchrun: all good'
