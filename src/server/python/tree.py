"""The trees that frozen launches run in: tree.py make JOBS DIGEST PYTHON BYTES, tree.py land JOBS, tree.py drop JOBS.

JOBS is the jobs' folder, in the project's. In its .trees, DIGEST is a tree: the files that were sent, as they were then; beside them, links
to whatever else is in the project's folder. DIGEST.list names the files, with sizes and times, and has that digest; DIGEST.jobs has a file
for each job that runs or ran in the tree (lib/tree.sh); DIGEST.starting is there until its jobs are (lib/tree.sh), and DIGEST.open until what they wrote is carried home.

A file of a tree shares its blocks with the project's where the file system can do that. Else it is a hard link, if nobody writes into such a
file: sources, and what is large. rsync replaces files by rename, so it never changes one. All others are copies.
"""

import errno
import fcntl
import os
import stat
import sys
import time

CLONE = 0x40049409  # FICLONE of linux/fs.h
LARGE = 1 << 20
SOURCES = tuple(
    ".py .pyi .pyx .pxd .sh .bash .c .cc .cpp .cxx .h .hh .hpp .cu .cuh .so .proto .rs .go .jl .lua".split()
)
SKIPPED = ("__pycache__", ".rsync-partial")
STARTING = 600  # seconds after which a launch that has not started never will
SHOWN = 20


def digest_of(text):
    import hashlib  # it takes long to load

    return hashlib.sha256(text).hexdigest()


def remove(folder):
    import shutil  # so does this

    shutil.rmtree(folder, ignore_errors=True)


class Trouble(Exception):
    """What a person is told."""


def read(path, mode="r"):
    try:
        with open(path, mode) as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return b"" if "b" in mode else ""


