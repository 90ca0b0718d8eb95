#!/bin/sh
# remote history, show and note: launches and their results are recorded, even if no client was following, and after
# job-clean. The record has no secrets, and no program from the project's git settings is run.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
command -v git >/dev/null || skip "no git here"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
printf 'history: {columns: [loss, ACC]}\n' >>.remote/configs.yaml
HOME_GIT="$work/gitconfig"
export GIT_CONFIG_GLOBAL="$HOME_GIT" GIT_CONFIG_NOSYSTEM=1
git config --global user.email test@example.org
git config --global user.name test
git config --global init.defaultBranch trunk
cat >train.sh <<'END_OF_SCRIPT'
for step in 1 2 3; do echo "step $step loss=0.$((9 - step)) acc $step.5"; done
[ "$RANK" != 1 ] || [ -z "${FAIL-}" ] || { echo 'ValueError: the reason' >&2; exit 3; }
[ -z "${SLOW-}" ] || sleep 1
END_OF_SCRIPT
git init -q
git init -q sub
git -C sub commit -qm one --allow-empty
git -C sub commit -qm two --allow-empty
echo 1 >data.bin
git add train.sh data.bin
git -c advice.addEmbeddedRepo=false add sub
git commit -qm first
commit=$(git rev-parse HEAD)
code 0 launch --name clean --rsync --follow -- sh train.sh
code 0 show --json
[ "$(picks 'd["clean"], d["untracked"], d["patch"]')" = "(True, 0, None)" ] || fail "its own folder counts as a change"
echo '# changed' >>train.sh
# A repository from another person: each of these settings would run a program.
for key in core.fsmonitor core.pager diff.external filter.own.clean filter.own.process diff.own.textconv; do
  git config "$key" "touch '$work/ran.$key' #"
done
git config core.hooksPath "$work/hooks"
mkdir "$work/hooks"
printf '#!/bin/sh\ntouch "%s"\n' "$work/ran.hook" >"$work/hooks/post-index-change"
chmod +x "$work/hooks/post-index-change"
# the user's own filter, which may read the repository's settings (git-lfs runs programs that these name)
git config --global filter.lfs.clean "touch '$work/ran.lfs' #"
printf '*.sh filter=own diff=own\n*.bin filter=lfs\n' >.gitattributes
git -C sub checkout -q HEAD~1
# git would be started in a submodule, which has its own settings
git -C sub config diff.external "touch '$work/ran.sub' #"
git -C sub config core.fsmonitor "touch '$work/ran.sub' #"
git config diff.submodule diff
git config submodule.sub.ignore none
echo 2 >data.bin
"$REMOTE" --quiet rsync

code 0 launch --name good --note 'the first' --follow --env API_TOKEN hunter2 --env MODE quick -- sh train.sh --token hunter2
[ -z "$(find "$work" -maxdepth 1 -name 'ran.*')" ] || fail "a program of the project's git settings ran: $(ls "$work")"
! grep -r hunter2 .remote/jobs/launches || fail "a secret of a variable or of the command is in the record"
code 2 launch --name 7up --follow -- sh train.sh
code 1 launch --failure-grace 0 --follow --env FAIL 1 -- sh train.sh
# no client follows this one
code 0 launch --name away --env SLOW 1 -- sh train.sh
until_true have_ended .remote/sandbox 8

# the first query finds out
code 0 show away --json
[ "$(picks 'd["state"], d["numbers"]["loss"], d["ended_at"] is not None')" = "('succeeded', 0.6, True)" ] || fail "show does not know that it has ended"
code 0 history --json
[ "$(picks '[(one["name"], one["state"], one["failed_rank"], one["exit_code"]) for one in d]')" = \
  "[('away', 'succeeded', None, None), ('', 'failed', 1, 3), ('good', 'succeeded', None, None), ('clean', 'succeeded', None, None)]" ] || fail "not what was"
