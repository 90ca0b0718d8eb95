"""The copy of the agent runs also where the jobs' folder is mounted noexec. REMOTE_AGENT of the environment is the agent."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server")
WORKS = 42  # the exit status of `remote-agent try`


class RunAgentTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.program = os.path.join(self.root, ".jobs of it/.bin/x")
        os.makedirs(self.program)
        shutil.copytree(os.path.join(SERVER, "python"), os.path.join(self.program, "python"))
        self.agent = os.path.join(self.program, "remote-agent")
        shutil.copy(os.environ["REMOTE_AGENT"], self.agent)

    def by_python(self, *words):
        return subprocess.run([sys.executable, "-B", "-S", "-I", self.program + "/python/run_agent.py", self.agent, *words]).returncode

    def test_also_without_the_right_to_execute_it(self):
        for mode in (0o700, 0o600):  # a file of this mode is as one on a file system that is mounted noexec, also for root
            os.chmod(self.agent, mode)
            self.assertEqual(self.by_python("try"), WORKS)

    def test_its_exit_status_is_that_of_the_agent(self):
        self.assertEqual(self.by_python("nonsense", "word"), 2)

    def test_without_it_nothing_succeeds(self):
        os.unlink(self.agent)
        self.assertNotEqual(self.by_python("try"), 0)


if __name__ == "__main__":
    unittest.main()
