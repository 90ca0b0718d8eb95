"""Scripts that were written for labml_remote; tests/e2e/test_python.sh runs this in a project's folder.

The two scripts are re-creations of what labml_remote's own samples do, not copies of them.
"""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from labml_remote.execute import UIMode
from labml_remote.job import JOBS
from labml_remote.server import SERVERS
from remote_launcher import Project, RemoteError

ONE_BY_ONE = """
import uuid
from labml_remote.job import JOBS
from labml_remote.server import SERVERS

address = None
identity = uuid.uuid1().hex
names = [name for name in SERVERS]
for node, name in enumerate(names):
    if address is None:
        address = SERVERS[name].conf.hostname
    variables = {"RUN_UUID": identity, "MASTER_ADDR": address, "MASTER_PORT": "1234", "WORLD_SIZE": str(len(names)),
                 "RANK": str(node), "LOCAL_RANK": "0"}
    tags = ["by hand"] + (["master"] if node == 0 else [])
    JOBS.create(name, "python show_rank.py", variables, tags).start()
"""

HELLO = """
from labml_remote.job import JOBS
from labml_remote.server import SERVERS
first = next(iter(SERVERS))
JOBS.create(first, "python show_rank.py", {}, ["hello", "master"]).start()
JOBS.create(first, "python show_rank.py", {}, ["hello"]).start()
"""

LAUNCH = """
import labml_remote.distributed.torch_launch
labml_remote.distributed.torch_launch.launch("show_rank.py", tags=["launched"], n_proc_per_node=2, use_env=True,
                                             env_vars={"WORD": "w"})
"""


class LabmlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        pathlib.Path("show_rank.py").write_text(textwrap.dedent("""
            import os
            print("rank", os.environ.get("RANK"), "of", os.environ.get("WORLD_SIZE"))
            """))
        Project(".").prepare()

    def script(self, text):
        pathlib.Path("script.py").write_text(textwrap.dedent(text))
        done = subprocess.run([sys.executable, "script.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return done.stdout.decode()

    def ended(self, tags):
        deadline = time.monotonic() + 120
        while True:
            JOBS.update()
            jobs = JOBS.filter_by_tags(tags)
            if jobs and all(job.stopped for job in jobs):
                return jobs
            self.assertLess(time.monotonic(), deadline, [(job.job_key, job.running) for job in jobs])
            time.sleep(0.1)

    def test_links_of_the_project_reach_no_file_of_the_user(self):
        server = SERVERS["node-1"]
        secret = pathlib.Path(tempfile.mkdtemp()) / "secret"
        secret.write_text("hunter2")
        scripts = pathlib.Path(".remote/scripts")
        scripts.mkdir(exist_ok=True)
        for name, target in (("out.sh", secret), ("up.sh", os.path.relpath(secret, scripts)), ("set.sh", "../configs.yaml")):
            (scripts / name).symlink_to(target)
            with self.assertRaisesRegex(RemoteError, "a link leads"):
                server.template_script(name, {})
        os.mkfifo(scripts / "fifo.sh")
        with self.assertRaisesRegex(RemoteError, "not a regular file"):
            server.template_script("fifo.sh", {})
        (scripts / "mark.sh").write_bytes(b"\xef\xbb\xbfecho %%WORD%%\n")
        self.assertEqual(server.template_script("mark.sh", {"word": "hello"}), "echo hello\n")
        # What is written replaces a link, and follows none to a folder.
        server.copy_script("echo new\n", "out.sh")
        self.assertEqual(secret.read_text(), "hunter2")
        self.assertEqual((scripts / "out.sh").read_text(), "echo new\n")
        shutil.rmtree(scripts)
        scripts.symlink_to(secret.parent)
        with self.assertRaisesRegex(RemoteError, "a link leads out"):
            server.copy_script("echo new\n", "secret")
        scripts.unlink()
        self.assertEqual(secret.read_text(), "hunter2")
        shutil.rmtree(secret.parent)

    def test_servers(self):
        self.assertEqual(list(SERVERS), ["node-1", "node-2"])
        self.assertEqual(SERVERS["node-1"].conf.hostname, "127.0.0.1")
        self.assertEqual(SERVERS["node-1"].conf.name, "node-1")
        self.assertEqual(SERVERS["node-1"].shell("echo hi; pwd; echo no >&2; exit 4"),
                         (4, "hi\n" + SERVERS["node-1"].home_path, "no"))
        SERVERS.load_all()
        with self.assertRaises(KeyError):
            SERVERS["node-9"]

    def test_configs_are_as_the_file_has_them(self):
        self.script("""
            import os, pathlib, shutil, yaml
            here = pathlib.Path.cwd()
            other = here.parent / "other"
            (other / ".remote").mkdir(parents=True)
            os.chdir(other)
            from labml_remote.configs import Configs
            from labml_remote.server import SERVERS
            from labml_remote.job import JOBS
            shutil.rmtree(".remote")
            assert (list(SERVERS), list(JOBS), Configs.get().name) == ([], [], "other")
            Configs._one = None
            pathlib.Path(".remote").mkdir()
            pathlib.Path(".remote/configs.yaml").write_text(
                "name: named\\nlogs_folder: my/logs\\nremote_jobs_folder_name: .theirs\\nservers:\\n"
                "  a: {hostname: h, username: u, private_key: ./key, password: p, gpus: 2}\\n")
            configs = Configs.get()
            assert configs.name == SERVERS["a"].project_name == "named"
            assert configs.project_logs_folder == other / "my/logs" and configs.remote_jobs_folder_name == ".theirs"
            conf = SERVERS["a"].conf
            assert (conf.hostname, conf.username, conf.private_key_file, conf.password) == ("h", "u", "./key", "p")
            assert conf.properties == {"gpus": 2}
            shutil.rmtree(other)
            """)

    def test_commands_and_scripts(self):
        self.assertEqual(SERVERS["node-1"].command("echo $A; basename \"$PWD\"", {"A": "b"}, is_eval=True),
                         (0, "b\n" + SERVERS["node-1"].project_name, ""))
        with self.assertRaises(RuntimeError):
            SERVERS["node-1"].command("exit 3", {}, ui_mode=UIMode.none, is_background=False, is_eval=False)
        shown = self.script("""
            from labml_remote.execute import UIMode
            from labml_remote.server import SERVERS
            assert SERVERS["node-1"].command("echo $A", {"A": "shown"}, ui_mode=UIMode.full,
                                             is_background=True, is_eval=False) == (0, "", "")
            """)
        self.assertEqual(shown, "shown\n")
        server = SERVERS["node-1"]
        self.assertEqual(server.copy_and_run_script("#!/bin/sh\necho 'it is' ${0##*/}; exit 5\n", "a.sh", is_eval=True),
                         (5, "it is a.sh", ""))
        pathlib.Path(".remote/scripts/say.sh").write_text("#!/bin/sh\necho %%NAME%% %%WORD%%\n")
        self.assertEqual(server.script("say.sh", {"word": "w"}, is_background=False, is_eval=True).out,
                         server.project_name + " w")

    def test_jobs_one_after_the_other(self):
        self.script(HELLO)
        jobs = self.ended(["hello"])
        self.assertEqual(len(jobs), 2)
        self.assertEqual([job.exit_code for job in jobs], [0, 0])
        self.assertEqual(len(JOBS.filter_by_tags(["master"], jobs)), 1)
        self.assertEqual(len(JOBS.filter_out_by_tags(["master"], jobs)), 1)
        self.assertIs(JOBS.by_key(jobs[0].job_key), jobs[0])
        self.assertIs(JOBS.by_pid(jobs[1].pid), jobs[1])
        self.assertIs(JOBS[jobs[0].job_id], jobs[0])
        self.assertEqual(jobs[0].server.conf.name, "node-1")

    def test_ranks_that_were_started_one_by_one_are_one_launch(self):
        self.script(ONE_BY_ONE)
        self.ended(["by hand"])
        jobs = [job for job in Project(".").jobs(ended=True) if "by hand" in job.tags]
        self.assertEqual([job.rank for job in jobs], [0, 1])
        self.assertEqual(len({job.fields["launch"] for job in jobs}), 1)
        self.assertIsNotNone(jobs[0].fields["launch"])
        self.assertEqual(Project(".").get(jobs[1].key).wait().exit_codes, {0: 0, 1: 0})
        self.script(ONE_BY_ONE)  # and the next run is another launch
        self.ended(["by hand"])
        jobs = [job for job in Project(".").jobs(ended=True) if "by hand" in job.tags]
        self.assertEqual(len({job.fields["launch"] for job in jobs}), 2)

    def test_torch_launch(self):
        self.script(LAUNCH)
        jobs = self.ended(["launched"])
        self.assertEqual(len(jobs), 4)
        self.assertEqual([job.exit_code for job in jobs], [0] * 4)

    def test_kill_and_tail(self):
        job = JOBS.create("node-2", "echo first; exec sleep 1000", {"A": "b"}, ["to kill"])
        self.assertFalse(job.started)
        job.start()
        self.assertTrue(job.running)
        self.assertGreater(job.pid, 0)
        job.kill()
        self.assertTrue(job.stopped)
        job.tail()

    def test_tail_loses_nothing_of_a_line(self):
        job = JOBS.create("node-1", "printf abc; read -r line <next.fifo; printf 'def\\n'", {"A": "b c"}, ["tail"])
        SERVERS["node-1"].command("mkfifo next.fifo", {}, is_eval=True)
        identity, folder = job.job_id, job.path
        job.start()
        self.assertEqual((job.job_id, job.path), (identity, folder))
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            deadline = time.monotonic() + 60
            while not shown.getvalue():
                self.assertLess(time.monotonic(), deadline)
                job.tail()
            self.assertEqual(shown.getvalue(), "abc")
            SERVERS["node-1"].command("echo >next.fifo; rm next.fifo", {}, is_eval=True)
            self.ended(["tail"])
            job.tail()
            job.tail()
        self.assertEqual(shown.getvalue(), "abcdef\n")
        self.assertEqual(job.to_dict()["env_vars"], {"A": "b c"})
        self.assertEqual(type(job).from_dict(job.to_dict()).to_dict(), job.to_dict())
        self.assertIn(repr({"A": "b c"}), self.script(f"""
            from labml_remote.job import JOBS
            JOBS.load({identity!r})
            print(JOBS[{identity!r}].env_vars)
            """))
        done = subprocess.run([sys.executable, "-m", "labml_remote", "job-tail", "--job", job.job_key, "--delay", "0"],
                              stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(done.stdout, b"abcdef\n")

    def test_the_command(self):
        done = subprocess.run([sys.executable, "-m", "labml_remote", "run", "--server", "node-1", "--cmd", "echo hi"],
                              stdout=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, b"hi\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
