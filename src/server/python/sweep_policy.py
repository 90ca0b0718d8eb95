"""What the servers of a sweep decide (docs/sweep.md): who runs which point, and when. It opens nothing, and is told the time.

The first server's process, the giver, alone gives out points. Each is given once, and never to another server unless the first one has said
that it could not be started there. What was given is on the giver's disk before a server hears of it, and what is begun is on the disk of
the server that begins it before anything starts, so that a process which dies forgets nothing, and nothing begins twice.
"""
from collections import deque

AGAIN_SECONDS = 5  # a server that got nothing asks again
TROUBLE_SECONDS = 60  # and one where a point could not be started
MOST_TROUBLES = 3  # in a row: then it asks no more
LOST_SECONDS = 60  # nobody waits for a server that is silent for so long once all points are given
ALONE_SECONDS = 600  # a server that has not heard the giver for so long, and has nothing to do, gives up


class Giver:
    """`write(line)` puts a line on the disk, or raises OSError: then nothing was decided."""

    def __init__(self, ids, write):
        self.left = deque(ids)
        self.given = {}  # by id: the server
        self.ended = set()
        self.known = {}  # of who has come and not said all: what it knows
        self.write = write

    def hear(self, name, text, answer):
        """What a server says; `answer(name, text)` sends it something. Raises OSError, as `write` does."""
        word, _, rest = text.partition(" ")
        ids = rest.split()
        if word == "known":
            self.known.setdefault(name, set()).update(ids)
        elif word == "ready":
            for one in self.missing(name, self.known.pop(name, set())):
                answer(name, "give " + one)
        elif word == "want":
            one = self.next_for(name)
            answer(name, "none" if one is None else "give " + one)
        elif word == "end":
            for one in ids:
                self.note_end(name, one)
        elif word == "back" and ids:
            self.take_back(name, ids[0])

    def next_for(self, name):
        """The id that this server is to run; None: there is none now."""
        if not self.left:
            return None
        one = self.left[0]
        self.write("give %s %s" % (one, name))
        self.left.popleft()
        self.given[one] = name
        return one

    def missing(self, name, known):
        """What was given to a server that has just come, and that it does not know of."""
        return [one for one, owner in self.given.items() if owner == name and one not in known and one not in self.ended]

    def note_end(self, name, one):
        if self.given.get(one) == name:
            self.ended.add(one)

    def take_back(self, name, one):
        """It never began there, and never will."""
        if self.given.get(one) == name and one not in self.ended:
            self.write("back %s" % one)
            del self.given[one]
            self.left.append(one)

    def is_over(self, silent):
        """Whether all have ended but what is on servers that are silent."""
        return not self.left and all(one in self.ended or owner in silent for one, owner in self.given.items())


class Taker:
    """One server's part. `take()` is room for a point, or None; `room.close()` gives it back. `start(id, room)` starts a point and tells how that
    went: "started", "exists" (there is something of this id already, so it was given up) or "failed" (it never runs here). `tell(text)` sends to
    the giver, if that can be reached. `begun` are the ids that began here before, `running` those with their rooms."""

    def __init__(self, begun, running, write, take, start, tell):
        self.begun = set(begun)
        self.running = dict(running)
        self.ended = self.begun - set(self.running)
        self.write, self.take, self.start, self.tell = write, take, start, tell
        self.owed = deque()  # given, and not begun
        self.room = None
        self.linked = False
        self.asked = False
        self.ask_at = 0.0
        self.troubles = 0
        self.over = False

    def link(self):
        """The giver can be reached: what is known here, so that it can say what is missing."""
        self.linked, self.asked, self.ask_at = True, False, 0.0
        for word, ids in (("known", sorted(self.begun.union(self.owed))), ("end", sorted(self.ended))):
            for at in range(0, len(ids), 100):
                self.tell(word + " " + " ".join(ids[at : at + 100]))
        self.tell("ready")

    def unlink(self):
        self.linked = self.asked = False
        if not self.owed:
            self.leave_room()

    def leave_room(self):
        if self.room is not None:
            self.room.close()
            self.room = None

    def hear(self, word, rest, now):
        if word == "give":
            self.asked = False
            if rest not in self.begun and rest not in self.owed:
                self.owed.append(rest)
        elif word == "none":
            self.asked = False
            self.ask_at = now + AGAIN_SECONDS
        elif word == "over":
            self.over = True
        if word in ("none", "over") and not self.owed:
            self.leave_room()

    def tick(self, now):
        if not self.owed and (self.over or not self.linked or self.asked or now < self.ask_at or self.troubles >= MOST_TROUBLES):
            return
        if self.room is None:
            self.room = self.take()
        if self.room is None:
            return
        if self.owed:
            self.begin(self.owed.popleft(), now)
        else:
            self.asked = True
            self.tell("want")

    def begin(self, one, now):
        try:
            self.write("begin " + one)
        except OSError:
            self.give_back(one, now)
            return
        self.begun.add(one)
        how = self.start(one, self.room)
        if how == "started":
            self.running[one], self.room = self.room, None
            self.troubles = 0
        elif how == "exists":
            self.note_end(one)
        else:
            try:
                self.write("failed " + one)
            except OSError:
                pass  # it counts as one that began here
            self.begun.discard(one)
            self.give_back(one, now)

    def give_back(self, one, now):
        self.leave_room()
        self.troubles += 1
        self.ask_at = now + TROUBLE_SECONDS
        self.tell("back " + one)

    def note_end(self, one):
        room = self.running.pop(one, None)
        if room is not None:
            room.close()
        if one not in self.ended:
            self.ended.add(one)
            self.tell("end " + one)

    def is_idle(self):
        return not self.running and not self.owed
