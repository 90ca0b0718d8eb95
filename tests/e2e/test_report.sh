#!/bin/sh
# remote report in a real browser: the page draws its curves, shows the cause without scrolling, fits a phone and a wide
# screen, has light and dark colors, and can be used with the keyboard.
. "${0%/*}/support.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "no Chromium here"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cat >train.sh <<'END'
for step in 1 2 3 4 5 6; do echo "step $step loss 0.$((9 - step))$RANK lr=1e-3"; done
[ "$RANK" != 2 ] || { echo 'ValueError: <b>the reason</b>' >&2; exit 3; }
exec sleep 1000
END
"$REMOTE" --quiet rsync
code 1 launch --follow --nproc-per-node 2 --failure-grace 0 --env MODE=quick --env API_TOKEN=hunter2 -- sh train.sh
# The files of `check --bandwidth` and `top`, because there are no GPUs here and no time to measure.
cat >.remote/bandwidth.json <<'END'
{"version": 1, "measured_at": "2026-11-21T07:30:00Z", "servers": ["node-1", "node-2"], "median_gbit_s": 9.4, "total_at_once_gbit_s": 18,
 "flows": [{"from": 0, "to": 1, "gbit_s": 9.4, "latency_us": 41, "method": "own", "error": "", "outlier": false},
           {"from": 1, "to": 0, "gbit_s": 2.1, "latency_us": 42, "method": "own", "error": "", "outlier": true}], "at_once": []}
END
mkdir -p .remote/samples
now=$(date +%s)
for second in $(seq 0 62); do # some lie between the launch's beginning and its end
  echo "{\"at\":$((now - 60 + second)),\"gpus\":[[0,$((30 + second)),40000000000,85899345920,\"NVIDIA A100\"],[1,null,20000000000,85899345920,\"NVIDIA A100\"]]}"
done >.remote/samples/node-1
code 0 report
page=$(cat "$work/out")
[ -s "$page" ] || fail "there is no page at $page"

# browse WIDTH HEIGHT PAGE OPTIONS...: writes the rendered page, as HTML, to $work/dom. The browser gets its own home
# folder.
browse() {
  width=$1 height=$2 shown=$3
  shift 3
  HOME="$work/home" timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --user-data-dir="$work/profile" --window-size="$width,$height" --virtual-time-budget=5000 "$@" \
    --dump-dom "file://$shown" >"$work/dom" 2>"$work/err" </dev/null || fail "the browser failed"
}
mkdir "$work/home"
# A script checks what a user would look at, in a frame as wide as a phone or a wide screen that contains the page.
cat >"$work/look.py" <<'END'
import html, sys
page = open(sys.argv[1], encoding="utf-8").read()
print("""<!doctype html><body><pre id=found></pre><iframe id=frame style="border:0;width:%spx;height:800px" srcdoc="%s"></iframe><script>
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement, all = {};
  const box = one => page.getElementById(one).getBoundingClientRect();
  all.ready = root.dataset.ready;
  all.wider = root.scrollWidth - root.clientWidth;
  all.title = page.getElementById("cause-title").textContent;
  all.cause = page.getElementById("cause-lines").textContent;
  all.cause_above_the_fold = box("cause-lines").bottom < 800;
  all.charts = page.querySelectorAll("#curves canvas").length;
  all.drawn = [...page.querySelectorAll(".chart canvas")].every(one =>
    one.getContext("2d").getImageData(0, 0, one.width, one.height).data.some(byte => byte !== 0));
  all.bars = page.querySelectorAll("#timeline .bar").length;
  all.gpus = page.querySelectorAll("#gpus canvas").length;
  all.facts = [...page.querySelectorAll("#facts th")].map(one => one.textContent);
  all.variables = page.getElementById("variables").textContent;
  all.cells = page.querySelectorAll("#bandwidth svg rect.cell").length;
  all.flows = page.getElementById("flows").textContent;
  all.moments = page.getElementById("moments").textContent;
  all.marks = page.querySelectorAll("#timeline .mark").length;
  all.secret = root.textContent.includes("hunter2");
  all.bold = page.querySelectorAll("main b").length;
  all.back = getComputedStyle(page.body).backgroundColor;
  const choice = page.querySelector("#ranks input");
  choice.focus();
  all.focus = page.activeElement === choice;
  choice.click();
  all.hidden = page.querySelectorAll("#curves canvas").length;
  page.getElementById("ranks").hidden = true;
  all.hides = page.getElementById("ranks").getBoundingClientRect().height === 0;
  document.getElementById("found").textContent = JSON.stringify(all);
};
</script>""" % (sys.argv[2], html.escape(page, quote=True)))
END
look() { # look WIDTH OPTIONS...
  wide=$1
  shift
  python3 "$work/look.py" "$page" "$wide" >"$work/look.html"
  browse 1700 1000 "$work/look.html" "$@"
  sed -n 's/.*<pre id="found">\(.*\)<\/pre>.*/\1/p' "$work/dom" | sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' >"$work/found"
  [ -s "$work/found" ] || fail "the page was not shown"
}
is() { # is EXPRESSION: checks what was found
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' "$work/found" "$1" ||
    fail "not so: $1: $(cat "$work/found")"
}
for width in 400 1600; do
  look $width
  is 'd["ready"] == "yes"'
  is 'd["wider"] <= 0'
  is 'd["title"].startswith("rank 2 on node-2 failed first (exit 3")'
  is 'd["cause"] == "ValueError: <b>the reason</b>"'
  is 'd["cause_above_the_fold"]'
  is 'd["charts"] == 2 and d["drawn"] and d["hidden"] == 2'
  is 'd["hides"]'
  is 'd["bars"] == 4'
  is 'd["gpus"] == 2'
  is '{"os", "kernel", "cores", "python", "code"} <= set(d["facts"])'
  is '"MODEquick" in d["variables"] and "API_TOKEN********" in d["variables"] and not d["secret"]'
  is 'd["cells"] == 2 and "node-2node-12.142slow" in d["flows"]'
  is 'd["marks"] >= 4 and "rank 2 on node-2 failed: exit 3" in d["moments"] and "connecting to 2 servers" in d["moments"]'
  is 'd["bold"] == 0'
  is 'd["focus"]'
  is 'd["back"] == "rgb(255, 255, 255)"'
done
look 400 --blink-settings=preferredColorScheme=0
is 'd["back"] == "rgb(13, 17, 23)"'
is 'd["drawn"]'

# A launch with a restart: one line about it for all ranks, and no curve for a value that is printed once per attempt.
# shellcheck disable=SC2016
code 0 launch --follow --nproc-per-node 2 --restarts 1 --failure-grace 0 -- sh -c 'echo "memory 512 MB"
  for step in 1 2 3; do echo "step $step loss 0.$step"; done; [ "$RANK.$RESTART_COUNT" != 1.0 ] || exit 3; [ "$RESTART_COUNT" = 1 ] || exec sleep 1000'
code 0 report
page=$(cat "$work/out")
look 400
is 'd["moments"].count("began anew") == 1 and "all ranks began anew: restart 1 after rank 1 on node-1 failed (exit 3)" in d["moments"]'
is 'd["charts"] == 1 and d["wider"] <= 0'

# Pictures for manual inspection: REPORT_PICTURES names a folder.
if [ -n "${REPORT_PICTURES:-}" ]; then
  browse 1600 1400 "$page" --screenshot="$REPORT_PICTURES/wide.png"
  browse 500 1400 "$page" --screenshot="$REPORT_PICTURES/narrow.png"
fi
echo "the report is as it should be"
