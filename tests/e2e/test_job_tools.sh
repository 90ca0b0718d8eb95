#!/bin/sh
# job-stacks, job-pull and job-clean on two practice servers.
. "${0%/*}/support.sh"
command -v rsync >/dev/null || skip "rsync is not installed"
# until_says TEXT WORDS...: repeats a command until its stdout has the text
until_says() {
  text=$1
  shift
  tries=0
  while ! { remote "$@" || true; grep -q -e "$text" "$work/out"; }; do
    tries=$((tries + 1))
    [ $tries -lt 75 ] || fail "waited in vain for '$text' from: $*"
    sleep 0.4
  done
}
# records: prints how many jobs are recorded here
records() {
  set -- .remote/jobs/*/job.json
  [ -e "$1" ] || set --
  echo $#
}
exists() { grep -q -e "$1" "$work/$2"; }

cat >train.py <<'PY'
import os, time

def load_batch():
    time.sleep(600)

def all_reduce():
    time.sleep(600)

print("up", flush=True)
if os.environ["RANK"] == "2":
    load_batch()
else:
    all_reduce()
PY
cat >sitecustomize.py <<'PY'
open("sitecustomize was here", "w").close()
PY
code 0 sandbox up --nodes 2
code 0 rsync

# --- job-stacks ---------------------------------------------------------------------------------------------------
code 0 launch --cmd 'python3 train.py' --nproc-per-node 2 --enable-stacks
until_says 'load_batch (' job-stacks
remote job-stacks || fail "job-stacks gives no 0 although all ranks have stacks"
head -n 1 "$work/out" | grep -q '^rank 2 (node-2, .* is at a different place' || fail "the odd one out is not named first"
exists '^ranks 0-1, 3 (node-1, node-2):' out || fail "the equal ones are not together"
exists 'all_reduce (.*train.py:7)' out || fail "the place is not shown"
code 0 job-stacks --json --threads
[ "$(grep -c '"members"' "$work/out")" = 2 ] || fail "not two groups in the JSON"
remote run --cmd 'cat "sitecustomize was here" && echo chained' || fail "the project's own sitecustomize was not loaded"
exists 'chained' out || fail "not chained"
code 0 job-list --ranks
[ "$(grep -c ' running ' "$work/out")" = 4 ] || fail "a rank did not survive job-stacks"
code 0 job-kill --yes
code 0 job-list --stopped
exists ' killed SIGTERM by ' out || fail "the cause is not brief"

# Without preparation: the error is clear, and nothing is signalled.
code 0 job-run --server node-1 --cmd 'RANK=0 exec python3 train.py'
until_says 'no Python stack' job-stacks
if remote job-stacks; then fail "0 without a stack"; fi
exists 'thread .*python3.*state S' out || fail "nothing of the kernel's"
exists 'enable-stacks' err || fail "what is needed is not said"
code 0 job-list
exists ' running ' out || fail "job-stacks ended a job that was not prepared"
key=$(sed -n 's/^ *\([0-9]*\) .*running.*/\1/p' "$work/out")

# A command that is not Python runs as usual.
code 0 job-run --server node-1 --enable-stacks --cmd 'echo plain; exit 3'
remote job-wait --job 6 && fail "job-wait"
remote job-tail --job 6 || true
exists '^plain$' out || fail "a plain command was disturbed"

# --- job-clean never removes running jobs
# -------------------------------------------------------------------------------
code 2 job-clean --older 0
[ "$(records)" = 6 ] || fail "something was removed without --yes"
if remote job-clean --job "$key" --yes; then fail "a running job counts as cleaned"; fi
code 0 job-clean --older 1 --yes
exists '^no jobs removed' err || fail "a young job was removed"

# The records of a server that does not answer are kept.
cp .remote/configs.yaml "$work/configs.yaml"
port=$(sed -n 's/^    port: //p' .remote/configs.yaml | sed -n 2p)
sed "s/port: $port/port: 1/" "$work/configs.yaml" >.remote/configs.yaml
if remote job-clean --yes; then fail "0 although a server does not answer"; fi
cp "$work/configs.yaml" .remote/configs.yaml
exists '^3 jobs removed' err || fail "the jobs of the server that answers were not removed"
[ "$(records)" = 3 ] || fail "records of the silent server are gone"
code 0 job-clean --yes --json
[ "$(grep -c '"removed": true' "$work/out")" = 2 ] || fail "not two in the JSON"
for server in node-1 node-2; do
  remote run --server "$server" --cmd "ls .jobs | grep -c '^[0-9a-f]*\$' || true" || fail "ls on $server"
  cp "$work/out" "$work/count.$server"
done
grep -q '^1$' "$work/count.node-1" || { cp "$work/count.node-1" "$work/out"; fail "the running job's folder is not the only one"; }
grep -q '^0$' "$work/count.node-2" || { cp "$work/count.node-2" "$work/out"; fail "folders are left on node-2"; }
code 0 job-list
exists ' running ' out || fail "job-clean ended a job"

# --- job-pull -------------------------------------------------------------------------------------------------------
remote run --server node-1 --cmd 'mkdir -p "ckpt/a b" && echo one >"ckpt/a b/x [1].pt" && echo two >"ckpt/line
break.pt" && ln -s "a b/x [1].pt" ckpt/latest && echo three >"odd *.txt" && echo none >"odd 1.txt"' || fail "files"
code 0 job-pull --job "$key" ckpt 'odd *.txt' --to "$work/pulled here"
[ "$(cat "$work/pulled here/ckpt/a b/x [1].pt")" = one ] || fail "a name with a blank and brackets"
[ "$(cat "$work/pulled here/ckpt/line
break.pt")" = two ] || fail "a name with a newline"
[ "$(cat "$work/pulled here/odd *.txt")" = three ] || fail "a name with a star"
[ ! -e "$work/pulled here/odd 1.txt" ] || fail "a name was taken for a pattern"
mkdir here
cd here
remote job-pull --job "$key" ckpt/latest './ckpt/a b/' || fail "job-pull into the current folder"
{ [ ! -L latest ] && [ "$(cat latest)" = one ]; } || fail "what a link leads to did not come"
[ "$(cat 'x [1].pt')" = one ] || fail "FOLDER/ is not its content"
cd ..
if remote job-pull --job "$key" ckpt nowhere/x --to "$work/none"; then fail "0 for a missing path"; fi
exists "nowhere/x" err || fail "the missing path is not named"
[ ! -e "$work/none" ] || fail "something was made for a missing path"
sleep 1.1 2>/dev/null || sleep 2 # rsync compares whole seconds
echo mine >"$work/pulled here/odd *.txt"
if remote job-pull --job "$key" 'odd *.txt' --to "$work/pulled here"; then fail "0 although a newer file stays"; fi
[ "$(cat "$work/pulled here/odd *.txt")" = mine ] || fail "a newer file was overwritten"
code 0 job-pull --job "$key" 'odd *.txt' --to "$work/pulled here" --force --json
[ "$(cat "$work/pulled here/odd *.txt")" = three ] || fail "--force did not bring it"
