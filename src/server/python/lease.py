"""Leases of a server's GPUs, cores and memory, among all users of the server (docs/sharing.md).

A lease is a file of its user in a folder where everybody can make one and nobody can remove another's (/run/lock, /tmp). The file says what is
leased, and counts as long as somebody holds a lock on its first byte: a lock of an open file description (F_OFD_SETLK), which belongs to all
processes that have that file open by inheritance, and goes with the last of them. Only the file's owner can open it for writing, and so hold
that lock: whose a lease is need not be believed. Who chooses has the folder itself locked (flock) for that moment.

A second byte is locked by who waits in line and may take, a third by who waits only for another server (lifeline_queue.py). Nobody takes
anything while one who came earlier is in line.

As a program: lease.py take|wait|look …, which lib/lease.sh runs. Python 3.6 or later, standard library only.
"""
import fcntl
import os
import re
import stat
import struct
import sys
import time
from collections import namedtuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
import lease_machine
from lease_machine import KEY, Refused

PLACES = ("/run/lock", "/tmp", "/var/tmp")  # not /dev/shm: logind empties that of a user's files when the user logs out
PREFIX = ".remote-lease."
MOST_BYTES = 65536
STALE_SECONDS = 60
LOCK_SECONDS = 10
HELD, IN_LINE, ANNOUNCED = 0, 1, 2  # bytes of a lease's file
F_OFD_GETLK, F_OFD_SETLK = 36, 37
FLOCK = "hhqqi4x" if struct.calcsize("P") == 8 else "hhqqi"
NAME = re.compile(r"\.remote-lease\.[0-9]{1,10}\.[A-Za-z0-9]{6,32}")
GIB = 1 << 30

Entry = namedtuple("Entry", "state uid arrival name gpus cpus memory")
# A lease (`state` HELD), or one who waits for it. `arrival`: nanoseconds since the boot.


class Needs(namedtuple("Needs", "gpus cpus memory among")):
    """`memory` in bytes; `among`: indices of the GPUs that may be taken, None for all."""

    def __new__(cls, gpus=0, cpus=0, memory=0, among=None):
        return super().__new__(cls, gpus, cpus, memory, among)


# ---- The folder


def usable(path):
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode):
        return False
    shared = info.st_mode & 0o1777 == 0o1777
    return info.st_uid in (0, os.geteuid()) and (shared or not info.st_mode & 0o022)


def leases_folder(folder=None):
    """The folder that all users of this machine share. Raises Refused."""
    if folder is not None:
        if usable(folder):
            return folder
        raise Refused("%s is not a folder that its users can share: it must be root's, with mode 1777" % folder)
    for place in PLACES:
        try:
            info = os.lstat(place)
        except OSError:
            continue
        # In a user namespace without a mapping, root's folders belong to 65534.
        if stat.S_ISDIR(info.st_mode) and info.st_mode & 0o1777 == 0o1777 and info.st_uid in (0, 65534):
            return place
    raise Refused("none of %s is root's, with mode 1777, so that its users could share it" % ", ".join(PLACES))


def locked(fd, byte):
    """Whether another open file description has this byte locked."""
    data = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    return struct.unpack(FLOCK, fcntl.fcntl(fd, F_OFD_GETLK, data))[0] != fcntl.F_UNLCK


def set_lock(fd, byte, kind):
    fcntl.fcntl(fd, F_OFD_SETLK, struct.pack(FLOCK, kind, os.SEEK_SET, byte, 1, 0))


def parse(text):
    """ARRIVAL CPUS MEMORY KEY… of a lease's file; None for any other text."""
    words = text.split()
    if len(words) < 4 or words[0] != "remote-lease1" or not all(word.isdigit() and len(word) < 20 for word in words[1:4]):
        return None
    if not all(KEY.fullmatch(word) for word in words[4:]):
        return None
    return int(words[1]), int(words[2]), int(words[3]), words[4:]


def read_entry(folder, name):
    """What a file of the folder says; None for one that counts for nothing. Foreign files: no link is followed, nothing can block."""
    try:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1 or name.split(".")[2] != str(info.st_uid):
            return None
        states = [byte for byte in (HELD, IN_LINE, ANNOUNCED) if locked(fd, byte)]
        if not states:
            if info.st_uid == os.geteuid() and time.time() - info.st_mtime > STALE_SECONDS:
                os.unlink(os.path.join(folder, name))
            return None
        found = parse(os.read(fd, MOST_BYTES).decode("ascii", "replace"))
        if found is None:
            return None
        arrival, cpus, memory, gpus = found
        return Entry(states[0], info.st_uid, arrival, name, gpus, cpus, memory)
    except OSError:
        return None
    finally:
        os.close(fd)


