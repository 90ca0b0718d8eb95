#!/bin/sh
# remote report about several launches: one page with overlaid curves and a table of differences, including a launch
# whose jobs were removed; in a real browser if there is one.
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
# shellcheck disable=SC2016  # the script expands it
echo 'for step in 1 2 3 4 5 6; do echo "step $step loss 0.$((9 - step * $2 / 2)) acc 0.$step"; done' >train.sh
"$REMOTE" --quiet rsync
code 0 launch --name slow --tag lr --follow --env MODE '<b>one</b>' --env API_TOKEN hunter2 -- sh train.sh --lr 1
code 0 launch --name fast --tag lr --follow --env MODE two --note 'the best' -- sh train.sh --lr 2
code 0 launch --name other --follow -- sh train.sh --lr 2
code 0 report --launch 1 --launch fast --json
[ "$(picks '[one["label"] for one in d["launches"]]')" = "['1-2 slow', '3-4 fast']" ] || fail "other launches"
[ "$(picks '[(one["name"], one["label"], one["over"], len(one["values"])) for one in d["curves"]]')" = \
  "[('loss', '1-2 slow', 'step', 6), ('loss', '3-4 fast', 'step', 6), ('acc', '1-2 slow', 'step', 6), ('acc', '3-4 fast', 'step', 6)]" ] || fail "other curves"
[ "$(picks '{one["name"]: one["values"] for one in d["differences"] if one["part"] in ("command", "variables")}')" = \
  "{'command': ['sh train.sh --lr 1', 'sh train.sh --lr 2'], 'API_TOKEN': ['********', None], 'MODE': ['<b>one</b>', 'two']}" ] || fail "other differences"
[ "$(picks '[one["values"] for one in d["differences"] if one["name"] == "loss"]')" = "[['0.6', '0.3']]" ] || fail "no numbers"
code 0 report --tag lr
page=$(cat "$work/out")
[ "${page##*/}" = launches-1-3.html ] || fail "another page: $page"
[ -s "$page" ] || fail "there is no page: $page"
! grep -q hunter2 "$page" || fail "a secret is in the page"
if browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
  mkdir "$work/home"
  HOME="$work/home" timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$work/profile" --window-size=1200,1100 --virtual-time-budget=5000 ${SCREENSHOT:+--screenshot="$SCREENSHOT"} \
    --dump-dom "file://$page" >"$work/dom" 2>"$work/err" </dev/null || fail "the browser failed"
  grep -q 'data-ready="yes"' "$work/dom" || fail "the page did not run to its end"
  [ "$(grep -o '<canvas' "$work/dom" | wc -l)" = 2 ] || fail "not two charts"
  grep -q '&lt;b&gt;one&lt;/b&gt;' "$work/dom" || fail "foreign text is not in the table as text"
  grep -q '<th[^>]*>3-4 fast</th>' "$work/dom" || fail "no column of the second launch"
fi
"$REMOTE" --quiet job-clean --launch 1 --older 0 --yes >"$work/out" 2>&1 || fail "not cleaned"
code 0 report --launch slow --launch fast --offline --json
[ "$(picks 'd["problems"]')" = "['1-2 slow: its jobs were removed, and its curves with them']" ] || fail "it does not say what is gone"
[ "$(picks '[one["label"] for one in d["curves"]]')" = "['3-4 fast', '3-4 fast']" ] || fail "other curves"
[ "$(picks '[one["values"] for one in d["differences"] if one["name"] == "loss"]')" = "[['0.6', '0.3']]" ] || fail "no numbers of the removed one"
code 2 report --launch 1 --launch nothing
code 2 report --launch 1 --launch 3 --watch
echo "several launches are on one page"
