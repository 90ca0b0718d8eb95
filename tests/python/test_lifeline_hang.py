"""When a launch stands still, without a socket, a file or a clock. Run by LifelineHang (tests/integration/lifeline_loop_test.cpp)."""
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
from lifeline_again import AgainPolicy
from lifeline_hang import EVIDENCE_SECONDS, HangPolicy, Stillness, stands
from lifeline_policy import Policy

JOB = "a" * 32
C10D = '  File "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", line 1541 in all_reduce'


def evidence(*ranks):
    """Ranks are (pid, rank, (written, written), (stack, stack)): the lines of the main thread."""
    lines = []
    for look in (0, 1):
        stacks = ["@remote1 stacks %d" % look]
        for pid, rank, _, frames in ranks:
            stacks.append("@remote1 process %s %d %s faulthandler " % (JOB, pid, rank))
            stacks.append("@remote1 line %d |Current thread 0x00007f (most recent call first):" % pid)
            stacks += ["@remote1 line %d |%s" % (pid, frame) for frame in frames[look]]
        seen = ["@remote1 look %d 100" % look]
        for pid, rank, written, _ in ranks:
            seen.append("@remote1 rank %d %s %d %s 0" % (look, JOB, pid, rank))
            seen.append("@remote1 state %d %d 1 R 500 %s -" % (look, pid, written[look]))
        lines += stacks + seen if look == 0 else seen + stacks
    return "\n".join(lines + ["@remote1 end", ""])


def waits(pid, rank, written=(7, 7), frames=(C10D, '  File "/home/a/train.py", line 8 in <module>'), then=None):
    return pid, rank, written, (frames, frames if then is None else then)


class StacksTest(unittest.TestCase):
    def test_ranks_that_wait_for_others_stand(self):
        self.assertTrue(stands(evidence(waits(5, "0"), waits(6, "1")), [JOB]))

    def test_an_agent_is_no_rank(self):
        agent = waits(4, "-", frames=('  File "/x/agent.py", line 1 in run',))
        self.assertTrue(stands(evidence(agent, waits(5, "0")), [JOB]))
        self.assertFalse(stands(evidence(agent), [JOB]))

    def test_what_is_no_proof(self):
        computes = ('  File "/home/a/train.py", line 9 in step',)
        moved = (C10D, '  File "/home/a/train.py", line 9 in <module>')
        for name, ranks in {
            "one computes": (waits(5, "0"), waits(6, "1", frames=computes)),
            "one went on": (waits(5, "0"), waits(6, "1", then=moved)),
            "one wrote": (waits(5, "0"), waits(6, "1", written=(7, 8))),
            "it is not known whether one wrote": (waits(5, "0"), waits(6, "1", written=("-", "-"))),
            "a function of the program has such a name": (waits(5, "0", frames=('  File "/a/ours.py", line 9 in all_reduce',)),),
            "nothing is known": (),
        }.items():
            self.assertFalse(stands(evidence(*ranks), [JOB]), name)
        self.assertFalse(stands(evidence(waits(5, "0")), [JOB, "b" * 32]), "a job without a rank")

    def test_the_main_thread_counts(self):
        other = ("  File " + C10D[6:], "", "Thread 0x01 (most recent call first):", '  File "/home/a/train.py", line 9 in step')
        self.assertFalse(stands(evidence(waits(5, "0", frames=other)), [JOB]))
        spy = ('Thread 5 (idle): "MainThread"', "    all_reduce (torch/distributed/distributed_c10d.py:9)", 'Thread 6 (idle): "x"', "    f (a.py:1)")
        active = tuple(line.replace("(idle)", "(active)") for line in spy)
        self.assertTrue(stands(evidence(waits(5, "0", frames=spy, then=active)), [JOB]))


class StillnessTest(unittest.TestCase):
    def test_silence_and_idleness(self):
        still = Stillness(5.0)
        jobs = lambda out, ticks, waits=False: {JOB: ((out, 0), {(5, 1): ticks}, waits)}
        still.take(jobs(10, 100), 0.0)
        still.take(jobs(10, 110), 5.0)  # 2 % of a processor
        self.assertEqual((still.silent, still.idle), (5.0, 5.0))
        still.take(jobs(10, 200), 10.0)
        self.assertEqual((still.silent, still.idle), (10.0, 0.0))
        still.take(jobs(11, 200), 15.0)
        self.assertEqual((still.silent, still.idle), (0.0, 5.0))
        still.take(jobs(11, 200), 1000.0)  # this process was stopped
        self.assertEqual((still.silent, still.idle), (15.0, 20.0))
        still.take(jobs(11, 200, True), 1005.0)  # breakpoint()
        self.assertEqual(still.silent, 0.0)
        still.take({}, 1010.0)
        self.assertEqual((still.silent, still.idle), (0.0, 0.0))


