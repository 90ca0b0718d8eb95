#!/bin/sh
# The first steps of a new user, with practice servers: two commands from an empty folder to a finished training, the
# output of plain `remote` at each step, and the messages about servers that are down or were never prepared.
# shellcheck disable=SC2016  # the backquotes are part of the messages
. "${0%/*}/support.sh"
says() { grep -qF -- "$1" "$work/err" || fail "stderr does not say: $1"; }

# an empty folder
code 2
says 'to try it on practice servers of this machine: remote sandbox up --sample'

# the two commands
code 0 sandbox up --sample
says 'wrote .remote/configs.yaml'
says 'wrote train.py, a training that needs only Python 3'
says 'to train on all of them: remote torch-launch'
code 0
says 'to train: remote torch-launch'
code 0 torch-launch
grep -q '^rank 0 of 4: y = 3.00 x + 1.00$' "$work/out" || fail "the sample did not train"
says 'all 4 ranks succeeded'
code 0
says 'to train: remote torch-launch'

# A second `up` keeps the files of the first, even with more servers, and never overwrites train.py.
echo '# mine' >>train.py
code 0 sandbox up --sample --nodes 3
says 'kept train.py: it exists already'
[ "$(tail -n 1 train.py)" = '# mine' ] || fail "train.py was written over"
code 0 sandbox up
grep -q '^  cmd: python3 train.py$' .remote/configs.yaml || fail "the launch is gone from configs.yaml"
grep -q '^  node-3:$' .remote/configs.yaml || fail "configs.yaml lacks a server"

# Servers that were never prepared: reported before a rank starts.
if "$REMOTE" run --server node-1 -- sh -c 'command -v python' >"$work/out" 2>"$work/err" </dev/null; then
  echo "there is a $(cat "$work/out") here, so what is said without one was not looked at"
else
  code 1 torch-launch --no-follow --no-rsync --cmd 'python train.py'
  says "error: node-1, node-2, node-3: it cannot run there: there is no program 'python', and the project's Python environment does not provide it"
  says 'hint: `remote prepare` makes it'
  says 'error: nothing was started'
  code 1 torch-launch --no-check --cmd 'python train.py'
  says ' hint: `remote prepare` makes the Python environment there'
  code 0
  says 'to see why job '
  says 'remote report --launch '
fi

# A module that is missing
echo 'import no_such_module' >missing.py
code 1 torch-launch --cmd 'python3 missing.py'
says 'hint: Python there has no module no_such_module: add its package to requirements.txt if it is missing there, and run `remote prepare`'
# pdb without a terminal, so that breakpoint() does not wait for `remote attach`
echo 'breakpoint()' >stops.py
code 1 launch --rsync --follow --nproc-per-node 1 -- python3 stops.py
says 'hint: breakpoint() waits for `remote attach` if the launch has --enable-stacks'
# an optional module is not the reason for the failure
printf '%s\n' 'import sys' 'print("No module named triton", file=sys.stderr)' 'sys.exit("CUDA out of memory")' >warns.py
code 1 torch-launch --cmd 'python3 warns.py'
grep -q 'has no module' "$work/err" && fail "a warning is taken for the reason"

# Practice servers that are down
code 0 sandbox down
code 0
says 'some practice servers are down; to start them: remote sandbox up'
code 1 run --cmd true
says 'error: node-1: cannot connect: 127.0.0.1:'
says ' hint: `remote sandbox up` starts the practice servers'
code 1 torch-launch
says ' hint: node-1, node-2 and node-3: `remote sandbox up` starts the practice servers'
code 1 servers --jsonl
grep -q '"server":"node-1".*"hint":"`remote sandbox up` starts the practice servers"' "$work/out" || fail "the stream has no hint"

# Files from the sandbox are removed, the user's own files stay.
code 0 sandbox down --purge
[ ! -e .remote/configs.yaml ] || fail "configs.yaml of the sandbox is still there"
[ -e train.py ] || fail "train.py is gone"
code 0 init
cp .remote/configs.yaml "$work/before"
code 0 sandbox up --nodes 1
says 'updated .remote/configs.yaml'
code 0 sandbox down --purge
says 'removed the practice servers from .remote/configs.yaml'
cmp .remote/configs.yaml "$work/before" || fail "what init wrote did not come back"
code 0
says 'to name your own servers, under `servers:`'
echo "first contact: all well"
