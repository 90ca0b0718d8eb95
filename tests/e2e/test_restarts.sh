#!/bin/sh
# A launch with --restarts restarts after a failure and after the loss of a server, without the laptop, and never has
# ranks of two attempts at the same time.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
system_python
state() { of_jobs "max((job for job in d if job['rank'] == $1), key=lambda job: job['key'])['state']"; }
ends() { [ "$(state 0)" != running ] && [ "$(state 1)" != running ]; }
# folder RANK: prints the folder of the newest job with this rank
folder() {
  id=$(of_jobs "max((job for job in d if job['rank'] == $1), key=lambda job: job['key'])['id']")
  find .remote/sandbox -type d -path "*/.jobs/$id"
}

# ---- a rank fails, and the next attempt succeeds
code 0 launch --restarts 3 --failure-grace 0 --follow --cmd '
  echo "rank $RANK of $WORLD_SIZE, attempt $RESTART_COUNT at $MASTER_PORT"
  [ $RESTART_COUNT = 0 ] || exit 0
  [ $RANK = 0 ] || exit 3
  exec sleep 300'
[ "$(grep -c 'rank 0 of 2, attempt [01] at' "$work/out")" = 2 ] || fail 'rank 0 did not run twice'
[ "$(sort -u "$work/out" | grep -c 'attempt')" = 2 ] || fail 'lines came twice'
grep -q 'begin anew (restart 1) at .* after rank 1 on .* failed (exit 3)' "$work/out" "$work/err" || fail 'the restart is not told'
! of_jobs '[job for job in d if job["state"] != "succeeded"]' | grep -q state || fail 'a job did not succeed'
until_true lifelines_are 0

# ---- twice at the same place: no third attempt
code 1 launch --restarts 5 --failure-grace 0 --follow --cmd '
  echo "attempt $RESTART_COUNT"
  [ $RANK = 0 ] || { echo "ValueError: no" >&2; exit 3; }
  exec sleep 300'
[ "$(grep -c '^attempt' "$work/out")" = 2 ] || fail 'it did not end after two attempts'
grep -q 'rank 1 on .* failed first (exit 3' "$work/err" || fail 'the verdict does not name rank 1'
grep -q '^not started again: rank 1 failed twice in a row with the same last line' "$work/err" || fail 'it is not said why'
code 0 show last
grep -q '^restarts *not started again: rank 1 failed twice' "$work/out" || fail 'show does not say why it did not start again'
[ "$(state 0)" = killed ] || fail "rank 0 is $(state 0)"

# The same without any output: the line that separates the attempts does not count as output
code 1 launch --restarts 5 --failure-grace 0 --follow --cmd 'echo "attempt $RESTART_COUNT"; [ $RANK = 0 ] || exit 3; exec sleep 300'
[ "$(grep -c '^attempt' "$work/out")" = 2 ] || fail 'a failure without a word was not taken for the same one'
! grep -q 'last lines of its stderr' "$work/err" || fail 'it had none'

# Output of a rank from an earlier attempt does not make its failure a consequence of another rank's.
export OVER="$work/over"
code 1 launch --restarts 1 --failure-grace 5 --follow -e OVER --cmd '
  if [ $RESTART_COUNT = 0 ]; then
    [ $RANK = 0 ] || exit 3
    echo "RuntimeError: Connection reset by peer" >&2
    exec sleep 300
  fi
  [ $RANK = 1 ] || { touch "$OVER"; exit 5; }
  until [ -e "$OVER" ]; do sleep 0.1; done
  sleep 1 # so that the other failure is clearly first
  exit 7'
grep -q 'rank 0 on .* failed first (exit 5' "$work/err" || fail 'the verdict does not name the rank that failed first'
! grep -q '^not started again' "$work/err" || fail 'no restart was left'

# ---- failures that --restart-on excludes
code 1 launch --restarts 5 --restart-on lost,signal --failure-grace 0 --follow --cmd '
  echo "attempt $RESTART_COUNT"
  [ $RANK = 0 ] || exit 3
  exec sleep 300'
[ "$(grep -c '^attempt' "$work/out")" = 1 ] || fail 'an exit was no reason to begin anew'
grep -q '^not started again: --restart-on does not name this failure$' "$work/err" || fail 'it is not said why'

# ---- a rank that is killed by someone else; a lifeline that dies; a kill by the user
code 0 launch --restarts 3 --failure-grace 0 --lost-after 4 --cmd 'echo "attempt $RESTART_COUNT of $RANK"; exec sleep 300'
until_true lifelines_stand 2
began() { [ "$(grep -c '^attempt' "$(folder 0)/job.out")" = "$1" ] && [ "$(grep -c '^attempt' "$(folder 1)/job.out")" = "$1" ]; }
until_true began 1
kill -9 "$(cut -d ' ' -f 1 "$(folder 1)/pid")"
until_true began 2
# No query, because that would restart the lifeline: the guard stops its rank when the lease expires.
there=$(folder 1)
gone() { ! kill -0 "$1" 2>/dev/null; }
pid=$(cut -d ' ' -f 1 "$there/pid")
kill_lifeline "$(cut -d ' ' -f 1 "$there/lifeline.pid")"
until_true gone "$pid"
code 0 job-list
until_true began 3
code 0 job-kill --launch last --yes
until_true ends
[ "$(state 0) $(state 1)" = 'killed killed' ] || fail "the ranks are $(state 0) and $(state 1)"
until_true lifelines_are 0

# ---- invalid combinations
code 2 launch --restarts 1 --launcher torchrun --nnodes 1:2 --cmd true
code 2 launch --restarts 1 --on-failure leave --cmd true
code 2 launch --min-servers 1 --cmd true
code 2 launch --no-restart-exit 3 --cmd true

# ---- a server is lost, and one is enough
code 0 launch --restarts 1 --min-servers 1 --lost-after 3 --cmd '
  echo "attempt $RESTART_COUNT: $RANK of $WORLD_SIZE"
  [ $RESTART_COUNT = 1 ] || exec sleep 300'
until_true lifelines_stand 2
until_true began 1
server=$(of_jobs 'max((job for job in d if job["rank"] == 1), key=lambda job: job["key"])["server"]')
vanish "$server"
done_alone() { grep -q '^attempt 1: 0 of 1$' "$(folder 0)/job.out"; }
until_true done_alone
until_true eval '[ "$(state 0)" = succeeded ]'
