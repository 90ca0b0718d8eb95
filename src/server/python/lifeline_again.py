"""What a lifeline decides of a launch that begins anew after a failure (docs/resilience.md). As lifeline_policy.py: it opens nothing, and is
told the time, here by a clock that runs on while the machine sleeps.

The first server's lifeline, the coordinator, alone decides; it is a member, too. A member may have ranks only while it holds a lease: it asks
again and again, and an answer is worth `lease` seconds from when it ASKED; the coordinator counts from when it ANSWERED, and begins the next
attempt when each member has said that nothing of the last one lives, or its lease and the longest kill have passed. Until the coordinator has
said that no other attempt comes ("over"), supervisors keep their results back; from then on all is as without attempts.
"""
from lifeline_members import Members
from lifeline_orders import quote, unquote
from lifeline_policy import KILL_ROUNDS, Policy, by_of, loss_of, says_of, tells_of_peer

KILL_SECONDS = 15  # the longest kill: TERM, the grace, KILL, and a last look
DRIFT = 0.98  # a member's clock may be slower by so much
SHORT_SECONDS = 60  # an attempt that lived for less makes the next one wait
LONGEST_DELAY = 60
PEER_SECONDS = 1  # what made a rank fail that only tells of another one may be heard of so much later
TELLING_SECONDS = 2  # for a supervisor to tell how its job ended, once it may