def parse(text):
    """{name: (size, seconds)} of a list (ProjectState::text())."""
    files = {}
    for one in os.fsdecode(text).split("\0")[:-1]:
        size, nanoseconds, name = one.split(" ", 2)
        if name.startswith("/") or "/../" in "/" + name + "/":
            raise Trouble("the list of files has a name that leads out of the project")
        files[name] = (int(size), int(nanoseconds) // 10**9)
    return files


def folders_of(files):
    """{folder: the names in it} of the files, "" for the top."""
    folders = {"": set()}
    for name in files:
        folder, _, last = name.rpartition("/")
        while last not in folders.setdefault(folder, set()):
            folders[folder].add(last)
            if not folder:
                break
            folder, _, last = folder.rpartition("/")
    return folders


def same(info, wanted):
    """Whether it is the file that was sent: by size and whole seconds, as rsync tells it."""
    return stat.S_ISREG(info.st_mode) and (info.st_size, int(info.st_mtime_ns // 10**9)) == wanted


def same_file(path, wanted):
    try:
        return same(os.lstat(path), wanted)
    except OSError:
        return False


def is_folder(path):
    return os.path.isdir(path) and not os.path.islink(path)


def in_place(folder):
    """Whether it is the folder that was made there, and nothing that a program has put in its place, nor in that of one above it."""
    folder = os.path.normpath(folder)
    return is_folder(folder) and os.path.realpath(folder) == folder


class Maker:
    """Puts files of the project into a tree."""

    def __init__(self, project, tree):
        self.project, self.tree, self.clones = project, tree, True

    def put(self, name, wanted):
        """Whether the project had the file as it was sent."""
        source, path = os.path.join(self.project, name), os.path.join(self.tree, name)
        if os.path.lexists(path):
            os.unlink(path)
        try:
            made = (self.clones and self.copy(source, path, True)) or self.link(source, path, wanted) or self.copy(source, path, False)
        except FileNotFoundError:
            return False
        # looked at afterwards: a sync may be at work
        if made and same_file(path, wanted):
            return True
        if os.path.lexists(path):
            os.unlink(path)
        return False

    def link(self, source, path, wanted):
        if wanted[0] < LARGE and not path.endswith(SOURCES):
            return False
        try:
            os.link(source, path, follow_symlinks=False)
            return True
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOSPC, errno.EDQUOT):
                raise
            return False  # too many links, or the file system has none, or the file is another user's

    def copy(self, source, path, clone):
        with open(source, "rb") as file, open(path, "xb") as copy:
            if clone:
                try:
                    fcntl.ioctl(copy.fileno(), CLONE, file.fileno())
                except OSError as error:
                    if error.errno in (errno.ENOSPC, errno.EDQUOT):
                        raise
                    self.clones = False
                    os.unlink(path)
                    return False
            else:
                for part in iter(lambda: file.read(LARGE), b""):
                    copy.write(part)
            info = os.fstat(file.fileno())
            os.fchmod(copy.fileno(), info.st_mode & 0o777)
            copy.flush()
            os.utime(copy.fileno(), ns=(info.st_atime_ns, info.st_mtime_ns))
        return True


class Trees:
    def __init__(self, jobs):
        self.jobs, self.project = jobs, os.path.dirname(jobs)
        self.folder = os.path.join(jobs, ".trees")
        self.failed = ""  # what could not be carried home
        self.host = read("/proc/sys/kernel/hostname").strip()
        self.boot = read("/proc/sys/kernel/random/boot_id").strip()

    def path(self, digest, what=""):
        return os.path.join(self.folder, digest + what)

    def lock(self, patient):
        """One at a time, until this process ends. Who is not patient gives up after some seconds: a later one does the work."""
        self.held = os.open(os.path.join(self.folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for turn in range(50):
            try:
                fcntl.flock(self.held, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
                return True
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                return True  # a network's file system without locks
        return False

    def digests(self):
        return [name for name in os.listdir(self.folder) if len(name) == 64 and "." not in name]

    def files(self, digest):
        text = read(self.path(digest, ".list"), "rb")
        return parse(text) if text else None

    # ---- who needs a tree ----

    def young(self, path):
        return os.path.exists(path) and abs(time.time() - os.lstat(path).st_mtime) < STARTING

    def lives(self, digest, job):
        folder = os.path.join(self.jobs, job)
        if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, "result")):
            return False
        words = read(os.path.join(folder, "supervisor")).split()
        if len(words) < 3:
            return not words and self.young(folder)  # it is starting, or was claimed and never starts
        if read(os.path.join(self.path(digest, ".jobs"), job)).strip() != self.host:
            return True  # on another machine, or in another container of this one: its processes are not seen here
        if words[2] != self.boot:  # this machine has started anew
            return False
        fields = read("/proc/%d/stat" % int(words[0])).rpartition(") ")[2].split()
        return len(fields) > 19 and fields[0] not in "ZXx" and fields[19] == words[1]

    def users(self, digest):
        folder = self.path(digest, ".jobs")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def runs(self, digest):
        return any(not job.endswith(".done") and self.lives(digest, job) for job in self.users(digest))

    def needed(self, digest):
        """A tree stays as long as a job's folder does."""
        return self.young(self.path(digest, ".starting")) or any(
            os.path.isdir(os.path.join(self.jobs, job.partition(".")[0])) for job in self.users(digest)
        )

    # ---- what was written into a tree ----

    def free(self, path):
        """The path, or with a number where that is taken."""
        number, free = 1, path
        while os.path.lexists(free):
            number += 1
            free = "%s-%d" % (path, number)
        return free

    def move(self, source, target, aside, since=0.0):
        """Carries something home. What came there after `since`, and whatever is of another kind, stays: it goes beside that."""
        if is_folder(source) and is_folder(target):
            for name in os.listdir(source):
                self.move(os.path.join(source, name), os.path.join(target, name), aside, since)
            os.rmdir(source)
            return
        try:
            if os.path.lexists(target) and (is_folder(source) or os.path.isdir(target) or os.lstat(target).st_ctime > since):
                target = self.free(target + aside)
            os.makedirs(os.path.dirname(target), exist_ok=True)
        except (FileExistsError, NotADirectoryError):  # a folder above it has become a file there
            target = self.free(os.path.join(self.project, os.path.relpath(target, self.project).replace("/", "_") + aside))
        try:
            os.replace(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            import shutil

            shutil.move(source, target)

    def lead_home(self, tree, path, home, folders):
        """What is to be carried home in place of a link in the tree: None where it is one of ours that is in its place."""
        link = os.readlink(path)
        target = os.path.normpath(os.path.join(os.path.dirname(path), link))
        if target.startswith(tree + "/"):
            target = os.path.join(self.project, os.path.relpath(target, tree))
            if not link.startswith("/"):
                return path  # it will lead to the same file there
        elif not target.startswith(self.project + "/") or target.startswith(self.jobs + "/"):
            return path
        if target == home:
            return None
        name = os.path.relpath(target, self.project)
        if link.startswith("../../../") and os.path.dirname(name) in folders and not os.path.lexists(os.path.join(tree, name)):
            return target  # ours, which a program has renamed
        os.unlink(path)
        os.symlink(os.path.relpath(target, os.path.dirname(home)), path)
        return path

    def land_one(self, tree, path, home, folders, aside, since, sent):
        """`sent`: something of this name was sent, and is to be made here again."""
        source = self.lead_home(tree, path, home, folders) if os.path.islink(path) else path
        if source is None:
            return
        if os.path.lexists(source):
            self.move(source, home, aside, since)
        if os.path.lexists(path):
            os.unlink(path)
        if not sent:
            os.symlink(os.path.relpath(home, os.path.dirname(path)), path)

    def land_folder(self, tree, folder, known, folders, aside, since):
        """Carries home what stands in a folder of the tree and was not sent, or is no folder any more."""
        for entry in list(os.scandir(os.path.join(tree, folder))):
            name = os.path.join(folder, entry.name)
            home = os.path.join(self.project, name)
            if entry.name in SKIPPED:
                continue
            if entry.name in known:
                if is_folder(entry.path) == (name in folders):
                    continue
                home = self.free(home + aside)
            try:
                self.land_one(tree, entry.path, home, folders, aside, since, entry.name in known)
            except OSError as error:
                self.failed = "%s: %s" % (name, error.strerror)

    def land_changes(self, tree, files, aside):
        """Carries home the files that were sent and that a program has changed."""
        for name, wanted in files.items():
            path, home = os.path.join(tree, name), os.path.join(self.project, name)
            try:
                if not in_place(os.path.dirname(path)) or same_file(path, wanted) or not os.path.lexists(path) or is_folder(path):
                    continue
                if os.path.lexists(home) and os.path.samestat(os.lstat(path), os.lstat(home)):
                    continue
                self.move(path, home if same_file(home, wanted) else self.free(home + aside), aside, time.time())
            except OSError as error:
                self.failed = "%s: %s" % (name, error.strerror)

    def land(self, digest, starting=False):
        """Carries home what ended launches have written into the tree. Replaces nothing that came there meanwhile. Waits for one that is about
        to start there, unless that is `starting` by this very process."""
        tree, aside, files = self.path(digest), ".frozen-" + digest[:8], self.files(digest)
        if files is None:
            self.failed = "the list of its files is lost; look into " + tree
            return False
        if not os.path.isdir(tree) or self.runs(digest) or (not starting and self.young(self.path(digest, ".starting"))):
            return True
        try:
            since = os.lstat(self.path(digest, ".open")).st_mtime
        except OSError:
            since = 0.0
        self.failed, folders = "", folders_of(files)
        for folder, known in folders.items():
            if in_place(os.path.join(tree, folder)):
                self.land_folder(tree, folder, known, folders, aside, since)
        self.land_changes(tree, files, aside)
        if self.failed:
            return False
        try:
            os.unlink(self.path(digest, ".open"))
        except FileNotFoundError:
            pass
        return True

    def landed(self, digest, starting=False):
        try:
            return self.land(digest, starting)
        except (OSError, ValueError) as error:
            self.failed = str(error)
            return False  # the next one tries again

    def land_all(self, but=None):
        for digest in self.digests():
            if digest != but and os.path.exists(self.path(digest, ".open")):
                self.landed(digest)

    def drop_all(self, keep=None):
        self.drop_rubbish()
        for digest in self.digests():
            if digest == keep or self.needed(digest) or self.runs(digest) or not self.landed(digest):
                continue
            os.rename(self.path(digest), self.path(".new." + digest))
            for what in (".list", ".open", ".starting"):
                if os.path.exists(self.path(digest, what)):
                    os.unlink(self.path(digest, what))
            remove(self.path(digest, ".jobs"))
        self.drop_rubbish()

    def drop_rubbish(self):
        """What was being made or removed when its maker was lost."""
        for name in os.listdir(self.folder):
            if name.startswith(".new."):
                remove(os.path.join(self.folder, name))

    # ---- making one ----

    def link_rest(self, tree, folders):
        """Links to what was not sent: environments, data, and what earlier launches wrote."""
        for folder, known in folders.items():
            place, home = os.path.join(tree, folder), os.path.join(self.project, folder)
            have = set()
            for entry in list(os.scandir(place)):
                ours = entry.is_symlink() and os.readlink(entry.path) == os.path.relpath(os.path.join(home, entry.name), place)
                if ours and not os.path.exists(entry.path):
                    os.unlink(entry.path)  # nothing could be made in its place
                else:
                    have.add(entry.name)
            up = os.path.relpath(home, place)
            for entry in os.scandir(home):
                name = entry.name
                if name not in have and name not in known and name not in SKIPPED and entry.path != self.jobs:
                    os.symlink(os.path.join(up, name), os.path.join(place, name))

    def write(self, name, content):
        with open(os.path.join(self.folder, ".part"), "wb") as part:
            part.write(content)
        os.replace(part.name, os.path.join(self.folder, name))

    def make(self, digest, text, python):
        kept = read(self.path(digest, ".list"), "rb")
        text = text if text.strip() else kept
        if not text:
            return "unknown", []
        if text != kept and digest_of(text) != digest:
            raise Trouble("the list of files came damaged")
        files = parse(text)
        self.land_all(digest)
        self.drop_all(digest)
        folders = folders_of(files)
        final = self.path(digest)
        if os.path.exists(self.path(digest, ".open")) and not self.landed(digest, True):
            raise Trouble("what an earlier launch wrote cannot be carried to the project: " + self.failed)
        tree = final if os.path.isdir(final) else self.path(".new." + digest)
        for folder in sorted(folders):
            os.makedirs(os.path.join(tree, folder), exist_ok=True)
            if not in_place(os.path.join(tree, folder)):
                raise Trouble("a launch that runs has put something else in place of the folder " + folder)
        maker = Maker(self.project, tree)
        shared = tree == final and self.runs(digest)  # then what its launch has changed stays so
        differing = []
        for name, wanted in files.items():
            path = os.path.join(tree, name)
            whole = tree == final and (same_file(path, wanted) or (shared and os.path.lexists(path)))
            if not whole and not maker.put(name, wanted):
                differing.append(name)
        if differing:
            return "differs", differing
        self.link_rest(tree, folders)
        os.makedirs(self.path(digest, ".jobs"), exist_ok=True)
        if text != kept:
            self.write(digest + ".list", text)
        self.write("python", os.fsencode(python) + b"\n")
        for mark in (".starting", ".open"):
            self.write(digest + mark, b"")
        if tree != final:
            os.rename(tree, final)
        self.land_all(digest)  # who ended meanwhile has not waited
        return "ready", []


def main(what, jobs, *words):
    os.umask(0o077)
    trees = Trees(os.path.realpath(jobs))
    if not trees.lock(what == "make"):
        return
    if what != "make":
        trees.land_all()
        if what == "drop":
            trees.drop_all()
            trees.land_all()
        return
    try:
        answer, names = trees.make(words[0], sys.stdin.buffer.read(int(words[2])), words[1])
    except (OSError, ValueError, Trouble) as error:
        trees.drop_rubbish()
        reason = getattr(error, "strerror", None) or str(error)
        if getattr(error, "filename", None):
            reason += ": " + os.fsencode(error.filename).decode(errors="replace")
        print("@remote1 tree fail " + reason.replace("\n", "?"))
        return
    if answer != "ready":
        trees.drop_rubbish()
    if not names:
        print("@remote1 tree " + answer)
    for name in names[:SHOWN]:
        print("@remote1 tree differs " + os.fsencode(name).decode(errors="replace").replace("\n", "?"))
    if len(names) > SHOWN:
        print("@remote1 tree more %d" % (len(names) - SHOWN))


main(*sys.argv[1:])
