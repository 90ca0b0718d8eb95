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

    def __init__(self, seed, servers, most=20, least=1, spares=0, **request):
        self.request = request  # more of the lifelines'
        self.random = random.Random(seed)
        self.names = ["s%d" % number for number in range(servers + spares)]
        self.spares = spares
        self.now = 0.0
        self.mail = []  # (when, from, to, text)
        self.cut = set()
        self.delay = self.random.choice([0.0, 0.5, 2.0, 6.0, 15.0])
        self.most, self.least = most, least
        self.servers = {name: Server(self, name) for name in self.names}
        self.restarts = 0
        self.attempts = []
        self.sick = set()
        self.checkpoint = None

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
        idle = world.names.index(name) >= len(world.names) - world.spares
        self.attempt = 0 if idle else 1
        self.lives = not idle
        self.dies_at = None
        self.job = types.SimpleNamespace(id="job-" + name, rank=world.names.index(name), ended=False, failed=False, stopped_for=None, round=None)
        self.job.first_failure = lambda failure: (self.job.rank, failure)
        self.until = None
        self.began = 0.0
        self.lease_until = 0.0
        self.killer = None  # when the kill that goes on is done
        self.released = False
        self.log = []
        self.mark = None  # of its failures
        self.stubborn = False  # nothing ends its ranks
        self.question = 0
        self.make()

    # ---- what AgainPolicy asks of `act`
    @property
    def first_question(self):
        return self.question

    def start(self, number, values, why):
        assert not self.lives and not self.released
        self.attempt, self.lives, self.dies_at, self.began = number, True, None, self.clock()
        self.world.restarts += 1
        self.log.append((number, values, why))
        return True

    def lease(self, until):
        self.lease_until = until

    def release(self, by, jobs):
        self.released = True

    def tell(self, name, text):
        self.world.post(self.name, name, text)

    def failure(self, job):
        mark = self.mark or self.world.random.choice(["gpu", "disk", "m%d" % self.world.random.randrange(10**6)])
        return job.rank, job.round[1], job.round[2], mark

    def note_attempt(self, *words):
        self.world.attempts.append(words)

    def note_sick(self, mark):
        self.world.sick.add(self.name)

    def checkpoints(self):
        if self.world.checkpoint:
            return [self.world.checkpoint]
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
        request["spares"] = [str(world.spares)]
        request.update(world.request)
        self.policy = AgainPolicy(request, [self.job], self.clock(), self.broadcast, lambda *_: None, self)
        if self.name != world.names[0]:
            world.post(self.name, world.names[0], "hello")

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

    def fail(self, kind, code="9"):
        if self.lives and self.dies_at is None:
            self.dead((kind, code))

    def stop(self):
        """Somebody ends its job."""
        self.lives, self.dies_at = False, None
        self.policy.note_end(self.job, None, self.clock())

    def dead(self, how):
        self.lives, self.dies_at = False, None
        self.job.round = (self.attempt,) + how

    def pass_time(self):
        if self.lives and self.dies_at is not None and self.world.now >= self.dies_at:
            self.dead(("signal", "15"))
        if self.lives and self.dies_at is None and self.clock() > self.lease_until and not self.stubborn:  # the guard beside the supervisor
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
            if self.lives and self.dies_at is None and not self.stubborn:
                self.dies_at = self.world.now + self.world.random.uniform(0, KILL)
            self.killer = (self.dies_at or self.world.now) + 0.5


