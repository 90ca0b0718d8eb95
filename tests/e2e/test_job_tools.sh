#!/bin/sh
# job-stacks, job-pull and job-clean on two practice servers.
set -eu
command -v rsync >/dev/null || exit 77
work=$(mktemp -d)
project="$work/my project"
mkdir -p "$project/.remote"
finish() {
  "$REMOTE" --quiet --project "$project" job-kill --yes --signal KILL >/dev/null 2>&1 || true
  "$REMOTE" --quiet --project "$project" sandbox down --purge >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
fail() {
  echo "FAILED: $1" >&2
  cat "$work/out" "$work/err" >&2
  exit 1
}
# remote WORDS...: stdout to $work/out, stderr to $work/err
remote() { "$REMOTE" "$@" >"$work/out" 2>"$work/err" </dev/null; }
# until_says TEXT WORDS...: repeats a command until its stdout has the text
until_says() {
  text=$1
  shift
  tries=0
  while ! { remote "$@" || true; grep -q -e "$text" "$work/out"; }; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "waited in vain for '$text' from: $*"
    sleep 0.1
  done
}
# records: how many jobs are known here
records() {
  set -- .remote/jobs/*/job.json
  [ -e "$1" ] || set --
  echo $#
}
exists() { grep -q -e "$1" "$work/$2"; }

cd "$project"
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
remote sandbox up --nodes 2 || fail "up"
remote rsync || fail "rsync"

# --- job-stacks ---------------------------------------------------------------------------------------------------
remote launch --cmd 'python3 train.py' --nproc-per-node 2 --enable-stacks || fail "launch"
until_says 'load_batch (' job-stacks
remote job-stacks || fail "job-stacks gives no 0 although all ranks have stacks"
head -n 1 "$work/out" | grep -q '^rank 2 (node-2, .* stands elsewhere' || fail "the odd one out is not named first"
exists '^ranks 0, 1, 3 (node-1, node-2):' out || fail "the equal ones are not together"
exists 'all_reduce (.*train.py:7)' out || fail "the place is not shown"
remote job-stacks --json --threads || fail "job-stacks --json"
[ "$(grep -c '"members"' "$work/out")" = 2 ] || fail "not two groups in the JSON"
remote run --cmd 'cat "sitecustomize was here" && echo chained' || fail "the project's own sitecustomize was not loaded"
exists 'chained' out || fail "not chained"
remote job-list || fail "job-list"
[ "$(grep -c ' running ' "$work/out")" = 4 ] || fail "a rank did not survive job-stacks"
remote job-kill --yes || fail "job-kill"
remote job-list --stopped || fail "job-list --stopped"
exists ' killed SIGTERM by ' out || fail "the cause is not brief"

# Without preparation: said clearly, and nothing is signalled.
remote job-run --server node-1 --cmd 'RANK=0 exec python3 train.py' || fail "job-run"
until_says 'no Python stack' job-stacks
if remote job-stacks; then fail "0 without a stack"; fi
exists 'thread .*python3.*state S' out || fail "nothing of the kernel's"
exists 'enable-stacks' err || fail "what is needed is not said"
remote job-list || fail "job-list"
exists ' running ' out || fail "job-stacks ended a job that was not prepared"
key=$(sed -n 's/^ *\([0-9]*\) .*running.*/\1/p' "$work/out")

# A command that is not Python runs as ever.
remote job-run --server node-1 --enable-stacks --cmd 'echo plain; exit 3' || fail "job-run --enable-stacks"
remote job-wait --job 6 && fail "job-wait"
remote job-tail --job 6 || true
exists '^plain$' out || fail "a plain command was disturbed"

# --- job-clean never takes what runs --------------------------------------------------------------------------------
if remote job-clean --older 0; then fail "job-clean removed without --yes"; else code=$?; fi
[ "$code" = 2 ] || fail "exit code $code, not 2, without --yes"
[ "$(records)" = 6 ] || fail "something was removed without --yes"
if remote job-clean --job "$key" --yes; then fail "a running job counts as cleaned"; fi
remote job-clean --older 1 --yes || fail "job-clean --older"
exists '^no jobs removed' err || fail "a young job was removed"

# A server that does not answer keeps its records.
cp .remote/configs.yaml "$work/configs.yaml"
port=$(sed -n 's/^    port: //p' .remote/configs.yaml | sed -n 2p)
sed "s/port: $port/port: 1/" "$work/configs.yaml" >.remote/configs.yaml
if remote job-clean --yes; then fail "0 although a server does not answer"; fi
cp "$work/configs.yaml" .remote/configs.yaml
exists '^3 jobs removed' err || fail "the jobs of the server that answers were not removed"
[ "$(records)" = 3 ] || fail "records of the silent server are gone"
remote job-clean --yes --json || fail "job-clean --json"
[ "$(grep -c '"removed": true' "$work/out")" = 2 ] || fail "not two in the JSON"
for server in node-1 node-2; do
  remote run --server "$server" --cmd "ls .jobs | grep -c '^[0-9a-f]*\$' || true" || fail "ls on $server"
  cp "$work/out" "$work/count.$server"
done
grep -q '^1$' "$work/count.node-1" || { cp "$work/count.node-1" "$work/out"; fail "the running job's folder is not the only one"; }
grep -q '^0$' "$work/count.node-2" || { cp "$work/count.node-2" "$work/out"; fail "folders are left on node-2"; }
remote job-list || fail "job-list"
exists ' running ' out || fail "job-clean ended a job"

# --- job-pull -------------------------------------------------------------------------------------------------------
remote run --server node-1 --cmd 'mkdir -p "ckpt/a b" && echo one >"ckpt/a b/x [1].pt" && echo two >"ckpt/line
break.pt" && ln -s "a b/x [1].pt" ckpt/latest && echo three >"odd *.txt" && echo none >"odd 1.txt"' || fail "files"
remote job-pull --job "$key" ckpt 'odd *.txt' --to "$work/pulled here" || fail "job-pull"
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
remote job-pull --job "$key" 'odd *.txt' --to "$work/pulled here" --force --json || fail "--force"
[ "$(cat "$work/pulled here/odd *.txt")" = three ] || fail "--force did not bring it"
