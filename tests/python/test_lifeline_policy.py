"""What a lifeline decides, without a socket, a file or a clock. Run by LifelinePolicy (tests/integration/lifeline_loop_test.cpp)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
from lifeline_job import Job, tells_of_peer
from lifeline_policy import Policy


class PolicyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def policy(self, server="a", servers=("a", "b", "c"), **more):
        request = {"server": [server], "servers": list(servers), "address": ["10.0.0.1"], "port": ["7"], "grace": ["20"], "timeout": ["60"]}
        request.update((key, [value]) for key, value in more.items())
        self.sent = []
        self.files = []
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

    def files_of_job(self, **texts):
        os.makedirs(os.path.join(self.job.folder, "failures"))
        for name, text in texts.items():
            with open(os.path.join(self.job.folder, *name.split("__")), "w") as file:
                file.write(text)

    def test_of_the_workers_of_an_agent_the_first_that_failed_by_itself_is_named(self):
        self.policy()
        victim = "1700000000000\nremote: exited with 14, as ranks of Open MPI 5 do when another one has failed\n"
        agent = "2 exit 14 1700000000000 mpirun\n3 signal 9 1700000000001 mpirun\n4 signal 15 1700000000002 mpirun\n"
        self.files_of_job(result="exit 137 1700000000009 supervisor\n", failures__agent=agent, **{"failures__rank.2": victim})
        self.assertEqual(self.job.look(), (True, "exit 137 1700000000009 supervisor"))
        self.assertEqual(self.job.first_failure(""), (3, "signal 9"))

    def test_workers_that_failed_because_of_others_say_so(self):
        self.policy()
        self.job.mpirun = True
        victim = "1700000000000\nremote: exited with 14, as ranks of Open MPI 5 do when another one has failed\n"
        self.files_of_job(result="exit 14 1700000000009 supervisor\n", failures__agent="2 exit 14 1700000000000 mpirun\n", **{"failures__rank.2": victim})
        self.job.look()
        self.assertEqual(self.job.first_failure(""), (2, "exit 14 peer"))
        os.unlink(os.path.join(self.job.folder, "failures/agent"))
        self.assertEqual(self.job.look()[0], True)
        self.assertEqual(self.job.first_failure("exit 14 1 -"), (3, "exit 14 1 - peer"))  # it is mpirun's own

    def test_last_words_of_a_job_tell_of_a_peer(self):
        self.policy()
        lost = "Traceback (most recent call last):\nRuntimeError: Connection closed by peer [10.0.0.2]:1\n"
        for result, words, told in (
            ("exit 1", lost, "peer"),
            ("exit 1", lost + "Traceback (most recent call last):\nValueError: other\n", "supervisor"),
            ("exit 1", lost + "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1\n", "supervisor"),
            ("signal 9", lost, "supervisor"),
        ):
            shutil.rmtree(self.job.folder, ignore_errors=True)
            self.files_of_job(**{"result": result + " 1700000000000 supervisor\n", "job.err": words})
            failure = self.job.look()[1]
            self.assertEqual(self.job.first_failure(failure)[1].split()[-1], told, words)

    def test_the_words_of_a_peers_end_are_those_of_the_shell(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/lib/peer_words.sh")
        with open(script) as file:
            patterns = re.findall(r"-e '([^']*)'", file.read())
        self.assertGreater(len(patterns), 15)
        for pattern in patterns:
            for chosen in (1, 2):  # of a pattern's alternatives
                line = re.sub(r"\\\((\w+)\\\|(\w+)\\\)", lambda words, chosen=chosen: words.group(chosen), pattern)
                line = line.lstrip("^").replace("[0-9]*", "30").replace(".*", "in a file: ") + " 5 ranks"
                path = os.path.join(self.folder, "words")
                with open(path, "w") as file:
                    file.write("one\n%s\n" % line)
                done = subprocess.run(["sh", "-c", '. "$0"; tells_of_peer "$1"', script, path])
                with open(path, "rb") as file:
                    self.assertEqual((done.returncode, tells_of_peer(file.read())), (0, True), line)

    def test_a_job_that_a_person_stopped_is_told(self):
        policy = self.policy()
        self.files_of_job(result="signal 15 1700000002500 supervisor\n", stop="15 user:ada@laptop 1700000001000\n")
        self.assertEqual(self.job.look(), (True, None))
        policy.note_end(self.job, None, 200.0)
        self.assertEqual((self.sent, policy.stops), (["stopped 3 1500"], [(3, "a", 198.5, 200.0)]))
        with open(os.path.join(self.job.folder, "stop"), "w") as file:
            file.write("15 rank:4 1700000001000\n")
        self.job.stopped_for = None
        self.assertEqual(self.job.look(), (True, None))
        self.assertEqual(self.job.stopped_for, None)

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
