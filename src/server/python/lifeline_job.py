"""The jobs of a launch on this server, as their folders tell."""
import _thread
import os
import stat
import time

BEGIN_ANEW, WORKERS_ANEW = b"remote: the ranks begin anew (", b"remote: the workers begin anew ("  # the second is torch_agent.py's
# Words of a failure that follows from another rank's: as in lib/peer_words.sh.
PEER = (b"Connection reset", b"Connection closed", b"Connection refused", b"Connection was likely closed", b"Broken pipe", b"connectFullMesh failed")
PEER += (b"Socket Timeout", b"Socket closed", b"DistNetworkError", b"DistStoreError", b"ms for recv operation", b"ms for send operation")
PEER += (b"remote process exited", b"NCCL communicator was aborted", b"NCCL operations have failed or timed out")
PEER += (b"Watchdog caught collective operation timeout", b"remote: ended by TERM, as ", b"remote: ended by KILL, as ")
PEER += (b"remote: exited with 14, as ", b"remote: mpirun has ended", b"has lost communication with a remote daemon", b"assert (!closed) failed")
MOST_WORDS = 16384  # of a file's end, for these
MARK_SECONDS = 10  # so often it is noted how much output there is


def clock():
    """Seconds since the boot, also those in which the machine slept (CLOCK_BOOTTIME)."""
    return time.clock_gettime(7)


def read_words(path):
    """The blank-separated words of a file's first line; none for a file that is not there."""
    try:
        with open(path, "rb") as file:
            line = file.readline()
    except OSError:
        return []
    return line.decode(errors="replace").split() if line.endswith(b"\n") else []


def read_second(name):
    """The same of a file in the second place, as second_file() of lib.sh."""
    for place in ("/var/tmp", "/tmp", "/dev/shm"):
        folder = "%s/remote-%d" % (place, os.getuid())
        path = os.path.join(folder, name)
        try:
            infos = os.lstat(folder), os.lstat(path)
        except OSError:
            continue
        if all(info.st_uid == os.geteuid() and not stat.S_ISLNK(info.st_mode) for info in infos):
            return read_words(path)
    return []


def lives(pid, start):
    """Whether that very process lives: as alive() of lib.sh."""
    try:
        with open("/proc/%d/stat" % int(pid), "rb") as file:
            fields = file.read().rpartition(b") ")[2].decode().split()
    except (OSError, ValueError):
        return False
    return len(fields) > 19 and fields[19] == start and fields[0] not in "ZXx"


def put(folder, name, text, sure=False):
    """Writes a file of which others see all or nothing; `sure`: it is on the disk, too, before it counts. Raises OSError."""
    part = os.path.join(folder, ".%s.part" % name)
    with open(part, "wb") as file:
        file.write(text.encode(errors="replace"))
        if sure:
            file.flush()
            os.fsync(file.fileno())
    os.rename(part, os.path.join(folder, name))


def end_of_output(path, most):
    """The last bytes of what a job has written to this file in its last attempt (a line divides them). Raises OSError."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - most))
        text = file.read()
    at = max((b"\n" + text).rfind(b"\n" + line) for line in (BEGIN_ANEW, WORKERS_ANEW))
    return text if at < 0 else text[at:].partition(b"\n")[2]


def tells_of_peer(text):
    """Whether the last words in this text tell of another rank that is gone."""
    last = text.rpartition(b"Traceback (most recent call last)")[2]
    return any(word in last for word in PEER)


def seconds_between(first, second):
    """Of two times in milliseconds, each in a list of one word or none; 0 where that is not known."""
    try:
        return max(0.0, (int(second[0]) - int(first[0])) / 1000)
    except (IndexError, ValueError):
        return 0.0


def boot():
    return (read_words("/proc/sys/kernel/random/boot_id") or ["unknown"])[0]


def this_process():
    """PID START BOOT, by which others find it: lives(), as long as the boot is the same."""
    with open("/proc/self/stat", "rb") as file:
        start = file.read().rpartition(b") ")[2].decode().split()[19]
    return "%d %s %s" % (os.getpid(), start, boot())


def remove_init_file(job_folder):
    """Removes the launch's shared file, as leave_init_file() of init_file.sh, whichever jobs are not known to have ended."""
    try:
        with open(os.path.join(job_folder, "init_file"), "rb") as file:
            path = file.read().split(b"\n")[1]
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except (OSError, IndexError):
        return
    try:
        with open("/proc/self/fd/%d/launch" % folder, "rb") as file:
            if path.rpartition(b"/.remote-init-")[2] != file.read().strip():
                return
        for name in os.listdir(folder):
            if name == "launch" or name.startswith(("store", "ended.")):
                os.unlink(name, dir_fd=folder)
        os.rmdir(path)
    except OSError:
        pass
    finally:
        os.close(folder)


