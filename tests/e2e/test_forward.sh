#!/bin/sh
# Loads a page from a server through `forward`, with Chromium if it is installed, before and after a cut. Uses fake
# versions of TensorBoard and Jupyter, which a second command can join.
. "${0%/*}/support.sh"
for program in rsync curl; do
  command -v $program >/dev/null || skip "$program is not installed"
done
said() { grep -q -e "$1" "$work/${2:-out}"; }
browser=$(command -v chromium || command -v chromium-browser || true)
page() { # page ADDRESS: prints what a user sees there
  if [ -n "$browser" ]; then
    "$browser" --headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir="$work/browser" --timeout=20000 \
      --dump-dom "$1" 2>/dev/null
  else
    curl -s -m 20 "$1"
  fi
}

code 0 sandbox up --nodes 1
system_python
# shellcheck disable=SC2016
echo 'prologue: export PATH="$HOME/bin:$PATH"' >>.remote/configs.yaml
mkdir web
echo '<h1>a page of the server</h1>' >web/index.html
code 0 rsync
home=$(homes)

# --- forward ------------------------------------------------------------------------------------------------------
cat >serve.py <<'PY'
import http.server, os
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open("port.new", "w") as file:
    file.write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
code 0 job-run --rsync --cmd 'cd web && exec python3 ../serve.py'
until_true [ -s "$home/my project/web/port" ]
port=$(cat "$home/my project/web/port")
code 2 forward "$port" node-1
said "'node-1' names no port, nor a server with one" err || fail "a word without a port is passed over"
in_background forward "$port" --job 1
until_true said '^http://127.0.0.1:'
address=$(sed 's/ .*//' "$work/out")
[ "$address" != "http://127.0.0.1:$port" ] || fail "the port is the server's own, which is taken here"
said "port $port is taken" err || fail "nothing is said of the port that is taken"
page "$address/" | grep -q 'a page of the server' || fail "the page was not loaded"
break_links node-1
until_true said 'connected again' err
page "$address/" | grep -q 'a page of the server' || fail "the page was not loaded after a cut"
code 0 job-kill 1 --yes
follower_ends 0
said 'job 1' err || fail "the end of the job is not said"

# --- fake versions of tensorboard and jupyter ---------------------------------------------------------------------
mkdir -p "$home/bin"
cat >"$home/bin/tensorboard" <<'PY'
#!/usr/bin/env python3
import http.server, os, sys
words = " ".join(sys.argv[1:]).replace("=", " ").split()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        allowed = "tensorboard" in sys.argv[0] or "token=" + os.environ["JUPYTER_TOKEN"] in self.path
        self.send_response(200 if allowed else 403)
        self.end_headers()
        self.wfile.write(" ".join(words).encode() if allowed else b"no")
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(words[words.index("--port") + 1])), Page).serve_forever()
PY
chmod +x "$home/bin/tensorboard"
cp "$home/bin/tensorboard" "$home/bin/jupyter-lab"

in_background tensorboard 'my runs'
until_true said '^http://'
curl -s "$(cat "$work/out")" | grep -q -e "^--logdir my runs --host 127.0.0.1 " || fail "the program got other words"
kill -INT "$follower"
follower_ends 130
[ "$(job 2 state)" = killed ] || fail "the job was not stopped"

in_background jupyter --keep
until_true said '^http://'
token=$(sed 's/.*token=//' "$work/out")
[ ${#token} = 48 ] || fail "no token: $token"
address=$(cat "$work/out")
[ "$(curl -s -o /dev/null -w '%{http_code}' "$address")" = 200 ] || fail "the token does not open the page"
[ "$(curl -s -o /dev/null -w '%{http_code}' "${address%%\?*}")" = 403 ] || fail "it opens without the token"
! grep -qa "$token" /proc/[0-9]*/cmdline 2>/dev/null || fail "the token is in a command line"
found=$(grep -rl "$token" .remote 2>/dev/null)
case $found in
  */.jobs/*/web) [ "$(stat -c %a "$found")" = 600 ] || fail "others can read the token" ;;
  *) fail "the token is also in: $found" ;;
esac
kill -INT "$follower"
follower_ends 130
[ "$(job 3 state)" = running ] || fail "--keep did not keep the job"
in_background jupyter
until_true said "token=$token"
kill -INT "$follower"
follower_ends 130
[ "$(job 3 state)" = running ] || fail "a job that was joined was stopped"
code 0 job-kill 3 --yes

rm "$home/bin/tensorboard" # this machine may have a real jupyter
code 1 tensorboard
said 'has ended before it could be opened' err || fail "the missing program is not named"