[ "$(picks 'sorted(d[0]["numbers"].items())')" = "[('acc', 3.5), ('loss', 0.6), ('step', 3.0)]" ] || fail "the last numbers are others"
code 0 history
grep -q '^ *KEY  NAME *STATE .* LOSS  ACC ' "$work/out" || fail "no columns for the numbers"
grep -q 'rank 1 failed exit 3' "$work/out" || fail "it does not tell who failed"
code 0 history --failed --json
[ "$(picks 'len(d)')" = 1 ] || fail "not one that failed"
code 0 history --since 1h --columns commit,servers
grep -q "$(printf %.8s "$commit")+" "$work/out" || fail "no commit"

code 0 history --tag nothing
grep -qx 'no launch on record matches' "$work/err" || fail "it takes what does not match for what is not there"

code 0 note good 'the best so far'
"$REMOTE" --quiet job-clean --older 0 --yes >"$work/out" 2>&1
[ "$(of_jobs 'len(d)')" = 0 ] || fail "jobs are left"
code 0 history --json
[ "$(picks '[one["note"] for one in d]')" = "['', '', 'the best so far', '']" ] || fail "the note is another one"
code 0 show good --json
[ "$(picks '(d["commit"], d["branch"], d["clean"], d["untracked"])')" = \
  "('$commit', 'trunk', False, 1)" ] || fail "the code is another one"
[ "$(picks 'd["variables"]')" = "['API_TOKEN', 'MODE']" ] || fail "other variables"
[ "$(picks '[job["exit_code"] for job in d["jobs"]]')" = '[0, 0]' ] || fail "other exit codes"
patch=$(picks 'd["patch"]')
rm .gitattributes  # git itself would run them now
git show HEAD:train.sh >train.sh
git show HEAD:data.bin >data.bin
git apply "$patch"
tail -n 1 train.sh | grep -q '^# changed$' || fail "the patch is not what was changed"
code 0 show 5
grep -q 'rank 1 on node-2 failed first (exit 3' "$work/out" || fail "no verdict"
grep -q '^  ValueError: the reason$' "$work/out" || fail "no last lines"
! grep -q '^tags' "$work/out" || fail "words of the command are shown as tags"
code 2 show nothing
grep -q "no launch 'nothing' on record" "$work/err" || fail "no error"

# A copy of the project on a server has no .git.
commit=$(git rev-parse HEAD)-dirty
code 0 job-run --server node-1 --follow -- sh -c 'echo "commit $REMOTE_COMMIT"'
grep -qx "commit $commit" "$work/out" || fail "a job does not know its commit"
code 0 job-run --server node-1 --follow -e REMOTE_COMMIT=mine -- sh -c 'echo "commit $REMOTE_COMMIT"'
grep -qx 'commit mine' "$work/out" || fail "it cannot be set"
code 0 sweep --param i=1 --server node-1 -- sh -c 'test "$REMOTE_COMMIT" = '"$commit"
code 0 job-wait --launch last

# A rank that is still running is not blamed for another rank's failure; and if servers do not answer, it is unknown
# whether it runs.
before=$(count_ended .remote/sandbox/node-2)
code 0 launch --name beside --on-failure leave -- sh -c '[ $RANK = 0 ] || exit 4; exec sleep 600'
until_true have_ended .remote/sandbox/node-2 $((before + 1))
code 0 history
grep -q ' running; rank 1 failed exit 4  ' "$work/out" || fail "not who runs and who failed"
"$REMOTE" --quiet sandbox down
code 0 history
grep -q ' beside *unknown; rank 1 failed exit 4  ' "$work/out" || fail "it says that something runs where nobody answers"
grep -q ' beside .* ago *- ' "$work/out" || fail "it tells a time"
code 0 show beside
grep -q '^state *unknown$' "$work/out" || fail "show says that it runs where nobody answers"
grep -q '^ *[0-9]*  unknown (no answer; last report .*: running)  node-1' "$work/out" || fail "show says that a rank runs"
code 0 show beside --json
[ "$(picks 'd["state"], [job["state"] for job in d["jobs"]]')" = "('unknown', ['unknown', 'failed'])" ] || fail "JSON says that it runs"
code 0 history --offline
grep -q ' running; rank 1 failed exit 4  ' "$work/out" || fail "not what was heard last"
echo "launches are remembered"
