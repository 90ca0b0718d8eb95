"""Finds and removes everything that a run leaves behind, even after a run that was killed.

There are three processes: the original process waits for the guard. The guard has the run as its child and adopts all
processes that the run leaves behind (PR_SET_CHILD_SUBREAPER). If the original process dies, the guard kills the rest.
"""

import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from results import hash_tree

PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36
TEST_NETWORKS = re.compile(r"bridge|eth1|nowhere|(to|host)\d+")  # the names of interfaces and namespaces in tests
PATIENCE = 75  # seconds, for processes that end on their own
SHOWN = 20

# Through this pipe the run tells its guard which processes are daemons.
daemons_out, daemons_in = os.pipe()
daemons = set()


def run_clean(work):
    """Calls `work` in a separate process. Returns its exit status, or 1 if it left something behind."""
    group = os.getpgrp()
    alive, held = os.pipe()  # the guard notices the end of this process by the end of the pipe
    sys.stdout.flush()
    guard = os.fork()
    if guard == 0:
        os.close(held)
        os.setpgid(0, 0)  # Ctrl-C is for the run
        os._exit(guard_run(work, group, alive))
    os.close(alive)
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(guard, 0)[1])
    os.close(held)
    return code if code >= 0 else 1


def keep_daemons():
    """Called by the run after it has installed packages: the daemons that the packages started are kept."""
    guard = os.getppid()
    started = set(list_descendants(guard)) - set(list_descendants(os.getpid())) - {os.getpid()}
    os.write(daemons_in, b"".join(b"%d " % pid for pid in started))


def guard_run(work, group, alive):
    os.set_blocking(daemons_out, False)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_NAME, b"systemd", 0, 0, 0)  # systemd also adopts processes, and the program recognizes it by its name
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    before = Surroundings()
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="t.")  # short, because a socket path has at most 107 bytes
    os.chmod(os.environ["TMPDIR"], 0o1777)  # like /tmp, because some tests use several users
    run = os.fork()
    if run == 0:
        os.close(alive)
        libc.prctl(PR_SET_NAME, b"tests/run", 0, 0, 0)
        os.setpgid(0, group)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            code = work()
        except KeyboardInterrupt:
            code = 130
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    code = wait_for(run, alive)
    was_killed = code is None or code > 128
    if was_killed:
        kill_left()
    left = find_left(before)
    kill_left()
    remove(os.environ["TMPDIR"])
    remove_networks(list_networks() - before.networks)
    if left and not was_killed:
        print("\nleft behind, and removed: %d" % len(left))
        for line in left[:SHOWN]:
            print("  " + line)
    sys.stdout.flush()
    return 1 if code is None or (left and code == 0) else code


def wait_for(run, alive):
    """The exit status of the run; None if the original process is gone."""
    waking, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        code = reap(run)
        if code is not None:
            return code
        ready = select.select([alive, waking], [], [])[0]
        if alive in ready:
            return None
        os.read(waking, 4096)


def reap(run=0):
    """Reaps all zombies among the children. Returns the exit status of `run`, if it is one of them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == run:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


def list_left():
    """The ids of the processes below the guard, without daemons, each with its command line and its folder."""
    try:
        daemons.update(int(word) for word in os.read(daemons_out, 65536).split())
    except BlockingIOError:
        pass
    return list_descendants(os.getpid(), daemons)


def list_descendants(top, without=()):
    parents, names = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            rest = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            names[int(folder.name)] = "%s, in %s" % (words[:150], read_link(folder / "cwd"))
        except (FileNotFoundError, ProcessLookupError):
            continue
        if rest[0] != "Z":
            parents[int(folder.name)] = int(rest[1])
    found = {}
    for pid in parents:
        above = pid
        while above in parents and above != top and above not in without:
            above = parents[above]
        if above == top and pid != above:
            found[pid] = names[pid]
    return found


def read_link(path):
    try:
        return os.readlink(path)
    except PermissionError:  # belongs to another user
        return "?"


def kill_left():
    end = time.monotonic() + PATIENCE
    while (found := list_left()) and time.monotonic() < end:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except (PermissionError, ProcessLookupError):
                pass
        time.sleep(0.02)
        reap()


class Surroundings:
    """Everything that tests could change outside their folder."""

    def __init__(self):
        self.tree = hash_tree()
        self.networks = list_networks()


def find_left(before):
    """Returns a line for each remaining thing."""
    end = time.monotonic() + PATIENCE
    while list_left() and time.monotonic() < end:
        time.sleep(0.05)
        reap()
    left = ["process %d: %s" % (pid, name) for pid, name in list_left().items()]
    left += ["mount: " + place for place in list_mounts(os.environ["TMPDIR"])]
    left += ["file: " + str(path) for path in pathlib.Path(os.environ["TMPDIR"]).iterdir()]
    now = Surroundings()
    left += ["network: " + name for name in sorted(now.networks - before.networks)]
    if now.tree != before.tree:
        left.append("the sources were changed: git status")
    return left


def list_mounts(folder):
    places = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    return [place for place in places if place.startswith(folder + "/")]


def list_networks():
    """The interfaces and network namespaces with names that tests give."""
    return {name for name in list_names("/run/netns") + list_names("/sys/class/net") if TEST_NETWORKS.fullmatch(name)}


def list_names(folder):
    return os.listdir(folder) if os.path.isdir(folder) else []


def remove(folder):
    for place in reversed(list_mounts(folder)):
        subprocess.run(["umount", "-l", place], check=False)
    subprocess.run(["chmod", "-R", "u+rwX", folder], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)


def remove_networks(names):
    for name in names:
        for kind in ("link", "netns"):
            subprocess.run(["ip", kind, "delete", name], check=False, stderr=subprocess.DEVNULL)
