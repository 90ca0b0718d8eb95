#!/bin/sh
# remote rerun and diff: restarts a launch with its options, its variables and its code, even after job-clean and on a
# server that has lost everything. Missing data is reported, and nothing starts without confirmation. The user's files
# and git's index stay unchanged, and no program from the project's git settings is run.
. "${0%/*}/support.sh"
command -v git >/dev/null || skip "no git here"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_NOSYSTEM=1
git config --global user.email test@example.org
git config --global user.name test
git config --global init.defaultBranch trunk
cat >train.sh <<'END_OF_SCRIPT'
. ./part.sh
echo "part $(part) rank $RANK of $WORLD_SIZE mode ${MODE-none} token ${API_TOKEN-none} words $*"
echo "loss $(part).5"
END_OF_SCRIPT
echo 'part() { echo 1; }' >part.sh
echo data >data.bin
git init -q
git add -A
git commit -qm first
echo 'part() { echo 2; }' >part.sh # the launch runs a patch of that commit
chmod 755 part.sh
code 0 launch --rsync --name first --follow --nproc-per-node 2 --env MODE quick --env API_TOKEN hunter2 -- sh train.sh one
grep -q '^part 2 rank 0 of 4 mode quick token hunter2 words one$' "$work/out" || fail "the launch itself is wrong"
! grep -r hunter2 .remote/jobs/launches || fail "a secret is in the record"
code 0 show first --json
first=$(picks 'd["id"]')

# said LINE: rank 0 of the last launch printed this
said() { grep -qx "$1" "$work/out" || fail "it did not print: $1"; }

# A change, a commit, and a new file; the user also has staged changes.
echo 'part() { echo 3; }' >part.sh
git commit -qam second
echo 'part() { echo 4; }' >part.sh
git add part.sh
echo 'part() { echo 5; }' >part.sh
for key in core.fsmonitor core.pager diff.external filter.own.clean filter.own.smudge filter.own.process diff.own.textconv; do
  git config "$key" "touch '$work/ran.$key' #"
done
git config core.hooksPath "$work/hooks"
mkdir "$work/hooks"
for hook in post-checkout post-index-change pre-applypatch post-applypatch; do
  printf '#!/bin/sh\ntouch "%s"\n' "$work/ran.hook" >"$work/hooks/$hook"
  chmod +x "$work/hooks/$hook"
done
printf '*.sh diff=own\n*.bin filter=own\n' >.git/info/attributes
here() { cat .git/index part.sh && ls -A . .git/objects; }
here >"$work/before"

# A missing secret: nothing starts without it
code 2 rerun first
grep -q 'the value of API_TOKEN was not kept' "$work/err" || fail "it does not say what is missing"
[ "$(of_jobs 'len(d)')" = 4 ] || fail "something was started"
# Nor can a record send this machine's environment to the servers: only the user can
export API_TOKEN=again
code 2 rerun first
# With more arguments and another variable
code 0 rerun first --follow -e API_TOKEN --env EXTRA 1 --env MODE slow -- two 'th ree'
unset API_TOKEN
said 'part 2 rank 0 of 4 mode slow token again words one two th ree'
grep -q 'with its original code, commit .* and its patch' "$work/err" || fail "it does not say which code"
here >"$work/after"
cmp "$work/before" "$work/after" || fail "the user's files or git's are others now"
[ -z "$(find "$work" -maxdepth 1 -name 'ran.*')" ] || fail "a program of the project's git settings ran: $(ls "$work")"
! grep -rE 'hunter2|again' .remote/jobs/launches || fail "a secret is in the record"
# The record has the command that ran, so that it can be repeated again
code 0 show last --json
[ "$(picks 'd["request"]["env"]')" = "[['MODE', 'quick'], ['API_TOKEN', None], ['EXTRA', '1'], ['MODE', 'slow']]" ] || fail "other variables: $(picks 'd["request"]["env"]')"
# The next sync restores the current code: nothing on the servers looks newer
code 0 rsync
! grep -q 'newer' "$work/err" || fail "what was sent looks newer than what is here"
code 0 run --server node-1 --cmd 'cat part.sh data.bin'
[ "$(cat "$work/out")" = "$(cat part.sh data.bin)" ] || fail "the servers do not have what is here"
# Now with the current code
code 0 rerun "$first" --follow --env API_TOKEN x --code now
said 'part 5 rank 0 of 4 mode quick token x words one'

