"""Attempts of a launch: what its lifelines decide, played with delays, losses, cuts and deaths of every kind, without a socket or a file.
Two attempts must never have living ranks at one time. Run by LifelineAgain (tests/integration/lifeline_loop_test.cpp)."""
import os
import random
import sys
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
import lifeline_again
from lifeline_again import AgainPolicy

LEASE = 6.0
KILL = 2.0
STEPS = 300  # ticks of half a second


class World:
    """Servers whose lifelines are played: one policy each, with a job whose ranks live, are being ended, or are dead."""

    def __init__(self, seed, servers, most=20, least=1):
        self.random = random.Random(seed)
        self.names = ["s%d" % number for number in range(servers)]
        self.now = 0.0
        self.mail = []  # (when, from, to, text)
        self.cut = set()
        self.delay = self.random.choice([0.0, 0.5, 2.0, 6.0, 15.0])
        self.most, self.least = most, least
        self.servers = {name: Server(self, name) for name in self.names}
        self.restarts = 0

    def post(self, sender, to, text):
        if (sender, to) in self.cut and self.random.random() < 0.8:
            return
        self.mail.append((self.now + self.random.uniform(0, self.delay), sender, to, text))

    def living(self):
        return {server.attempt for server in self.servers.values() if server.lives}

    def step(self):
        self.now += 0.5
        come = [letter for letter in self.mail if letter[0] <= self.now]
        self.mail = [letter for letter in self.mail if letter[0] > self.now]
        self.random.shuffle(come)
        for server in self.servers.values():
            server.pass_time()
        for _, sender, to, text in come:
            self.servers[to].hear(sender, text)
        for server in self.servers.values():
            server.work()

    def trouble(self):
        chance = self.random.random
        names = self.names
        if chance() < 0.06:
            self.cut.add((self.random.choice(names), self.random.choice(names)))
        if chance() < 0.05:
            self.cut.clear()
        if chance() < 0.05:
            self.servers[self.random.choice(names)].fail(self.random.choice(["exit", "signal"]))
        if chance() < 0.02:
            self.servers[names[0]].revive()
        if chance() < 0.02:
            self.servers[self.random.choice(names)].revive()