class AgainPolicy(Policy):
    """`act` does what is decided here: `start(number, values, why)` begins the ranks of an attempt and tells whether it could, `lease(until)`
    renews what holds them, `release(by, jobs)` lets the supervisors tell how their jobs ended (`jobs`: those that this lifeline has ended, and
    `by` why), `tell(name, text)` sends to one peer, `failure(job)` is RANK, KIND, CODE and a MARK for the place
    where a job failed, `checkpoints()` are the complete ones,
    newest first, `port()` is a free one, `note_attempt(number, began, failed, next, why, left_out)` puts one that has failed on record, and
    `note_sick(mark)` that this server is. `act.attempt` is the number of the attempt that is on record (0: a spare that has had none), and `act.until` until when its ranks may
    live, or None where no earlier process of this lifeline has died; `act.began` is when that attempt began. A job's `round` is (attempt, kind, code) of its last end on record."""

    def __init__(self, request, jobs, now, broadcast, write, act):
        Policy.__init__(self, request, jobs, now, broadcast, write)
        most, least, kinds = request["again"]
        self.most = int(most)
        self.least = int(least)
        self.kinds = kinds.split(",")
        self.finals = request.get("final", [])  # exit codes
        self.act = act
        self.lease = self.timeout
        self.released = False
        self.results = []  # ends with a result that came before the release
        # Of this server's ranks.
        self.attempt = act.attempt
        self.ended = max(self.attempt - 1, 0)  # the newest attempt of which nothing lives here any more
        revived = act.until is not None
        self.killing = revived and self.is_hub
        self.cleaned = False
        self.own_ends = set()  # jobs that ended before this lifeline began to end those of this attempt
        self.until = act.until if revived else now + self.lease * DRIFT
        self.asked = {}
        self.question = act.first_question
        self.next_question = now
        self.outcome = "-"
        if not revived:
            act.lease(self.until)
        # The coordinator's.
        self.members = Members(request)
        self.granted = self.attempt
        self.ending = revived
        self.failure = loss_of(self.hub) if revived else None
        self.quiet_until = now + self.lease + KILL_SECONDS if revived else now
        self.known = set(request["servers"]) if revived else {self.own}  # who has asked: its lease is known
        self.answered = {name: now for name in self.members.names}
        self.outcomes = {}
        self.has = {}  # the attempt that each member has, as it has said
        self.acked = {}  # the checkpoints of who has nothing left of this attempt
        self.begun, self.failed_at = act.began if revived else now, now
        self.decided = False  # what follows from the failure
        self.begin_at = None  # the next attempt
        self.shorts = 0
        self.place = None
        self.new_port = 0
        self.resume_and_why = "- -"

    def resting(self):
        """Whether nothing of this server's ranks lives."""
        return self.ended >= self.attempt

    # ---- this server's ranks

    def note_end(self, job, failure, now):
        if self.released:
            Policy.note_end(self, job, failure, now)
        else:
            job.ended = True
            self.results.append((job, failure))

    def notice_ends(self, now):
        """What the folders of its jobs tell of this attempt."""
        if self.outcome != "-" or self.released:
            return
        for job, failure in self.results:  # told to end, or without a supervisor: no other attempt can have it
            self.outcome = "%d:final:%d:-" % (job.rank, failure is not None)
        # What is being ended fails of that, and tells nothing of why.
        here = [job for job in self.jobs if not self.killing and job.round is not None and job.round[0] == self.attempt]
        for job in here:
            if job.round[1:] != ("exit", "0"):
                self.outcome = "%d:%s:%s:%s" % self.act.failure(job)
                break
        if self.outcome == "-" and len(here) == len(self.jobs):
            self.outcome = "ok"
        if self.outcome != "-":
            self.next_question = now

    def jobs_to_kill(self, now):
        if self.released:
            # The supervisor of a job that has ended by itself writes the result only now. A kill before that would be taken for the cause.
            telling = any(not job.ended and job.round is not None and job.round[0] == self.attempt for job in self.jobs)
            if telling and self.kills == 0 and now < self.end_at + TELLING_SECONDS:
                return []
            return Policy.jobs_to_kill(self, now)
        if not self.killing or self.resting():
            return []
        over = {job.id for job in self.jobs if job.ended or (job.round is not None and job.round[0] == self.attempt)}
        if self.cleaned and len(over) == len(self.jobs):
            self.ended = self.attempt
            self.next_question = now
            return []
        if self.kills >= KILL_ROUNDS:
            self.outcome = "%d:final:1:-" % self.jobs[0].rank  # something does not end
            return []
        if self.kills == 0:
            self.own_ends = over
        self.kills += 1
        return [job.id for job in self.jobs if not job.ended]

    def note_killed(self, clean):
        """A kill of jobs_to_kill() is done; `clean`: nothing is left."""
        self.cleaned = clean

    def begin(self, number, values, why, until):
        self.attempt = number
        self.killing = self.cleaned = False
        self.kills = 0
        self.outcome = "-"
        self.until = until
        self.act.lease(until)
        if not self.act.start(number, values, why):
            self.outcome = "%d:final:1:-" % self.jobs[0].rank

    def ask(self, now):
        self.question += 1
        self.asked = {number: at for number, at in self.asked.items() if now - at < self.lease}
        self.asked[self.question] = now
        files = self.act.checkpoints() if self.resting() else []
        words = [self.question, self.attempt, self.ended, self.outcome] + [quote(name) for name in files]
        self.next_question = now + self.beat
        if not self.is_hub:
            self.act.tell(self.hub, "ask " + " ".join(str(word) for word in words))
            return
        reply = self.answer(self.own, words, now).split()
        if reply[0] == "grant":
            self.hear_grant(reply[1:], now)

    def hear_grant(self, words, now):
        asked = self.asked.pop(int(words[0]), None)
        number = int(words[1])
        if asked is None or now >= asked + self.lease * DRIFT or number <= self.ended:
            return
        until = asked + self.lease * DRIFT
        if number == self.attempt and not self.killing:
            if until > self.until:
                self.until = until
                self.act.lease(until)
        elif number > self.attempt and self.resting():
            self.begin(number, words[2:8], unquote(words[8]), until)
            self.next_question = now  # the first server is told at once: an order of mpirun may wait for this

    def keep_lease(self, now):
        if not self.resting() and now >= self.until:
            self.killing = True
        heard = self.last_heard.get(self.hub, self.start)
        if not self.is_hub and self.resting() and now > max(heard, self.until) + self.lease + KILL_SECONDS:
            self.over(loss_of(self.hub), now)

    # ---- the coordinator

    def answer(self, name, words, now):
        """To the question of a member; its words as ask() makes them."""
        if self.released:
            return "over " + (self.by or "-")
        if name in self.members.spares:
            self.members.heard[name] = now
        elif name not in self.members.names:
            return "over " + loss_of(name)
        self.known.add(name)
        question, has, ended, outcome = int(words[0]), int(words[1]), int(words[2]), str(words[3])
        self.has[name] = has
        if ended >= self.granted or name in self.members.spares:
            self.acked[name] = [unquote(word) for word in words[4:]]
        if has == self.granted and outcome.split(":")[1:3] == ["final", "1"]:
            self.over("rank:" + outcome.partition(":")[0], now)  # something lives on there, whatever failed first
        elif has == self.granted and outcome != "-" and name not in self.outcomes:
            self.outcomes[name] = outcome
            if outcome != "ok":
                self.fail("%s:%s" % (outcome, quote(name)), now)
        if self.released:
            return "over " + (self.by or "-")
        if self.ending or name in self.acked:
            return "stop %d" % self.granted
        self.answered[name] = now
        return "grant %d %d %s" % (question, self.granted, self.shape_of(name))

    def shape_of(self, name):
        """PORT WORLD_SIZE RANK NODE NODES CHECKPOINT WHY for a member's ranks."""
        return "%d %d %d %d %d %s" % ((self.new_port,) + self.members.shape_of(name) + (self.resume_and_why,))

    def takes_orders(self, name):
        """Only for the ranks of this attempt; a job that is not there yet would not see it."""
        return self.released or self.has.get(name) == self.granted

    def ended_there(self, now):
        return Policy.ended_there(self, now).union(self.outcomes)

    def fail(self, why, now):
        """The first failure of an attempt decides whether there is another. One that only tells of a peer gives way to what made that fail,
        and each to the end of a job for good."""
        final = why.split(":")[1:2] == ["final"]
        if final and self.ending and not self.released:
            self.over(by_of(self.failure), now)
        if self.released or (self.failure is not None and not final and (not tells_of_peer(self.failure) or tells_of_peer(why))):
            return
        if self.failure is None:
            self.failed_at = now
        self.failure = why
        self.decided = False
        if not tells_of_peer(why):
            self.decide(now)

    def decide(self, now):
        why = self.failure
        self.decided = True
        sick = self.members.blame(why)
        rank, _, rest = why.partition(":")
        kind, by = (rank, why) if rank in ("lost", "hang") else (rest.split(":")[0], "rank:" + rank)
        if rest.startswith("final:0"):
            self.over(None, now)  # somebody has ended this job: nobody else is to be ended for it
        elif self.granted > self.most or kind == "final":
            self.over(by, now)
        elif "any" not in self.kinds and tells_of_peer(why) and self.may_be_lost():
            self.decided = False  # the peer's server, too
        elif not ("any" in self.kinds or kind in self.kinds) or (kind == "exit" and rest.split(":")[1] in self.finals):
            self.over(by, now)
        elif kind == "exit" and not sick and self.place == (why, self.resume_and_why.split()[0]):
            self.over(by, now)  # twice at one place: a third time would end there, too
        else:
            self.place = (why, self.resume_and_why.split()[0]) if kind == "exit" else None
            self.end_at = self.failed_at + (0 if kind in ("lost", "hang") else self.grace)

    def may_be_lost(self):
        """Whether some member has not been heard of since the failure."""
        return any(name in self.known and name != self.own and self.answered[name] < self.failed_at for name in self.members.names)

    def lead(self, now):
        if all(self.outcomes.get(name) == "ok" for name in self.members.names):
            self.over(None, now)
            return
        if not self.ending:
            for name in self.members.names:
                if name in self.acked or (name in self.known and name != self.own and now > self.answered[name] + self.lease):
                    self.fail(loss_of(name), now)
            if self.failure is not None and not self.decided and now >= self.failed_at + PEER_SECONDS:
                self.decide(now)
            if self.failure is not None and self.decided and not self.released and now >= self.end_at:
                if self.known.issuperset(self.members.names):
                    self.ending = self.killing = True
                    self.broadcast("stop %d" % self.granted)
                elif self.is_late(now):  # of one that has not come nobody knows until when its ranks may live
                    self.over(by_of(self.failure), now)
        if self.ending and not self.released and self.ended >= self.granted and now >= self.quiet_until:
            self.go_on(now)

    def end_hung(self, by, restart, now):
        if restart and not self.released:
            self.fail(by, now)
        elif not self.released:
            self.over(by, now)
        else:
            self.end(by, now)

    def watches(self):
        return Policy.watches(self) and (self.released or (self.failure is None and not self.ending))

    def present(self):
        return [name for name in self.members.names if name not in self.gone]

    def go_on(self, now):
        """To the next attempt, once nothing of this one can live."""
        silent = [name for name in self.members.names if name not in self.acked and name != self.own]
        if any(now <= self.answered[name] + self.lease + KILL_SECONDS for name in silent):
            return
        members = self.members.without(silent, now, self.lease / 2)
        why = loss_of(silent[0]) if silent and tells_of_peer(self.failure) else self.failure
        if len(members) < self.least or self.granted > self.most:
            self.over(loss_of(silent[0]) if silent else by_of(why), now)
            return
        if self.begin_at is None:
            self.shorts = self.shorts + 1 if now - self.begun < SHORT_SECONDS else 1
            self.begin_at = now + (min(2 ** (self.shorts - 2), LONGEST_DELAY) if self.shorts > 1 else 0)
        if now < self.begin_at:
            return
        files = [self.acked.get(name, []) for name in members]
        resume = next((name for name in files[0] if all(name in others for others in files)), None)
        self.resume_and_why = "%s %s" % (quote(resume) if resume else "-", quote(says_of(why)))
        left = [name for name in self.members.names if name not in members]
        for name in left:
            if name in self.members.sick:
                self.act.tell(name, "sick " + self.members.sick[name])
        self.act.note_attempt(self.granted, self.begun, self.failed_at, now, why, any(name in self.members.sick for name in left))
        self.members.become(members)
        self.new_port = self.act.port()
        self.granted += 1
        self.ending, self.failure, self.begin_at = False, None, None
        self.outcomes, self.acked = {}, {}
        self.answered = {name: now for name in members}
        self.begun = now
        self.ask(now)  # its own ranks first: their file is the record that a revived coordinator reads
        if self.outcome != "-":
            self.over(by_of(why), now)
        self.broadcast("ask")

    # ---- both

    def over(self, by, now):
        """No other attempt comes: from now on this launch is as any other."""
        if self.released:
            return
        self.released = True
        left_out = by == loss_of(self.own)  # then no end of its ranks is one of the launch's
        self.act.release(by, [job for job in self.jobs if left_out or (self.kills and by is not None and job.id not in self.own_ends)])
        if self.is_hub:
            self.gone.update((name, "left") for name in self.others if name not in self.members.names)
            self.broadcast("over " + (by or "-"))
        if by is not None:
            self.end(by, now)
        self.kills = 0
        for job, failure in self.results:
            Policy.note_end(self, job, failure, now)

    def tick(self, now):
        if self.released:
            return
        self.notice_ends(now)
        if now >= self.next_question:
            self.ask(now)
        if self.is_hub and not self.released:
            self.lead(now)
        if not self.released:
            self.keep_lease(now)

    def welcome(self, name, order):
        messages = Policy.welcome(self, name, order)
        if self.released:
            messages.append("over " + (self.by or "-"))
        return messages

    def hear(self, name, word, rest, now):
        words = rest.split()
        if word == "hello" and name in self.members.names and name not in self.known:
            self.known.add(name)  # its first lease began before this, and nobody has answered it yet
            self.answered[name] = now
        if word == "welcome":
            self.next_question = now  # nobody got a question from before this connection
        if word == "ask" and self.is_hub:
            if len(words) >= 4 and all(each.isdigit() for each in words[:3]):
                self.last_heard[name] = now
                self.act.tell(name, self.answer(name, words, now))
        elif word == "ask":
            self.next_question = now
        elif word == "sick" and not self.is_hub:
            self.act.note_sick(rest)
        elif word == "grant" and not self.is_hub:
            if not self.released and len(words) == 9 and words[0].isdigit() and words[1].isdigit():
                self.hear_grant(words, now)
        elif word == "stop" and not self.is_hub:
            if rest.isdigit() and int(rest) >= self.attempt and not self.released:
                self.killing = True
                self.ended = max(self.ended, int(rest)) if self.resting() else self.ended
        elif word == "over" and not self.is_hub:
            self.over(None if rest == "-" else words[0], now)
        elif self.is_hub and word in ("end", "ended", "left", "stopped", "tail") and name not in self.members.names:
            pass  # it was left out, and ends for itself
        elif word == "end" and not self.released and not self.is_hub:
            self.over(words[0] if words else loss_of(name), now)
        else:
            Policy.hear(self, name, word, rest, now)
            return
        self.last_heard[name] = now

    def notice_silence(self, now):
        if self.released:
            Policy.notice_silence(self, now)

    def is_over(self, now, listening, greeted):
        return self.released and Policy.is_over(self, now, listening, greeted)
