"""What the lifeline of a launch decides, of what it hears and of how its jobs are. It opens nothing, and is told the time."""
from lifeline_orders import quote, unquote

FIRST_SECONDS = 1.5  # so long a hub that is not there yet is no news
NEWS_SECONDS = 3  # and so long a member
KILL_ROUNDS = 3
LONGEST_DELAY, JITTER = 5.0, 0.25  # so long after a failure its cause may be heard of; times of two servers differ by so much


def span(seconds):
    """For people."""
    return "%d min" % (seconds // 60) if seconds >= 120 else "%d s" % seconds


def stop_message(job):
    """Of a job that a person has stopped."""
    return "stopped %d %d" % (job.rank, job.stopped_for * 1000)


def loss_of(name):
    return "lost:" + quote(name)


# Of the first failure of an attempt (lifeline_again.py): RANK:KIND:CODE:MARK:SERVER, lost:SERVER or hang:SECONDS.


def tells_of_peer(why):
    return why.split(":")[3:4] == ["peer"]


def says_of(why):
    """For people."""
    words = why.split(":")
    if words[0] == "lost":
        return "the loss of %s" % unquote(words[1])
    if words[0] == "hang":
        return "%s of standing still" % span(int(words[1]))
    return "rank %s on %s failed (%s %s)" % (words[0], unquote(words[4]), words[1] if words[1] != "oom" else "out of memory, signal", words[2])


def by_of(why):
    """Who ends the jobs for it: BY of the file `stop`."""
    return why if why.startswith(("lost:", "hang:")) else "rank:" + why.partition(":")[0]


class Policy:
    """`jobs` have `id`, `rank`, `ended` and `failed`; `broadcast(text)` sends a message to all others, `write(name, text)` puts a file into each
    job's folder."""

    def __init__(self, request, jobs, now, broadcast, write):
        self.own = request["server"][0]
        self.hub = request["servers"][0]
        self.is_hub = self.own == self.hub
        self.others = [name for name in request["servers"] if name != self.own]
        self.address = request["address"][0]
        self.port = int(request["port"][0])
        self.grace = float(request["grace"][0])
        self.timeout = float(request["timeout"][0])
        # Of an elastic launch: how many servers it needs. 0: all of them, and nothing may fail.
        self.needed = int(request.get("needed", ["0"])[0])
        self.leave = "leave" in request  # nobody ends the jobs of others
        self.failures = []  # (rank, words, server, when), in the order in which they were heard of
        self.stops = []  # of jobs that a person has stopped: (rank, server, when that began, when it had ended)
        self.tails = {}  # by rank: the last lines of one that has failed elsewhere
        self.beat = min(5.0, self.timeout / 6)
        self.time_to_come = min(30.0, self.timeout)  # for the first connection
        self.jobs = jobs
        self.start = now
        self.broadcast = broadcast
        self.write = write
        self.last_heard = {}  # of servers that have been here
        self.gone = {}  # servers that have said good bye, or are lost
        self.failed_there = set()  # the hub's: servers where a job has failed
        self.left = set()  # the hub's, of an elastic launch: servers that it has gone on without
        self.by = None  # who ends the jobs, once somebody does: BY of the file `stop`
        self.own_left = False  # an elastic launch goes on without this server
        self.left_by = ""  # why
        self.end_at = 0.0
        self.kills = 0

    def jobs_have_ended(self):
        return all(job.ended for job in self.jobs)

    def is_late(self, now):
        """Whether who has not come by now will not."""
        return now - self.start > self.time_to_come

    def end(self, by, now):
        """From now on the jobs of the launch are to be ended, after a grace unless a server is lost; the first reason counts."""
        if self.by is None and not self.leave:
            self.by = by
            self.end_at = now + (0 if by.startswith(("lost:", "hang:")) else self.grace)
            self.broadcast("end " + by)

    def leave_out(self, name, by, now):
        """The hub's: an elastic launch goes on without a server, as long as it has enough others."""
        self.left.add(name)
        self.broadcast("without %s %s" % (quote(name), by))
        self.write("left", "%s %s" % (quote(name), by))
        if len(self.others) + 1 - len(self.left) < self.needed:
            self.end(by, now)

    def end_hung(self, by, restart, now):
        """The hub's: the launch stands still."""
        self.end(by, now)

    def watches(self):
        """Whether nothing ends the launch, so that its ranks should do something."""
        return self.by is None

    def present(self):
        """The servers that have not left."""
        return [name for name in [self.own] + self.others if name not in self.gone and name not in self.left]

    # ---- what is heard

    def welcome(self, name, order):
        """The hub's: the messages for a member that has said hello. `order`: what mpirun has sent it before."""
        messages = ["welcome"]
        if self.by is not None:
            messages.append("end " + self.by)
        if name in self.left:
            messages.append("without %s %s" % (quote(name), loss_of(name)))
        if order is not None:
            messages.append(order)  # the first one counts there
        return messages

    def hear(self, name, word, rest, now):
        """A message of a peer that has proved itself. No peer's server can say more than a word in place of one."""
        first, _, second = rest.partition(" ")
        if word == "end" and name in self.left:
            pass  # cut off from the others, its agent may have given up
        elif word == "end":
            self.end(first or loss_of(name), now)
        elif word == "left" and self.is_hub:
            self.leave_out(name, first or loss_of(name), now)
        elif word == "without" and not self.is_hub:
            self.write("left", "%s %s" % (first, second.partition(" ")[0]))
            if unquote(first) == self.own:
                # It was silent for too long and is back: what it has would meet the others, who have begun anew.
                self.own_left = True
                self.left_by = loss_of(self.own)
        elif word == "ended" and self.is_hub:
            self.failed_there.add(name)
            rank, _, failure = rest.partition(" ")
            self.failures.append((int(rank) if rank.isdigit() else 0, failure.split(), name, now))
        elif word == "stopped" and self.is_hub:
            if first.isdigit() and second.isdigit():
                self.stops.append((int(first), name, now - int(second) / 1000, now))
        elif word == "tail" and self.is_hub:
            rank, _, lines = rest.partition(" ")
            self.tails[int(rank) if rank.isdigit() else 0] = unquote(lines)
        elif word == "bye":
            self.gone[name] = "bye"
        self.last_heard[name] = now

    def notice_silence(self, now):
        for name, heard in self.last_heard.items():
            if name not in self.gone and now - heard > self.timeout:
                self.gone[name] = "lost"
                if self.needed and self.is_hub:
                    self.leave_out(name, loss_of(name), now)
                else:
                    self.end(loss_of(name), now)

    def discount_stop(self, late):
        """This process was stopped for so long, or its whole server: that is nobody's silence."""
        for name in self.last_heard:
            self.last_heard[name] += late

    # ---- its own jobs

    def note_end(self, job, failure, now):
        """A job of this server has ended; `failure` in words, or None."""
        job.ended = True
        if failure is None:
            if job.stopped_for is not None:
                self.stops.append((job.rank, self.own, now - job.stopped_for, now))
                self.broadcast(stop_message(job))
            return
        job.failed = True
        rank, told = job.first_failure(failure)
        self.failures.append((rank, told.split(), self.own, now))
        self.broadcast("ended %d %s" % (rank, told))
        by = "rank:%d" % rank
        # An agent that a signal ended, or that is gone, has left; one that gives up has ended the launch. Without the
        # agent on the first server nobody finds the others any more.
        if self.needed and not self.is_hub and failure.split()[0] in ("signal", "gone"):
            self.broadcast("left " + by)
            self.own_left = True
            self.left_by = by
        else:
            self.end(by, now)

    def jobs_to_kill(self, now):
        """The ids of those to be ended now: what is left of this server's jobs, and what a failed one has left behind."""
        if self.own_left and self.kills == 0:
            pass  # what the agent has left behind would train on
        elif self.by is None or now < self.end_at or self.kills >= KILL_ROUNDS:
            return []
        ids = [job.id for job in self.jobs if not job.ended or (job.failed and self.kills == 0)]
        self.kills = self.kills + 1 if ids else KILL_ROUNDS
        return ids

    # ---- how it is

    def status(self, now, listening, linked, deaf, refused):
        """For the file `lifeline`; None: nothing new. `refused`: why there is no connection, or since when."""
        if self.is_hub:
            missing = [name for name in self.others if name not in self.last_heard]
            if self.others and not listening:
                return "cannot listen: " + refused
            if deaf:
                return "cannot accept connections: " + refused
            if missing and now - self.start > min(NEWS_SECONDS, self.time_to_come):
                return "waiting for " + ", ".join(missing)
            return None if missing else "ok"
        if self.hub in self.last_heard:
            return "ok" if linked else "cut off from %s since %s" % (self.hub, refused)
        if refused and now - self.start > min(FIRST_SECONDS, self.time_to_come):
            return "cannot reach %s at %s:%d: %s" % (self.hub, self.address, self.port, refused)
        return None

    def first_failure(self):
        """As jobs::first_of(): the first that does not follow from another one, unless it came too late for a cause. None: there is no failure."""
        first = self.failures[0] if self.failures else None
        cause = next((one for one in self.failures if one[1][-1:] != ["peer"]), None)
        return cause if cause is not None and cause[3] - first[3] <= LONGEST_DELAY else first

    def first_stop(self, failure):
        """The stop by a person that came first, where the failure follows from that, or is None."""
        for stop in self.stops:
            if failure is None or stop[2] - JITTER <= failure[3] and (failure[1][-1:] == ["peer"] or failure[3] <= stop[3] + LONGEST_DELAY):
                return stop
        return None

    def verdict(self, results):
        """How the launch has ended, for people who are told by the hub: (state, why, the rank whose last lines tell more or None). `results`:
        those of its own jobs, as words. One that was started again knows of the others only what these say."""
        by = self.by or next((words[3] for words in results if len(words) > 3 and words[3].startswith(("rank:", "lost:", "hang:"))), "")
        lost = [name for name, how in self.gone.items() if how == "lost"]
        kind, _, who = by.partition(":")
        failure = self.first_failure()
        stop = self.first_stop(failure)
        if kind == "hang":
            return "hung", "no rank wrote or computed for %s; its ranks were ended" % span(int(who)), None
        if kind == "lost" or (lost and self.leave):
            return "lost", "no word from server %s" % (unquote(who) if who else lost[0]), None
        if stop is not None:
            everything = failure is None and all(words[:2] != ["exit", "0"] for words in results)
            return "killed", "" if everything else "rank %d on %s" % stop[:2], None
        if failure is not None and (kind == "rank" or self.leave):
            return "failed", "rank %d on %s (%s)" % (failure[0], failure[2], " ".join(failure[1][:2])), failure[0]
        if kind == "rank":
            return "failed", "rank " + who, None
        unheard = [name for name in self.others if name not in self.last_heard and self.gone.get(name) != "left"]
        if unheard:
            return "unknown", "nothing was heard of " + ", ".join(unheard), None
        if any(words[:2] != ["exit", "0"] for words in results):
            return "killed", "", None
        return "succeeded", "", None

    def silent(self, now):
        """The hub's: members that have not come in their time."""
        return [name for name in self.others if name not in self.last_heard] if self.is_late(now) else []

    def takes_orders(self, name):
        """Whether mpirun's order for a server may go there."""
        return True

    def ended_there(self, now):
        """The hub's: servers that need no agent of mpirun's to wait for them. Who said bye to a process that stood here before does not come
        again."""
        return self.failed_there.union(self.gone, self.silent(now))

    def unreached(self, now, listening, refused):
        """The hub's: why an order to a server will never get there, by its name."""
        why = {name: "server %s is lost" % name for name in self.gone}
        if not listening:
            why.update((name, "this server cannot listen: " + refused) for name in self.others)
        else:
            why.update(
                (name, "server %s does not reach this one at %s port %d" % (name, self.address, self.port)) for name in self.silent(now)
            )
        return why

    def is_over(self, now, listening, greeted):
        """Whether there is nothing left to do. `greeted`: something that is proved has come over a connection that stands."""
        if not self.jobs_have_ended():
            return self.kills >= KILL_ROUNDS
        if self.by is not None and self.kills < KILL_ROUNDS:
            return False
        if not self.is_hub:
            # a failure has to get through, and good bye too; to a hub that never was there it cannot
            return greeted or self.hub in self.gone or (self.hub not in self.last_heard and self.is_late(now))
        # The hub stays as long as others need it. Those that never came get their time to come.
        silent = self.silent(now)
        return not listening or all(name in self.gone or name in silent for name in self.others)
