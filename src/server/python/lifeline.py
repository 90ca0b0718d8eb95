"""The lifeline of a launch: its servers tell each other of a failure, without the laptop.

One such process a server and launch, started by start.sh beside the supervisors, in a session of its own and
without the cookie of any job. The one on the first server is the hub: it listens, the others hold a connection to
it (lifeline_link.py). What it needs comes on stdin, as lines of a key and values; the token among them proves who belongs to the launch, is
never sent, is not among the arguments, and in files of the jobs' folders only as long as the launch runs. This file is the loop: it waits for
connections, jobs (lifeline_job.py) and time, and does what lifeline_policy.py decides. docs/protocol.md tells the messages.

argv: the jobs' folder, and the script that ends jobs. Python 3.6 or later, standard library only, and little of it: hashlib
(it loads OpenSSL), json, secrets, selectors, socket and subprocess would take three times as long to import as Python takes
to start, on all servers of a launch at once.
"""
import fcntl
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
from lifeline_job import Job, Looker, clock, put, remove_init_file, this_process
from lifeline_killer import Killer
from lifeline_orders import Orders, keep_order, quote, unquote
from lifeline_peers import Peers
from lifeline_policy import FIRST_SECONDS, Policy, stop_message

PROOF_SECONDS = 10
KILL_GRACE = 5  # between TERM and KILL


