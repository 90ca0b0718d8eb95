#!/bin/sh
# Launches by name (`launches:` in configs.yaml): they inherit settings, options override them, --dry-run shows the
# source of each setting, the record has the name, completion knows it, and errors show their line.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cat >show.py <<'EOF_PY'
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.environ["MODE"], os.environ["SEED"])
EOF_PY
cat >>.remote/configs.yaml <<'EOF_YAML'
x-quiet: &quiet {check: false}
launch:
  cmd: python3 show.py
  env: {MODE: usual, SEED: "1"}
  rsync: true
  follow: true
launches:
  small: {nproc_per_node: 1, servers: node-1}
  full:
    <<: *quiet
    nproc_per_node: 2
    env: {MODE: full}
EOF_YAML

code 0 torch-launch small
grep -q '^rank 0 of 1 usual 1$' "$work/out" || fail "small has other settings"
code 0 launch full --env SEED 7
grep -q '^rank 0 of 4 full 7$' "$work/out" || fail "full has other settings"
code 0 torch-launch --name nightly full --nproc-per-node 1
grep -q '^rank 0 of 2 full 1$' "$work/out" || fail "the option does not win"
code 0 history --json
[ "$(picks '[one["name"] for one in d]')" = "['nightly', 'full', 'small']" ] || fail "the records have other names"

code 0 torch-launch full --dry-run --json --no-rsync
line=$(grep -n '^    nproc_per_node' .remote/configs.yaml | cut -d: -f1)
[ "$(picks '{one["key"]: one["from"] for one in d["settings"]}["nproc_per_node"]')" = "configs.yaml:$line launches.full" ] ||
  fail "it does not tell where the number is from"
[ "$(picks 'sorted({one["from"].split(" ")[-1] for one in d["settings"]})')" = "['default', 'launch', 'launches.full', 'line']" ] ||
  fail "other places"
[ "$(picks '{one["key"]: one["value"] for one in d["settings"]}["check"]')" = false ] || fail "what was merged is missing"
code 0 torch-launch full --dry-run
grep -q "^nproc_per_node  2 .* configs.yaml:$line launches.full\$" "$work/out" || fail "no table of the settings"

# its name works as its key
code 0 job-tail --launch full --all --no-follow
[ "$(grep -c 'of 4' "$work/out")" = 4 ] || fail 'not the launch of that name'
code 0 job-list full --json
[ "$(picks 'len(d)')" = 4 ] || fail 'not its jobs'
code 2 job-tail --launch fulll --no-follow
grep -q "no launch 'fulll'" "$work/err" || fail 'another error'

jobs=$(of_jobs 'len(d)')
code 2 torch-launch ful
grep -q "has no launch 'ful'" "$work/err" || fail "another error"
grep -q "did you mean 'full'?" "$work/err" || fail "no hint"
code 0 launch --server node-1 --nproc-per-node 1 -- echo full
grep -qx full "$work/out" || fail "a command behind -- was taken for a name"
[ "$(of_jobs 'len(d)')" = $((jobs + 1)) ] || fail "a mistake started something"
cp .remote/configs.yaml "$work/good.yaml"
echo '    nproc: 3' >>.remote/configs.yaml
code 2 torch-launch full
grep -q "configs.yaml:$(wc -l <.remote/configs.yaml):5: unknown key 'nproc' of launch 'full'" "$work/err" || fail "no line"
cp "$work/good.yaml" .remote/configs.yaml

[ "$("$REMOTE" __complete launches | tr '\n' ' ')" = 'small full ' ] || fail "completion has other names"
[ "$("$REMOTE" __complete line torch-launch f | tail -n +2)" = "$(printf 'full\tpython3 show.py')" ] || fail "the line is completed otherwise"
mkdir "$work/bin"
ln -s "$REMOTE" "$work/bin/remote"
PATH=$work/bin:$PATH
export PATH
if command -v bash >/dev/null; then
  "$REMOTE" completion bash >"$work/remote.bash"
  # shellcheck disable=SC2016
  got=$(bash -c '. "$1"
    COMP_LINE="remote launch s" COMP_POINT=15 COMP_WORDS=(remote launch s) COMP_CWORD=2
    _remote_complete remote
    echo "${COMPREPLY[*]}"' bash "$work/remote.bash")
  [ "$got" = small ] || fail "bash completes '$got'"
fi
if command -v zsh >/dev/null; then
  "$REMOTE" completion zsh >"$work/_remote"
  # shellcheck disable=SC2016
  got=$(zsh -fc 'compdef() { :; }
    _describe() { print -l -- "${(P@)@[-1]}"; }
    source "$1"
    words=(remote launch f); CURRENT=3; PREFIX=f; _remote' zsh "$work/_remote" 2>&1)
  [ "$got" = 'full:python3 show.py' ] || fail "zsh completes '$got'"
fi
if command -v fish >/dev/null; then
  "$REMOTE" completion fish >"$work/remote.fish"
  got=$(fish -N -c "source '$work/remote.fish'; complete -C 'remote launch f'")
  [ "$got" = "$(printf 'full\tpython3 show.py')" ] || fail "fish completes '$got'"
fi

if command -v python3 >/dev/null && [ -n "${REMOTE_SOURCE_DIR-}" ]; then
  PYTHONPATH=$REMOTE_SOURCE_DIR/python REMOTE_BINARY=$REMOTE python3 - <<'EOF_PY' || fail "Python"
import remote_launcher

project = remote_launcher.Project(".")
assert project.launches() == ["small", "full"], project.launches()
launch = project.launch(launch="full", env={"SEED": 9})
assert launch.wait().ok
record = project.record("full")
assert (record["key"], len(record["jobs"])) == (launch.jobs[0].key, 4), record
launch = project.launch("echo other", launch="full", nproc=1, name="one")
assert launch.wait().ok
assert (project.record()["name"], len(project.record()["jobs"])) == ("one", 2), project.record()
EOF_PY
fi
