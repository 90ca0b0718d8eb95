#!/bin/sh
# `remote init` and how the other commands find the project, off a terminal.
set -eu
: "${REMOTE:?path of the binary}"
work=$(mktemp -d "${TMPDIR:-/tmp}/remote init.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# expect CODE COMMAND...: runs it without a terminal, output in $work/out and $work/err
expect() {
  wanted=$1
  shift
  code=0
  "$@" </dev/null >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || {
    cat "$work/out" "$work/err" >&2
    fail "exit code $code, not $wanted, of: $*"
  }
}
says() { grep -qF -- "$1" "$work/err" || { cat "$work/err" >&2; fail "stderr does not say: $1"; }; }

# bad input: exit 2, nothing written
mkdir "a project"
cd "a project"
for bad in noequals ../x=h a=h:0 'a=h h' a= =h 'a=-oProxyCommand=id' 'a=[::1'; do
  expect 2 "$REMOTE" init --server "$bad"
  [ ! -e .remote ] || fail "something was written for --server $bad"
done
expect 2 "$REMOTE" init --name a/b
expect 2 "$REMOTE" init --name ''
expect 2 "$REMOTE" init --key k
expect 2 "$REMOTE" init --server a=h --server a=i
says "two servers have this name"
expect 2 "$REMOTE" init --nonsense
says "remote init has no option --nonsense"
expect 2 "$REMOTE" job-tail --jbo 1
says "--job was perhaps meant"
expect 2 "$REMOTE" job-lst --tag x
says "'remote job-list' was perhaps meant"
expect 2 "$REMOTE" job-list word
says "remote job-list takes no 'word'"
expect 2 "$REMOTE" sandbox
says "remote sandbox needs a command: up, down, status"
expect 2 "$REMOTE" run
says "remote run: --cmd is required"
expect 2 "$REMOTE"
says "Subcommands:"
[ ! -s "$work/out" ] || fail "help that nobody asked for stands on stdout"
expect 2 "$REMOTE" --project "$work/nowhere" init
[ ! -e .remote ] || fail "something was written"

# a project
touch "my key"
expect 0 "$REMOTE" init --server first=ada@10.0.0.1:2222 --server 'second=[::1]:22' --key "my key"
[ ! -s "$work/out" ] || fail "stdout is not empty"
says "created .remote/configs.yaml"
for file in configs.yaml exclude.txt .gitignore; do
  [ -f ".remote/$file" ] || fail "no $file"
done
grep -q 'name: "a project"' .remote/configs.yaml || fail "the name is missing"
grep -q 'private_key: "./my key"' .remote/configs.yaml || fail "the key is missing"

# never overwritten
cp .remote/configs.yaml "$work/before"
echo mine >.remote/exclude.txt
expect 0 "$REMOTE" init
says "kept .remote/configs.yaml: it exists already"
expect 2 "$REMOTE" init --server third=h
says "exists already"
cmp .remote/configs.yaml "$work/before" || fail "configs.yaml was changed"
[ "$(cat .remote/exclude.txt)" = mine ] || fail "exclude.txt was changed"

# rsync takes exclude.txt
if command -v rsync >/dev/null; then
  mkdir "$work/fresh" && cd "$work/fresh"
  expect 0 "$REMOTE" init --quiet
  [ ! -s "$work/err" ] || fail "--quiet is not quiet"
  mkdir -p .git src/__pycache__ src/runs checkpoints
  touch .git/x src/__pycache__/x src/a.py src/a.pyc src/runs/keep checkpoints/big
  rsync -a --exclude-from=.remote/exclude.txt ./ "$work/copy/"
  sent=$(cd "$work/copy" && find . -type f | sort | tr '\n' ' ')
  [ "$sent" = "./src/a.py ./src/runs/keep " ] || fail "rsync sent: $sent"
fi

# two at once: one of them writes each file
mkdir "$work/race" && cd "$work/race"
"$REMOTE" init --name one --quiet </dev/null &
one=$!
"$REMOTE" init --name two --quiet </dev/null || :
wait "$one" || :
grep -Eq '^name: (one|two)$' .remote/configs.yaml || fail "no whole configs.yaml after a race"
[ "$(find .remote -type f | wc -l)" -eq 3 ] || fail "something stayed beside the files"
echo "init: all well"