def entries(folder):
    """All leases and all who wait, by arrival."""
    names = [name for name in os.listdir(folder) if NAME.fullmatch(name)]
    found = [read_entry(folder, name) for name in names]
    return sorted((entry for entry in found if entry is not None), key=lambda entry: (entry.arrival, entry.name))


class Choosing:
    """The folder's lock: one at a time chooses. Raises Refused where it cannot be had."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        limit = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return self
            except OSError as error:
                if not isinstance(error, BlockingIOError) or time.monotonic() > limit:
                    os.close(self.fd)
                    raise Refused("cannot lock %s: %s" % (self.folder, error.strerror))
            time.sleep(0.005)

    def __exit__(self, *_):
        os.close(self.fd)


# ---- A lease


class Lease:
    """One that may be taken. It holds what it holds until its last descriptor is closed, here and in all processes that have inherited it."""

    def __init__(self, folder, fd, name):
        self.folder = folder
        self.fd = fd
        self.name = name
        self.arrival = int(time.clock_gettime(7) * 1e9)  # CLOCK_BOOTTIME: of all processes of the machine the same
        self.gpus = []

    @staticmethod
    def make(folder=None):
        folder = leases_folder(folder)
        while True:
            name = "%s%d.%s" % (PREFIX, os.geteuid(), os.urandom(8).hex())
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                fd = os.open(os.path.join(folder, name), flags, 0o600)
            except FileExistsError:
                continue
            except OSError as error:
                raise Refused("cannot make a file in %s: %s" % (folder, error.strerror))
            os.fchmod(fd, 0o644)  # others look who has what
            return Lease(folder, fd, name)

    @staticmethod
    def adopt(fd):
        """Of a descriptor that a shell has opened of a file that make_file() made."""
        folder, name = os.path.split(os.readlink("/proc/self/fd/%d" % fd))
        info = os.fstat(fd)
        good = NAME.fullmatch(name) and stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and info.st_nlink == 1
        if not good:
            raise Refused("the file of the lease in %s is gone" % folder)
        return Lease(folder, fd, name)

    @property
    def devices(self):
        """As CUDA_VISIBLE_DEVICES takes them, with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
        return [str(gpu.index) for gpu in self.gpus]

    @property
    def variables(self):
        return lease_machine.variables(self.gpus)

    def write(self, needs):
        words = ["remote-lease1", self.arrival, needs.cpus, needs.memory] + [gpu.key for gpu in self.gpus]
        text = " ".join(str(word) for word in words).encode() + b"\n"
        os.pwrite(self.fd, text, 0)
        os.ftruncate(self.fd, len(text))

    def get_in_line(self, may_take):
        """From now on nobody who comes later gets something before this one; with `may_take` False, only the place is kept."""
        os.utime(self.fd)
        if os.fstat(self.fd).st_size == 0:
            self.write(Needs())
        set_lock(self.fd, IN_LINE if may_take else ANNOUNCED, fcntl.F_WRLCK)
        set_lock(self.fd, ANNOUNCED if may_take else IN_LINE, fcntl.F_UNLCK)

    def claim(self, needs, machine=None):
        """Takes it all, or nothing. None where it was taken, else why not, as Survey."""
        machine = machine or Machine(needs)
        with Choosing(self.folder):
            if os.fstat(self.fd).st_nlink != 1:
                raise Refused("the file of the lease in %s is gone" % self.folder)
            survey = Survey(machine, [entry for entry in entries(self.folder) if entry.name != self.name], needs)
            if survey.ahead(self.arrival, self.name) or not survey.enough():
                return survey
            self.gpus = survey.free[: needs.gpus]
            self.write(needs)
            set_lock(self.fd, HELD, fcntl.F_WRLCK)
        for byte in (IN_LINE, ANNOUNCED):
            set_lock(self.fd, byte, fcntl.F_UNLCK)
        return None

    def give_back(self):
        """It holds nothing any more; who waits keeps its place."""
        self.gpus = []
        self.get_in_line(False)
        set_lock(self.fd, HELD, fcntl.F_UNLCK)

    def close(self):
        """Gives up all that this process holds. Others who have inherited the descriptor keep the lease."""
        try:
            os.unlink(os.path.join(self.folder, self.name))
        except OSError:
            pass
        os.close(self.fd)


class Machine:
    """What this machine has, of the kinds that are needed: asked before the folder is locked, as a driver may take a second."""

    def __init__(self, needs):
        self.gpus = lease_machine.gpus_here() if needs.gpus else []
        self.cpus = len(os.sched_getaffinity(0)) if needs.cpus else 0
        self.memory, self.available = lease_machine.memory_here() if needs.memory else (0, 0)


