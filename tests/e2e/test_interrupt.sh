#!/bin/sh
# job-wait, job-list --watch, job-rsync --delay and job-tail, interrupted on a terminal: they exit with 130, leave no
# process behind, and restore the terminal.
. "${0%/*}/support.sh"
code 0 sandbox up --nodes 1
code 0 job-run --cmd 'echo here; exec sleep 300' --server node-1
cat >"$work/interrupt.py" <<'PY'
"""Runs a command on a terminal of its own, waits for a text, types Ctrl-C, or sends the signal of the variable SIGNAL."""
import os, pty, select, signal, subprocess, sys, termios, time

wanted, command = sys.argv[1].encode(), sys.argv[2:]
master, slave = pty.openpty()
before = termios.tcgetattr(slave)


def prepare():
    os.setsid()
    import fcntl
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=prepare)
text = b""


def members():
    """Processes of the command's session."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open("/proc/%s/stat" % pid).read().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[3]) == process.pid and fields[0] != "Z":
            found.append(pid)
    return found


def read(limit):
    global text
    if select.select([master], [], [], limit)[0]:
        text += os.read(master, 65536)


deadline = time.monotonic() + 20
if wanted == b"-":  # says nothing while it waits: it does so once it sleeps with its connection open
    while time.monotonic() < deadline:
        sockets = 0
        for fd in os.listdir("/proc/%d/fd" % process.pid):
            try:
                sockets += os.readlink("/proc/%d/fd/%s" % (process.pid, fd)).startswith("socket:")
            except OSError:
                pass
        if sockets:
            break
        read(0.05)
while wanted != b"-" and wanted not in text and process.poll() is None and time.monotonic() < deadline:
    read(0.1)
if process.poll() is not None or (wanted != b"-" and wanted not in text):
    sys.exit("it does not come so far: %r" % text)
number = int(os.environ.get("SIGNAL", "2"))
if number == signal.SIGINT:
    os.write(master, b"\x03")
else:
    process.send_signal(number)
while process.poll() is None and time.monotonic() < deadline + 20:
    read(0.05)
code = process.poll()
wanted_code = 130 if number in (signal.SIGINT, signal.SIGTERM) else -number
if code != wanted_code:
    os.killpg(process.pid, signal.SIGKILL)
    sys.exit("exit code %s, not %s: %r" % (code, wanted_code, text))
while select.select([master], [], [], 0)[0]:
    read(0)
if members():
    sys.exit("it leaves processes")
if number == signal.SIGINT and "--watch" not in command and (b"^C\r\n" not in text or not text.endswith(b"\r\n")):
    sys.exit("the prompt of the shell would be behind ^C: %r" % text)
if termios.tcgetattr(slave) != before:
    sys.exit("the terminal is not as it was")
hidden, alternate = text.count(b"\x1b[?25l"), text.count(b"\x1b[?1049h")
if "--watch" in command and not alternate:
    sys.exit("it has no screen of its own: %r" % text)
if hidden > text.count(b"\x1b[?25h") or alternate > text.count(b"\x1b[?1049l"):
    sys.exit("the cursor or the screen is left changed: %r" % text)
PY
interrupted() { python3 "$work/interrupt.py" "$@" || fail "$*"; }
interrupted - "$REMOTE" job-wait --job 1
interrupted running "$REMOTE" job-list --watch
for number in 15 1 11; do # TERM, HUP, SEGV
  SIGNAL=$number interrupted running "$REMOTE" job-list --watch
done
interrupted - "$REMOTE" job-rsync --delay 60
interrupted here "$REMOTE" job-tail --job 1
[ "$(job 1 state)" = running ] || fail "the job does not run any more"

# if no thread can be started (its stack would be too large here), the error says so
# shellcheck disable=SC3045  # dash and bash have it
if (ulimit -s 1000000000) 2>/dev/null; then
  if (ulimit -s 1000000000 && exec "$REMOTE" run --cmd true) 2>"$work/err"; then fail "it runs without threads"; fi
  grep -q '^error: cannot start a thread' "$work/err" || fail "it does not say that it may start no thread"
fi

# a password_command ends with the program, including all of a pipeline; also when the terminal is closed
mkdir -p "$work/asks/.remote"
cat >"$work/asks/.remote/configs.yaml" <<END
servers:
  a:
    hostname: 127.0.0.1
    port: $(sed -n 's/^ *port: //p' .remote/configs.yaml)
    username: $(id -un)
    known_hosts: $PWD/.remote/sandbox/known_hosts
    private_key: $work/none
    password_command: sleep $mark.9 | cat
END
cd "$work/asks"
code 0 trust --yes
asks_are() { [ "$(processes 9)" = "$1" ]; }
for name in TERM HUP; do
  "$REMOTE" run --cmd true >"$work/out" 2>"$work/err" &
  asking=$!
  until_true asks_are 1
  kill -s "$name" "$asking"
  until_true asks_are 0
  ! wait "$asking" || fail "$name does not end it"
done
