#!/bin/sh
# Jobs and launches on a login node of a real Slurm cluster with two nodes on this machine; the ranks run in containers.
# A script replaces apptainer, which Debian does not package; it accepts only what apptainer documents.
# shellcheck disable=SC2016
engine=apptainer
. "${0%/*}/container_support.sh"
. "${0%/*}/support.sh"
. "$REMOTE_SOURCE_DIR/tests/support/slurm.sh"
slurm_is_missing && skip "$slurm_missing"
unshare --mount --propagation private mount -t tmpfs tmpfs /mnt 2>/dev/null || skip "no right to mount"
slurm_folder=$(mktemp -d /tmp/remote-slurm.XXXXXX)
clean_up() {
  slurm_down
  rm -rf "$slurm_folder"
}
slurm_up "$slurm_folder" || fail "no cluster"

code 0 sandbox up --nodes 1
system_python
sed -i 's|^    hostname: 127.0.0.1|&\n    scheduler: slurm\n    partition: short\n    time: 10|' .remote/configs.yaml
cp .remote/configs.yaml "$work/configs.yaml"
# with_engine WHEN: configs.yaml with the container, and a prologue that provides the engine if the test WHEN is true
with_engine() {
  cp "$work/configs.yaml" .remote/configs.yaml
  cat >>.remote/configs.yaml <<END
prologue: 'if $1; then PATH="\$PATH:$REMOTE_SOURCE_DIR/tests/support"; fi'
container:
  engine: apptainer
  image: images/skeleton
  args: [--bind, "/usr:/usr:ro", --bind, "/etc/alternatives:/etc/alternatives:ro"]
END
}
# The login node has no apptainer, but its nodes have.
with_engine '[ -n "${SLURM_JOB_ID-}" ]'
home=$(homes)
folder="$home/my project"
printf 'export SLURM_CONF=%s\nexport APPTAINER_TEST_WORDS=%s/words\n' "$SLURM_CONF" "'$work'" >"$home/.bashrc"
nothing_runs() { [ "$(processes "$1")" = 0 ]; }
runs() { [ "$(processes "$1")" = "$2" ]; }
jobs_are() { [ "$(of_jobs 'len(d)')" = "$1" ]; }
cp "$REMOTE_SOURCE_DIR/sample/train.py" .
cat >look.py <<'PY'
import os, sys

print("rank", os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["SLURM_PROCID"], os.environ["NAME"], os.getcwd())
print("inside" if os.environ.get("APPTAINER_CONTAINER") and not os.path.exists("/etc/debian_version") else "outside")
PY
cat >fails.py <<'PY'
import os, time

if os.environ["RANK"] == "3":
    raise ValueError("a bad batch")
time.sleep(600)
PY
cat >wait.py <<'PY'
import subprocess, sys, time

subprocess.Popen(["setsid", "sleep", sys.argv[1]])  # what leaves its session is in the container all the same
time.sleep(600)
PY
code 0 prepare
mkdir "$folder/images"
(cd "$folder/images" && mkdir skeleton && skeleton | tar -x -C skeleton)

# --- a job: in the container, with its variables, its exit code and signals; its files are visible
code 0 job-run --follow -e NAME="s3cr3t's \$HOME" -- sh -c 'echo "$NAME"; pwd; [ -e /etc/debian_version ]; echo $? $SLURM_JOB_NUM_NODES; echo made >made'
sed -n '/^s3cr3t/,$p' "$work/out" >"$work/said"
printf '%s\n' "s3cr3t's \$HOME" "$folder" '1 1' | cmp -s - "$work/said" || fail "the job in the container"
[ -f "$folder/made" ] || fail "what it wrote is not there"
grep -q '^exec --cleanenv --env REMOTE_JOB_ID=' "$work/words" || fail "it was not called as apptainer is"
! grep -q s3cr3t "$work/words" || fail "a variable stands in the command line"
code 3 job-run --follow -- sh -c 'exit 3'
code 139 job-run --follow -- sh -c 'kill -SEGV $$'
code 0 job-run --follow --image none -- sh -c '[ -e /etc/debian_version ]'

# --- each rank has a container with its own variables, and so has each torchrun agent
code 0 torch-launch --nodes 2 --nproc-per-node 2 -e NAME="it's" --tag look -- python3 look.py
code 0 job-wait --tag look
id=$(of_jobs 'd[-1]["id"]')
for rank in 1 2 3; do
  printf '%s\n' "rank $rank $((rank % 2)) $rank it's $folder" inside | cmp -s - "$folder/.jobs/$id/ranks/$rank.out" ||
    fail "rank $rank says: $(cat "$folder/.jobs/$id/ranks/$rank.out")"
done
[ -z "$(find "$folder/.jobs/$id" -name '*.variables')" ] || fail "variables of ranks stay"
if [ "$(/usr/bin/python3 -c 'import torch, sklearn; print("there")' 2>/dev/null)" = there ]; then
  for launcher in ranks torchrun; do
    code 0 torch-launch --nodes 2 --nproc-per-node 2 --launcher $launcher --follow -- train.py --epochs 6
    grep -q '^all ranks have the same parameters$' "$work/out" || fail "no training by $launcher"
  done
else
  echo 'without torch and sklearn for the system python, nothing is trained'
fi

# --- a rank fails; a launch is stopped on all nodes
code 1 torch-launch --nodes 2 --nproc-per-node 2 --failure-grace 0 --follow -- python3 fails.py
grep -q 'rank 3 on n2 failed first (exit 1' "$work/err" || fail "the verdict does not name rank 3"
grep -q 'ValueError: a bad batch' "$work/err" || fail "the verdict has no traceback"
code 0 torch-launch --nodes 2 --nproc-per-node 2 --tag sleepers -- python3 wait.py "$mark.5"
until_true runs 5 8
stacks_of_all() { [ "$("$REMOTE" --quiet job-stacks --launch last --json | evaluate 'len([one for group in d["groups"] for one in group["members"]])')" = 4 ]; }
until_true stacks_of_all
code 0 job-kill --tag sleepers --yes
nothing_runs 5 || fail "ranks survive"
[ "$(of_jobs 'd[-1]["state"]')" = killed ] || fail "it is not killed"

# --- the job reports what a node lacks
code 0 run --cmd 'scontrol update PartitionName=short State=DOWN'
code 0 job-run --tag gone -- true
mv "$folder/images/skeleton" "$folder/images/moved"
code 0 run --cmd 'scontrol update PartitionName=short State=UP'
code 127 job-tail --tag gone
grep -q '^remote: there is no image images/skeleton on ' "$work/err" || fail "the image that went is not told"
before=$(of_jobs 'len(d)')

# --- a container that cannot run is refused before anything is submitted
code 1 job-run -- true
grep -q '^error: node-1: cannot start a container: apptainer has no image images/skeleton$' "$work/err" || fail "the missing image"
code 1 launch --nodes 2 --nproc-per-node 2 -- true
with_engine '[ -z "${SLURM_JOB_ID-}" ]' # now the nodes lack it
code 1 job-run -- true
mv "$folder/images/moved" "$folder/images/skeleton"
sed -i 's/engine: apptainer/engine: podman/' .remote/configs.yaml
code 2 job-run -- true
grep -q 'would escape its limits' "$work/err" || fail "podman under Slurm"
jobs_are "$before" || fail "something was submitted"
sed -i 's/engine: podman/engine: apptainer/' .remote/configs.yaml
code 127 job-run --follow -- true
grep -q '^remote: there is no apptainer on ' "$work/err" || fail "the engine that a node lacks is not told"