class Survey:
    """What is free of `needs`, and who has the rest."""

    def __init__(self, machine, others, needs):
        self.machine = machine
        self.needs = needs
        self.waiting = [entry for entry in others if entry.state != HELD]
        self.held = [entry for entry in others if entry.state == HELD]
        self.owners = {key: entry.uid for entry in self.held for key in entry.gpus}
        self.allowed = [gpu for gpu in machine.gpus if needs.among is None or gpu.index in needs.among]
        self.free = [gpu for gpu in self.allowed if gpu.key not in self.owners and not gpu.pids]
        self.cpus = machine.cpus - sum(entry.cpus for entry in self.held)
        self.memory = min(machine.memory - sum(entry.memory for entry in self.held), machine.available)

    def ahead(self, arrival, name):
        """Those who may take and came earlier."""
        return [entry for entry in self.waiting if entry.state == IN_LINE and (entry.arrival, entry.name) < (arrival, name)]

    def position(self, arrival, name):
        return 1 + sum((entry.arrival, entry.name) < (arrival, name) for entry in self.waiting)

    def enough(self):
        needs = self.needs
        return len(self.free) >= needs.gpus and (not needs.cpus or self.cpus >= needs.cpus) and (not needs.memory or self.memory >= needs.memory)

    def never(self):
        """Whether it would not be enough if everything were free."""
        needs, machine = self.needs, self.machine
        return len(self.allowed) < needs.gpus or machine.cpus < needs.cpus or machine.memory < needs.memory


def take(needs, folder=None):
    """The lease, or None where not all of it is free. Never waits. Raises Refused."""
    lease = Lease.make(folder)
    try:
        if lease.claim(needs) is None:
            os.set_inheritable(lease.fd, True)
            return lease
    except BaseException:
        lease.close()
        raise
    lease.close()
    return None


# ---- The program


def parse_needs(words):
    """gpus=N cpus=N memory=BYTES among=I,J"""
    values = dict(word.split("=", 1) for word in words)
    among = values.get("among")
    return Needs(
        int(values.get("gpus", 0)),
        int(values.get("cpus", 0)),
        int(values.get("memory", 0)),
        [int(index) for index in among.split(",")] if among else None,
    )


def user_name(uid):
    import pwd

    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return name if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) else str(uid)


def counted(number, one):
    return "%d %s%s" % (number, one, "" if number == 1 else "s")


def shortage(survey):
    """Why a lease was not taken, for people who were told that all was free a moment ago."""
    needs = survey.needs
    if survey.never():
        return "this server does not have as much as is asked for"
    if survey.waiting:
        return "%s before this one" % ("another launch waits" if len(survey.waiting) == 1 else "%d launches wait" % len(survey.waiting))
    if len(survey.free) < needs.gpus:
        return "%s needed, and %d of %d free by now" % (counted(needs.gpus, "GPU"), len(survey.free), len(survey.allowed))
    if needs.cpus and survey.cpus < needs.cpus:
        return "%s needed, and %d of %d free by now" % (counted(needs.cpus, "core"), max(survey.cpus, 0), survey.machine.cpus)
    return "%d GiB of memory needed, and %d of %d free by now" % (needs.memory // GIB, max(survey.memory, 0) // GIB, survey.machine.memory // GIB)


def devices_text(lease, needs):
    """The job's file `devices`."""
    lines = ["leased gpus=%s cpus=%d memory=%d" % (",".join(lease.devices) or "-", needs.cpus, needs.memory)]
    return "".join(line + "\n" for line in lines + ["%s=%s" % pair for pair in sorted(lease.variables.items())])


def fact(*words):
    print("@remote1 facts " + " ".join(str(word) for word in words))


def look(needs, folder):
    """What is leased here, by whom, and how much of what is needed is free."""
    try:
        found = entries(leases_folder(folder))
        survey = Survey(Machine(needs), found, needs) if needs else None
    except Refused as why:
        fact("noleases", why)
        return
    for entry in found:
        own = int(entry.uid == os.geteuid())
        if entry.state == HELD:
            fact("lease", user_name(entry.uid), own, entry.cpus, entry.memory, *entry.gpus)
        else:
            fact("waiting", user_name(entry.uid), own)
    if survey is not None:
        machine = survey.machine
        numbers = len(survey.free), len(survey.allowed), max(survey.cpus, 0), machine.cpus, max(survey.memory, 0), machine.memory
        fact("free", *numbers)


def main(words):
    folder = os.environ.get("REMOTE_LEASES") or None  # of a test; who sets it takes part in no sharing
    try:
        if words[0] == "make":
            lease = Lease.make(folder)
            print(os.path.join(lease.folder, lease.name))
        elif words[0] == "take":
            lease, needs = Lease.adopt(int(words[1])), parse_needs(words[2:])
            survey = lease.claim(needs)
            if survey is not None:
                print(shortage(survey))
                return 1
            sys.stdout.write(devices_text(lease, needs))
        elif words[0] == "look":
            look(parse_needs(words[1:]) if len(words) > 1 else None, folder)
    except Refused as why:
        print(why)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
