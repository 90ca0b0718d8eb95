"""Scripts that were written for labml_remote; tests/e2e/test_python.sh runs this in a project's folder.

The two scripts are re-creations of what labml_remote's own samples do, not copies of them.
"""

import pathlib
import subprocess
import sys
import textwrap
import time
import unittest

from labml_remote.job import JOBS
from labml_remote.server import SERVERS
from remote_launcher import Project

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
        pathlib.Path("script.py").write_text(text)
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

    def test_servers(self):
        self.assertEqual(list(SERVERS), ["node-1", "node-2"])
        self.assertEqual(SERVERS["node-1"].conf.hostname, "127.0.0.1")
        self.assertEqual(SERVERS["node-1"].conf.name, "node-1")
        self.assertEqual(SERVERS["node-1"].shell("echo hi").out, "hi\n")
        with self.assertRaises(KeyError):
            SERVERS["node-9"]

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

    def test_the_command(self):
        done = subprocess.run([sys.executable, "-m", "labml_remote", "run", "--server", "node-1", "--cmd", "echo hi"],
                              stdout=subprocess.PIPE, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, b"hi\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
