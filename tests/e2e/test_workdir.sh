#!/bin/sh
# Where a command runs, and the variables of a rank: run, job-run, launch and torch-launch in a folder of the project.
# shellcheck disable=SC2016,SC2088  # the servers expand them
. "${0%/*}/support.sh"
mkdir -p "sub/with space" other .remote
echo 'import os; print("in", os.getcwd(), flush=True)' | tee sub/where.py "sub/with space/where.py" >where.py
code 0 sandbox up --nodes 2
system_python
home=$(homes | head -n 1)
code 0 rsync
there="$home/my project"

# in_folder PATH: the command printed this folder, relative to the project
in_folder() { grep -qx "in $there$1" "$work/out" || fail "it does not run in '$1'"; }
said() { grep -q "^working directory: $1 (--workdir \. for the project's folder)\$" "$work/err" || fail "it does not say '$1'"; }

# --- the user's current folder, with a message
cd sub
code 0 run --server node-1 --cmd 'python3 where.py'
in_folder /sub
said sub
code 0 job-run --server node-1 --follow -- python3 where.py
in_folder /sub
said sub
for launcher in ranks torchrun; do
  [ "$launcher" = ranks ] || python3 -c 'import torch' 2>/dev/null || continue
  code 0 torch-launch --launcher "$launcher" --server node-1 --nproc-per-node 1 --no-check --follow -- python3 where.py
  in_folder /sub
  said sub
done
code 0 launch --server node-1 --no-check --follow --cmd 'python3 where.py'
in_folder /sub
said sub
cd "with space"
code 0 run --server node-1 --cmd 'python3 where.py'
in_folder "/sub/with space"
[ ! -e .remote ] || fail "something was made beside the user"
cd ..

# --- another folder, by option or by variable; without a message
code 0 run --workdir . --server node-1 --cmd 'python3 where.py'
in_folder ''
if grep -q 'working directory' "$work/err"; then fail "what was asked for is told"; fi
code 0 run --workdir "sub/with space" --server node-1 --cmd 'python3 where.py'
in_folder "/sub/with space"
code 0 launch --workdir other --server node-1 --no-check --follow --cmd 'echo "in $(pwd)"'
in_folder /other
code 0 job-run --env REMOTE_WORKDIR other --server node-1 --follow --cmd 'echo "in $(pwd)"'
in_folder /other
code 0 run --workdir '~/' --server node-1 --cmd 'echo "at $(pwd)"'
[ "$(cat "$work/out")" = "at $home" ] || fail "it is not the home folder"
code 0 run --workdir '~' --server node-1 --cmd 'echo "at $(pwd)"'
[ "$(cat "$work/out")" = "at $home" ] || fail "it is not the home folder"
# an ordinary name, not the previous folder of the job's shell
code 1 launch --workdir - --server node-1 --no-check --follow --cmd true
grep -q 'has no folder -' "$work/err" || fail "the folder - was found"
code 2 run --workdir '' --server node-1 --cmd true
# a path that leaves the project's root is relative to the current folder, as long as it stays in the project
for named in '/other ../other' '/other x/../../other/' ' ..'; do
  code 0 run --workdir "${named#* }" --server node-1 --cmd 'echo "in $(pwd)"'
  in_folder "${named%% *}"
done
code 2 run --workdir ../.. --server node-1 --cmd true
grep -q -- '--workdir ../.. is outside the project' "$work/err" || fail "it does not say what is wrong"
code 2 --project .. run --workdir .. --server node-1 --cmd true
code 2 launch --workdir ../../other --cmd true
# CDPATH does not redirect it
code 0 run --env CDPATH "$home/my project/sub" --workdir "sub/with space" --server node-1 --cmd 'echo "in $(pwd)"'
in_folder "/sub/with space"

# --- the project's root folder: with --project, and with labml_remote's commands
code 0 --project .. run --server node-1 --cmd 'python3 where.py'
in_folder ''
code 0 helper-torch-launch --use-env --server node-1 --nproc-per-node 1 --no-check --follow --cmd "python3 where.py"
in_folder ''
source=${REMOTE_SOURCE_DIR:-$(dirname "$0")/../..}
if [ -d "$source/python" ]; then
  REMOTE_BINARY=$REMOTE PYTHONPATH=$source/python python3 -m labml_remote run --server node-1 --cmd 'python3 where.py' \
    >"$work/out" 2>"$work/err" || fail "labml_remote run"
  in_folder ''
fi

# --- a missing folder
mkdir new && cd new
code 127 run --server node-1 --cmd true
grep -q 'the project has no folder sub/new here: send it with' "$work/err" || fail "it does not say what is missing"
cd ../..

# --- the variables of each rank, like torchrun with one role
code 0 launch --nproc-per-node 2 --no-check --cmd \
  'echo "$ROLE_RANK of $ROLE_WORLD_SIZE on $GROUP_WORLD_SIZE, ${TORCHELASTIC_RUN_ID:+id} ${TORCHELASTIC_RESTART_COUNT-none}"'
code 0 job-wait --launch last
code 0 job-tail --no-follow --launch last --all
for rank in 0 1 2 3; do
  grep -q "$rank of 4 on 2, id none" "$work/out" || fail "rank $rank is told something else"
done
code 2 launch --env ROLE_RANK 3 --cmd true
