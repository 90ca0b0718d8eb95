#!/bin/sh
# notify: the servers send one notification about how a launch has ended, even if no client is following, and if it is
# rejected at first. The URL is not in any argument, log, list or record. --notify and --bell notify the user who waits
# here.
# shellcheck disable=SC2016  # the servers' shells expand the quoted text
. "${0%/*}/support.sh"
"$REMOTE" --quiet sandbox up --nodes 2
system_python
cat >"$work/receiver.py" <<'END_OF_SCRIPT'
import http.server, sys
refuse = [b'"refused"', b'"refused-2"']
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        first = [one for one in refuse if one in body]
        for one in first:
            refuse.remove(one)
        with open(sys.argv[1] + (".refused" if first else ""), "ab") as file:
            file.write(body + b"\n")
        self.send_response(503 if first else 200)
        self.end_headers()
        self.wfile.write(b"" if first else b"thank you")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
with open(sys.argv[1] + ".port", "w") as file:
    file.write(str(server.server_port) + "\n")
server.serve_forever()
END_OF_SCRIPT
python3 "$work/receiver.py" "$work/news" &
receiver=$!
clean_up() { kill "$receiver" 2>/dev/null; }
until_true [ -s "$work/news.port" ]
cp .remote/configs.yaml "$work/configs.yaml"
echo "notify: {url: 'http://127.0.0.1:$(cat "$work/news.port")/secret-topic'}" >>.remote/configs.yaml
"$REMOTE" --quiet rsync
news() { sed -n "$1p" "$work/news" | evaluate "$2"; }
arrived() { [ "$(grep -c . "$work/news" 2>/dev/null)" -ge "$1" ]; }

code 0 notify --test
printed 'sent from node-1: HTTP 200 thank you
'
[ "$(news 1 'd["state"], d["lines"]')" = "('test', ['this is a test'])" ] || fail "the test says something else"

# success; the client may be gone by then
code 0 launch --name good -- sh -c 'sleep 1; echo "rank $RANK is done"'
grep -rl secret-topic .remote/sandbox --include notify >"$work/found" || fail "there is no file with the URL"
while read -r file; do
  [ "$(stat -c %a "$file")" = 600 ] || fail "others can read $file"
done <"$work/found"
! grep -la secret-topic /proc/[0-9]*/cmdline || fail "the URL is among the arguments"
until_true arrived 2
[ "$(news 2 'd["state"], d["text"], d["launch"], d["servers"], d["ranks"], d["lines"]')" = \
  "('succeeded', 'good succeeded', '1', ['node-1', 'node-2'], 2, ['rank 0 is done'])" ] || fail "other news: $(sed -n 2p "$work/news")"
until_true lifelines_are 0
code 0 show good
grep -q '^notify *sent$' "$work/out" || fail "it is not on record"

# a rank on another server
code 1 launch --follow --failure-grace 0 -- sh -c '[ "$RANK" = 0 ] || { echo "ValueError: why" >&2; exit 3; }; sleep 60'
until_true arrived 3
[ "$(news 3 'd["state"], d["text"], d["lines"]')" = "('failed', 'launch 3 failed: rank 1 on node-2 (exit 3)', ['ValueError: why'])" ] ||
  fail "other news: $(sed -n 3p "$work/news")"
# a user stops it; and a launch whose ranks are left running
code 0 launch -- sleep 60
code 0 job-kill last --yes
until_true arrived 4
[ "$(news 4 'd["state"]')" = killed ] || fail "other news: $(sed -n 4p "$work/news")"
code 1 launch --follow --on-failure leave -- sh -c '[ "$RANK" = 0 ] || exit 4; sleep 1'
until_true arrived 5
[ "$(news 5 'd["text"]')" = 'launch 7 failed: rank 1 on node-2 (exit 4)' ] || fail "other news: $(sed -n 5p "$work/news")"
[ "$(job 7 state)" = succeeded ] || fail "the other rank was ended"