class Job:
    """One job of this server, as its folder tells."""

    def __init__(self, folder, job_id, rank):
        self.folder = os.path.join(folder, job_id)
        self.id = job_id
        self.rank = rank
        self.ended = False
        self.failed = False
        self.worker = None  # of an agent that has failed: RANK, KIND and CODE of the worker that it failed of
        self.mpirun = False  # it is mpirun, or waits for the order of one: its own code tells of some rank
        self.after_peer = False  # its failure follows from another rank's
        self.stop = []  # SIGNAL BY MS, where it was told to end
        self.stopped_for = None  # where a person has stopped it: for how many seconds when it had ended
        self.round = None  # of a launch that may begin anew: (attempt, kind, code) of its last end
        self.supervisor = self.main = ()
        self.sizes = (0, 0)
        self.marked = 0.0
        # The supervisor holds .alive open for writing: its end comes as an end of file, at once and for nothing.
        try:
            self.fifo = os.open(os.path.join(self.folder, ".alive"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            self.fifo = None

    def close(self):
        """Lets go of the FIFO; looking goes on."""
        if self.fifo is not None:
            os.close(self.fifo)
            self.fifo = None

    def result(self):
        words = read_words(os.path.join(self.folder, "result")) or read_second(self.id + ".result")
        return words if len(words) >= 2 else None  # KIND CODE MS BY; older builds wrote KIND CODE SECONDS

    def look(self):
        """Whether it has ended, and the failure in words, or None. It reads files, which may take its time; it changes nothing that others read."""
        result = self.result()
        if result is None:
            if read_words(os.path.join(self.folder, "backend")):
                return False, None  # not `local`: its processes need not be on this machine
            # Where the folder is not to be seen any more, what it told before counts.
            seen = os.path.isdir(self.folder)
            self.supervisor = read_words(os.path.join(self.folder, "supervisor")) or self.supervisor
            self.main = read_words(os.path.join(self.folder, "pid")) or self.main
            if seen and len(self.supervisor) < 3:
                return False, None
            if any(len(process) > 1 and lives(*process[:2]) for process in (self.supervisor, self.main)):
                return False, None
            if not seen:
                return True, None  # removed
            result = self.result() or ["gone", "0", str(int(time.time() * 1000)), "lifeline"]
        self.stop = read_words(os.path.join(self.folder, "stop")) or read_second(self.id + ".stop")
        if "".join(self.stop[1:2]).startswith("user:"):
            self.stopped_for = seconds_between(self.stop[2:3], result[2:3])
        if self.stop or os.path.exists(os.path.join(self.folder, "stop")) or result[0] == "never" or result[:2] == ["exit", "0"]:
            return True, None
        self.worker = self.failed_worker() if result[0] == "exit" else None
        if self.worker is not None:
            self.after_peer = self.follows(*self.worker)
        elif self.mpirun and result[0] == "exit":
            self.after_peer = True
        else:
            self.after_peer = result[1] not in ("9", "137") and self.words_follow("job.err")
        return True, " ".join(result)

    def failed_worker(self):
        """Of the job of an agent: RANK, KIND and CODE of the worker that failed first; None where there is none."""
        try:
            with open(os.path.join(self.folder, "failures", "agent"), "rb") as file:
                lines = [line.decode(errors="replace").split() for line in file if line.endswith(b"\n")]
        except OSError:
            return None
        found = None
        for words in lines:
            if len(words) < 3 or not words[0].isdigit() or words[1] not in ("exit", "signal") or not words[2].isdigit():
                break
            oom = words[1:3] == ["signal", "9"] and os.path.exists(os.path.join(self.folder, "oom"))
            worker = int(words[0]), "oom" if oom else words[1], words[2]
            if not self.follows(int(words[0]), *words[1:3]):
                return worker
            if words[1] != "signal" or words[4:5] != ["mpirun"]:  # as that ends ranks when another one has failed
                found = found or worker
        return found

    def follows(self, rank, kind, code):
        """Whether a worker has failed because of another rank: of TERM or abort(), or by its last words."""
        if os.path.exists(os.path.join(self.folder, "failures", "rank.%d" % rank)):
            return self.words_follow("failures/rank.%d" % rank)
        return (kind, code) in (("signal", "6"), ("signal", "15")) or self.words_follow("ranks/%d.err" % rank)

    def words_follow(self, name):
        try:
            return tells_of_peer(end_of_output(os.path.join(self.folder, name), MOST_WORDS))
        except OSError:
            return False

    def first_failure(self, failure):
        """The rank to name where the job has failed, and what to say of it; the last word is "peer" where that follows from another rank's."""
        rank, told = (self.rank, failure) if self.worker is None else (self.worker[0], " ".join(self.worker[1:]))
        return rank, told + " peer" if self.after_peer else told

    def last_words(self):
        """The files in which the rank to name may have said why, the best first."""
        return (["ranks/%d.err" % self.worker[0]] if self.worker else []) + ["job.err", "job.out"]

    def read_round(self):
        words = read_words(os.path.join(self.folder, "ended"))
        if len(words) < 3 or not words[0].isdigit():
            return None
        oom = words[1:3] == ["signal", "9"] and os.path.exists(os.path.join(self.folder, "oom"))
        return int(words[0]), "oom" if oom else words[1], words[2]

    def mark(self):
        """Notes how long the two outputs are at this moment, for `job-tail --since`: nothing else tells when a line was written."""
        now = time.time()
        try:
            sizes = tuple(os.stat(os.path.join(self.folder, name)).st_size for name in ("job.out", "job.err"))
            if sizes == self.sizes or 0 <= now - self.marked < MARK_SECONDS:
                return
            with open(os.path.join(self.folder, "marks"), "ab") as file:
                file.write(b"%d %d %d\n" % ((now * 1000,) + sizes))
        except OSError:
            return
        self.sizes, self.marked = sizes, now


class Looker:
    """Looks at jobs in a thread of its own: files may lie on slow storage, and who watches the other servers must not wait for them."""

    def __init__(self, rounds):
        self.rounds = rounds  # whether the launch may begin anew, so that jobs have some
        self.ready, self.wake = os.pipe()
        self.began = 0.0
        self.busy = False
        self.found = []

    def begin(self, jobs):
        """Nothing while it still looks."""
        if not self.busy:
            self.busy = True
            self.began = clock()
            _thread.start_new_thread(self.look, (jobs,))

    def look(self, jobs):
        try:
            for job in jobs:
                job.mark()
            self.found = [(job,) + job.look() + (job.read_round() if self.rounds else None,) for job in jobs]
        finally:
            os.write(self.wake, b".")

    def take(self):
        """What was found, as (job, ended, failure, round)."""
        os.read(self.ready, 1)
        self.busy = False
        found, self.found = self.found, []
        return found
