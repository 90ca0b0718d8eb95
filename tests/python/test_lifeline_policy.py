"""What a lifeline decides, without a socket, a file or a clock. Run by LifelinePolicy (tests/integration/lifeline_loop_test.cpp)."""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
from lifeline_job import Job
from lifeline_policy import Policy


class PolicyTest(unittest.TestCase):
    def policy(self, server="a", servers=("a", "b", "c"), **more):
        request = {"server": [server], "servers": list(servers), "address": ["10.0.0.1"], "port": ["7"], "grace": ["20"], "timeout": ["60"]}
        request.update((key, [value]) for key, value in more.items())
        self.sent = []
        self.files = []
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.job = Job(self.folder, "j0", 3)
        other = Job(self.folder, "j1", 4)
        return Policy(request, [self.job, other], 100.0, self.sent.append, lambda *file: self.files.append(file))

    def test_a_failed_rank_ends_all_after_the_grace(self):
        policy = self.policy()
        policy.note_end(self.job, "exit 1 1700000000", 200.0)
        self.assertEqual(self.sent, ["ended 3 exit 1 1700000000", "end rank:3"])
        self.assertEqual(policy.jobs_to_kill(219.0), [])
        self.assertEqual(policy.jobs_to_kill(220.0), ["j0", "j1"])  # what the failed one has left behind, too
        self.assertEqual(policy.jobs_to_kill(230.0), ["j1"])
        policy.end("rank:9", 230.0)
        self.assertEqual(policy.by, "rank:3")  # the first reason counts
        self.assertFalse(policy.is_over(240.0, True, True))
        self.assertEqual(policy.jobs_to_kill(240.0), ["j1"])
        self.assertTrue(policy.is_over(250.0, True, True))  # three times are enough
        self.assertEqual(policy.jobs_to_kill(250.0), [])

    def test_of_an_agent_the_worker_is_named(self):
        policy = self.policy()
        os.makedirs(os.path.join(self.job.folder, "failures"))
        for name, text in (("result", "exit 1 1700000000000\n"), ("failures/agent", "5 signal 9 1700000000000 torchrun\n3 signal 15 1700000000001 torchrun\n")):
            with open(os.path.join(self.job.folder, name), "w") as file:
                file.write(text)
        ended, failure = self.job.look()
        self.assertTrue(ended)
        policy.note_end(self.job, failure, 200.0)
        self.assertEqual(self.sent, ["ended 5 signal 9", "end rank:5"])
        self.assertEqual(policy.verdict([])[1:], ("rank 5 on a (signal 9)", 5))

    def test_a_job_that_ended_well_ends_nothing(self):
        policy = self.policy()
        policy.note_end(self.job, None, 200.0)
        self.assertEqual((self.sent, policy.by, self.job.failed), ([], None, False))
        self.assertEqual(policy.jobs_to_kill(300.0), [])

    def test_silence_is_a_loss_and_a_stop_of_this_process_is_none(self):
        policy = self.policy()
        policy.hear("b", "hello", "b", 110.0)
        policy.hear("c", "hello", "c", 110.0)
        policy.discount_stop(30)
        policy.notice_silence(200.0)
        self.assertEqual(policy.by, None)
        policy.hear("c", "beat", "", 190.0)
        policy.notice_silence(201.0)
        self.assertEqual((policy.by, policy.gone, policy.end_at), ("lost:b", {"b": "lost"}, 201.0))
        self.assertEqual(self.sent, ["end lost:b"])

    def test_who_said_bye_is_not_lost(self):
        policy = self.policy("b")
        policy.hear("a", "bye", "", 110.0)
        policy.notice_silence(1000.0)
        self.assertEqual(policy.by, None)

    def test_an_elastic_launch_goes_on_without_a_server(self):
        policy = self.policy(needed="2")
        for name in "bc":
            policy.hear(name, "hello", name, 110.0)
        policy.hear("b", "left", "rank:2", 120.0)
        self.assertEqual(self.sent, ["without b rank:2"])
        self.assertEqual(self.files, [("left", "b rank:2")])
        policy.hear("b", "end", "rank:2", 121.0)
        self.assertEqual(policy.by, None)  # it is cut off, and may have given up
        self.assertEqual(policy.welcome("b", None), ["welcome", "without b lost:b"])
        policy.hear("b", "beat", "", 150.0)
        policy.notice_silence(180.0)
        self.assertEqual(policy.by, "lost:c")  # fewer than it needs are left
        self.assertIn("end lost:c", policy.welcome("b", None))

    def test_a_peer_says_no_more_than_a_word(self):
        policy = self.policy("b")
        policy.hear("a", "without", "c lost:c 15 x\ty", 110.0)
        self.assertEqual(self.files, [("left", "c lost:c")])
        policy.hear("a", "end", "rank:2 b c", 120.0)
        self.assertEqual(policy.by, "rank:2")
        silent = self.policy("b")
        silent.hear("a", "end", "", 120.0)
        self.assertEqual(silent.by, "lost:a")

    def test_an_agent_that_leaves_ends_its_own_server_alone(self):
        policy = self.policy("b", needed="1")
        policy.note_end(self.job, "signal 9 1", 200.0)
        self.assertEqual((self.sent, policy.by), (["ended 3 signal 9 1", "left rank:3"], None))
        self.assertEqual(policy.jobs_to_kill(200.0), ["j0", "j1"])
        self.assertEqual(policy.jobs_to_kill(201.0), [])
        gives_up = self.policy("b", needed="1")
        gives_up.note_end(self.job, "exit 1 1", 200.0)
        self.assertEqual(gives_up.by, "rank:3")
        first = self.policy("a", needed="1")
        first.note_end(self.job, "signal 9 1", 200.0)
        self.assertEqual(first.by, "rank:3")  # nobody finds the others any more without it

    def test_a_server_that_was_left_out_ends_what_it_has(self):
        policy = self.policy("b", needed="1")
        policy.hear("a", "without", "c lost:c", 110.0)
        self.assertFalse(policy.own_left)
        policy.hear("a", "without", "b lost:b", 111.0)
        self.assertEqual(policy.jobs_to_kill(111.0), ["j0", "j1"])

    def test_an_order_that_was_sent_is_sent_again(self):
        policy = self.policy()
        policy.end("rank:1", 110.0)
        self.assertEqual(policy.welcome("b", "run orted"), ["welcome", "end rank:1", "run orted"])
        self.assertEqual(policy.unreached(110.0, True, ""), {})
        self.assertIn("cannot listen: x", policy.unreached(110.0, False, "x")["b"])
        self.assertIn("does not reach this one at 10.0.0.1 port 7", policy.unreached(131.0, True, "")["c"])

    def test_it_says_how_it_is(self):
        hub = self.policy()
        self.assertEqual(hub.status(102.0, True, True, False, ""), None)
        self.assertEqual(hub.status(104.0, True, True, False, ""), "waiting for b, c")
        self.assertEqual(hub.status(104.0, False, False, False, "in use"), "cannot listen: in use")
        self.assertEqual(hub.status(104.0, True, True, True, "full"), "cannot accept connections: full")
        for name in "bc":
            hub.hear(name, "hello", name, 110.0)
        self.assertEqual(hub.status(110.0, True, True, False, ""), "ok")
        member = self.policy("b")
        self.assertEqual(member.status(101.0, False, False, False, "refused"), None)
        self.assertEqual(member.status(102.0, False, False, False, "refused"), "cannot reach a at 10.0.0.1:7: refused")
        member.hear("a", "welcome", "", 103.0)
        self.assertEqual(member.status(104.0, False, True, False, ""), "ok")
        self.assertEqual(member.status(104.0, False, False, False, "12:00:00"), "cut off from a since 12:00:00")

    def test_when_it_is_over(self):
        def ended(server):
            policy = self.policy(server)
            for job in policy.jobs:
                job.ended = True
            return policy

        hub = ended("a")
        hub.hear("b", "hello", "b", 101.0)
        self.assertFalse(hub.is_over(120.0, True, True))  # c may still come, and b needs it
        hub.hear("b", "bye", "", 121.0)
        self.assertFalse(hub.is_over(121.0, True, True))
        self.assertTrue(hub.is_over(131.0, True, True))  # c never came
        member = ended("b")
        self.assertFalse(member.is_over(120.0, False, False))  # its hub may still come
        self.assertTrue(member.is_over(120.0, False, True))
        self.assertTrue(member.is_over(131.0, False, False))
        member.hear("a", "beat", "", 132.0)
        self.assertFalse(member.is_over(140.0, False, False))  # good bye has to get through


if __name__ == "__main__":
    unittest.main()