def play(seed, servers):
    """Whether two attempts lived at once, and how often ranks began."""
    world = World(seed, servers, spares=seed // 2 % 3)
    for _ in range(STEPS):
        world.step()
        world.trouble()
        if len(world.living()) > 1:
            return True, world.restarts
    return False, world.restarts


class Quiet(World):
    """Nothing is late or lost but what a test says."""

    def __init__(self, *words, **more):
        super().__init__(1, *words, **more)
        self.delay = 0.0

    def until(self, condition):
        for _ in range(STEPS):
            if condition():
                return
            self.step()
            assert len(self.living()) <= 1
        raise AssertionError("it does not come to that")

    def at(self, number, *names):
        """Whether these and no others have ranks of this attempt."""
        living = {name for name, server in self.servers.items() if server.lives}
        return living == set(names) and all(self.servers[name].attempt == number for name in names)

    def lose(self, name):
        self.cut = {(one, other) for one in self.names for other in self.names if name in (one, other)}
        self.random.random = lambda: 0.0


class Rules(unittest.TestCase):
    def setUp(self):
        self.kill, lifeline_again.KILL_SECONDS = lifeline_again.KILL_SECONDS, KILL + 1
        self.delay, lifeline_again.LONGEST_DELAY = lifeline_again.LONGEST_DELAY, 1

    def tearDown(self):
        lifeline_again.KILL_SECONDS, lifeline_again.LONGEST_DELAY = self.kill, self.delay

    def test_a_spare_takes_the_place_of_a_lost_server(self):
        world = Quiet(3, least=3, spares=2)
        world.until(lambda: world.now > 5)
        self.assertTrue(world.at(1, "s0", "s1", "s2"))  # a spare has no ranks
        world.lose("s1")
        world.until(lambda: world.at(2, "s0", "s2", "s3"))
        shape = world.servers["s3"].log[0][1][1:5]
        self.assertEqual(shape, ["3", "1", "1", "3"])  # the ranks of s1
        self.assertEqual(world.servers["s2"].log[0][1][1:5], ["3", "2", "2", "3"])  # as before
        world.servers["s3"].fail("exit")
        world.until(lambda: world.at(3, "s0", "s2", "s3"))
        self.assertEqual([words[4].split(":")[0] for words in world.attempts], ["lost", "3"])

    def test_a_server_that_is_lost_before_it_has_asked_is_missed(self):
        world = Quiet(2, least=1)
        world.servers["s0"].hear("s1", "hello")
        world.mail.clear()
        world.lose("s1")
        world.until(lambda: world.at(2, "s0"))

    def test_a_failure_waits_for_members_that_have_not_come_yet(self):
        for comes in (True, False):
            world = Quiet(2, least=2)
            world.mail.clear()
            world.lose("s1")
            world.servers["s0"].fail("exit")
            world.until(lambda world=world: world.now > 3)
            self.assertFalse(world.servers["s0"].released)
            if comes:
                world.cut.clear()
            world.until(lambda world=world: world.servers["s0"].released or world.at(2, "s0", "s1"))
            self.assertEqual(world.at(2, "s0", "s1"), comes)

    def test_a_spare_that_is_lost_takes_no_place(self):
        world = Quiet(2, least=1, spares=1)
        world.until(lambda: world.now > 5)
        world.lose("s2")
        world.until(lambda: world.now > 20)
        self.assertTrue(world.at(1, "s0", "s1"))  # and nobody misses it
        world.servers["s1"].fail("exit")
        world.until(lambda: world.at(2, "s0", "s1"))
        for name in ("s0", "s1"):
            world.servers[name].dead(("exit", "0"))
        world.until(lambda: world.servers["s0"].released and world.servers["s1"].released)
        self.assertEqual(world.servers["s0"].policy.gone, {"s2": "left"})

    def test_a_server_that_fails_twice_by_itself_is_left_out(self):
        world = Quiet(2, least=2, spares=1)
        world.servers["s1"].mark = "gpu"
        for number in (1, 2):
            world.until(lambda number=number: world.at(number, "s0", "s1"))
            world.servers["s1"].fail("exit")
            world.until(lambda: not world.servers["s1"].lives)
        world.until(lambda: world.at(3, "s0", "s2"))
        world.until(lambda: world.servers["s1"].released)
        self.assertEqual(world.sick, {"s1"})
        later = world.now + 20
        world.until(lambda: world.now > later)
        self.assertTrue(world.at(3, "s0", "s2"))  # its end is not that of the others
        self.assertEqual([words[5] for words in world.attempts], [False, True])

    def test_a_first_server_that_is_revived_knows_when_its_attempt_began(self):
        world = Quiet(2)
        world.until(lambda: world.now > 5)
        world.servers["s0"].revive()
        world.until(lambda: world.at(2, "s0", "s1"))
        began, failed = world.attempts[0][1:3]
        self.assertEqual((began, failed >= 4), (0.0, True))

    def test_two_causes_are_not_one(self):
        world = Quiet(2, least=2, spares=1)
        for number, mark in ((1, "gpu"), (2, "disk"), (3, "m1")):
            world.until(lambda number=number: world.at(number, "s0", "s1"))
            world.servers["s1"].mark = mark
            world.servers["s1"].fail("exit")
            world.until(lambda: not world.servers["s1"].lives)
        world.until(lambda: world.at(4, "s0", "s1"))
        self.assertEqual(world.sick, set())

    def test_the_first_server_is_never_left_out(self):
        world = Quiet(2, least=1, spares=1)
        world.servers["s0"].mark = "gpu"
        world.until(lambda: world.at(1, "s0", "s1"))
        world.until(lambda: world.now > 3)
        world.servers["s0"].fail("exit")
        world.until(lambda: world.at(2, "s0", "s1"))
        world.servers["s0"].fail("signal", "11")
        world.until(lambda: world.at(3, "s0", "s1"))
        self.assertEqual(world.sick, set())

    def test_without_a_spare_a_sick_server_ends_the_launch(self):
        world = Quiet(2, least=2)
        world.servers["s1"].mark = "gpu"
        for number in (1, 2):
            world.until(lambda number=number: world.at(number, "s0", "s1"))
            world.until(lambda: world.now > 3)
            world.servers["s1"].fail("exit")
            world.until(lambda: not world.servers["s1"].lives)
        world.until(lambda: world.servers["s0"].released and world.servers["s1"].released)
        self.assertEqual(world.servers["s0"].policy.by, "rank:1")

    def test_a_failure_that_follows_from_a_peers_gives_way(self):
        world = Quiet(2, least=2, final=["7"])
        world.servers["s0"].mark = "peer"
        world.servers["s1"].mark = "m1"
        world.until(lambda: world.now > 5)
        world.servers["s0"].fail("exit", "1")
        world.step()
        world.servers["s1"].fail("exit", "3")
        world.until(lambda: world.at(2, "s0", "s1"))
        self.assertEqual(world.attempts[0][4], "1:exit:3:m1:s1")
        world.until(lambda: world.now > 10)
        world.servers["s0"].fail("exit", "1")
        world.step()
        world.servers["s1"].fail("exit", "7")  # after which it does not begin anew
        world.until(lambda: world.servers["s1"].released)
        self.assertEqual(world.servers["s0"].policy.by, "rank:1")

    def test_what_follows_from_a_peers_failure_does_not_decide(self):
        world = Quiet(2, again=["3", "2", "signal"])
        world.until(lambda: world.now > 5)
        world.servers["s0"].mark = "peer"
        world.servers["s0"].fail("exit", "1")  # of which it would not begin anew
        world.step()
        world.servers["s1"].fail("signal", "9")
        world.until(lambda: world.at(2, "s0", "s1"))
        self.assertIn("1:signal:9", world.attempts[0][4])
        world.servers["s0"].fail("exit", "1")
        world.until(lambda: world.servers["s1"].released)  # nothing else has failed

    def test_a_job_that_somebody_has_ended_ends_the_launch_whatever_is_heard_first(self):
        world = Quiet(2, least=2, grace=["5"])
        world.until(lambda: world.now > 5)
        world.servers["s0"].mark = "m0"
        world.servers["s0"].fail("exit", "1")  # in its wake, and heard of at once
        world.step()
        world.servers["s1"].stop()
        world.until(lambda: world.servers["s0"].released and world.servers["s1"].released)
        self.assertEqual((world.restarts, world.servers["s0"].policy.by), (0, None))

    def test_somebody_who_ends_a_job_while_an_attempt_is_ended_is_heard(self):
        world = Quiet(3, least=2, grace=["0"])
        world.until(lambda: world.now > 5)
        world.servers["s2"].fail("exit", "1")
        world.until(lambda: world.servers["s0"].policy.ending)
        world.servers["s1"].stop()
        world.until(lambda: world.servers["s0"].released and world.servers["s1"].released)
        self.assertEqual((world.restarts, world.servers["s0"].policy.by), (0, "rank:2"))

    def test_a_loss_is_told_in_place_of_what_follows_from_it(self):
        for causes in ("lost", "any"):
            world = Quiet(3, again=["3", "2", causes])
            world.until(lambda world=world: world.now > 5)
            world.lose("s2")
            world.servers["s1"].mark = "peer"
            world.servers["s1"].fail("exit", "1")
            world.until(lambda world=world: world.at(2, "s0", "s1"))
            self.assertEqual(world.attempts[0][4], "lost:s2")

    def test_orders_go_to_who_has_the_attempt(self):
        world = Quiet(2)
        hub = world.servers["s0"].policy
        self.assertFalse(hub.takes_orders("s1"))
        world.until(lambda: hub.takes_orders("s1"))
        world.servers["s0"].fail("exit", "3")
        world.until(lambda: hub.granted == 2)
        world.until(lambda: hub.takes_orders("s1") or not world.at(2, "s0", "s1"))
        world.until(lambda: hub.takes_orders("s1"))
        self.assertTrue(world.at(2, "s0", "s1"))

    def test_what_cannot_be_ended_ends_the_launch(self):
        world = Quiet(3, least=1)
        world.until(lambda: world.now > 5)
        world.servers["s1"].stubborn = True
        world.servers["s2"].fail("exit")
        world.until(lambda: world.servers["s0"].released and world.servers["s2"].released)
        self.assertEqual(world.restarts, 0)

    def test_a_job_that_ended_by_itself_is_left_to_its_supervisor_for_a_moment(self):
        world = Quiet(2, most=0, grace=["0"])
        world.until(lambda: world.now > 5)
        server = world.servers["s1"]
        server.fail("exit", "3")
        world.until(lambda: server.released)
        policy, now = server.policy, server.clock()
        self.assertEqual(policy.by, "rank:1")
        self.assertEqual(policy.jobs_to_kill(now), [])  # else it would read as ended by this
        self.assertEqual(world.servers["s0"].policy.jobs_to_kill(world.servers["s0"].clock()), ["job-s0"])
        self.assertEqual(policy.jobs_to_kill(now + 3), ["job-s1"])  # its supervisor is gone
        policy.kills = 0
        policy.note_end(server.job, "exit 3", now)
        self.assertEqual(policy.jobs_to_kill(now), ["job-s1"])  # what it has left behind

    def test_exit_codes_after_which_it_does_not_begin_anew(self):
        for code, anew in (("9", False), ("8", True)):
            world = Quiet(2, least=2, final=["2", "9"])
            world.until(lambda world=world: world.now > 5)
            world.servers["s1"].fail("exit", code)
            world.until(lambda world=world: world.servers["s0"].released or world.at(2, "s0", "s1"))
            self.assertEqual(world.at(2, "s0", "s1"), anew, code)

    def test_a_signal_is_no_exit_code(self):
        world = Quiet(2, least=2, final=["9"])
        world.until(lambda: world.now > 5)
        world.servers["s1"].fail("signal", "9")
        world.until(lambda: world.at(2, "s0", "s1"))

    def test_twice_at_one_place_ends_the_launch(self):
        for newer in (False, True):
            world = Quiet(2, least=2)
            world.checkpoint = "c1"
            world.servers["s1"].mark = "m1"
            for number in (1, 2, 3):  # the first attempt had no checkpoint
                world.until(lambda world=world, number=number: world.at(number, "s0", "s1"))
                world.until(lambda world=world: world.now > 3)
                world.checkpoint = "c2" if newer and number == 2 else "c1"
                world.servers["s1"].fail("exit")
                world.until(lambda world=world: not world.servers["s1"].lives)
            world.until(lambda world=world: world.servers["s0"].released or world.at(4, "s0", "s1"))
            self.assertEqual(world.servers["s0"].released, not newer)


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
            policy.answered = {name: -1000.0 for name in policy.members.names}
            old_go_on(policy, now)

        def hasty(policy, *words):
            old_init(policy, *words)
            if words[-1].until is not None:
                policy.quiet_until = -1000.0
                policy.answered = {name: -1000.0 for name in policy.members.names}

        old_init, old_grant, old_go_on = AgainPolicy.__init__, AgainPolicy.hear_grant, AgainPolicy.go_on
        self.assertGreater(without("hear_grant", from_hearing), 0, "a lease counts from when it was asked for")
        self.assertGreater(without("go_on", unfenced), 0, "who is silent gets the time of its lease and of a kill")
        self.assertGreater(without("__init__", hasty), 0, "a coordinator that has died waits when it is back")


if __name__ == "__main__":
    unittest.main()