# diff: code, command, variables
code 0 diff "$first" now
grep -q '^+part() { echo 5; }' "$work/out" || fail "no unified diff"
[ -z "$(find "$work" -maxdepth 1 -name 'ran.*')" ] || fail "diff runs a program of the project's git settings"
code 0 diff 1 5 --json
[ "$(picks 'd["code"]["files"], d["code"]["from"], d["code"]["to"]')" = "([], 'kept', 'kept')" ] || fail "the code was the same"
[ "$(picks '[(one["part"], one["values"]) for one in d["differences"] if one["name"] in ("", "MODE", "EXTRA", "API_TOKEN")]')" = \
  "[('command', ['sh train.sh one', \"sh train.sh one two 'th ree'\"]), ('variables', [None, '1']), ('variables', ['quick', 'slow'])]" ] || fail "other differences"
code 0 diff 1 9 --json
[ "$(picks 'd["code"]["files"]')" = "['part.sh']" ] || fail "not the file that differs"
[ "$(picks '[one["values"] for one in d["differences"] if one["name"] == "loss"]')" = "[['2.5', '5.5']]" ] || fail "no numbers"
code 0 diff 1 9
grep -q '^+part() { echo 5; }$' "$work/out" || fail "no unified diff"
grep -q '^loss  *2.5  *5.5' "$work/out" || fail "the table is another one"

# The same from Python
PYTHONPATH="$REMOTE_SOURCE_DIR/python" REMOTE_BINARY="$REMOTE" python3 - "$first" >"$work/out" 2>"$work/err" <<'END_OF_SCRIPT' || fail "Python"
import sys
from remote_launcher import Project, RemoteError
p = Project()
try:
    p.rerun(sys.argv[1])
    raise SystemExit("it started without its secret")
except RemoteError as error:
    assert error.usage, error
run = p.rerun(sys.argv[1], words=["more"], env={"API_TOKEN": "py"}, name="again", code="then")
assert run.wait().ok
assert p.record("again")["command"] == "sh train.sh one more", p.record("again")
assert ["sh train.sh one", "sh train.sh one more"] in [one["values"] for one in p.diff(1, "again")["differences"]]
assert [one["label"] for one in p.compare([1, "again"])["launches"]] == ["1-4 first", "13-16 again"]
END_OF_SCRIPT

# After job-clean, and on a reinstalled server
"$REMOTE" --quiet job-clean --older 0 --yes >"$work/out" 2>&1
[ "$(of_jobs 'len(d)')" = 0 ] || fail "jobs are left"
homes | while read -r home; do
  [ -f "$home/my project/train.sh" ] || fail "the project is elsewhere"
  rm -rf "$home/my project"
done
code 0 rerun "$first" --follow -e API_TOKEN=y
said 'part 2 rank 0 of 4 mode quick token y words one'

# Missing code: the current code runs only after confirmation
rm .git/info/attributes # git itself would run them now
git config --unset core.fsmonitor
git config --unset core.hooksPath
git checkout -q --orphan other
git add -A
git commit -qm other
git branch -qD trunk
git reflog expire --expire=now --all
git gc -q --prune=now
code 2 rerun "$first" -e API_TOKEN=z
grep -q 'its code is gone (git no longer has commit' "$work/err" || fail "it does not say that the commit is gone"
grep -q 'differs in 1 file: part.sh (by size and time)' "$work/err" || fail "it does not name the file, from the list of what was sent"
code 0 diff "$first" now
grep -q '^1 file of the code differs (by size and time): part.sh$' "$work/out" || fail "diff does not name the file"
code 0 diff "$first" now --json
[ "$(picks 'd["code"]["compared"], d["code"]["files"], d["code"]["from"]')" = "(True, ['part.sh'], 'no_commit')" ] || fail "diff --json does not name the file"
code 2 rerun "$first" -e API_TOKEN=z --code 'then'
code 0 rerun "$first" -e API_TOKEN=z --yes --follow
said 'part 5 rank 0 of 4 mode quick token z words one'