# The first server's lifeline dies and is restarted: still only one notification
code 0 launch --name again -- sh -c 'while [ -e "$0" ]; do sleep 0.4; done' "$work/go"
touch "$work/go"
code 0 launch --name again -- sh -c 'while [ -e "$0" ]; do sleep 0.4; done' "$work/go"
until_true arrived 6
until_true lifelines_stand 4
node1=$(homes | sed -n 1p)
died=$(for pid in $(lifelines); do grep -laF "$node1" "/proc/$pid/cmdline" | cut -d / -f 3; done)
kill -KILL "$died" # its watchdog takes over
until_true eval '[ -n "$(lifelines | grep -vx "$died")" ]'
rm "$work/go"
until_true arrived 7
until_true lifelines_are 0
[ "$(news 7 'd["text"]')" = 'again succeeded' ] || fail "other news: $(sed -n 7p "$work/news")"
# it is rejected at first
code 0 launch --name refused --follow -- true
until_true arrived 8
[ "$(wc -l <"$work/news.refused") $(wc -l <"$work/news")" = '1 8' ] || fail "not told once: $(cat "$work/news")"
# its lifeline dies between two attempts
code 0 launch --name refused-2 --server node-1 --follow -- true
until_true sh -c "[ \$(wc -l <'$work/news.refused') = 2 ]"
until_true sh -c "! ls '$node1'/*/.jobs/*/notify.mark 2>/dev/null | while read -r mark; do [ -e \"\${mark%.mark}\" ] && echo; done | grep -q ."
for pid in $(lifelines); do kill_lifeline "$pid"; done
code 0 history
until_true arrived 9
sleep 0.3 # time for a second one to arrive
[ "$(wc -l <"$work/news")" = 9 ] || fail "not told once: $(cat "$work/news")"
! grep -rl secret-topic .remote --include '*' | grep -v configs.yaml || fail "the URL is somewhere"

# Rank 0 fails because rank 1 is gone: rank 1 is named, even if it is reported later, and the user who stopped it
mkfifo "$work/peer"
pair='[ "$RANK" = 0 ] || { exec 3>"$0"; echo ready; eval "$1"; }; read -r _ <"$0"; echo "Connection closed by peer" >&2; exit 1'
code 1 launch --follow -- sh -c "$pair" "$work/peer" 'exec 3>&-; sleep 0.4; echo "ValueError: why" >&2; exit 3'
until_true arrived 10
[ "$(news 10 'd["text"], d["lines"]')" = "('launch 16 failed: rank 1 on node-2 (exit 3)', ['ValueError: why'])" ] ||
  fail "other news: $(sed -n 10p "$work/news")"
code 0 launch --no-follow -- sh -c "$pair" "$work/peer" 'exec sleep 60'
until_true sh -c "[ \"\$('$REMOTE' job-tail 19 --no-follow)\" = ready ]"
code 0 job-kill 19 --yes
until_true arrived 11
[ "$(news 11 'd["state"], d["text"]')" = "('killed', 'launch 18 killed: rank 1 on node-2')" ] || fail "other news: $(sed -n 11p "$work/news")"

# a command
cp "$work/configs.yaml" .remote/configs.yaml
echo "notify: {command: 'cat >>\"$work/said\"; echo ok'}" >>.remote/configs.yaml
code 0 notify --test
printed 'sent from node-1: exit 0: ok
'
code 0 launch --follow -- true
until_true sh -c "grep -q succeeded '$work/said'"
sed -i '$d' .remote/configs.yaml
echo "notify: {command: 'echo why; exit 3'}" >>.remote/configs.yaml
code 1 notify --test
printed 'not sent from node-1: exit 3: why
'
cp "$work/configs.yaml" .remote/configs.yaml
code 2 notify --test

# the first server has no Python: the launch warns, and runs
mkdir "$work/bin"
find /bin/ /usr/bin/ -maxdepth 1 ! -type d ! -name 'python*' -print0 | xargs -0 ln -sf -t "$work/bin"
cp "$sandbox/entry.sh" "$work/entry.sh"
sed -i "1i PATH='$work/bin'; export PATH" "$sandbox/entry.sh"
echo "notify: {command: 'cat >\"$work/silent\"'}" >>.remote/configs.yaml
code 0 launch --name told --follow -- true # a command does not need Python
! grep -q 'cannot send' "$work/err" || fail "it warns"
until_true grep -q succeeded "$work/silent"
cp "$work/configs.yaml" .remote/configs.yaml
echo "notify: {url: 'http://127.0.0.1:1/secret-topic'}" >>.remote/configs.yaml
code 0 launch --name silent --follow -- true
grep -q 'node-1: notify: it cannot send the notification: it has no Python 3.6 or newer' "$work/err" || fail "it does not warn"
code 0 show silent
grep -q '^notify *not sent: the first server has no Python$' "$work/out" || fail "it is not on record"
cp "$work/entry.sh" "$sandbox/entry.sh"
cp "$work/configs.yaml" .remote/configs.yaml

# here
code 1 launch --follow --bell --notify 'echo "$REMOTE_STATE $REMOTE_JOBS" >said' -- false
[ "$(cat said)" = 'failed 26-27' ] || fail "nobody was told here: $(cat said)"
code 1 job-wait last --notify 'echo "$REMOTE_STATE" >said'
[ "$(cat said)" = failed ] || fail "nobody was told here"
code 2 launch --notify true -- true
grep -q 'need --follow' "$work/err" || fail "no error"
echo "the news arrive once"
