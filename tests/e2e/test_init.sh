#!/bin/sh
# `remote init` and how the other commands find the project, without a terminal.
# shellcheck disable=SC2016  # the backquotes are part of the messages
. "${0%/*}/support.sh"
says() { grep -qF -- "$1" "$work/err" || fail "stderr does not say: $1"; }

# bad input: exit 2, nothing written
for bad in noequals ../x=h a=h:0 'a=h h' a= =h 'a=-oProxyCommand=id' 'a=[::1'; do
  code 2 init --server "$bad"
  [ ! -e .remote ] || fail "something was written for --server $bad"
done
code 2 init --name a/b
code 2 init --name ''
code 2 init --key k
code 2 init --server a=h --server a=i
says "two servers have this name"
code 2 init --nonsense
says "remote init has no option --nonsense"
code 2 job-tail --jbo 1
says "did you mean '--job'?"
code 2 job-lst --tag x
says "did you mean 'job-list'?"
code 2 status word
says "remote status takes no 'word'"
code 2 sandbox
says "remote sandbox needs a command: up, down, status"
code 2 run
says "remote run: --cmd is required"
# plain `remote` says how to begin
begin() { says 'to make this folder a project, with servers of your own: remote init'; }
code 2
says "no project here: there is no .remote/configs.yaml in $project or in a folder above it"
begin
says 'on practice servers of this machine: remote sandbox up'
[ ! -s "$work/out" ] || fail "what nobody asked for stands on stdout"
code 2 --quiet
says 'hint: run `remote init`'
code 2 --jsonl
grep -q '"event":"error","time":"[^"]*","what":"no project here".*"hint":"run `remote init`' "$work/out" || fail "no error event"
# and it handles a damaged folder, without using the project above it instead
mkdir -p .remote inner/.remote
code 2
says "there is a folder .remote in $project, but no configs.yaml in it"
begin
printf 'name: above\n' >.remote/configs.yaml
ln -s nowhere inner/.remote/configs.yaml
cd inner
code 2
says "cannot read $project/inner/.remote/configs.yaml: it is a broken link"
rm .remote/configs.yaml
mkdir .remote/configs.yaml
code 2
says "cannot read $project/inner/.remote/configs.yaml: it is not a regular file"
rmdir .remote/configs.yaml
printf 'servers: [\n' >.remote/configs.yaml
code 2
says "$project/inner/.remote/configs.yaml:"
rm -r ../inner
code 1
says 'the current folder cannot be found'
says 'hint: it was probably removed or renamed'
cd ..
rm -r .remote
code 2 --project "$work/nowhere" init
[ ! -e .remote ] || fail "something was written"

# a project
touch "my key"
code 0 init --server first=ada@10.0.0.1:2222 --server 'second=[::1]:22' --key "my key"
[ ! -s "$work/out" ] || fail "stdout is not empty"
says "created .remote/configs.yaml"
for file in configs.yaml exclude.txt .gitignore; do
  [ -f ".remote/$file" ] || fail "no $file"
done
grep -q 'name: "my project"' .remote/configs.yaml || fail "the name is missing"
grep -q 'private_key: "./my key"' .remote/configs.yaml || fail "the key is missing"

# never overwritten
cp .remote/configs.yaml "$work/before"
echo mine >.remote/exclude.txt
code 0 init
says "kept .remote/configs.yaml: it exists already"
code 2 init --server third=h
says "exists already"
cmp .remote/configs.yaml "$work/before" || fail "configs.yaml was changed"
[ "$(cat .remote/exclude.txt)" = mine ] || fail "exclude.txt was changed"

# rsync accepts exclude.txt
if command -v rsync >/dev/null; then
  mkdir "$work/fresh" && cd "$work/fresh"
  code 0 init --quiet
  [ ! -s "$work/err" ] || fail "--quiet is not quiet"
  mkdir -p .git src/__pycache__ src/runs checkpoints
  touch .git/x src/__pycache__/x src/a.py src/a.pyc src/runs/keep checkpoints/big
  rsync -a --exclude-from=.remote/exclude.txt ./ "$work/copy/"
  sent=$(cd "$work/copy" && find . -type f | sort | tr '\n' ' ')
  [ "$sent" = "./checkpoints/big ./src/a.py ./src/a.pyc ./src/runs/keep " ] || fail "rsync sent: $sent"
fi

# two at once: only one of them writes each file
mkdir "$work/race" && cd "$work/race"
"$REMOTE" init --name one --quiet </dev/null &
follower=$!
"$REMOTE" init --name two --quiet </dev/null || :
wait "$follower" || :
follower=
grep -Eq '^name: (one|two)$' .remote/configs.yaml || fail "no whole configs.yaml after a race"
[ "$(find .remote -type f | wc -l)" -eq 3 ] || fail "something stayed beside the files"
echo "init: all well"