class Server:
    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.drift = world.random.uniform(0.991, 1.0)  # the clock's rate
        self.attempt = 1
        self.lives = True
        self.dies_at = None
        self.job = types.SimpleNamespace(id="job-" + name, rank=world.names.index(name), ended=False, failed=False, round=None)
        self.until = None
        self.lease_until = 0.0
        self.killer = None  # when the kill that goes on is done
        self.released = False
        self.log = []
        self.question = 0
        self.make()

    # ---- what AgainPolicy asks of `act`
    @property
    def first_question(self):
        return self.question

    def start(self, number, values, why):
        assert not self.lives and not self.released
        self.attempt, self.lives, self.dies_at = number, True, None
        self.world.restarts += 1
        self.log.append((number, values, why))
        return True

    def lease(self, until):
        self.lease_until = until

    def release(self, by, jobs):
        self.released = True

    def tell(self, name, text):
        self.world.post(self.name, name, text)

    def mark(self, job):
        return "m%d" % self.world.random.randrange(10**6)

    def checkpoints(self):
        return ["c%d" % (self.world.now // 10)]

    def port(self):
        return 1000 + self.world.restarts

    # ----
    def clock(self):
        return self.world.now * self.drift

    def make(self):
        world = self.world
        request = {"server": [self.name], "servers": world.names, "address": ["a"], "port": ["1"], "grace": ["1"], "timeout": [str(LEASE)]}
        request["again"] = [str(world.most), str(world.least), "any"]
        request["counts"] = ["1"] * len(world.names)
        self.policy = AgainPolicy(request, [self.job], self.clock(), self.broadcast, lambda *_: None, self)

    def broadcast(self, text):
        for name in self.world.names:
            if name != self.name and (self.name == self.world.names[0] or name == self.world.names[0]):
                self.world.post(self.name, name, text)

    def revive(self):
        """Its lifeline is killed, and started again by somebody's look."""
        if self.policy.released:
            return
        self.until = self.lease_until
        self.question = self.world.random.randrange(10**9)
        self.killer = None
        self.make()

    def fail(self, kind):
        if self.lives and self.dies_at is None:
            self.dead((kind, "9"))

    def dead(self, how):
        self.lives, self.dies_at = False, None
        self.job.round = (self.attempt,) + how

    def pass_time(self):
        if self.lives and self.dies_at is not None and self.world.now >= self.dies_at:
            self.dead(("signal", "15"))
        if self.lives and self.dies_at is None and self.clock() > self.lease_until:  # the guard beside the supervisor
            self.dies_at = self.world.now + self.world.random.uniform(0, KILL)
        if self.killer is not None and self.world.now >= self.killer:
            self.killer = None
            self.policy.note_killed(not self.lives)

    def hear(self, sender, text):
        word, _, rest = text.partition(" ")
        self.policy.hear(sender, word, rest, self.clock())

    def work(self):
        self.policy.tick(self.clock())
        if self.policy.released:
            self.lives = self.lives and self.policy.by is None
            return
        if self.killer is None and self.policy.jobs_to_kill(self.clock()):
            if self.lives and self.dies_at is None:
                self.dies_at = self.world.now + self.world.random.uniform(0, KILL)
            self.killer = (self.dies_at or self.world.now) + 0.5


def play(seed, servers):
    """Whether two attempts lived at once, and how often ranks began."""
    world = World(seed, servers)
    for _ in range(STEPS):
        world.step()
        world.trouble()
        if len(world.living()) > 1:
            return True, world.restarts
    return False, world.restarts


class Simulation(unittest.TestCase):
    RUNS = int(os.environ.get("AGAIN_RUNS", "400"))

    def setUp(self):
        self.kill, lifeline_again.KILL_SECONDS = lifeline_again.KILL_SECONDS, KILL + 1
        self.delay, lifeline_again.LONGEST_DELAY = lifeline_again.LONGEST_DELAY, 1

    def tearDown(self):
        lifeline_again.KILL_SECONDS, lifeline_again.LONGEST_DELAY = self.kill, self.delay

    def bad(self, runs):
        return sum(play(seed, 3 if seed % 2 else 5)[0] for seed in range(runs))

    def test_two_attempts_never_live_at_once(self):
        found = [play(seed, 3 if seed % 2 else 5) for seed in range(self.RUNS)]
        self.assertEqual(sum(bad for bad, _ in found), 0)
        self.assertGreater(sum(restarts for _, restarts in found), self.RUNS)  # it has played something

    def test_each_rule_is_needed(self):
        """Left out, it shows: else the simulation would prove nothing."""

        def without(name, function):
            old = getattr(AgainPolicy, name)
            setattr(AgainPolicy, name, function)
            try:
                return self.bad(self.RUNS)
            finally:
                setattr(AgainPolicy, name, old)

        def from_hearing(policy, words, now):
            if int(words[0]) in policy.asked:
                policy.asked[int(words[0])] = now
            old_grant(policy, words, now)

        def unfenced(policy, now):
            policy.answered = {name: -1000.0 for name in policy.members}
            old_go_on(policy, now)

        def hasty(policy, *words):
            old_init(policy, *words)
            if words[-1].until is not None:
                policy.quiet_until = -1000.0
                policy.answered = {name: -1000.0 for name in policy.members}

        old_init, old_grant, old_go_on = AgainPolicy.__init__, AgainPolicy.hear_grant, AgainPolicy.go_on
        self.assertGreater(without("hear_grant", from_hearing), 0, "a lease counts from when it was asked for")
        self.assertGreater(without("go_on", unfenced), 0, "who is silent gets the time of its lease and of a kill")
        self.assertGreater(without("__init__", hasty), 0, "a coordinator that has died waits when it is back")


if __name__ == "__main__":
    unittest.main()
