"""What is sampled and kept of a launch that is watched for standing still; lifeline_hang.py decides. A lifeline has this with --hang-after only.

What job-why would ask now is kept in the file `why` of the first running job's folder here, before anything is ended: the answer of lib/evidence.sh.
The file `hung` of each job's folder says when the launch was found to stand still: MS SECONDS, and MS when it went on.
"""
import _thread
import os
import time

from lifeline_hang import HangPolicy, Stillness, stands
from lifeline_job import clock, lives, read_words
from lifeline_policy import span

MOST_BYTES = 8 << 20
SCRIPT_SECONDS = 75
NEWS_SECONDS = 600


def ticks_by_job(ids):
    """Processor time of the jobs' processes, in hundredths of a second, by job and process."""
    found = {name: {} for name in ids}
    uid = os.getuid()
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            if os.stat("/proc/" + pid).st_uid != uid:
                continue
            with open("/proc/%s/environ" % pid, "rb") as file:
                _, mark, after = (b"\0" + file.read()).partition(b"\0REMOTE_JOB_ID=")
            job = after.partition(b"\0")[0].decode("ascii", "replace")
            if not mark or job not in found:
                continue
            with open("/proc/%s/stat" % pid, "rb") as file:
                fields = file.read().rpartition(b") ")[2].split()
            found[job][(pid, fields[19])] = int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            continue
    return found


def waits_in_debugger(folder):
    """Whether a rank waits there (debugger.py)."""
    try:
        names = os.listdir(os.path.join(folder, "debug"))
    except OSError:
        return False
    records = [read_words(os.path.join(folder, "debug", name)) for name in names if not name.endswith(".sock")]
    return any(len(words) > 1 and lives(words[0], words[1]) for words in records)


def begun(jobs):
    """Those that have not ended, but neither wait in line (lifeline_queue.py) nor as spares."""
    files = [(job, os.path.join(job.folder, "pid"), os.path.join(job.folder, "queue")) for job in jobs if not job.ended]
    return [job for job, pid, queue in files if os.path.exists(pid) and not os.path.exists(queue)]


def sample(jobs):
    """What Stillness.take() wants. Raises OSError."""
    ticks = ticks_by_job([job.id for job in jobs])
    found = {}
    for job in jobs:
        sizes = tuple(os.stat(os.path.join(job.folder, name)).st_size for name in ("job.out", "job.err"))
        found[job.id] = (sizes, ticks[job.id], waits_in_debugger(job.folder))
    return found


def output_of(script, between, ids):
    """What the script prints, whole lines of it, as far as it comes in its time. Its processes are gone afterwards."""
    import select
    import signal
    import subprocess

    limit = time.monotonic() + SCRIPT_SECONDS
    child = subprocess.Popen(
        ["sh", script, str(between)] + ids, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    text = b""
    try:
        while len(text) < MOST_BYTES and select.select([child.stdout], [], [], max(0, limit - time.monotonic()))[0]:
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                break
            text += data
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except OSError:
            pass
        child.stdout.close()
        try:
            child.wait(2)
        except subprocess.TimeoutExpired:
            pass  # nothing ends it
    return text[: text.rfind(b"\n") + 1]


class Evidence:
    def __init__(self, lifeline, request):
        self.lifeline = lifeline
        self.jobs = lifeline.jobs
        self.script = os.path.join(os.path.dirname(lifeline.kill_script), "evidence.sh")
        on_record = len(read_words(os.path.join(self.jobs[0].folder, "hung"))) == 2
        self.policy = HangPolicy(request["hang"], lifeline.policy, self, on_record, clock())
        self.still = Stillness(self.policy.every)
        self.next_sample = 0.0
        self.sampling = False
        self.sampled = None
        self.taking = False
        self.took = None  # (number, whether its ranks stand still) of evidence that is there
        self.where = None  # the file of that
        self.fate = None  # what is to become of it, once that is known: keep or drop
        self.messengers = []  # processes that tell somebody

    def step(self, now):
        if self.sampled is not None:
            found, self.sampled = self.sampled, None
            self.still.take(found, now)
            self.policy.report(bool(found), self.still.silent, self.still.idle, now)
        if not self.sampling and now >= self.next_sample:
            self.next_sample = now + self.policy.every
            self.sampling = True
            _thread.start_new_thread(self.look, (self.jobs,))
        if self.took is not None:
            took, self.took = self.took, None
            self.settle()
            self.policy.taken(*took)
        self.policy.tick(now)
        self.messengers = [pid for pid in self.messengers if self.runs(pid)]

    @staticmethod
    def runs(pid):
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == 0
        except ChildProcessError:
            return False

    def look(self, jobs):
        """In a thread: files may lie on slow storage."""
        try:
            self.sampled = sample(begun(jobs))
        except OSError:
            pass  # a job was removed
        finally:
            self.sampling = False

    # ---- what is decided

    def broadcast(self, text):
        self.lifeline.broadcast(text)

    def take(self, number):
        jobs = begun(self.jobs)
        self.fate = None
        if not jobs:
            self.policy.taken(number, True)
        elif not self.taking:
            self.taking = True
            _thread.start_new_thread(self.collect, (number, jobs))

    def collect(self, number, jobs):
        """In a thread."""
        still = False
        try:
            ids = [job.id for job in jobs]
            between = max(1, min(10, int(self.policy.limit / 3)))
            text = output_of(self.script, between, ids)
            still = stands(text.decode("utf-8", "replace"), ids)
            self.where = os.path.join(jobs[0].folder, "why")
            with open(os.open(self.where + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(text)
        except Exception:  # whatever it is, the launch goes on as if there were no evidence
            still = False
        finally:
            self.taking = False
            self.took = (number, still)

    def settle(self):
        """Does with the evidence what was decided, as soon as both are there."""
        if self.where is None or self.taking or self.fate is None:
            return
        try:
            if self.fate == "keep":
                os.rename(self.where + ".new", self.where)
            else:
                os.unlink(self.where + ".new")
        except OSError:
            pass
        self.where = None

    def keep(self, seconds):
        self.fate = "keep"
        self.settle()
        self.lifeline.write("hung", "%d %d" % (time.time() * 1000, seconds))

    def drop(self):
        self.fate = "drop"
        self.settle()

    def moved(self):
        words = read_words(os.path.join(self.jobs[0].folder, "hung"))
        if len(words) == 2:
            self.lifeline.write("hung", "%s %s %d" % (words[0], words[1], time.time() * 1000))

    def end(self, action, seconds):
        """The hub's."""
        now = clock()
        if action != "leave":
            self.lifeline.policy.end_hung("hang:%d" % seconds, action == "restart", now)
        if self.lifeline.news and self.lifeline.policy.by is None:
            done = "its ranks start again" if action == "restart" else "it was left as it is"
            self.tell("no rank wrote or computed for %s; %s" % (span(seconds), done))

    def tell(self, why):
        """Who is told of the end is told of this, too, by a process apart, as it may take its time."""
        import lifeline_news

        folder = self.jobs[0].folder
        lines = lifeline_news.last_lines(folder, ("job.out", "job.err"))
        try:
            pid = os.fork()
        except OSError:
            return
        if pid:
            self.messengers.append(pid)
            return
        try:
            os.setsid()
            os.closerange(3, 65536)
            lifeline_news.deliver(folder, "hung", why, lines, seconds=NEWS_SECONDS, kind="hung.")
        finally:
            os._exit(0)
