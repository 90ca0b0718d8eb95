#!/bin/sh
# The failure of one rank, and the loss of a server, stop the other ranks even if no `remote` is running.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 2
# field RANK NAME: prints it for the newest job with this rank
field() { of_jobs "max((job for job in d if job['rank'] == $1), key=lambda job: job['key'])['$2']"; }

# ---- a rank is killed from outside
code 0 launch --cmd 'echo boom-$RANK >&2; sleep 300' --nproc-per-node 2 --failure-grace 1
until_true lifelines_stand 4
kill -9 "$(field 2 pid)"
until_true have_ended .remote 4
[ "$(field 2 state)" = failed ] || fail "rank 2 is $(field 2 state)"
[ "$(field 2 signal)" = 9 ] || [ "$(field 2 signal)" = SIGKILL ] || fail "rank 2 has signal $(field 2 signal)"
for rank in 0 1 3; do
  [ "$(field $rank state)" = killed ] || fail "rank $rank is $(field $rank state)"
done
code 0 job-list --stopped --ranks
[ "$(grep -c 'ended after rank 2' "$work/out")" = 3 ] || fail "job-list does not say why"

# ---- the verdict while following
code 1 launch --cmd 'if [ $RANK = 3 ]; then echo "the cause" >&2; exit 7; fi; sleep 300' --nproc-per-node 2 \
  --failure-grace 0 --follow
for text in 'rank 3 on .* failed first (exit 7, ....-..-.. ..:..:.. UTC' '  the cause' '3 others were ended after it'; do
  grep -q "$text" "$work/err" || fail "the verdict does not say: $text"
done

# ---- a server disappears, with all of its processes
code 0 launch --cmd 'sleep 300' --nproc-per-node 2 --lost-after 3
until_true lifelines_stand 12
lost=$(field 3 server)
vanish "$lost"
until_true have_ended .remote 10
[ "$(field 0 state)" = killed ] || fail "rank 0 is $(field 0 state)"
remote job-list --stopped --ranks || true
[ "$(grep -c "ended after the loss of $lost" "$work/out")" = 2 ] || fail "job-list does not tell of the loss"

# ---- nothing is left behind
until_true lifelines_are 0
