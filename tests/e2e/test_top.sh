#!/bin/sh
# `remote top` and `remote servers` on practice servers with a fake nvidia-smi: a job of the project, and a process that
# does not belong to any of its jobs, use GPU memory.
. "${0%/*}/support.sh"
data=$REMOTE_SOURCE_DIR/tests/data/gpus
code 0 sandbox up --nodes 2
code 0 rsync
for node in node-1 node-2; do
  bin=$sandbox/$node/home/bin
  mkdir -p "$bin/gpus"
  cp "$data"/535/* "$bin/gpus/"
  cp "$data/nvidia-smi.sh" "$bin/nvidia-smi"
  chmod +x "$bin/nvidia-smi"
  # bash also reads it when sshd starts it for a command
  # shellcheck disable=SC2016  # the server's shell expands it
  echo 'PATH=$HOME/bin:$PATH' >"$sandbox/$node/home/.bashrc"
done
remote top --once --json
grep -q nvidia-smi "$work/out" || skip "the login shell reads no start file for a command, so it finds no pretended nvidia-smi"

code 0 job-run --server node-1 --cmd 'echo step 1; exec sleep 1000'
code 0 job-list --json
pid=$(sed -n 's/^ *"pid": \([0-9]*\),$/\1/p' "$work/out")
uuid=GPU-00005350-1111-2222-3333-000000005350
# $$ is this test's own shell: it has the same user, and belongs to no job
printf '%s, %s, 40512, python3\n%s, %s, 1024, [Not Found]\n' $uuid "$pid" GPU-00005351-1111-2222-3333-000000005351 $$ \
  >"$sandbox/node-1/home/bin/gpus/apps.csv"

code 0 top --once
grep -q '^  GPU 0 .* 97 %  *39.6 of 80.0 GiB .* job 1  A100' "$work/out" || fail "the job's GPU is not shown as its own"
grep -q "^  GPU 1 .*: .* ($$)" "$work/out" || fail "the other process is not named"
grep -q '^  job 1 .*running.* | [0-9]*s ago: step 1$' "$work/out" || fail "the job's last line is not shown"
code 0 servers
grep -Eq '^node-1 .* 2 of 2, 39.6 GiB of 160 GiB$' "$work/out" || fail "servers has no short form"
code 0 top --json --server node-1
grep -q '"own": true' "$work/out" || fail "the JSON does not tell whose a process is"

# If the GPU program fails, everything else is still shown.
printf '15\nUnable to determine the device handle for GPU 0000:07:00.0: GPU is lost.\n' \
  >"$sandbox/node-2/home/bin/gpus/fails"
code 0 top --once
grep -q '^  GPU 0 .* lost: ' "$work/out" || fail "the lost GPU is not told"
grep -q '^node-2 .*memory ' "$work/out" || fail "the server's load is not told any more"
