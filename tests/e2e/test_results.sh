#!/bin/sh
# remote pull: copies the outputs of a launch to results/KEY, once, and nothing else. Checkpoints are copied when they
# are complete; files with the same name on two servers are kept apart; nothing is written outside; and the results are
# not sent back.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cat >>.remote/configs.yaml <<'END_OF_CONFIG'
outputs: [checkpoints/, 'out-*.csv', metrics.csv, steps]
checkpoint: {files: ckpt-*.pt, complete: ckpt-*.done}
launch: {pull: true}
END_OF_CONFIG
cat >train.sh <<'END_OF_SCRIPT'
sleep 0.1 # its files are newer than its start
mkdir -p checkpoints
for step in 1 2 3; do head -c 3000 /dev/urandom >"checkpoints/ckpt-$step.pt"; done
touch checkpoints/ckpt-1.done checkpoints/ckpt-2.done
echo "rank $RANK" >metrics.csv
echo "$RANK" >"out-$RANK.csv"
echo no >other.csv
[ "$RANK" = 1 ] || ln -sf /etc/passwd checkpoints/link
END_OF_SCRIPT
"$REMOTE" --quiet rsync
node1=$(dirname "$(find "$(homes | sed -n 1p)" -maxdepth 2 -name train.sh)")
# older files do not belong to the launch
mkdir "$node1/checkpoints"
echo old >"$node1/checkpoints/old.pt"
echo old >"$node1/out-9.csv"

