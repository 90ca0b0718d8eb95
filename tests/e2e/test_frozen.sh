#!/bin/sh
# A frozen launch runs in its own tree: a sync never changes what its ranks import or read, two launches can run
# different code at the same time, new files land in the project's folder, and the tree is removed with the last launch
# that ran in it.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
homes >"$work/homes"
one="$(head -n 1 "$work/homes")/my project"
two="$(tail -n 1 "$work/homes")/my project"
trees() { find "$one/.jobs/.trees" -mindepth 1 -maxdepth 1 -type d ! -name '*.jobs' 2>/dev/null | wc -l; }
# code_is WORD: writes it to 100 modules and to the data
code_is() {
  for module in $(seq 100); do echo "VALUE = '$1'" >"pkg/m$module.py"; done
  echo "$1" >data.txt
  echo "$1" >pkg/inner.txt
}
mkdir -p pkg src/editable
touch pkg/__init__.py
echo "VALUE = 'in src'" >src/editable/__init__.py
cat >train.py <<'END_OF_PROGRAM'
import glob, importlib, os, sys, time

word, rank, home = sys.argv[1], os.environ["RANK"], os.environ["REMOTE_PROJECT_FOLDER"]
here = os.path.dirname(os.path.abspath(__file__))
assert os.getcwd() == here != home and "/.jobs/.trees/" in here, here
for number in range(1, 101):
    module = importlib.import_module("pkg.m%d" % number)
    inner = os.path.join(os.path.dirname(module.__file__), "inner.txt")
    read = {module.VALUE, open("data.txt").read().strip(), open(inner).read().strip()}
    assert read == {word}, (number, read)
    while number > 5 and not glob.glob(home + "/stop." + word):
        time.sleep(0.02)
        assert open("data.txt").read().strip() == word
    if number % 25 == 0:
        os.makedirs("checkpoints", exist_ok=True)
        with open("checkpoints/part.%s" % rank, "w") as file:
            file.write(word)
        os.replace("checkpoints/part.%s" % rank, "checkpoints/%s.%s" % (word, rank))
import editable
assert editable.__file__.startswith(here), editable.__file__
with open("metrics.%s.csv" % word, "a") as file:
    file.write(rank + "\n")
with open(os.path.join(here, "pkg", "made." + rank), "w") as file:
    file.write(word)
open("data.txt", "a").write("more\n") if word == "third" and rank == "0" else None
END_OF_PROGRAM
code_is first
"$REMOTE" --quiet rsync

# ---- 22 syncs while the ranks run, and another launch with different code next to it
in_background torch-launch --frozen --name first --follow --no-check --nproc-per-node 2 --cmd 'python3 train.py first'
until_true grep -q master "$work/err"
first=$follower
for turn in $(seq 20); do
  echo "$turn" >data.txt
  echo "VALUE = $turn" >pkg/m$((turn + 2)).py
  rm -f "pkg/m$turn.py"
  "$REMOTE" --quiet rsync --delete
done
code_is other
"$REMOTE" --quiet rsync
"$REMOTE" torch-launch --frozen --name other --follow --no-check --nproc-per-node 2 --cmd 'python3 train.py other' >"$work/other.out" 2>&1 &
follower=$!
until_true grep -q master "$work/other.out"
other=$follower
[ "$(trees)" = 2 ] || fail "two launches with different code, and $(trees) trees"
code 0 job-clean --yes
[ "$(trees)" = 2 ] || fail "a tree in use was removed"
touch stop.first stop.other
"$REMOTE" --quiet rsync
follower=$first
follower_ends 0
wait "$other" || fail "the other launch failed: $(cat "$work/other.out")"

# ---- new files are in the project's folder
for file in checkpoints/first.0 checkpoints/other.1 metrics.first.csv metrics.other.csv pkg/made.0; do
  { [ -f "$one/$file" ] && [ ! -L "$one/$file" ]; } || fail "$file is not in the project's folder"
done
[ "$(cat "$two/checkpoints/other.3")" = other ] || fail "the other server's checkpoint is not there"
[ -z "$(find "$one/pkg" -name __pycache__)" ] || fail "__pycache__ landed in the project's folder"
[ "$(cat "$one/data.txt")" = other ] || fail "the project's data is not what was sent"

# ---- the record has the digest, the same on both servers
code 0 show other --json
digest=$(picks '",".join({dict(s["facts"])["tree"] for s in d["setups"]})')
{ [ -d "$one/.jobs/.trees/$digest" ] && [ -d "$two/.jobs/.trees/$digest" ]; } || fail "no tree $digest"

