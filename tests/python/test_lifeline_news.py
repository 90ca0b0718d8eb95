"""Telling that a launch has ended: once, with what body, and what is noted. Run by LifelinePolicy (tests/integration/lifeline_loop_test.cpp)."""
import http.server
import json
import os
import stat
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python"))
import lifeline_acts
import lifeline_news
from lifeline_policy import Policy


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers with what `answers` has next, and with 200 then."""

    got = []
    answers = []

    def do_POST(self):
        self.got.append((self.headers, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        code = self.answers.pop(0) if self.answers else 200
        if code == "silence":
            return self.connection.close()
        self.send_response(code)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"thanks")

    do_GET = do_POST

    def log_message(self, *_):
        pass


class FakeClock:
    """In place of the module `time`: an hour passes at once."""

    now = 0

    def monotonic(self):
        return self.now

    def time(self):
        return 1700000000 + self.now

    def sleep(self, seconds):
        self.now += seconds


class NewsTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.folder = tempfile.mkdtemp()
        Receiver.got, Receiver.answers = [], []
        self.url = "http://127.0.0.1:%d/secret-topic" % self.server.server_port
        self.request("url", self.url)

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)

    def request(self, key, value, **more):
        fields = {"key": "5", "project": "mnist", "name": "night%20run", "servers": "a b", "ranks": "16", "began": "1700000000", **more}
        with open(os.path.join(self.folder, "notify"), "w") as file:
            file.write("%s %s\n" % (key, value.replace(" ", "%20").replace("\n", "%0A")))
            file.writelines("%s %s\n" % item for item in fields.items())

    def deliver(self, state="failed", why="rank 3 on b (exit 1)", lines="one\ntwo", **more):
        lifeline_news.deliver(self.folder, state, why, lines, first_pause=0.01, **more)
        try:
            with open(os.path.join(self.folder, "notify.result")) as file:
                return file.read()
        except OSError:
            return None

    def test_the_json_arrives_once(self):
        self.assertEqual(self.deliver(), "sent\n")
        self.assertEqual(self.deliver(), "sent\n")
        self.assertEqual(len(Receiver.got), 1)
        news = json.loads(Receiver.got[0][1])
        self.assertEqual(news.pop("ended") > 1700000000, True)
        self.assertEqual(
            news,
            {
                "launch": "5",
                "name": "night run",
                "project": "mnist",
                "state": "failed",
                "text": "night run failed: rank 3 on b (exit 1)",
                "command": "",
                "servers": ["a", "b"],
                "ranks": 16,
                "began": 1700000000,
                "lines": ["one", "two"],
            },
        )
        self.assertFalse(os.path.exists(os.path.join(self.folder, "notify")))  # the secret is gone

    def test_what_an_earlier_attempt_wrote_is_not_told(self):
        anew = "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1 (exit 3)\n"
        for written, told in (("a\n" + anew + "b\n", "b"), ("a\n" + anew, ""), (anew, ""), (anew + "x\n" + anew, "")):
            with open(os.path.join(self.folder, "job.err"), "w") as file:
                file.write(written)
            self.assertEqual(lifeline_news.last_lines(self.folder, ["job.err"]), told)
            # nor does it make two failures that said nothing different ones
            self.assertEqual(lifeline_acts.mark_of(os.path.join(self.folder, "job.err")) == lifeline_acts.mark_of("/dev/null"), not told)

    def test_the_shapes(self):
        self.request("url", self.url, shape="ntfy")
        self.deliver()
        headers, body = Receiver.got.pop()
        self.assertEqual((headers["Title"], headers["Priority"], body), ("mnist: night run failed: rank 3 on b (exit 1)", "high", "one\ntwo"))
        os.unlink(os.path.join(self.folder, "notify.result"))
        os.unlink(os.path.join(self.folder, "notify.mark"))
        self.request("url", self.url, shape="slack")
        self.deliver(lines="<!channel> & ```")
        text = "*mnist*: night run failed: rank 3 on b (exit 1)\n```\n&lt;!channel&gt; &amp; '''\n```"
        self.assertEqual(json.loads(Receiver.got.pop()[1]), {"text": text})
        headers = lifeline_news.post_parts({"shape": "ntfy"}, lifeline_news.message({}, "test", "", ""))[1]
        self.assertEqual(headers["Priority"], "default")  # nothing is wrong

    def test_a_refusal_is_tried_again(self):
        Receiver.answers = [503, 404, 302]
        self.assertEqual(self.deliver(), "sent\n")
        self.assertEqual(len(Receiver.got), 4)

    def test_after_an_hour_it_is_given_up(self):
        Receiver.answers = [500] * 100
        self.assertEqual(self.deliver(seconds=0.1), "not sent, tried for 0 s: HTTP 500\n")
        self.server.server_close()
        os.unlink(os.path.join(self.folder, "notify.result"))
        os.unlink(os.path.join(self.folder, "notify.mark"))
        self.request("url", "http://127.0.0.1:1/secret")
        self.assertEqual(self.deliver(seconds=0), "not sent, tried for 0 s: no connection: Connection refused\n")

    def hour(self, answer):
        """Tells it by a clock of its own; `answer` says, from the seconds, what comes back. Returns the result, and when it was tried."""
        clock, tried = FakeClock(), []

        def tell(*_):
            tried.append(clock.now)
            clock.now += 2  # so long an answer takes
            return answer(clock.now)

        with mock.patch.multiple(lifeline_news, time=clock, tell=tell):
            lifeline_news.deliver(self.folder, "failed", "", "")
        with open(os.path.join(self.folder, "notify.result")) as file:
            return file.read(), tried

    def test_it_is_tried_for_the_whole_hour_and_then_given_up(self):
        result, tried = self.hour(lambda _: (False, "HTTP 503"))
        self.assertEqual(result, "not sent, tried for 3600 s: HTTP 503\n")
        pauses = [int(after - before - 2) for before, after in zip(tried, tried[1:])]
        self.assertEqual(pauses[:9], [5, 10, 20, 40, 80, 160, 320, 600, 600])
        self.assertLessEqual(max(pauses), 600)
        self.assertEqual(tried[-1], 3600)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "notify")))  # the secret is gone
        result, tried = self.hour(lambda _: (True, "HTTP 200"))  # nor does another lifeline begin anew
        self.assertEqual((result, tried), ("not sent, tried for 3600 s: HTTP 503\n", []))

    def test_it_is_sent_once_where_the_receiver_comes_back_within_the_hour(self):
        result, tried = self.hour(lambda now: (now > 3590, "HTTP %d" % (200 if now > 3590 else 503)))
        self.assertEqual((result, tried[-1], len([at for at in tried if at > 3588])), ("sent\n", 3600, 1))

    def test_what_may_have_arrived_late_in_the_hour_ends_it(self):
        result, tried = self.hour(lambda now: (False, "HTTP 503") if now < 1000 else (None, "no answer; it may have arrived"))
        self.assertEqual((result, len([at for at in tried if at > 998])), ("no answer; it may have arrived\n", 1))

    def test_what_may_have_arrived_is_not_sent_again(self):
        Receiver.answers = ["silence"]
        self.assertRegex(self.deliver(), r"^no answer \(RemoteDisconnected\); it may have arrived\n$")
        self.assertEqual(len(Receiver.got), 1)

    def test_one_that_died_meanwhile_is_not_followed_by_a_second(self):
        open(os.path.join(self.folder, "notify.mark"), "w").close()
        self.assertEqual(self.deliver(), "not known whether it arrived: its process died meanwhile\n")
        self.assertEqual(Receiver.got, [])

    def test_no_message_has_the_url(self):
        for url in ("http://secret host/", "http://[secret/", "nothing:secret", "http://127.0.0.1:port-secret/", "http://127.0.0.1:1/secret"):
            self.request("url", url)
            result = self.deliver(seconds=0)
            self.assertTrue(result.startswith("not sent"), result)
            self.assertNotIn("secret", result)
            for name in ("notify.result", "notify.mark"):
                os.unlink(os.path.join(self.folder, name))

    def test_a_command_gets_it_on_stdin(self):
        out = os.path.join(self.folder, "out")
        self.request("notify_command", "cat >'%s'; tr '\\0' ' ' </proc/$$/cmdline >'%s.argv'" % (out, out))
        self.assertEqual(self.deliver(), "sent\n")
        with open(out) as file:
            self.assertEqual(json.load(file)["launch"], "5")
        with open(out + ".argv") as file:
            self.assertNotIn("cmdline", file.read())

    def test_a_command_that_fails_is_tried_again(self):
        out = os.path.join(self.folder, "out")
        self.request("notify_command", "echo x >>%s; [ $(wc -l <%s) = 3 ] || { echo why; exit 7; }" % (out, out))
        self.assertEqual(self.deliver(), "sent\n")
        os.unlink(os.path.join(self.folder, "notify.result"))
        os.unlink(os.path.join(self.folder, "notify.mark"))
        self.request("notify_command", "echo why; exit 7")
        self.assertEqual(self.deliver(seconds=0), "not sent, tried for 0 s: exit 7: why\n")

    def test_the_last_lines(self):
        with open(os.path.join(self.folder, "job.err"), "wb") as file:
            file.write(b"10%\r20%\n\n" + b"\n".join(b"line %d\x1b[0m" % i for i in range(20)))
        lines = lifeline_news.last_lines(self.folder, ("nothing", "job.err")).split("\n")
        self.assertEqual((len(lines), lines[0], lines[-1]), (10, "line 10?[0m", "line 19?[0m"))

    def test_files_are_for_the_owner(self):
        self.deliver()
        mode = os.stat(os.path.join(self.folder, "notify.mark")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o600)


class VerdictTest(unittest.TestCase):
    def policy(self, **more):
        request = {"server": ["a"], "servers": ["a", "b"], "address": ["10.0.0.1"], "port": ["7"], "grace": ["20"], "timeout": ["60"]}
        request.update((key, [value]) for key, value in more.items())
        return Policy(request, [], 100.0, lambda text: None, lambda *file: None)

    def test_it_succeeded_or_was_killed(self):
        policy = self.policy()
        policy.hear("b", "bye", "", 110.0)
        self.assertEqual(policy.verdict([["exit", "0", "1", "-"]]), ("succeeded", "", None))
        self.assertEqual(policy.verdict([["exit", "0", "1", "-"], ["signal", "15", "1", "user"]]), ("killed", "", None))

    def test_it_does_not_speak_for_a_server_that_was_never_heard(self):
        self.assertEqual(self.policy().verdict([["exit", "0", "1", "-"]]), ("unknown", "nothing was heard of b", None))

    def test_a_rank_elsewhere_failed(self):
        policy = self.policy()
        policy.hear("b", "tail", "3 a%0Ab", 110.0)
        policy.hear("b", "ended", "3 exit 1 1700000000000 -", 110.0)
        policy.hear("b", "end", "rank:3", 110.0)
        self.assertEqual(policy.verdict([["signal", "15", "1", "rank:3"]]), ("failed", "rank 3 on b (exit 1)", 3))
        self.assertEqual(policy.tails, {3: "a\nb"})

    def test_what_follows_from_another_failure_gives_way_to_that(self):
        for late, told in ((0.5, "rank 3 on b (signal 9)"), (9.0, "rank 2 on b (exit 1)")):
            policy = self.policy()
            policy.hear("b", "ended", "2 exit 1 1700000000000 supervisor peer", 110.0)
            policy.hear("b", "end", "rank:2", 110.0)
            policy.hear("b", "ended", "3 signal 9 1700000000000 supervisor", 110.0 + late)
            self.assertEqual(policy.verdict([["signal", "15", "1", "rank:2"]]), ("failed", told, int(told.split()[1])))

    def test_a_person_stopped_a_rank_and_others_failed_of_that(self):
        for stopped, failed in ((110.0, "exit 1 1700000000000 supervisor"), (110.0, "exit 1 1700000000000 supervisor peer"), (100.0, "exit 1 1 - peer")):
            policy = self.policy()
            policy.hear("b", "ended", "2 " + failed, 109.9)
            policy.hear("b", "end", "rank:2", 109.9)
            policy.hear("b", "stopped", "3 300", stopped)
            self.assertEqual(policy.verdict([["exit", "1", "1"]]), ("killed", "rank 3 on b", None), failed)

    def test_a_person_stopped_a_rank_after_a_failure_or_long_before(self):
        for stopped in ("100", "0"):  # it began so long before; heard of too late, too early
            policy = self.policy()
            policy.hear("b", "stopped", "3 0", 100.0)
            policy.hear("b", "ended", "2 exit 1 1700000000000 supervisor", 110.0)
            policy.hear("b", "end", "rank:2", 110.0)
            policy.hear("b", "stopped", "4 " + stopped, 111.0)
            self.assertEqual(policy.verdict([["signal", "15", "1", "rank:2"]])[:2], ("failed", "rank 2 on b (exit 1)"))

    def test_a_person_stopped_a_rank_and_nothing_failed(self):
        policy = self.policy()
        policy.hear("b", "stopped", "1 10", 110.0)
        policy.hear("b", "bye", "", 110.0)
        self.assertEqual(policy.verdict([["exit", "0", "1"]]), ("killed", "rank 1 on b", None))
        self.assertEqual(policy.verdict([["signal", "15", "1", "user:ada"]]), ("killed", "", None))

    def test_a_server_was_lost(self):
        policy = self.policy()
        policy.hear("b", "beat", "", 110.0)
        policy.notice_silence(1000.0)
        self.assertEqual(policy.verdict([["signal", "15", "1", "lost:b"]]), ("lost", "no word from server b", None))

    def test_one_that_was_started_again_goes_by_its_own_jobs(self):
        self.assertEqual(self.policy().verdict([["signal", "15", "1", "rank:3"]]), ("failed", "rank 3", None))

    def test_a_launch_whose_ranks_are_left_alone_failed_too(self):
        policy = self.policy(leave="1")
        policy.hear("b", "ended", "1 exit 9 1700000000000 -", 110.0)
        policy.hear("b", "end", "rank:1", 110.0)
        self.assertEqual(policy.jobs_to_kill(9999.0), [])
        self.assertEqual(policy.verdict([["exit", "0", "1", "-"]]), ("failed", "rank 1 on b (exit 9)", 1))


if __name__ == "__main__":
    unittest.main()