class HangTest(unittest.TestCase):
    def setUp(self):
        request = {"server": ["a"], "servers": ["a", "b"], "address": ["x"], "port": ["7"], "grace": ["20"], "timeout": ["60"]}
        self.sent, self.done = [], []
        job = types.SimpleNamespace(id=JOB, rank=0, ended=False, failed=False)
        self.policy = Policy(request, [job], 0.0, self.sent.append, lambda *_: None)
        self.hang = HangPolicy(["60", "kill"], self.policy, self, False, 0.0)

    def broadcast(self, text):
        self.sent.append(text)

    def take(self, number):
        self.done.append("take")

    def keep(self, seconds):
        self.done.append("keep %d" % seconds)

    def drop(self):
        self.done.append("drop")

    def moved(self):
        self.done.append("moved")

    def end(self, action, seconds):
        self.done.append("%s %d" % (action, seconds))

    def at(self, now, own, other):
        self.hang.report(own is not None, *(own or (0.0, 0.0)), now)
        self.hang.hear("b", "still", "-" if other is None else "%.1f %.1f" % other, now)
        self.hang.tick(now)

    def answer(self, own, other, now):
        self.hang.taken(self.hang.number, own)
        self.hang.hear("b", "taken", "%d %s" % (self.hang.number, other), now)
        self.hang.tick(now)

    def test_all_idle(self):
        self.at(70.0, (70.0, 70.0), (59.0, 70.0))
        self.assertEqual(self.done, [])
        self.at(71.0, (71.0, 71.0), (60.0, 71.0))
        self.assertEqual((self.done, self.sent), (["take"], ["evidence %d" % self.hang.number]))
        self.answer(False, "moves", 72.0)  # no stacks are needed for it
        self.assertEqual(self.done, ["take", "keep 60", "kill 60"])
        self.assertEqual(self.sent[1:], ["hung 60"])
        self.at(200.0, (190.0, 190.0), (190.0, 190.0))
        self.assertEqual(self.done, ["take", "keep 60", "kill 60"])  # once
        self.at(205.0, (195.0, 195.0), (1.0, 195.0))
        self.at(300.0, (290.0, 290.0), (96.0, 290.0))
        self.assertEqual(self.done[3:], ["moved", "take"])

    def test_who_computes_stands_only_with_a_proof_by_all(self):
        for answers, then in (((True, "moves"), ["take", "drop"]), ((True, "stands"), ["take", "keep 80", "kill 80"])):
            self.setUp()
            self.at(80.0, (80.0, 0.0), (80.0, 80.0))
            self.answer(*answers, now=81.0)
            self.assertEqual(self.done, then)
        self.setUp()
        self.at(80.0, (80.0, 0.0), (80.0, 80.0))
        self.answer(False, "stands", 81.0)
        self.at(82.0, (82.0, 0.0), (82.0, 0.0))
        self.assertEqual(self.done, ["take", "drop"])  # not asked again and again
        self.at(142.0, (142.0, 0.0), (142.0, 0.0))
        self.assertEqual(self.done, ["take", "drop", "take"])

    def test_a_line_meanwhile_and_a_server_that_does_not_answer(self):
        self.at(80.0, (80.0, 80.0), (80.0, 80.0))
        self.hang.taken(self.hang.number, True)
        self.at(81.0, (81.0, 81.0), (0.0, 81.0))
        self.assertEqual(self.done, ["take"])
        self.at(80.0 + EVIDENCE_SECONDS, (1.0, 170.0), (90.0, 170.0))
        self.assertEqual(self.done, ["take", "drop"])

    def test_nothing_is_known_of_a_server(self):
        self.hang.report(True, 500.0, 500.0, 500.0)
        self.hang.tick(500.0)
        self.hang.hear("b", "still", "500.0 500.0", 400.0)  # too old
        self.hang.tick(500.0)
        self.assertEqual(self.done, [])
        self.at(501.0, (501.0, 501.0), None)  # all of its ranks have ended
        self.assertEqual(self.done, ["take"])
        for text in ("", "x y", "1", "nan"):
            self.hang.hear("b", "still", text, 501.0)

    def test_between_two_attempts_nobody_stands_still(self):
        self.policy.watches = lambda: False
        self.at(300.0, (300.0, 300.0), (300.0, 300.0))
        del self.policy.watches
        self.at(310.0, (310.0, 310.0), (310.0, 310.0))
        self.assertEqual(self.done, [])
        self.at(361.0, (361.0, 361.0), (361.0, 361.0))
        self.assertEqual(self.done, ["take"])

    def test_what_ends_it(self):
        self.policy.end_hung("hang:60", False, 100.0)
        self.assertEqual((self.policy.by, self.policy.jobs_to_kill(100.0), self.sent), ("hang:60", [JOB], ["end hang:60"]))  # without a grace
        self.assertFalse(self.policy.watches())
        self.assertEqual(self.policy.verdict([["signal", "15"]])[0], "hung")


class AgainTest(unittest.TestCase):
    def policy(self, kinds):
        request = {"server": ["a"], "servers": ["a"], "address": ["x"], "port": ["7"], "grace": ["20"], "timeout": ["60"]}
        request.update(again=["1", "1", kinds], counts=["1"])
        act = types.SimpleNamespace(attempt=1, until=None, first_question=0, lease=lambda _: None, release=lambda *_: None, checkpoints=lambda: [])
        job = types.SimpleNamespace(id=JOB, rank=0, ended=False, failed=False, round=None)
        return AgainPolicy(request, [job], 0.0, lambda _: None, lambda *_: None, act)

    def test_a_hang_is_a_failure(self):
        policy = self.policy("any")
        policy.end_hung("hang:60", True, 100.0)
        self.assertFalse(policy.watches())
        policy.tick(100.0)
        self.assertTrue(policy.killing and not policy.released)
        for kinds, restart in (("exit", True), ("any", False)):
            policy = self.policy(kinds)
            policy.end_hung("hang:60", restart, 100.0)
            self.assertEqual((policy.released, policy.by), (True, "hang:60"))


class AtTheEndTest(unittest.TestCase):
    def test_a_rank_that_is_asked_for_its_stacks_while_it_exits_is_not_ended_by_that(self):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, JOB, "python")
            os.makedirs(folder)
            shutil.copy(os.path.join(sys.path[0], "sitecustomize.py"), folder)
            leave = "import faulthandler, os; assert faulthandler.unregister(50); os.kill(os.getpid(), 50)"  # as Python does at its end
            env = dict(os.environ, PYTHONPATH=folder, REMOTE_JOB_ID=JOB)
            self.assertEqual(subprocess.run([sys.executable, "-c", leave], env=env).returncode, 0)


if __name__ == "__main__":
    unittest.main()
