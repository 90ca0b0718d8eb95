"""remote_launcher against practice servers; tests/e2e/test_python.sh makes them and runs this in a project's folder."""

import asyncio
import functools
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import urllib.request
from unittest import mock

import remote_launcher
from remote_launcher import Cause, Project, RemoteError, Submitted


def write(name, text):
    pathlib.Path(name).write_text(textwrap.dedent(text))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LauncherTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        write(
            "ranks.py",
            """
            import os, sys
            rank = os.environ["RANK"]
            print("rank", rank, "of", os.environ["WORLD_SIZE"], os.environ.get("WORD", ""), flush=True)
            print("to stderr", file=sys.stderr)
            if sys.argv[1:] == [rank]:
                raise ValueError("rank " + rank + " has had enough")
            """,
        )
        write(
            "functions.py",
            """
            import os

            def total(*numbers, scale=1):
                return {"sum": sum(numbers) * scale, "world": int(os.environ["WORLD_SIZE"])}

            def broken():
                raise KeyError("no such thing")

            def strange():
                return object()

            class Base:
                def __init__(self, factor):
                    self.factor = factor

                def times(self, number):
                    return [type(self).__name__, self.factor * number]

                @classmethod
                def whose(cls):
                    return cls.__name__

            class Sub(Base):
                pass

            def same(one, other):
                return one is other
            """,
        )
        cls.project = Project(".")
        cls.project.prepare()

    def tearDown(self):
        self.assertEqual(threading.active_count(), 1, "a thread was left behind")

    def test_servers_and_commands(self):
        servers = self.project.servers()
        self.assertEqual([one.name for one in servers], ["node-1", "node-2"])
        self.assertTrue(all(one.reachable for one in servers))
        self.assertEqual(servers[0].hostname, "127.0.0.1")
        results = self.project.run('echo "$WORD"; echo e >&2; exit 3', env={"WORD": "a b"})
        self.assertEqual([(r.server, r.exit_code, r.stdout, r.stderr) for r in results],
                         [("node-1", 3, "a b\n", "e\n"), ("node-2", 3, "a b\n", "e\n")])
        self.assertFalse(results[0].ok)

    def test_a_launch_from_start_to_verdict(self):
        run = self.project.launch("python ranks.py", nproc=2, env={"WORD": "x y"}, tags=["of this test"])
        self.assertEqual([job.rank for job in run.jobs], [0, 1, 2, 3])
        lines = list(run.follow())
        self.assertEqual(sorted(line.text for line in lines if line.stream == "out"),
                         [f"rank {rank} of 4 x y" for rank in range(4)])
        self.assertEqual({(line.rank, line.server) for line in lines},
                         {(0, "node-1"), (1, "node-1"), (2, "node-2"), (3, "node-2")})
        self.assertEqual(sum(line.stream == "err" for line in lines), 4)
        verdict = run.wait()
        self.assertTrue(verdict)
        self.assertEqual(verdict.exit_codes, {0: 0, 1: 0, 2: 0, 3: 0})
        self.assertIsNone(verdict.first_failed)
        self.assertIn("<td>succeeded</td>", run._repr_html_())
        self.assertEqual([job.id for job in self.project.get(run.key).jobs], [job.id for job in run.jobs])
        self.assertEqual(list(run.follow(rank=3))[0].rank, 3)
        self.assertEqual({line.rank for line in run.follow(rank=[1, 2])}, {1, 2})
        folded = list(run.follow(fold=True, follow=False))
        self.assertEqual([line.ranks for line in folded if line.stream == "err"], [(0, 1, 2, 3)])
        self.assertEqual({line.rank for line in run.follow(grep="rank [13] of")}, {1, 3})

    def test_a_launch_is_remembered(self):
        run = self.project.launch("python ranks.py 1", nproc=1, name="remembered", note="a note", tags=["of history"],
                                  options=["--failure-grace", "0"], env={"WORD": "x"})
        run.wait(timeout=120)
        self.project.note("remembered", "-another one")
        self.project.call("job-clean", "--older", "0", "--yes", "--launch", str(run.key)).check()
        found = self.project.history(tags="of history", failed=True, since="1h")
        self.assertEqual([(one["name"], one["note"], one["state"], one["failed_rank"]) for one in found],
                         [("remembered", "-another one", "failed", 1)])
        record = self.project.record("remembered")
        self.assertEqual(record["variables"], ["WORD"])
        self.assertIn("ValueError: rank 1 has had enough", record["last_lines"])
        with self.assertRaises(RemoteError):
            self.project.record("no such launch")

    def test_a_frozen_launch_runs_in_a_tree(self):
        run = self.project.launch("pwd", nproc=1, python=False, rsync=True, frozen=True)
        self.assertTrue(all("/.jobs/.trees/" in line.text for line in run.follow() if line.stream == "out"))
        run = self.project.launch("pwd", nproc=1, python=False, frozen=False)
        self.assertFalse(any("/.jobs/.trees/" in line.text for line in run.follow()))

    def test_the_verdict_has_the_cause(self):
        run = self.project.launch("python ranks.py 2", nproc=2, options=["--failure-grace", "0"])
        verdict = run.wait(timeout=120)
        self.assertFalse(verdict.ok)
        self.assertEqual(verdict.first_failed.rank, 2)
        self.assertEqual(verdict.first_failed.server, "node-2")
        self.assertIn("ValueError: rank 2 has had enough", verdict.traceback)
        self.assertEqual(verdict.exit_codes[2], 1)

    def test_async_for(self):
        run = self.project.launch("python ranks.py", nproc=1)

        async def read():
            return [line.text async for line in run.follow(rank=1) if line.stream == "out"]

        self.assertEqual(asyncio.run(read()), ["rank 1 of 2 "])

    def test_a_job_times_out_and_is_killed(self):
        job = self.project.job("sleep 1000", "node-2")
        with self.assertRaises(TimeoutError):
            job.wait(timeout=0.2)
        self.assertFalse(job.refresh().ended)
        self.assertEqual(len(job.stacks().without), 1)
        self.assertIn(job.why(between=1).kind, ("standing", "moving"))
        job.kill()
        self.assertEqual(job.jobs[0].state, "killed")
        self.assertFalse(job.wait().ok)

    def test_an_error_has_its_cause(self):
        with self.assertRaises(RemoteError) as told:
            self.project.run("true", "no-such-server")
        self.assertIs(told.exception.cause, Cause.USAGE)
        self.assertEqual(str(RemoteError.of_event({"what": "cannot connect", "cause": "timeout"}).cause), "timeout")
        self.assertIs(RemoteError.of_event({"what": "x", "cause": "of a newer program"}).cause, Cause.OTHER)

    def test_files_are_pulled(self):
        job = self.project.job("mkdir -p 'a b' && echo content > 'a b/file'", "node-1")
        self.assertTrue(job.wait())
        job.pull("a b/file", to="pulled here")
        found = list(pathlib.Path("pulled here").rglob("file"))
        self.assertEqual([one.read_text() for one in found], ["content\n"])

    def test_results_and_news(self):
        config = pathlib.Path(".remote/configs.yaml")
        before = config.read_text()
        config.write_text(before + "outputs: [out.txt]\nnotify: {command: 'cat >news.json'}\n")
        try:
            project = Project(".")
            run = project.launch("sleep 0.1; echo $RANK >out.txt", nproc=1, python=False)
            self.assertTrue(run.wait(timeout=120))
            results = project.pull(run.key)
            self.assertEqual(sorted(results["files"]), ["node-2/out.txt", "out.txt"])
            self.assertEqual(pathlib.Path(results["to"], "node-2/out.txt").read_text(), "1\n")
            trial = project.try_notify()
            self.assertEqual((trial["server"], trial["sent"]), ("node-1", True))
        finally:
            config.write_text(before)

    def test_a_port_is_here_until_the_context_is_left(self):
        write("serve.py", """
            import http.server, os
            server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
            with open("port.new", "w") as file:
                file.write(str(server.server_port))
            os.rename("port.new", "port")
            server.serve_forever()
            """)
        self.project.rsync()
        job = self.project.job("exec python serve.py", "node-2")
        found = self.project.run("until [ -s port ]; do sleep 0.1; done; cat port", "node-2")[0].stdout.strip()
        with self.project.forward("node-2", int(found), f"{free_port()}:{found}") as ports:
            self.assertEqual(len(set(ports)), 2)
            for port in ports:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/functions.py", timeout=60) as page:
                    self.assertIn(b"def total", page.read())
        with self.assertRaises(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/", timeout=60)
        with self.assertRaises(RemoteError) as told:
            with self.project.forward("node-2", "no port"):
                self.fail("it was opened")
        self.assertTrue(told.exception.usage)
        job.kill()

    def test_a_login_stays_open_until_logout(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": folder}):
            self.assertEqual([(one["server"], one["was_open"]) for one in self.project.login("node-1", open_for="5m")],
                             [("node-1", False)])
            until = self.project.login()
            self.assertEqual([(one["server"], one["was_open"]) for one in until], [("node-1", True), ("node-2", False)])
            self.assertLess(until[0]["until"], until[1]["until"])
            self.assertEqual([one.stdout for one in self.project.run("echo hello")], ["hello\n"] * 2)
            self.assertEqual(self.project.logout("node-2"), ["node-2"])
            self.assertEqual(self.project.logout(), ["node-1"])
            self.assertEqual(self.project.logout(), [])

    def test_a_function_and_its_value(self):
        import functions

        submitted = self.project.submit(functions.total, 1, 2, scale=10, servers=2)
        self.assertEqual(submitted.result(timeout=120), {"sum": 30, "world": 2})
        self.assertEqual(submitted.result(), {"sum": 30, "world": 2})
        with self.assertRaises(RemoteError) as failed:
            self.project.submit(functions.broken).result()
        self.assertIn("KeyError: 'no such thing'", str(failed.exception))
        with self.assertRaises(RemoteError) as strange:
            self.project.submit(functions.strange).result()
        self.assertIn("cannot come back as JSON", str(strange.exception))
        left = self.project.run("ls .remote_submit 2>/dev/null | wc -l")
        self.assertEqual([one.stdout.strip() for one in left], ["0", "0"])
        self.assertFalse(pathlib.Path(".remote_submit").exists())

    def test_a_bound_method_goes_with_its_object(self):
        import functions

        sub = functions.Sub(3)
        submitted = self.project.submit(sub.times, 5, servers=2, nproc=2)
        self.assertEqual((submitted.servers, submitted.world_size), (("node-1", "node-2"), 4))
        self.assertIn("Base.times: 4 ranks on node-1, node-2", repr(submitted))
        self.assertEqual(submitted.result(timeout=120), ["Sub", 15])
        self.assertEqual(self.project.submit(functools.partial(sub.times, number=7)).result(timeout=120), ["Sub", 21])
        self.assertEqual(self.project.submit(functions.Sub.whose).result(timeout=120), "Sub")
        self.assertIs(self.project.submit(functions.same, sub, sub).result(timeout=120), True)

    def test_a_submit_leaves_nothing_that_others_can_read(self):
        import functions

        seen = []

        def look(*_, **__):
            folder = pathlib.Path(".remote_submit")
            seen.extend(stat.S_IMODE(one.lstat().st_mode) for one in [folder, *folder.iterdir()])
            raise KeyError("seen")

        before = os.umask(0)
        try:
            with mock.patch.object(Project, "launch", look), self.assertRaises(KeyError):
                self.project.submit(functions.total, 1)
        finally:
            os.umask(before)
        self.assertEqual(seen, [0o700, 0o600, 0o600])
        with tempfile.TemporaryDirectory() as elsewhere:
            os.symlink(elsewhere, ".remote_submit")
            try:
                with self.assertRaises(RemoteError) as told:
                    self.project.submit(functions.total, 1)
                self.assertEqual(os.listdir(elsewhere), [])
            finally:
                os.unlink(".remote_submit")
        self.assertIn("not a folder", told.exception.reason)

    def test_a_value_that_a_hostile_server_sends_is_an_error(self):
        for text in ("[" * 100000, "9" * 5000, "", "\udcff"):
            launch = mock.Mock(jobs=[mock.Mock(server="node-1")])
            launch.pull = lambda _, to, text=text: (pathlib.Path(to) / "t.value").write_bytes(os.fsencode(text))
            with self.subTest(text[:9]), self.assertRaises(RemoteError):
                Submitted(launch, "t", "f", 1).result()

    def test_an_object_of_the_script_that_runs(self):
        write("script with class.py", """
            from remote_launcher import Project

            class Model:
                def __init__(self, size):
                    self.size = size

                def grown(self, other):
                    return self.size + other.size

            if __name__ == "__main__":
                print(Project(".").submit(Model(40).grown, Model(2)).result())
            """)
        done = subprocess.run([sys.executable, "script with class.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, b"42\n"), done.stderr.decode())

    def test_a_class_of_a_notebook_needs_cloudpickle(self):
        notebook = textwrap.dedent("""
            import sys
            sys.modules["cloudpickle"] = None
            from remote_launcher import Project, RemoteError

            class Model:
                def size(self):
                    return 1

            def of(model):
                return model.size()

            for call in ((Model().size,), (of, Model())):
                try:
                    Project(".").submit(*call)
                except RemoteError as error:
                    print(error.usage, error.hint)
            """)
        done = subprocess.run([sys.executable, "-"], input=notebook.encode(), stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(done.stdout.decode().count("True define it at the top of a module"), 2, done.stdout)

    def test_a_function_of_the_script_that_runs(self):
        write("script with function.py", """
            from remote_launcher import Project

            def double(number):
                return 2 * number

            if __name__ == "__main__":
                print(Project(".").submit(double, 21).result())
            """)
        done = subprocess.run([sys.executable, "script with function.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, b"42\n"), done.stderr.decode())

    def test_what_cannot_be_sent_is_told(self):
        with self.assertRaises(RemoteError) as told, mock.patch.dict(sys.modules, {"cloudpickle": None}):
            self.project.submit(lambda: 1)
        self.assertTrue(told.exception.usage)
        self.assertIn("cannot send", told.exception.what)

    def test_errors_say_what_where_and_why(self):
        with self.assertRaises(RemoteError) as told:
            self.project.launch("python ranks.py", servers="nowhere")
        self.assertIn("nowhere", told.exception.what)
        self.assertTrue(told.exception.usage)
        with self.assertRaises(RemoteError) as told:
            Project("/")
        self.assertIn("remote init", told.exception.hint)
        with self.assertRaises(RemoteError) as told:
            Project(".", binary="/nonexistent/remote")
        self.assertTrue(told.exception.usage)

    def test_another_program_of_that_name_is_told(self):
        write("not remote", "#!/bin/sh\necho hello\n")
        os.chmod("not remote", 0o755)
        with self.assertRaises(RemoteError) as told:
            Project(".", binary="./not remote").jobs()
        self.assertIn("does not support --jsonl", told.exception.what)
        write("not remote", """#!/bin/sh
            echo '{"event":"begin","version":9,"remote":"9.0","command":"x"}'
            """)
        with self.assertRaises(RemoteError) as told:
            Project(".", binary="./not remote").jobs()
        self.assertIn("do not match", told.exception.what)
        write("not remote", "#!/bin/sh\necho it broke >&2\nexit 7\n")
        with self.assertRaises(RemoteError) as told:
            Project(".", binary="./not remote").jobs()
        self.assertIn("it broke", told.exception.reason)

    def test_ctrl_c_ends_the_following_and_not_the_job(self):
        job = self.project.job("echo begun; exec sleep 1000", "node-1")
        write("follow.py", f"""
            import remote_launcher
            for line in remote_launcher.Project(".").get({job.key}).follow():
                print(line.text, flush=True)
            """)
        follower = subprocess.Popen([sys.executable, "follow.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    start_new_session=True)
        self.assertEqual(follower.stdout.readline(), b"begun\n")
        os.killpg(follower.pid, signal.SIGINT)
        _, stderr = follower.communicate(timeout=60)
        self.assertIn(b"KeyboardInterrupt", stderr)
        with self.assertRaises(ProcessLookupError):  # nobody of the group is left
            os.killpg(follower.pid, 0)
        self.assertFalse(job.refresh().ended)
        job.kill()


if __name__ == "__main__":
    print(remote_launcher.__version__)
    unittest.main(verbosity=2)