# Other servers, and one that is no longer in configs.yaml
code 0 rerun "$first" -e API_TOKEN=z --code now --server node-2 --follow
said 'part 5 rank 0 of 2 mode quick token z words one'
sed -i 's/node-2:/node-9:/' .remote/configs.yaml
code 2 rerun "$first" -e API_TOKEN=z --code now
grep -q 'configs.yaml no longer has node-2' "$work/err" || fail "it does not name the server"

# A command with a secret cannot be repeated unchanged
code 0 launch --server node-1 --follow -- sh train.sh --token hunter2
code 2 rerun last
grep -q 'its command has a secret' "$work/err" || fail "it does not say that the command has a secret"
code 0 rerun last --cmd 'sh train.sh other' --follow
said 'part 5 rank 0 of 1 mode none token none words other'
# Without git: works while nothing has changed
rm -rf .git
code 0 rerun last --follow
echo '# changed' >>train.sh
code 2 rerun last
grep -q 'no commit of git is known' "$work/err" || fail "it does not say why the code is gone"
grep -q 'differs in 1 file: train.sh' "$work/err" || fail "it does not say what differs"
code 0 show last --json
without_git=$(picks 'd["id"]')
code 0 rerun last --code now --follow
# The record survives a sync of other code; a file that was deleted here also differs
mv data.bin data.away
code 0 rsync
code 2 rerun "$without_git"
grep -q 'differs in 3 files: data.away, data.bin, train.sh' "$work/err" || fail "the older launch's list is gone"
code 0 diff "$without_git" last
grep -q '^1 file of the code differs (by size and time): train.sh$' "$work/out" || fail "diff does not name the file of two launches"
mv data.away data.bin
rm .remote/sent/.tree.* .remote/jobs/launches/*/sent.* # as if it had been too large to keep
code 0 rsync
code 2 rerun "$without_git"
grep -q 'it is unknown which files differ here now' "$work/err" || fail "it does not say that it cannot name the files"
# A record of an older version has no options
find .remote/jobs/launches -name launch.json -exec python3 -c '
import json, sys
for name in sys.argv[1:]:
    record = json.load(open(name)); record.pop("request"); record.pop("changed"); record.pop("news"); json.dump(record, open(name, "w"))' {} +
code 2 rerun last
grep -q 'without options and variables' "$work/err" || fail "it does not say that options are missing"
# A project inside a larger repository, with a link
git -C "$work" init -q
ln -s part.sh link.sh
git add .
git commit -qm third
echo 'part() { echo 6; }' >part.sh
code 0 launch --rsync --server node-1 --follow --name inner -- sh train.sh in
echo 'part() { echo 7; }' >part.sh
echo 'part() { echo 8; }' >link.sh # it links to part.sh
code 0 diff inner --json
[ "$(picks 'd["code"]["files"]')" = "['part.sh']" ] || fail "other files differ: $(picks d)"
code 0 rerun inner --follow --code 'then'
said 'part 6 rank 0 of 1 mode none token none words in'
code 0 run --server node-1 --cmd 'cat link.sh'
printed "part() { echo 6; }
"
# An untracked file is code, too: asks for confirmation
echo 9 >new.sh
code 0 launch --rsync --server node-1 --follow --name new -- sh train.sh in
code 0 rerun new --follow # nothing has changed
echo 10 >new.sh
code 2 rerun new
grep -q '1 file that git did not have' "$work/err" || fail "it does not say what is not kept"
# The code in git is not the code that ran
git add new.sh
echo '# later' >>train.sh
code 0 launch --server node-1 --follow --name unsent -- sh train.sh in
code 2 rerun unsent
grep -q 'the servers had older code' "$work/err" || fail "it does not say that git tells of other code"
grep -q 'differs in 2 files: new.sh, train.sh' "$work/err" || fail "it does not say what differs"
# Files that exclude.txt keeps off the servers are not code
git commit -qam fourth
echo notes.txt >>.remote/exclude.txt
echo 1 >notes.txt
code 0 launch --rsync --server node-1 --follow --name tidy -- sh train.sh in
code 0 show tidy --json
[ "$(picks 'd["clean"], d["untracked"]')" = '(True, 0)' ] || fail "what is not sent counts as a change: $(picks 'd["clean"], d["untracked"]')"
echo '# later' >>train.sh
code 0 rerun tidy --follow
code 2 rerun nothing
code 2 diff nothing
echo "launches start again"
