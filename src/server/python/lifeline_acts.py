"""What is done for the attempts of a launch that lifeline_again.py decides: files of its jobs' folders, and words for their supervisors
(lib/again.sh). docs/protocol.md names the files."""
import glob
import os
import time

from lifeline_job import BEGIN_ANEW, clock, end_of_output, put, read_words, tells_of_peer
from lifeline_link import free_port, sha256
from lifeline_members import SICK
from lifeline_orders import forget_attempt

MOST_CHECKPOINTS, LONGEST_NAME = 8, 300


def uptime():
    """Seconds since the boot as the shells here read it."""
    return float(read_words("/proc/uptime")[0])


def marker_of(path, files, complete):
    """The file that says that a checkpoint is complete: '*' is the same text in both patterns. None: `path` is no such checkpoint."""
    folder, name = os.path.split(path.rstrip("/"))
    before, star, after = files.rstrip("/").partition("*")
    if not star:
        return os.path.join(folder, complete) if name == before else None
    if not name.startswith(before) or not name.endswith(after) or len(name) < len(before) + len(after):
        return None
    same = name[len(before) : len(name) - len(after)]
    return os.path.join(folder, complete.replace("*", same, 1))


def mark_of(path, skip=0):
    """The place of a failure, as far as the last words in this file tell, or what ails the machine by them. `skip`: lines that are none."""
    try:
        text = end_of_output(path, 2000)
    except OSError:
        text = b""
    for mark, signs in SICK:
        if any(sign in text for sign in signs):
            return mark
    if tells_of_peer(text):
        return "peer"
    lines = [line for line in text.split(b"\n")[skip:] if line.strip()]
    return sha256(lines[-1] if lines else b"").hexdigest()[:8]


