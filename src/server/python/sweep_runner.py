"""The process of a sweep on one server: connections to the others (lifeline_link.py), points as jobs, and time, for what sweep_policy.py decides."""
import json
import os
import subprocess

import lease
from lifeline_job import Job, clock, put
from lifeline_orders import quote, unquote
from lifeline_peers import Peers
from sweep_policy import ALONE_SECONDS, LOST_SECONDS, Giver, Taker

BEAT_SECONDS = 5
SILENT_SECONDS = 30  # then a connection is dead
PROOF_SECONDS = 10
START_SECONDS = 120
LEASE_SECONDS = 2
LEASE_FD = 7  # as lib/lease.sh has it
PAUSE = 0.2


class Rooms:
    """For so many points at a time, with what each leases."""

    def __init__(self, count, words):
        self.free = count
        self.needs = lease.parse_needs(words) if words else None
        self.next_try = 0.0
        self.trouble = ""

    def take(self, now):
        if self.free <= 0:
            return None
        leased = None
        if self.needs is not None:
            if now < self.next_try:
                return None
            self.next_try = now + LEASE_SECONDS  # a driver takes its time to tell who uses a GPU
            self.trouble = ""
            try:
                leased = lease.take(self.needs)
            except (lease.Refused, OSError) as why:
                self.trouble = "cannot lease anything here: " + str(why)
            if leased is None:
                return None
            self.next_try = now  # there may be more
        self.free -= 1
        return Room(self, leased)


class Room:
    def __init__(self, rooms, leased):
        self.rooms, self.lease = rooms, leased

    def devices(self):
        """The job's file `devices`; "": nothing is leased."""
        return lease.devices_text(self.lease, self.rooms.needs) if self.lease is not None else ""

    def hand_over(self):
        """The supervisor holds what is leased; it goes with the last process of the job."""
        if self.lease is not None:
            os.close(self.lease.fd)
            self.lease = None

    def close(self):
        self.rooms.free += 1
        if self.lease is not None:
            self.lease.close()


