"""The order in which the servers of launches take their leases: what the first server's lifeline decides, played with messages that are late, lost
and doubled, and with servers that many launches want. Run by LeaseTurns (tests/integration/lifeline_loop_test.cpp)."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
from lifeline_queue import Turns

RUNS = int(os.environ.get("TURN_RUNS", "150"))
MACHINES = {"a": "9", "b": "3", "c": "7", "d": "1"}


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.turns = Turns(["a", "b", "c"], lambda: 4121, 60.0, lambda low, high: high)

    def hear(self, **states):
        for name, state in states.items():
            self.turns.hear(name, MACHINES[name], state)

    def test_one_after_the_other_in_the_order_of_the_machines(self):
        self.hear(a="keep", b="keep")
        self.assertEqual(set(self.turns.decide(0).values()), {"keep"}, "c has not come yet")
        self.hear(c="keep")
        self.assertEqual(self.turns.decide(1), {"b": "take", "c": "keep", "a": "keep"})
        self.hear(b="held")
        self.assertEqual(self.turns.decide(2), {"b": "take", "c": "take", "a": "keep"})
        self.hear(c="held")
        self.hear(a="held")
        self.assertEqual(self.turns.decide(3), {name: "go 4121" for name in "abc"})
        self.hear(b="gone 4121")
        self.assertEqual(self.turns.decide(4000), {name: "go 4121" for name in "abc"})

    def test_what_is_not_complete_in_a_minute_is_given_back_before_the_next_try(self):
        self.hear(a="keep", b="held", c="line")
        self.turns.decide(10)
        self.assertEqual(self.turns.decide(69)["b"], "take")
        self.assertEqual(set(self.turns.decide(71).values()), {"keep"})
        self.assertEqual(set(self.turns.decide(100).values()), {"keep"}, "b still has its lease")
        self.hear(b="keep", c="keep")
        self.assertEqual(self.turns.decide(101), {"b": "take", "c": "keep", "a": "keep"})

    def test_a_new_process_goes_on_where_the_last_one_was(self):
        self.hear(a="held", b="gone 99", c="held")
        self.assertEqual(self.turns.decide(0), {name: "go 99" for name in "abc"})


class Play:
    """Launches over some of four servers that have room for one each. Messages take a while, get lost, and come twice."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.now = 0.0
        self.holder = {name: None for name in MACHINES}
        self.launches = []
        for number in range(6):
            names = self.dice.sample(sorted(MACHINES), self.dice.choice([1, 2, 3, 4]))
            turns = Turns(names, lambda: 1, 60.0, self.dice.uniform)
            self.launches.append({"number": number, "turns": turns, "names": names, "orders": dict.fromkeys(names, "keep")})
        for launch in self.launches:
            launch["states"] = dict.fromkeys(launch["names"], "keep")
            launch["left"] = None

    def step(self):
        self.now += 0.5
        for launch in self.launches:
            for name in launch["names"]:
                if self.dice.random() < 0.6:
                    launch["turns"].hear(name, MACHINES[name], launch["states"][name])
            orders = dict(launch["turns"].decide(self.now))
            for name in launch["names"]:
                if self.dice.random() < 0.6:
                    launch["orders"][name] = orders[name]
        for name in MACHINES:
            for launch in self.launches:  # by arrival
                if name in launch["names"]:
                    self.obey(launch, name)
        for launch in self.launches:
            if launch["left"] is not None:
                launch["left"] -= 1
                if launch["left"] == 0:
                    for name in launch["names"]:
                        assert self.holder[name] == launch["number"]
                        self.holder[name] = None

    def obey(self, launch, name):
        order = launch["orders"][name].split()[0]
        state = launch["states"][name]
        if state.startswith("gone"):
            return
        if state == "held" and order == "keep":
            self.holder[name] = None
            launch["states"][name] = "keep"
        elif state == "held" and order == "go":
            launch["states"][name] = "gone 1"
            if all(each == "gone 1" for each in launch["states"].values()):
                launch["left"] = self.dice.randint(1, 20)
        elif state != "held":
            launch["states"][name] = "line" if order == "take" else "keep"
            ahead = any(each["states"].get(name) == "line" for each in self.launches[: launch["number"]])
            if order == "take" and self.holder[name] is None and not ahead:
                self.holder[name] = launch["number"]
                launch["states"][name] = "held"


class PlayTest(unittest.TestCase):
    def test_every_launch_gets_all_that_it_needs(self):
        for seed in range(RUNS):
            play = Play(seed)
            for _ in range(2000):
                play.step()
                if all(launch["left"] is not None and launch["left"] <= 0 for launch in play.launches):
                    break
            else:
                self.fail("seed %d: %s" % (seed, [launch["states"] for launch in play.launches]))


if __name__ == "__main__":
    unittest.main()
