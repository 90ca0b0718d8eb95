"""Points of a sweep: what its servers decide, played with delays, cuts, deaths and starts that fail, without a socket or a file. No point may ever
run twice, and none may be forgotten. Run by SweepPolicy (tests/integration/lifeline_loop_test.cpp)."""
import collections
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
from sweep_policy import MOST_TROUBLES, Giver, Taker


class Room:
    def __init__(self, server):
        self.server = server
        server.used += 1
        assert server.used <= server.slots

    def close(self):
        self.server.used -= 1


class Server:
    """Its disk and its jobs outlive its process."""

    def __init__(self, world, name, slots):
        self.world, self.name, self.slots = world, name, slots
        self.disk = []
        self.jobs = {}  # by id: until when it runs
        self.alive = True  # the machine
        self.process = None
        self.links = 0  # the number of the connection that holds
        self.inbox, self.outbox = collections.deque(), collections.deque()

    def write(self, line):
        if self.world.random.random() < self.world.full_disk:
            raise OSError("full")
        self.disk.append(line)

    def begun(self):
        ids = {}
        for line in self.disk:
            word, one = line.split()[:2]
            if word == "begin":
                ids[one] = True
            elif word == "failed":
                ids.pop(one, None)
        return ids

    def boot(self):
        """A process for a new run: with what the last one has left."""
        self.used = 0
        running = {one: Room(self) for one in self.jobs if self.jobs[one] is not None}
        self.outbox.clear()
        self.inbox.clear()
        self.process = Taker(self.begun(), running, self.write, self.take, self.start, self.outbox.append)

    def take(self):
        return Room(self) if self.used < self.slots else None

    def start(self, one, room):
        world = self.world
        if world.random.random() < world.bad_start:
            return "failed"
        assert one not in self.jobs, "begins twice on one server"
        for other in world.servers:
            assert one.rstrip("+") not in {there.rstrip("+") for there in other.jobs}, "runs on two servers"
        world.count[one.rstrip("+")] += 1
        self.jobs[one] = world.now + world.random.uniform(0, 20)
        return "started"

    def step(self):
        for one, end in self.jobs.items():
            if end is not None and end <= self.world.now:
                self.jobs[one] = None
                if self.process is not None:
                    self.process.note_end(one)
        if self.process is not None:
            self.process.tick(self.world.now)


class World:
    def __init__(self, seed, points=30):
        self.random = random.Random(seed)
        self.now = 0.0
        self.full_disk = self.random.choice([0, 0, 0.05])
        self.bad_start = self.random.choice([0, 0, 0.1])
        self.count = collections.Counter()
        self.servers = [Server(self, "s%d" % number, self.random.choice([1, 2, 4])) for number in range(self.random.choice([1, 2, 4]))]
        self.ids = ["p%d" % number for number in range(points)]
        self.begin(self.ids)

    def begin(self, ids):
        self.giver = Giver(ids, self.servers[0].write)
        for server in self.servers:
            if server.alive:
                server.boot()
                server.linked = False

    def talk(self, server):
        """What is under way in one connection, in order, and perhaps not all of it."""
        for _ in range(self.random.choice([0, 1, 1, 3])):
            if server.outbox and self.giver is not None:
                self.hear(server, server.outbox.popleft())
            if server.inbox and server.process is not None:
                word, _, rest = server.inbox.popleft().partition(" ")
                server.process.hear(word, rest, self.now)

    def hear(self, server, text):
        try:
            self.giver.hear(server.name, text, lambda name, answer: server.inbox.append(answer))
        except OSError:
            server.inbox.append("none")

    def cut(self, server):
        server.inbox.clear()
        server.outbox.clear()
        if self.giver is not None:
            self.giver.known.pop(server.name, None)
        server.linked = False
        if server.process is not None:
            server.process.unlink()
        server.outbox.clear()

    def step(self, trouble):
        self.now += 0.5
        chance = self.random.random
        for server in self.servers:
            if trouble and chance() < 0.03:
                self.cut(server)
            if not server.linked and server.process is not None and self.giver is not None and (not trouble or chance() < 0.3):
                server.linked = True
                server.process.link()
            if server.linked:
                self.talk(server)
            server.step()
        if trouble and chance() < 0.01:
            server = self.random.choice(self.servers)
            self.cut(server)
            server.process = None  # killed; its points run on
            if server is self.servers[0]:
                self.giver = None

    def resume(self):
        """What Project::resume_sweep does: all processes end, and what has no job on any server, which is asked, is given out anew."""
        for server in self.servers:
            self.cut(server)
            server.process = None
        started = {one.rstrip("+") for server in self.servers for one in server.jobs}
        begun = set().union(*(server.begun() for server in self.servers))
        self.ids = [one + "+" if one in begun else one for one in self.ids]  # an id that began is not used again
        self.begin([one for one in self.ids if one.rstrip("+") not in started])


class SweepPolicy(unittest.TestCase):
    def play(self, seed):
        world = World(seed)
        for _ in range(600):
            world.step(trouble=True)
            if world.random.random() < 0.005:
                world.resume()
        world.full_disk = world.bad_start = 0
        world.resume()
        for _ in range(3000):
            world.step(trouble=False)
            if world.giver.is_over(set()) and all(server.process.is_idle() for server in world.servers):
                break
        else:
            self.fail("seed %d: points are forgotten: %s" % (seed, [one for one in world.count if world.count[one] != 1]))
        for number in range(30):
            self.assertEqual(world.count["p%d" % number], 1, "seed %d, point %d" % (seed, number))
        for server in world.servers:
            server.process.unlink()
            self.assertEqual(server.used, 0, "a room is not given back")

    def test_never_twice_never_forgotten(self):
        for seed in range(int(os.environ.get("SEEDS", "150"))):
            self.play(seed)

    def test_a_server_where_nothing_starts_asks_no_more(self):
        world = World(1)
        world.bad_start, world.full_disk = 1, 0
        for _ in range(2000):
            world.step(trouble=False)
        self.assertTrue(all(server.process.troubles == MOST_TROUBLES for server in world.servers))
        self.assertEqual(len(world.giver.left), 30)

    def test_nobody_waits_for_a_silent_server_but_its_points_are_not_given_again(self):
        giver = Giver(["a", "b"], lambda line: None)
        self.assertEqual(giver.next_for("s0"), "a")
        self.assertEqual(giver.next_for("s1"), "b")
        self.assertIsNone(giver.next_for("s0"))
        giver.note_end("s0", "a")
        giver.note_end("s0", "b")  # not its own
        self.assertFalse(giver.is_over(set()))
        self.assertTrue(giver.is_over({"s1"}))
        giver.take_back("s0", "b")
        self.assertIsNone(giver.next_for("s0"))


if __name__ == "__main__":
    unittest.main()
