#!/bin/sh
# The failure of one rank, and the loss of a server, end the other ranks although no `remote` runs any more.
set -eu
"$REMOTE" torch-launch --help | grep -q lost-after || exit 77
work=$(mktemp -d)
finish() {
  "$REMOTE" --project "$work/demo" sandbox down >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
mkdir -p "$work/demo"
cd "$work/demo"
"$REMOTE" sandbox up --nodes 2 >"$work/log" 2>&1 || { cat "$work/log"; echo "sandbox up failed"; exit 1; }

fail() {
  echo "$1"
  "$REMOTE" job-list --stopped || true
  cat "$work/log"
  exit 1
}

# field RANK NAME: of the newest job with this rank.
field() {
  "$REMOTE" job-list --stopped --json | python3 -c '
import json, sys
jobs = [job for job in json.load(sys.stdin) if job["rank"] == int(sys.argv[1])]
value = max(jobs, key=lambda job: job["key"])[sys.argv[2]]
print("none" if value is None else value)' "$1" "$2"
}

# results COUNT: whether so many jobs have ended, as the servers' own folders say: nobody asks over ssh.
results() {
  found=$(find "$work/demo/.remote" -path '*/.jobs/*/result' | wc -l)
  [ "$found" -ge "$1" ]
}

# until_true SECONDS WHAT COMMAND…
until_true() {
  limit=$(($(date +%s) + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$(date +%s)" -le "$limit" ] || fail "waited too long: $what"
    sleep 0.1
  done
}

# told COUNT: whether the lifelines of so many jobs stand.
told() {
  found=$(find "$work/demo/.remote" -path '*/.jobs/*/lifeline' -exec grep -lx ok {} + | wc -l)
  [ "$found" -ge "$1" ]
}

# ---- a rank is killed from outside
# shellcheck disable=SC2016  # for the ranks
"$REMOTE" launch --cmd 'echo boom-$RANK >&2; sleep 300' --nproc-per-node 2 --failure-grace 1 >"$work/log" 2>&1 ||
  fail "launch failed"
until_true 20 "the lifelines" told 4
kill -9 "$(field 2 pid)"
until_true 15 "the end of all ranks" results 4
[ "$(field 2 state)" = failed ] || fail "rank 2 is $(field 2 state)"
[ "$(field 2 signal)" = 9 ] || [ "$(field 2 signal)" = SIGKILL ] || fail "rank 2 has signal $(field 2 signal)"
for rank in 0 1 3; do
  [ "$(field $rank state)" = killed ] || fail "rank $rank is $(field $rank state)"
done
"$REMOTE" job-list --stopped >"$work/list"
[ "$(grep -c 'ended after rank 2' "$work/list")" = 3 ] || fail "job-list does not say why"

# ---- the verdict of one who follows
code=0
# shellcheck disable=SC2016
"$REMOTE" launch --cmd 'if [ $RANK = 3 ]; then echo "the cause" >&2; exit 7; fi; sleep 300' --nproc-per-node 2 \
  --failure-grace 0 --follow >"$work/log" 2>&1 || code=$?
[ $code = 1 ] || fail "a failed launch ends with $code"
for text in 'rank 3 on .* failed first (exit 7, ..:..:..' '  the cause' '3 others were ended after it'; do
  grep -q "$text" "$work/log" || fail "the verdict does not say: $text"
done

# ---- a server vanishes, with everything on it
"$REMOTE" launch --cmd 'sleep 300' --nproc-per-node 2 --lost-after 3 >"$work/log" 2>&1 || fail "launch failed"
until_true 20 "the lifelines" told 12
lost=$(field 3 server)
# Its lifeline first: the others would otherwise hear from it how its ranks die.
of_lost=$(grep -lzE "^(HOME|REMOTE_SANDBOX)=$work/demo/.remote/.*/?$lost(/.*)?\$" /proc/[0-9]*/environ 2>/dev/null || true)
[ -n "$of_lost" ] || fail "no process of $lost is found"
for kind in lifeline- ''; do
  for environment in $of_lost; do
    pid=${environment#/proc/}
    pid=${pid%/environ}
    if grep -qa "$kind" "/proc/$pid/cmdline" 2>/dev/null; then
      kill -9 "$pid" 2>/dev/null || true
    fi
  done
done
until_true 15 "the end of the ranks on the other server" results 10
[ "$(field 0 state)" = killed ] || fail "rank 0 is $(field 0 state)"
"$REMOTE" job-list --stopped >"$work/list" 2>/dev/null || true
[ "$(grep -c "ended after the loss of $lost" "$work/list")" = 2 ] || fail "job-list does not tell of the loss"

# ---- nothing is left
gone() {
  ! grep -la "lifeline-" /proc/[0-9]*/cmdline 2>/dev/null | while read -r file; do
    { tr "\0" " " <"$file"; } 2>/dev/null
  done | grep -q "$work"
}
until_true 10 "the lifelines' end" gone
