#!/bin/sh
# remote sweep: every point runs once, even if the command on the laptop ends, and the process that hands out the points
# is killed and continues.
# shellcheck disable=SC2016
. "${0%/*}/support.sh"
runners() {
  for file in "$sandbox"/*/*/.jobs/.sweeps/*/runner "$sandbox"/*/*/*/.jobs/.sweeps/*/runner; do
    [ ! -e "$file" ] || cat "$file"
  done
}
no_runners() {
  ! runners | while read -r pid _; do kill -0 "$pid" 2>/dev/null && echo "$pid"; done | grep -q .
}
code 0 sandbox up --nodes 2
system_python
mkdir "$work/ran"
cat >point.sh <<'END'
echo x >>"$1/$2.$3"
until [ -e "$1/go" ] || [ "$2" = 0 ]; do sleep 0.05; done
echo "loss 0.$2$3"
[ "$2.$3" != 1.2 ] || [ "${SWEEP_RETRY-0}" = 1 ] || exit 3
END
remote rsync
in_background sweep --param a=0..3 --param b=0..2 --retry 1 -- sh point.sh "$work/ran" '{a}' '{b}'
begun() { grep -q '^sweep 1-12 started: 12 points on node-1, node-2' "$work/out"; }
until_true begun
kill -9 "$follower" 2>/dev/null || true # it may have ended already: it is no longer needed
wait "$follower" || true
follower=
points() { "$REMOTE" --quiet --json sweep --results 1 | evaluate "[job['state'] for job in d['points']].count('$1')"; }
are() { [ "$(points "$1")" = "$2" ]; }
until_true are running 2
# the process that hands out the points
set -- "$sandbox"/*/*/.jobs/.sweeps/*/run "$sandbox"/*/*/*/.jobs/.sweeps/*/run
for run; do
  ! grep -q '"own":"node-1"' "$run" 2>/dev/null || read -r pid _ <"${run%/run}/runner"
done
[ -z "$(find "/proc/$pid/fd" -lname '*/.alive')" ] || fail 'files stay open for points that have ended'
kill -9 "$pid"
touch "$work/ran/go"
idle() { are running 0 && [ "$(points queued)" -gt 0 ]; }
until_true idle
remote job-list
grep -q 'node-1: gives out no points of sweep 1, its process there is dead' "$work/err" || fail 'that its process is dead is not said'
code 0 sweep --resume 1
until_true are succeeded 12
until_true no_runners
for a in 0 1 2 3; do
  for b in 0 1 2; do
    times=$(wc -l <"$work/ran/$a.$b")
    [ "$times" = 1 ] || [ "$a.$b.$times" = 1.2.2 ] || fail "point $a.$b ran $times times"
  done
done
code 0 sweep --results 1 --csv points.csv
grep -q '^5,[0-9]*,1,2,succeeded,0,0.12,[0-9]*,node-[12]$' points.csv || fail "the CSV is wrong: $(cat points.csv)"
code 0 job-list --stopped
grep -q '12 of 12 done, best loss 0 at a=0 b=0' "$work/out" || fail 'the row of the sweep is wrong'

# ---- waiting for it reports no point as failed because of another one
code 0 sweep --param a=0..3 -- sh -c 'exit "$1"' x '{a}'
code 1 job-wait --launch last
grep -q '4 of 4 done, 3 failed' "$work/err" || fail 'the end of the sweep is not told'
! grep -q 'after it' "$work/err" || fail 'points are told as if one had ended the others'

# ---- all of it can be stopped at once, even if no process hands out points any more
rm "$work/ran/go"
code 0 sweep --param a=1..9 -- sh point.sh "$work/ran" 'k{a}' x
until_true eval '[ "$("$REMOTE" --quiet --json sweep --results last | evaluate "[job[\"state\"] for job in d[\"points\"]].count(\"running\")")" = 2 ]'
runners | while read -r pid _; do kill -9 "$pid" 2>/dev/null || true; done
code 0 job-kill --launch last
touch "$work/ran/go"
[ "$(find "$work/ran" -name 'k*' | wc -l)" = 2 ] || fail 'more points began'
remote --json sweep --results last
[ "$(picks "{job['state'] for job in d['points']}")" = "{'killed'}" ] || fail 'not all points were killed'
