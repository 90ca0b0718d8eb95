"""A rank that exits. Run by Stacks (tests/integration/server_python_test.cpp)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python")
JOB = "a" * 32


class ExitTest(unittest.TestCase):
    def test_asking_for_the_stacks_of_a_rank_that_exits_does_not_end_it(self):
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, JOB, "python")
            os.makedirs(folder)
            shutil.copy(os.path.join(SOURCES, "sitecustomize.py"), folder)
            leave = "import faulthandler, os; assert faulthandler.unregister(50); os.kill(os.getpid(), 50)"  # as Python does at its end
            env = dict(os.environ, PYTHONPATH=folder, REMOTE_JOB_ID=JOB)
            self.assertEqual(subprocess.run([sys.executable, "-c", leave], env=env).returncode, 0)


if __name__ == "__main__":
    unittest.main()
