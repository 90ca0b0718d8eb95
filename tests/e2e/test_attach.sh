#!/bin/sh
# remote attach on a terminal: debugs a real training with a breakpoint in one rank of 2x2, which then finishes. Also
# several waiting ranks, a terminal that disappears in the middle, an error with --pdb-on-error, and another user.
. "${0%/*}/support.sh"
python=/usr/bin/python3
"$python" -c 'import torch, sklearn' 2>/dev/null || skip 'no torch, or no scikit-learn'
code 0 sandbox up --nodes 2
system_python
cat >"$work/type.py" <<'PY'
"""Runs a command on a terminal: type.py [TEXT KEYS]... -- COMMAND. Types KEYS when TEXT has come. HANGUP closes the terminal, and
@FILE makes a file."""
import os, pty, select, sys, time

steps, command = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = 0
text = b""


def read():
    """Whether there may be more."""
    global text
    if select.select([fd], [], [], 0.1)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            return False
        text += data
        return bool(data)
    return True


end = time.time() + 120
for wanted, keys in zip(steps[::2], steps[1::2]):
    while wanted.encode() not in text[seen:]:
        if not read() or time.time() > end:
            sys.exit("%r has not come after %r in: %s" % (wanted, text[:seen][-40:], text.decode(errors="replace")))
    seen = text.index(wanted.encode(), seen) + len(wanted)
    if keys == "HANGUP":
        os.close(fd)
        os.waitpid(pid, 0)
        sys.exit(0)
    if keys.startswith("@"):
        open(keys[1:], "w").close()
        continue
    os.write(fd, keys.encode().decode("unicode_escape").encode("latin-1"))
while read() and time.time() < end:
    pass
sys.stdout.write(text.decode(errors="replace").replace("\r\n", "\n"))
sys.exit(os.waitpid(pid, 0)[1] >> 8)
PY
typing() { "$python" "$work/type.py" "$@" >"$work/out" 2>"$work/err"; }
# waits COUNT: whether this many ranks wait in a debugger
waits() { [ "$(of_jobs "sum(len(job['waiting']) for job in d)")" = "$1" ]; }
long_until() { # a training's imports take long on a busy machine
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 180 ] || fail "waited too long: $*"
    sleep 1
  done
}
has() { grep -qF -- "$1" "$work/${2:-out}" || fail "std${2:-out} lacks: $1"; }

# a training
sed 's/^    for epoch in range(1.*$/    if rank == 1: breakpoint()\n&/' "$REMOTE_SOURCE_DIR/sample/train.py" >train.py
line=$(grep -n 'breakpoint()' train.py | cut -d : -f 1)
code 0 rsync
code 1 attach </dev/null
has 'no rank waits in a debugger' err
typing -- "$REMOTE" attach && fail 'attach to nothing'
has 'no rank waits in a debugger'
code 0 torch-launch --nproc-per-node 2 --no-follow -- "$python" train.py
long_until waits 1
code 0 job-list
has "(waiting in breakpoint() train.py:$line)"
has "waiting in breakpoint() train.py:$line: remote attach 1 --job 2" err
[ "$(of_jobs "[job['waiting'][0]['line'] for job in d if job['rank'] == 1][0]")" = "$line" ] || fail 'the line in JSON'
code 0 top --once
has "waiting in breakpoint() train.py:$line"
code 0 status
has "waiting in breakpoint() train.py:$line"
# the arrow keys recall earlier input; the rank's escape sequences are shown as text
typing '(Pdb) ' 'dist.get_rank() + 40\r' '41' '\x1b[A\r' '41' 'print(chr(27) + "]0;bad" + chr(7))\r' '^[]0;bad' 'n\r' '-> ' '' \
  '(Pdb) ' 'c\r' 'continues' '' -- "$REMOTE" attach 1 || fail "attach to the training: $(cat "$work/err" "$work/out")"
code 0 job-wait --launch 1
code 0 job-tail 2 --no-follow
has "remote: waiting in breakpoint() at train.py:$line: remote attach 1"
waits 0 || fail 'something waits still'

# two ranks at once, without torch
cat >two.py <<'PY'
import os

rank = int(os.environ["RANK"])
x = 5
if rank > 1:
    breakpoint()
x += 1
print("rank", rank, "has", x)
if rank == 3:
    raise ValueError("of rank 3")
PY
code 0 rsync
code 0 torch-launch --nproc-per-node 2 --no-follow --pdb-on-error -- "$python" two.py
until_true waits 2
typing -- "$REMOTE" attach && fail 'attach chose one of two'
has 'rank 2 on node-2: breakpoint() two.py:6: remote attach 2 --job 7'
has '2 ranks wait in a debugger'
# commands from a pipe: when it ends, the rank still waits
echo 'p x * 2' >"$work/commands"
code 0 attach 2 <"$work/commands"
has '(Pdb) p x * 2'
has 10
has 'still waits: remote attach 2 --job 7' err
waits 2 || fail 'the end of the commands let the rank go on'
# a terminal that disappears, and Ctrl-C: the rank still waits after both
typing '(Pdb) ' 'x = 70\r' '(Pdb) ' 'HANGUP' -- "$REMOTE" attach 2 || fail "$(cat "$work/err")"
waits 2 || fail 'a lost terminal let the rank go on'
typing '(Pdb) ' 'x\r' '70' '\x03' 'still waits: remote attach 2 --job 7' '' -- "$REMOTE" attach 2 || fail "$(cat "$work/err")"
# an attach that hangs is replaced by the next one
"$python" "$work/type.py" '(Pdb) ' "@$work/attached" 'attached from elsewhere' '' -- "$REMOTE" attach 2 >"$work/first" 2>&1 &
follower=$!
until_true test -e "$work/attached"
typing '(Pdb) ' '\x04' 'rank 2 on node-2 continues' '' -- "$REMOTE" attach 2 --launch last || fail "$(cat "$work/err")"
follower_ends 1
grep -q 'attached from elsewhere' "$work/first" || fail "$(cat "$work/first")"
# after the error the rank stays, and the launch has no verdict yet
typing '(Pdb) ' 'c\r' 'continues' '' -- "$REMOTE" attach || fail "$(cat "$work/err")"
until_true waits 1
[ "$(of_jobs "[(job['state'], job['waiting'][0]['error']) for job in d if job['waiting']]")" = "[('running', 'ValueError')]" ] || fail 'the error in JSON'
code 0 job-list
has 'waiting in pdb after ValueError two.py:10'

# another user on the server
if [ "$(id -u)" = 0 ]; then
  socket=$(find "$PWD/.remote" -name '*.sock' -path '*/debug/*')
  folder=${socket%/*}
  above=${folder%/*}
  while [ "$above" != "${work%/*}" ]; do # so that the parent folders are accessible
    chmod go+x "$above"
    above=${above%/*}
  done
  for mode in 700 711; do # by the folder, and by the socket
    chmod "$mode" "$folder"
    setpriv --reuid 65534 --regid 65534 --clear-groups "$python" -c 'import os, socket, sys
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX).connect(sys.argv[2])' "${folder%/*}" "debug/${socket##*/}" 2>"$work/err" && fail 'another user connects'
    has PermissionError err
  done
  chmod 700 "$folder"
fi

typing '(Pdb) ' 'x\r' '6' 'q\r' 'continues' '' -- "$REMOTE" attach 3 || fail "$(cat "$work/err")"
code 1 job-wait --launch last
has 'rank 3 on node-2 failed' err
has 'ValueError: of rank 3' err