class Lifeline(Peers):
    def __init__(self, request, folder, kill_script):
        is_hub = request["server"][0] == request["servers"][0]
        super().__init__(request["token"][0].encode(), request["address"][0], int(request["port"][0]), is_hub)
        self.kill_script = kill_script
        self.whole = "whole" in request  # all servers of the launch have a lifeline
        self.news = "news" in request  # the hub tells somebody how the launch has ended
        self.told = []  # a member's: what it has told the hub of failures for that
        words = request["jobs"]
        self.jobs = [Job(folder, job, int(rank)) for job, rank in zip(words[::2], words[1::2])]
        self.acts = None  # of a launch that may begin anew
        common = (request, self.jobs, clock(), self.broadcast, self.write)
        if "again" in request:
            from lifeline_acts import Acts
            from lifeline_again import AgainPolicy

            self.acts = Acts(self, request)
            self.policy = AgainPolicy(*common, self.acts)
        else:
            self.policy = Policy(*common)
        self.queue = None  # of a launch that waits for its leases
        if "queue" in request:
            from lifeline_queue import Queue

            self.queue = Queue(self, request)
        self.evidence = None  # of a launch that is watched for standing still
        if "hang" in request:
            from lifeline_evidence import Evidence

            self.evidence = Evidence(self, request)
        self.looker = Looker(self.acts is not None)
        self.next_look = 0.0
        self.looked = 0.0  # when the last look began whose findings are known
        self.killed = 0.0  # when the killer had ended
        self.next_beat = 0.0
        self.killer = Killer(kill_script)
        self.status = None
        self.lock = None
        words = request.get("mpi", [])
        self.hosts = dict(zip(words[::2], words[1::2]))  # the servers, by what mpirun calls them
        for job in self.jobs:
            job.mpirun = bool(self.hosts)
        self.orders = None

    # ---- what is told to others: files in each job's folder

    def write(self, name, text):
        for job in self.jobs:
            try:
                put(job.folder, name, text + "\n")
            except OSError:
                pass

    def enlist(self):
        """Puts this process on record; False when another one of this launch and server stands already."""
        for job in self.jobs:
            try:
                self.lock = os.open(os.path.join(job.folder, "lifeline.request"), os.O_RDONLY)
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:
                continue
            break
        self.write("lifeline.pid", this_process())
        return True

    def leave(self):
        """At the regular end: nobody is to start this again, and the secret is of no use any more."""
        # Where a server was lost, or a supervisor has died, its jobs have not told that they need the file no longer. Of a server
        # without a lifeline nobody here knows.
        policy = self.policy
        if policy.is_hub and self.whole and all(name in policy.gone for name in policy.others):
            for job in self.jobs:
                remove_init_file(job.folder)
        if policy.is_hub and self.news:
            self.tell_news()  # it may take an hour: until then this is started again if it dies
        for job in self.jobs:
            for name in ("lifeline.pid", "lifeline.request"):
                try:
                    os.unlink(os.path.join(job.folder, name))
                except OSError:
                    pass

    def tell_news(self):
        if self.listener is not None:
            self.listener.close()
        import lifeline_news  # not at the start: it takes its time to import

        state, why, rank = self.policy.verdict([(job.result() or [])[:3] + job.stop[1:2] for job in self.jobs])
        failed = [job for job in self.jobs if job.failed and job.first_failure("")[0] == rank]
        if failed:
            lines = lifeline_news.last_lines(failed[0].folder, failed[0].last_words())
        elif rank is not None:
            lines = self.policy.tails.get(rank, "")
        else:
            lines = lifeline_news.last_lines(self.jobs[0].folder, ("job.out", "job.err"))
        lifeline_news.deliver(self.jobs[0].folder, state, why, lines)

    def send_tail(self, job, failure):
        """To the hub: the last lines of a job that has failed, in what a message has room for. Its end follows, and once more where there
        is no connection yet."""
        import lifeline_news

        lines = quote(lifeline_news.last_lines(job.folder, job.last_words()))
        if len(lines) > 3500:  # without half a character in front
            lines = lines[-3500:].partition("%0A")[2]
        rank, failure = job.first_failure(failure)
        self.told += ["tail %d %s" % (rank, lines), "ended %d %s" % (rank, failure)]
        self.broadcast(self.told[-2])

    def tell_how_it_is(self):
        status = self.policy.status(
            clock(), self.listener is not None, bool(self.links), bool(self.deaf_until), self.refused
        )
        if status is not None and status != self.status:
            self.status = status
            self.write("lifeline", status)

    # ---- connections

    def pause_between_tries(self, now):
        policy = self.policy
        if policy.hub not in policy.last_heard and policy.is_late(now):
            return 30
        # the hub's process may start a moment later than this one
        return min(0.05 if now - policy.start < FIRST_SECONDS else 0.5, policy.beat)

    def serve(self, link):
        had_key = link.key is not None
        messages = link.receive()
        if not self.policy.is_hub and link.key is not None and not had_key:
            link.send("hello " + quote(self.policy.own))
            for message in self.told:  # the hub may not have got it
                link.send(message)
            if self.policy.by is not None:
                link.send("end " + self.policy.by)
        for message in messages:
            self.understand(link, message)
        if not link.open:
            self.drop(link)

    def note_drop(self):
        if not self.policy.is_hub:
            self.refused = time.strftime("%H:%M:%S") if self.policy.hub in self.policy.last_heard else "it closes the connection"

    def understand(self, link, message):
        policy = self.policy
        word, _, rest = message.partition(" ")
        if policy.is_hub and word == "hello":
            name = unquote(rest)
            if name not in policy.others:
                link.close()
                return
            self.take_in(link, name)
            # to one that comes again and may not have got it
            order = None if self.orders is None else self.orders.sent.get(name)
            for reply in policy.welcome(name, order):
                link.send(reply)
            if self.hosts and policy.jobs_have_ended():
                link.send("run")
        elif policy.is_hub and link.name is None:
            link.close()
            return
        elif word == "turn" and self.queue is not None:
            self.queue.hear(link.name, rest)
        elif word == "run" and self.hosts and not policy.is_hub:
            keep_order(self.jobs[0].folder, [unquote(each) for each in rest.split()])
        elif self.evidence is not None:
            self.evidence.policy.hear(link.name, word, rest, clock())
        policy.hear(link.name if policy.is_hub else policy.hub, word, rest, clock())
        link.greeted = True

    def look_at_peers(self, now):
        policy = self.policy
        for link in list(self.links):
            silent = now - link.heard
            unproved = link.name is None if policy.is_hub else policy.hub not in policy.last_heard
            if (unproved and silent > PROOF_SECONDS) or (not policy.is_hub and silent > policy.timeout):
                self.drop(link)
        policy.notice_silence(now)
        if not policy.is_hub:
            self.keep_connecting(now)

    # ---- what is done

    def take_findings(self):
        for job, ended, failure, job.round in self.looker.take():
            if ended and not job.ended:
                if self.news and not self.policy.is_hub:
                    if failure is not None:
                        self.send_tail(job, failure)
                    elif job.stopped_for is not None:
                        self.told.append(stop_message(job))
                self.policy.note_end(job, failure, clock())
                self.close_fifo(job)
        if self.orders is not None and self.policy.jobs_have_ended():
            self.broadcast("run")  # nothing more comes: who still waits, ends
            self.orders.tell_ends(self.policy.others)
            self.unwatch(self.orders.fifo)
            os.close(self.orders.fifo)
            self.orders = None
        self.looked = self.looker.began

    def send_orders(self, now):
        if self.orders is None:
            return
        policy = self.policy
        if self.orders.until:
            self.orders.tell_ends(policy.ended_there(now))
        if self.orders.waiting:
            there = {link.name: link for link in self.links if link.name is not None and link.open and policy.takes_orders(link.name)}
            self.orders.send(there, policy.unreached(now, self.listener is not None, self.refused))

    def kill_jobs(self, now):
        """Ends what is left of this server's jobs, and what a failed one has left behind."""
        if self.killer.at_work is not None:
            nothing_left = self.killer.ended()
            if nothing_left is None:
                return
            if self.acts is not None:
                self.policy.note_killed(nothing_left)
            self.killed = now
            self.next_look = 0.0
        if self.looked < self.killed:
            return  # what it has ended, is not known yet
        ids = self.policy.jobs_to_kill(now)
        if ids:
            by = "again" if self.acts is not None and not self.policy.released else self.policy.by or self.policy.left_by
            self.killer.begin(["15", str(KILL_GRACE), by] + ids)

    def is_over(self, now):
        if self.killer.at_work is not None or self.looked < self.killed:
            return False
        return self.policy.is_over(now, self.listener is not None, any(link.greeted for link in self.links))

    def run(self):
        if not self.enlist():
            return
        if self.policy.is_hub and self.policy.others:
            self.listen()
        for job in self.jobs:
            if job.fifo is not None:
                self.watch(job.fifo, job)
        if self.policy.is_hub and self.hosts:
            try:
                self.orders = Orders(self.jobs[0].folder, self.hosts)
            except OSError:
                pass  # removed, or its disk is full: then its job says so, too
            else:
                self.watch(self.orders.fifo, self.orders)
                self.orders.look()
        self.watch(self.looker.ready, self.looker)
        self.killer.get_ready()
        while True:
            now = clock()
            self.look_at_peers(now)  # first: what they have said meanwhile has just been read
            if now >= self.next_look and not self.looker.busy:
                self.looker.begin([job for job in self.jobs if not job.ended])
                often = self.acts is not None or any(not job.ended and job.fifo is None for job in self.jobs)
                self.next_look = now + (0.5 if often else 5)
            if self.acts is not None:
                self.policy.tick(now)
            if self.queue is not None:
                self.queue.tick(now)
            if self.evidence is not None:
                self.evidence.step(now)
            self.kill_jobs(now)
            self.send_orders(now)
            if now >= self.next_beat:
                self.next_beat = now + self.policy.beat
                self.broadcast("beat")
            self.tell_how_it_is()
            if self.is_over(now):
                self.say_last("bye")
                self.leave()
                return
            self.flush()
            busy = self.killer.at_work is not None or self.policy.by is not None
            beginning = not self.policy.is_hub and self.status is None and now - self.policy.start < FIRST_SECONDS
            pause = 0.05 if busy or beginning else min(0.5, self.policy.beat)
            asleep = clock()
            ready = self.await_any(pause)
            self.discount_stop(clock() - asleep - pause)
            for what in ready:
                if isinstance(what, Job):
                    self.drain(what)
                    self.next_look = 0.0
                elif what is self.looker:
                    self.take_findings()
                elif what in self.links:
                    self.serve(what)
                elif what is self.orders and what is not None:
                    what.look()
                elif what is self.listener:
                    self.accept()

    def discount_stop(self, late):
        """When this process was stopped, or its whole server, which makes its sleep too long: that is nobody's silence. How long it was
        busy does not count."""
        if late > 1:
            self.policy.discount_stop(late)
            for link in self.links:
                link.heard += late

    def drain(self, job):
        """Reads a supervisor's FIFO; at its end it is watched by looking only, as the job may live on."""
        try:
            if os.read(job.fifo, 512):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.close_fifo(job)

    def close_fifo(self, job):
        if job.fifo is not None:
            self.unwatch(job.fifo)
            job.close()


def main():
    request = {}
    for line in sys.stdin:
        key, *values = line.split()
        request[key] = [unquote(value) for value in values]
    os.chdir("/")
    os.umask(0o077)
    if os.fork() != 0:
        os._exit(0)  # the shell that started this waits no longer
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, 256)
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a connection a server
    except (ImportError, ValueError, OSError):
        pass
    Lifeline(request, sys.argv[1], sys.argv[2]).run()


if __name__ == "__main__":
    main()
