"""When a launch stands still (--hang-after), and what follows (docs/resilience.md). As lifeline_policy.py: it opens nothing, and is told the time.

Each server's lifeline samples its ranks, and tells the hub how long they have been silent (no byte on stdout or stderr) and idle (no processor time to
speak of). When all have been silent for long enough, the hub lets all servers take the evidence. The launch stands still if all were idle for as
long, or if each server's evidence shows that its ranks only wait for others: a rank that waits may use a processor for that.
"""
BUSY = 0.03  # processors: who uses less is idle
FEW_TICKS = 2  # and who uses no more than this between two samples
EVIDENCE_SECONDS = 90  # so long the hub waits for the servers' evidence
WAITS = ("torch/distributed/distributed_c10d.py", "torch/distributed/rendezvous.py")  # frames of who waits for other ranks


class Stillness:
    """How long the ranks of one server have been silent and idle, from samples."""

    def __init__(self, every):
        self.longest = 3 * every  # what is longer, was no look at the ranks: this process was stopped, or its server
        self.last = None
        self.before = {}
        self.silent = self.idle = 0.0

    def take(self, jobs, now):
        """`jobs`: of those that run (sizes of the outputs, ticks by process, whether a rank waits in a debugger), by id."""
        passed = 0.0 if self.last is None else min(now - self.last, self.longest)
        self.last = now
        wrote = set(jobs) != set(self.before)
        worked = wrote
        for name, (sizes, ticks, waits) in jobs.items():
            old_sizes, old_ticks, _ = self.before.get(name, (sizes, ticks, False))
            wrote = wrote or waits or sizes != old_sizes
            used = sum(max(0, count - old_ticks.get(process, 0)) for process, count in ticks.items())
            worked = worked or used > max(FEW_TICKS, BUSY * 100 * passed)
        self.before = jobs
        self.silent = 0.0 if wrote else self.silent + passed
        self.idle = 0.0 if worked else self.idle + passed


def main_thread(lines):
    """The lines of the main thread in a dump of faulthandler or py-spy."""
    sections = [[]]
    for line in lines:
        if line.startswith(("Thread ", "Current thread ")):
            sections.append([])
        sections[-1].append(line)
    named = [section for section in sections if section and '"MainThread"' in section[0]]
    return named[0] if named else sections[-1]  # faulthandler writes the newest thread first


def stands(text, ids):
    """Whether the evidence shows that all ranks of these jobs only wait for others: the stacks of all their threads are the same at both looks, the
    main thread's is in a collective, a send or a receive, or where the ranks meet, and the process wrote nothing anywhere in between."""
    dumps, written, ranks, look = ({}, {}), ({}, {}), {}, 0
    for line in text.split("\n"):
        kind, _, rest = line.partition(" ")[2].partition(" ")
        words = rest.split(" ")
        if not line.startswith("@remote1 "):
            continue
        if kind == "stacks":
            look = int(words[0])
        elif kind == "process" and words[3] != "kernel":
            dumps[look][words[1]] = []
        elif kind == "line":
            dumps[look].get(words[0], []).append(rest.partition("|")[2])
        elif kind == "state":
            written[int(words[0])][words[1]] = words[5]
        elif kind == "rank" and words[0] == "1":
            ranks.setdefault(words[1], []).append((words[2], words[3]))
    for job in ids:
        found = ranks.get(job, [])
        if any(rank != "-" for _, rank in found):
            found = [one for one in found if one[1] != "-"]  # an agent is Python, too
        if not found:
            return False
        for pid, _ in found:
            first, second = (
                [line.replace(" (active)", "").replace(" (idle)", "").replace(" (active+gil)", "") for line in dump.get(pid, [])] for dump in dumps
            )
            if not second or first != second or not any(place in line for line in main_thread(second) for place in WAITS):
                return False
            if written[0].get(pid, "-") == "-" or written[0][pid] != written[1].get(pid):
                return False
    return True