# ---- again in its tree, no matter what is on the servers by now
code 0 rerun first --follow
grep -q 'with its original code, frozen as' "$work/err" || fail "it does not say which code"

# ---- job-clean removes a tree with its last launch
code 0 job-clean --yes --launch 5
{ [ "$(trees)" = 1 ] && [ ! -e "$one/.jobs/.trees/$digest" ]; } || fail "$(trees) trees are left"
code 0 job-clean --yes
[ "$(trees)" = 0 ] || fail "$(trees) trees are left"
[ "$(find "$one/.jobs/.trees" -name '*.list' -o -name '*.jobs' | wc -l)" = 0 ] || fail "something of a tree is left: $(ls -A "$one/.jobs/.trees")"
[ -f "$one/checkpoints/first.0" ] || fail "an output went with the tree"
code 2 rerun first
grep -q 'its tree is gone from node-1, node-2' "$work/err" || fail "it does not say what is gone"
grep -q -e '--code git' "$work/err" || fail "it does not say what to try"
mv "$one" "$one.away" # as on a reinstalled server
code 2 rerun first
mv "$one.away" "$one"
grep -q 'its tree is gone from node-1, node-2' "$work/err" || fail "it does not say what is gone with the project's folder"

# ---- the program changes a file that was sent: the change reaches the project's folder, and the next launch is refused
code_is third
touch stop.third
"$REMOTE" --quiet rsync
code 0 torch-launch --frozen --follow --no-check --nproc-per-node 1 --cmd 'python3 train.py third'
grep -q more "$one/data.txt" || fail "what was written into data.txt is lost"
before=$(find .remote/jobs -name job.json | wc -l)
code 1 torch-launch --frozen --no-check --nproc-per-node 1 --cmd 'python3 train.py third'
grep -q 'node-1.*differs from the sent version: 1 file (data.txt)' "$work/err" || fail "the file is not named"
# ---- servers with different code
sleep 1.1 # rsync compares whole seconds
code_is third
"$REMOTE" --quiet rsync --server node-1
code 1 torch-launch --frozen --no-check --nproc-per-node 1 --cmd 'python3 train.py third'
grep -q 'the servers were sent different code' "$work/err" || fail "different code is not named"
[ "$(find .remote/jobs -name job.json | wc -l)" = "$before" ] || fail "something was started"
"$REMOTE" --quiet rsync

# ---- configs.yaml makes it the default; --no-frozen turns it off
printf 'launch: {frozen: true}\n' >>.remote/configs.yaml
code 0 launch --follow --nproc-per-node 1 -- sh -c 'pwd; pwd >&2'
grep -q '/.jobs/.trees/' "$work/out" || fail "launch: {frozen: true} does nothing"
code 0 launch --no-frozen --follow --nproc-per-node 1 -- pwd
! grep -q '/.jobs/.trees/' "$work/out" || fail "--no-frozen does nothing"
code 0 launch --follow --nproc-per-node 1 --workdir pkg -- sh -c 'pwd; ls inner.txt'
grep -q '/.jobs/.trees/.*/pkg$' "$work/out" || fail "--workdir is not in the tree"
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  "$REMOTE" --quiet prepare
  code 0 launch --launcher torchrun --no-check --follow --nproc-per-node 1 -- python3 -c 'import editable; print(editable.__file__)'
  grep -q '/.jobs/.trees/.*/src/editable/' "$work/out" || fail "torchrun's worker has not imported from the tree"
fi

# ---- the server is lost while the tree is made: the next launch removes the remains
mkdir many
for file in $(seq 30000); do echo x >"many/$file.txt"; done
"$REMOTE" --quiet rsync
new() { find "$one/.jobs/.trees" -maxdepth 1 -name '.new.*' | grep -q .; }
in_background launch --follow --nproc-per-node 1 -- true
until_true new
grep -lzxF "HOME=${one%/my project}" /proc/[0-9]*/environ 2>/dev/null | while read -r process; do
  process=${process%/environ}
  if read -r name 2>/dev/null <"$process/comm" && [ "$name" = remote-agent ]; then kill -KILL "${process#/proc/}" 2>/dev/null || :; fi
done
follower_ends 1
new || fail "nothing is left of the tree that was being made"
code 0 launch --follow --nproc-per-node 1 -- true
! new || fail "the rubbish is still there"
echo "frozen: all well"