code 0 launch --follow -- sh train.sh
grep -q '12 files .* in results/1' "$work/err" || fail "it does not tell what was copied"
grep -q 'not complete yet, not copied: checkpoints/ckpt-3.pt, node-2/checkpoints/ckpt-3.pt' "$work/err" || fail "nothing about the checkpoint"
find results/1 -type f | LC_ALL=C sort >"$work/found"
cat >"$work/wanted" <<'END_OF_LIST'
results/1/checkpoints/ckpt-1.done
results/1/checkpoints/ckpt-1.pt
results/1/checkpoints/ckpt-2.done
results/1/checkpoints/ckpt-2.pt
results/1/metrics.csv
results/1/node-2/checkpoints/ckpt-1.done
results/1/node-2/checkpoints/ckpt-1.pt
results/1/node-2/checkpoints/ckpt-2.done
results/1/node-2/checkpoints/ckpt-2.pt
results/1/node-2/metrics.csv
results/1/node-2/out-1.csv
results/1/out-0.csv
END_OF_LIST
cmp "$work/found" "$work/wanted" || fail "other files than those were copied: $(cat "$work/found")"
[ "$(cat results/1/metrics.csv results/1/node-2/metrics.csv)" = "rank 0
rank 1" ] || fail "what two servers wrote is not told apart"
cmp "$node1/checkpoints/ckpt-2.pt" results/1/checkpoints/ckpt-2.pt

# again: nothing new
code 0 pull
grep -q 'already up to date: results/1' "$work/err" || fail "it was copied twice"
[ "$(cat results/.gitignore)" = '*' ] || fail "git would have the results"

# files written after the end belong to another launch; while it runs, new files are copied
printf 'sh train.sh\ntouch ready\nuntil [ -e end ]; do sleep 0.3; done\n' >hold.sh
"$REMOTE" --quiet rsync
code 0 launch --no-follow -- sh hold.sh
until_true [ -e "$node1/ready" ]
code 0 pull 1
grep -q 'already up to date: results/1\|earlier copies are in results/1' "$work/err" || fail "a launch has what a later one wrote"
[ "$(cat results/1/metrics.csv)" = 'rank 0' ] || fail "what another launch wrote was put in its place"
code 0 pull
cmp "$node1/checkpoints/ckpt-2.pt" results/3/checkpoints/ckpt-2.pt || fail "not what the launch that runs wrote"
! cmp -s results/1/checkpoints/ckpt-2.pt results/3/checkpoints/ckpt-2.pt || fail "two launches have the same"
touch "$node1/checkpoints/ckpt-3.done"
echo more >>"$node1/metrics.csv"
code 0 pull 4 --json
[ "$(picks 'sorted(d["files"]), d["incomplete"]')" = \
  "(['checkpoints/ckpt-3.done', 'checkpoints/ckpt-3.pt', 'metrics.csv'], ['node-2/checkpoints/ckpt-3.pt'])" ] || fail "not what is new"
# a rewritten checkpoint must be completed again
sleep 1 # so that its time is not in the same second as the mark
head -c 3000 /dev/urandom >"$node1/checkpoints/ckpt-1.pt"
code 0 pull last --json
[ "$(picks 'd["files"], d["incomplete"][0]')" = "([], 'checkpoints/ckpt-1.pt')" ] || fail "it was copied without being complete"

# a launch that writes nothing has no folder
code 0 launch --server node-1 --no-follow -- true
until_true [ "$(job 5 state)" = succeeded ]
code 0 pull 5
grep -q 'no files of this launch in its outputs' "$work/err" || fail "a launch has what another one wrote"

# results are not sent to the servers
code 0 rsync
[ ! -e "$node1/results" ] || fail "results were sent back"

# An interrupted transfer continues: the partial file is kept under another name
head -c 100000000 /dev/urandom >"$node1/checkpoints/big"
in_background pull 3
until find results/3 -name '.big.*' -size +1k | grep -q . || ! kill -0 "$follower" 2>/dev/null; do
  sleep 0.01
done
kill -INT "$follower" 2>/dev/null || : # a fast machine may be done
wait "$follower" || :
follower=
[ ! -e results/3/checkpoints/big ] || cmp "$node1/checkpoints/big" results/3/checkpoints/big || fail "half a file under its name"
code 0 pull 3
cmp "$node1/checkpoints/big" results/3/checkpoints/big || fail "it did not go on"

# A folder that is complete once it contains a certain file
sed -i 's/^checkpoint: .*/checkpoint: {files: "step-*\/", complete: step-*\/done}/' .remote/configs.yaml
mkdir -p "$node1/steps/step-1" "$node1/steps/step-2"
touch "$node1/steps/step-1/model" "$node1/steps/step-1/done" "$node1/steps/step-2/model"
code 0 pull 3
[ -e results/3/steps/step-1/model ] || fail "not the complete one"
[ ! -e results/3/steps/step-2 ] || fail "one that is not complete"

# A hostile server cannot write elsewhere: a link in the way, a name that leads outside
mkdir "$work/outside"
rm -rf results/3
ln -s "$work/outside" results/3
code 2 pull 3
grep -q 'a symbolic link leads elsewhere' "$work/err" || fail "no error for the link"
[ -z "$(ls "$work/outside")" ] || fail "it was written outside"
rm results/3
mkdir results/3
ln -s "$work/outside" results/3/node-2
code 1 pull 3
grep -q 'node-2.*a symbolic link leads elsewhere' "$work/err" || fail "no error for the link of a server"
[ -z "$(ls "$work/outside")" ] || fail "it was written outside"
rm -r results/3
mkdir "$node1/metrics.d"
ln -s "$work/outside" "$node1/checkpoints/out"
touch "$node1/checkpoints/out/secret"
code 0 pull 3
for link in out link; do
  [ ! -e "results/3/checkpoints/$link" ] || fail "a link was copied"
done
for home in "$node1" "$(dirname "$(find "$(homes | sed -n 2p)" -maxdepth 2 -name train.sh)")"; do touch "$home/end"; done
code 0 job-wait --launch 3
# after job-clean the record of the launch still lists its outputs
"$REMOTE" --quiet job-clean --older 0 --yes >"$work/out" 2>&1
rm -r results/3
code 0 pull 3
[ -e results/3/checkpoints/big ] || fail "nothing was copied after job-clean"
[ ! -e results/3/checkpoints/old.pt ] || fail "what was there before the launch was copied"
[ -z "$(find "$node1/.jobs" -name '.results.*')" ] || fail "dated files are left on the server"
code 2 pull nothing
sed -i '/^outputs/d' .remote/configs.yaml
code 2 pull
grep -q 'outputs:' "$work/err" || fail "it does not tell what to write"
echo "results come home"