class Acts:
    def __init__(self, lifeline, request):
        self.lifeline = lifeline
        self.jobs = lifeline.jobs
        self.project = os.path.dirname(os.path.dirname(self.jobs[0].folder))
        self.checkpoint = request.get("checkpoint", [])  # FILES COMPLETE FOLDER…
        self.first_question = int.from_bytes(os.urandom(4), "big")  # an answer to a question of a process that died is none
        self.agents = "agents" in request
        self.spare = os.path.exists(os.path.join(self.jobs[0].folder, "spare"))
        words = read_words(os.path.join(self.jobs[0].folder, "attempt"))
        self.attempt = int(words[1]) if len(words) == 2 else 0 if self.spare else 1
        words = read_words(os.path.join(self.jobs[0].folder, "lease"))
        self.until = clock() + int(words[0]) / 100 - uptime() if words else None
        self.began = self.beginning()

    def beginning(self):
        """When the attempt on record began."""
        for name in ("attempt", "pid"):
            try:
                return clock() - time.time() + os.stat(os.path.join(self.jobs[0].folder, name)).st_mtime
            except OSError:
                pass
        return clock()

    def lease(self, until):
        text = "%d\n" % ((uptime() + until - clock()) * 100)
        for job in self.jobs:
            try:
                put(job.folder, "lease", text, sure=True)
            except OSError:
                pass  # the guard ends its ranks in time

    def word(self, job, text):
        """To the job's supervisor, which holds the FIFO open. Raises OSError where it is gone."""
        fifo = os.open(os.path.join(job.folder, ".next"), os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(fifo, text.encode() + b"\n")
        finally:
            os.close(fifo)

    def start(self, number, values, why):
        port, world, first, node, nodes = (int(value) for value in values[:5])
        resume = values[5] if values[5] != "-" else ""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            if self.lifeline.orders is not None:
                self.lifeline.orders.forget()
            for index, job in enumerate(self.jobs):
                numbers = {"MASTER_PORT": port, "NODE_RANK": node, "GROUP_WORLD_SIZE": nodes}
                numbers.update({"RESTART_COUNT": number - 1, "RESUME_FROM": resume})
                if self.lifeline.hosts:
                    forget_attempt(job.folder)
                    numbers.update({"WORLD_SIZE": world, "GROUP_RANK": node, "REMOTE_MPI_HOSTS": self.mpi_hosts()})
                elif not self.agents:
                    numbers.update({"RANK": first + index, "WORLD_SIZE": world, "ROLE_RANK": first + index, "ROLE_WORLD_SIZE": world})
                    numbers.update({"GROUP_RANK": node, "TORCHELASTIC_RESTART_COUNT": number - 1})
                if self.spare:
                    job.rank = first + index  # it had none
                text = "number %d\n" % number + "".join("%s=%s\n" % one for one in numbers.items())
                put(job.folder, "attempt", text, sure=True)
                for path in [os.path.join(job.folder, "job.err")] + glob.glob(os.path.join(glob.escape(job.folder), "ranks/*.err")):
                    with open(path, "ab") as file:
                        file.write(BEGIN_ANEW + ("restart %d) at %s after %s\n" % (number - 1, when, why)).encode())
            for job in self.jobs:
                self.word(job, "go %d" % number)
        except OSError:
            return False
        return True

    def mpi_hosts(self):
        """Where mpirun starts ranks, and how many: HOST:RANKS,…"""
        members = self.lifeline.policy.members
        hosts = {name: host for host, name in self.lifeline.hosts.items()}
        return ",".join("%s:%d" % (hosts[name], members.counts[name]) for name in members.names)

    def release(self, by, jobs):
        for job in self.jobs:
            try:
                if job in jobs:
                    self.note_stop(job, by)
                self.word(job, "end")
            except OSError:
                pass

    def note_stop(self, job, by):
        """As record_stop() of kill.sh, in the room that the supervisor took for it."""
        room = os.path.join(job.folder, ".stop")
        with open(room, "r+b") as file:
            file.write(("15 %s %d\n" % (by, time.time() * 1000)).encode())
        os.rename(room, os.path.join(job.folder, "stop"))

    def tell(self, name, text):
        for link in self.lifeline.links:
            if link.name == name or not self.lifeline.policy.is_hub:
                link.send(text)

    def failure(self, job):
        """Of a job whose attempt has ended: RANK, KIND and CODE of its first failed worker where it has such, else its own; and its mark."""
        worker = job.failed_worker() if self.agents and job.round[1] == "exit" else None
        rank, kind, code = worker or (job.rank,) + job.round[1:3]
        if self.lifeline.hosts and worker is None and kind == "exit":
            return rank, kind, code, "peer"  # mpirun, or its daemon, has ended because of a rank of another server
        if worker is None:
            mark = mark_of(os.path.join(job.folder, "job.err"))
        elif self.lifeline.hosts:
            mark = mark_of(os.path.join(job.folder, "failures", "rank.%d" % rank), 1)  # its first line is the time
        else:
            mark = mark_of(os.path.join(job.folder, "ranks", "%d.err" % rank))
        return rank, kind, code, mark

    def note_attempt(self, number, began, failed, begins, why, left_out):
        """For status.sh: NUMBER BEGAN FAILED NEXT CAUSE CODE RANK LEFT SERVER."""
        words = why.split(":")
        if words[0] == "lost":
            cause, code, rank, server = "lost", "-", "-", words[1]
        elif words[0] == "hang":
            cause, code, rank, server = "hang", "-", "-", "-"
        else:
            rank, cause, code, server = words[0], words[1], words[2], words[4]
        times = [int((time.time() - clock() + at) * 1000) for at in (began, failed, begins)]
        line = "%d %d %d %d %s %s %s %d %s\n" % (number, times[0], times[1], times[2], cause, code, rank, left_out, server)
        try:
            with open(os.path.join(self.jobs[0].folder, "attempts"), "ab") as file:
                file.write(line.encode())
        except OSError:
            pass  # it is only for people

    def note_sick(self, mark):
        """For `remote check`, until somebody says that the server is well (well.sh)."""
        if mark not in dict(SICK):
            return
        try:
            put(os.path.dirname(self.jobs[0].folder), ".sick", "%s %d\n" % (mark, time.time()))
        except OSError:
            pass

    def checkpoints(self):
        """Names of the complete ones, from the project's folder, the newest first."""
        if len(self.checkpoint) < 2:
            return []
        files, complete = self.checkpoint[:2]
        found = []
        for folder in [""] + self.checkpoint[2:]:
            for path in glob.glob(os.path.join(glob.escape(self.project), folder, files.rstrip("/"))):
                marker = marker_of(path, files, complete)
                try:
                    if marker is not None and os.path.exists(marker):
                        found.append((os.stat(marker).st_mtime, os.path.relpath(path, self.project)))
                except OSError:
                    pass
        names = [name for _, name in sorted(found, reverse=True) if len(name) <= LONGEST_NAME and name.isprintable()]
        return names[:MOST_CHECKPOINTS]

    def port(self):
        listener = self.lifeline.listener
        return free_port() if listener is None else free_port(listener.family)