class Runner(Peers):
    def __init__(self, jobs, folder, surroundings, journal):
        """`surroundings`: the umask of jobs, and the PATH with the programs that tell about GPUs."""
        self.jobs, self.folder, self.journal = jobs, folder, journal
        self.mask, path = surroundings
        self.env = dict(os.environ)
        os.environ["PATH"] = path
        self.null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(self.null, LEASE_FD, inheritable=False)  # nothing else gets that number
        with open(os.path.join(folder, "points")) as file:
            self.points = json.load(file)
        with open(os.path.join(folder, "run")) as file:
            run = json.load(file)
        self.own, self.servers = run["own"], run["servers"]
        super().__init__(run["token"].encode(), run["address"], run["port"], self.own == self.servers[0])
        self.number = {one: at for at, one in enumerate(run["ids"]) if one}
        self.next_beat = 0.0
        self.noted = ""
        self.trouble = ""
        self.inner = []  # between the giver and the taker of this process
        self.heard = {name: clock() for name in self.servers}
        journal.open()
        begun = journal.read()[1]
        self.rooms = rooms = Rooms(self.points["slots"], self.points["lease"])
        # What was running before takes room, also where that makes it more than there is; what it has leased, its supervisor holds.
        self.supervised = {one: self.job(one) for one in run["busy"]}
        running = {one: Room(rooms, None) for one in self.supervised}
        rooms.free -= len(running)
        self.taker = Taker(begun, running, journal.write, lambda: rooms.take(clock()), self.start, self.tell)
        self.giver = Giver([one for one in run["ids"] if one], self.write_given) if self.is_hub else None
        if self.is_hub:
            self.taker.link()
            if len(self.servers) > 1:
                self.listen()
                if self.listener is None:
                    raise OSError("cannot listen at port %d: %s" % (self.port, self.refused))

    def write_given(self, line):
        word, one, *name = line.split(" ", 2)
        self.journal.write(" ".join([word, one] + [quote(each) for each in name]))

    # ---- points

    def start(self, one, room):
        """As Taker has it."""
        if os.path.exists(os.path.join(self.folder, "stopped")):
            return "failed"
        points = self.points
        text = points["head"] + points["own"][self.number[one]] + points["tail"]
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        if room.lease is not None:
            os.dup2(room.lease.fd, LEASE_FD)
        try:
            done = subprocess.Popen(
                ["sh", os.path.join(here, "lib/sweep_point.sh"), one, str(points["retry"]), room.devices()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=(LEASE_FD,) if room.lease is not None else (),
                env=self.env,
                preexec_fn=lambda: os.umask(self.mask),
            )
            out = done.communicate(text.encode(), START_SECONDS)[0].decode(errors="replace")
        except OSError as error:
            out = "@remote1 error " + (error.strerror or str(error))
        except subprocess.TimeoutExpired:
            out = ""
        finally:
            os.dup2(self.null, LEASE_FD, inheritable=False)
        for line in out.split("\n"):
            words = line.split(" ", 4)
            if words[:3] == ["@remote1", "start", one] and words[3:4] in (["started"], ["exists"]):
                self.supervised[one] = self.job(one)
                if words[3] == "started":
                    room.hand_over()
                return words[3]
            if words[:2] == ["@remote1", "error"] or words[:4] == ["@remote1", "start", one, "failed"]:
                self.trouble = "cannot start a point: " + words[-1]
                return "failed"
        return "exists"  # it may be under way: the id is not free for another server

    def job(self, one):
        job = Job(self.jobs, one, 0)
        job.close()  # looking now and then is enough, and there may be thousands
        return job

    def look(self):
        for one in list(self.taker.running):
            if self.supervised[one].look()[0]:
                self.supervised.pop(one)
                self.taker.note_end(one)

    # ---- what is said

    def tell(self, text):
        if self.is_hub:
            self.inner.append((self.own, text))
        else:
            self.broadcast(text)

    def answer(self, name, text):
        if name == self.own:
            word, _, rest = text.partition(" ")
            self.taker.hear(word, rest, clock())
        for link in self.links:
            if link.name == name:
                link.send(text)

    def hear(self, name, text):
        """The giver's: of a member that has proved itself, or of this process."""
        self.heard[name] = clock()
        try:
            self.giver.hear(name, text, self.answer)
        except OSError as error:
            self.trouble = "cannot write the list of what was given: " + (error.strerror or str(error))
            self.answer(name, "none")

    def talk_to_itself(self):
        while self.inner:
            inner, self.inner = self.inner, []
            for name, text in inner:
                self.hear(name, text)

    # ---- connections

    def pause_between_tries(self, now):
        return 3

    def note_drop(self):
        if not self.is_hub:
            self.taker.unlink()

    def serve(self, link):
        had_key = link.key is not None
        messages = link.receive()
        if not self.is_hub and link.key is not None and not had_key:
            link.send("hello " + quote(self.own))
        for text in messages:
            link.greeted = True
            word, _, rest = text.partition(" ")
            if not self.is_hub:
                self.heard[self.servers[0]] = clock()
                if word == "welcome":
                    self.refused = ""
                    self.taker.link()
                else:
                    self.taker.hear(word, rest, clock())
            elif link.name is not None:
                self.hear(link.name, text)
            elif word == "hello" and unquote(rest) in self.servers[1:]:
                name = unquote(rest)
                self.take_in(link, name)
                self.giver.known.pop(name, None)
                self.heard[name] = clock()
                link.send("welcome")
            else:
                link.close()
        if not link.open:
            self.drop(link)

    # ---- the loop

    def note(self):
        text = self.rooms.trouble
        if not text and not self.is_hub and not self.taker.linked and self.refused:
            text = "cannot reach %s at port %d: %s" % (self.servers[0], self.port, self.refused)
        elif not text and (self.is_hub or self.taker.troubles):
            text = self.trouble or self.refused
        if text != self.noted:
            self.noted = text
            try:
                put(self.folder, "note", text.replace("\n", " ") + "\n")
            except OSError:
                pass

    def is_over(self, now):
        if self.is_hub:
            silent = {name for name, heard in self.heard.items() if name != self.own and now - heard > LOST_SECONDS}
            return not self.inner and self.taker.is_idle() and self.giver.is_over(silent)
        if not self.taker.is_idle():
            return False
        return self.taker.over or now - self.heard[self.servers[0]] > ALONE_SECONDS

    def run(self):
        while True:
            now = clock()
            self.look()
            self.talk_to_itself()
            self.taker.tick(now)
            self.talk_to_itself()
            if now >= self.next_beat:
                self.next_beat = now + BEAT_SECONDS
                self.broadcast("beat")
            self.flush()
            for link in list(self.links):
                if now - link.heard > (PROOF_SECONDS if self.is_hub and link.name is None else SILENT_SECONDS):
                    self.drop(link)
            if not self.is_hub and not self.taker.over:
                self.keep_connecting(now)
            self.note()
            if self.is_over(now):
                if self.is_hub:
                    self.say_last("over")
                return
            for what in self.await_any(PAUSE):
                if what is self.listener:
                    self.accept()
                elif what in self.links:
                    self.serve(what)