class HangPolicy:
    """`policy` is the launch's. `act` does what is decided here: `broadcast(text)` sends to all others, `take(number)` begins to take this server's
    evidence, `keep(seconds)` puts it on record, `drop()` removes it, `moved()` notes that the launch went on, `end(action, seconds)` does what was
    asked for. `on_record`: the launch stands still, and that has been told."""

    def __init__(self, words, policy, act, on_record, now):
        self.limit = float(words[0])
        self.action = words[1]
        self.every = min(5.0, self.limit / 6)
        self.policy = policy
        self.act = act
        self.on_record = on_record
        self.by_idle = False
        self.since = now  # the hub's: from when on silence counts
        self.reports = {}  # the hub's, by server: (silent, idle, when); silent is None where nothing runs
        self.number = int(now * 1000) % 1000000  # of a question: not that of a process that died
        self.answers = None  # by server, while a question is open
        self.deadline = self.next_question = 0.0

    def report(self, runs, silent, idle, now):
        """Of this server's own ranks."""
        if self.policy.is_hub:
            self.reports[self.policy.own] = (silent if runs else None, idle, now)
        else:
            self.act.broadcast("still %.1f %.1f" % (silent, idle) if runs else "still -")

    def taken(self, number, stands_still):
        """This server's evidence is there."""
        word = "stands" if stands_still else "moves"
        if not self.policy.is_hub:
            self.act.broadcast("taken %d %s" % (number, word))
        elif number == self.number and self.answers is not None:
            self.answers[self.policy.own] = word

    def hear(self, name, word, rest, now):
        words = rest.split()
        try:
            if not self.policy.is_hub:
                if word == "evidence":
                    self.act.take(int(words[0]))
                elif word == "hung":
                    self.act.keep(int(words[0]))
                elif word == "moves":
                    self.act.drop()
                elif word == "moved":
                    self.act.moved()
            elif word == "still":
                none = words[0] == "-"
                self.reports[name] = (None, 0.0, now) if none else (float(words[0]), float(words[1]), now)
            elif word == "taken" and self.answers is not None and int(words[0]) == self.number:
                self.answers[name] = words[1]
        except (ValueError, IndexError):
            pass

    def least(self, now):
        """(silent, idle) of all ranks; None where nothing runs, or a server has not told."""
        found = []
        for name in self.policy.present():
            silent, idle, when = self.reports.get(name, (None, 0.0, None))
            if when is None or now - when > 5 * self.every + 5:
                return None
            if silent is not None:
                found.append((silent, idle))
        if not found:
            return None
        return tuple(min(min(values), now - self.since) for values in zip(*found))

    def tick(self, now):
        if not self.policy.is_hub:
            return
        if not self.policy.watches():
            self.since = now
            self.answers = None
            return
        still = self.least(now)
        if self.on_record:
            if still is not None and (still[0] < self.limit or (self.by_idle and still[1] < self.limit)):
                self.on_record = False
                self.act.broadcast("moved")
                self.act.moved()
        elif self.answers is not None:
            if now >= self.deadline or all(name in self.answers for name in self.policy.present()):
                self.decide(still, now)
        elif still is not None and still[0] >= self.limit:
            self.by_idle = still[1] >= self.limit
            if self.by_idle or now >= self.next_question:
                self.number += 1
                self.answers = {}
                self.deadline = now + EVIDENCE_SECONDS
                self.act.broadcast("evidence %d" % self.number)
                self.act.take(self.number)

    def decide(self, still, now):
        stand = self.by_idle or all(self.answers.get(name) == "stands" for name in self.policy.present())
        self.answers = None
        if not stand or still is None or still[0] < self.limit:
            self.next_question = now + self.limit
            self.act.broadcast("moves")
            self.act.drop()
            return
        seconds = int(min(still) if self.by_idle else still[0])
        self.on_record = True
        self.act.broadcast("hung %d" % seconds)
        self.act.keep(seconds)
        self.act.end(self.action, seconds)
