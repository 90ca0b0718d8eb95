"""A sweep on one of its servers (docs/sweep.md, docs/protocol.md): sweep.py MODE JOBS LAUNCH BYTES [MASK PATH].

begin: keeps what comes on stdin (BYTES of JSON) in JOBS/.sweeps/LAUNCH, and starts the process that asks for points and runs them; on the
first server it gives them out, too. look: how it is, and what it knows of the ids on stdin. stop: the same when that process is dead, so that
nothing begins here any more. drop: removes the folder. Python 3.6 or later, standard library only.
"""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
from lifeline_job import boot, lives, put, read_words, this_process

MOST_TAIL = 8192
MOST_LINES, MOST_LINE = 200, 400
STOP_SECONDS = 10
ID = re.compile("[0-9a-f]{32}$")


class Trouble(Exception):
    """What a person is told."""


def say(*words):
    sys.stdout.write("@remote1 " + " ".join(words) + "\n")


class Journal:
    """Lines that only grow: `give ID SERVER` and `back ID` of who gives out the points, `begin ID` and `failed ID` of who runs them."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "journal")

    def read(self):
        """{id: server} of what was given, and the ids of what began here."""
        given, begun = {}, {}
        try:
            with open(self.path) as file:
                text = file.read()
        except OSError:
            text = ""
        for line in text.split("\n")[:-1]:
            word, _, rest = line.partition(" ")
            one, _, name = rest.partition(" ")
            if not ID.match(one):
                continue  # half a line of a process that was killed
            if word == "give":
                given[one] = name
            elif word == "back":
                given.pop(one, None)
            elif word == "begin":
                begun[one] = True
            elif word == "failed":
                begun.pop(one, None)
        return given, begun

    def open(self):
        self.file = open(self.path, "ab")
        if self.file.tell() > 0:
            self.file.write(b"\n")

    def write(self, line):
        self.file.write(line.encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def runner(folder):
    """(pid, start time) of the process of this sweep here, if it lives."""
    words = read_words(os.path.join(folder, "runner"))
    return (int(words[0]), words[1]) if len(words) == 3 and words[2] == boot() and lives(*words[:2]) else None


def state(folder):
    if not os.path.isdir(folder):
        return "none"
    if runner(folder):
        return "alive"
    if os.path.exists(os.path.join(folder, "stopped")):
        return "stopped"
    return "dead" if os.path.exists(os.path.join(folder, "runner")) else "done"


def tail(jobs, one):
    """The last lines with numbers that a point has printed."""
    for name in ("job.err", "job.out"):
        try:
            fd = os.open(os.path.join(jobs, one, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        with os.fdopen(fd, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_TAIL))
            lines = file.read().split(b"\n")
        for line in lines[-MOST_LINES:]:
            text = line.rstrip(b"\r").rpartition(b"\r")[2][:MOST_LINE].decode(errors="replace")
            if any(letter.isdigit() for letter in text):
                say("sweep tail", one, "|" + text.replace("\0", " "))


def look(jobs, folder, text):
    """`text`: a line `w ID` for each point that waits, as far as is known there, and `t ID` for each of which the last lines are wanted."""
    say("sweep runner", state(folder))
    note = read_words(os.path.join(folder, "note"))
    if note:
        say("sweep note", "|" + " ".join(note))
    given, begun = Journal(folder).read()
    for line in text.split("\n"):
        kind, _, one = line.partition(" ")
        if not ID.match(one):
            continue
        if kind == "t":
            tail(jobs, one)
        elif one in begun:
            say("sweep begun", one)
        elif one in given:
            say("sweep given", one, given[one])


def stop(folder):
    put(folder, "stopped", "", sure=True)
    process = runner(folder)
    if process is None:
        return
    # With it goes what it is just starting; a supervisor that stands has a session of its own.
    try:
        os.killpg(process[0], signal.SIGKILL)
    except ProcessLookupError:
        pass
    end = time.time() + STOP_SECONDS
    while lives(str(process[0]), process[1]):
        if time.time() > end:
            raise Trouble("the process that runs its points here, pid %d, does not end" % process[0])
        time.sleep(0.01)


def begin(jobs, folder, text, mask, path):
    request = json.loads(text)
    os.makedirs(folder, 0o700, exist_ok=True)
    if runner(folder):
        raise Trouble("it runs here already")
    if "points" in request:
        put(folder, "points", json.dumps(request["points"]), sure=True)
    elif not os.path.exists(os.path.join(folder, "points")):
        raise Trouble("the list of its points is not here any more")
    put(folder, "run", json.dumps(request["run"]), sure=True)
    for name in ("stopped", "note", "runner"):
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass
    options = ["-B", "-S"] + (["-I"] if sys.flags.isolated else [])  # as lib/python.sh has them
    words = ["stand", jobs, os.path.basename(folder), "0", mask, path]
    process = subprocess.Popen(
        [sys.executable] + options + [os.path.abspath(__file__)] + words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    answer = process.stdout.read().decode(errors="replace")
    if answer != "ok":
        raise Trouble(answer or "the process that runs its points ends at once")
    say("sweep began")


def stand(jobs, folder, mask, path):
    """That process: tells on stdout that it stands, or why not, and runs points."""
    try:
        from sweep_runner import Runner

        lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run = Runner(jobs, folder, (int(mask, 8), path), Journal(folder))
        put(folder, "runner", this_process() + "\n", sure=True)
        os.write(1, b"ok")
    except Exception as error:
        os.write(1, (str(error) or repr(error)).encode())
        return
    os.dup2(0, 1)
    run.run()
    os.unlink(os.path.join(folder, "runner"))


def main():
    mode, jobs, launch, count = sys.argv[1:5]
    folder = os.path.join(jobs, ".sweeps", launch)
    text = sys.stdin.buffer.read(int(count)).decode(errors="replace")
    try:
        if not ID.match(launch):
            raise Trouble("'%s' is no launch" % launch)
        if mode == "begin":
            begin(jobs, folder, text, *sys.argv[5:])
        elif mode == "stand":
            stand(jobs, folder, *sys.argv[5:])
        elif mode == "drop":
            if runner(folder):
                raise Trouble("it still runs here")
            shutil.rmtree(folder, ignore_errors=True)
            say("sweep runner none")
        else:
            if mode == "stop" and os.path.isdir(folder):
                stop(folder)
            look(jobs, folder, text)
    except (Trouble, OSError, ValueError) as error:
        say("error", str(error).replace("\n", " "))
        sys.exit(1)


if __name__ == "__main__":
    main()
