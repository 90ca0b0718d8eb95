"""Leases: two users, links and pipes of others, processes that die at any moment, and many that take and give back at once. Run by Leases
(tests/integration/lifeline_loop_test.cpp)."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python")
sys.path.insert(0, SOURCE)
import lease
import lease_machine
from lease import Lease, Needs, Refused, entries, take

ROUNDS = int(os.environ.get("LEASE_ROUNDS", "30"))
NOBODY = 65534

SMI = """#!/bin/sh
dir=${0%/*}
case $1 in
  --query-gpu=*) cat "$dir/gpus" ;;
  --query-compute-apps=*) cat "$dir/apps" ;;
esac
"""


class LeaseCase(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        os.chmod(self.root, 0o755)
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = os.path.join(self.root, "shared folder")
        os.mkdir(self.folder)
        os.chmod(self.folder, 0o1777)
        self.set_gpus(8)
        with open(os.path.join(self.root, "nvidia-smi"), "w") as file:
            file.write(SMI)
        os.chmod(os.path.join(self.root, "nvidia-smi"), 0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = self.root + ":" + path
        self.addCleanup(os.environ.__setitem__, "PATH", path)

    def set_gpus(self, count, apps=""):
        for name, text in (("gpus", "".join("%d, GPU-%d\n" % (index, index) for index in range(count))), ("apps", apps)):
            with open(os.path.join(self.root, name), "w") as file:
                file.write(text)

    def take(self, *needs, **named):
        found = take(Needs(*needs, **named), self.folder)
        if found is not None:
            self.addCleanup(self.close, found)
        return found

    @staticmethod
    def close(one):
        try:
            one.close()
        except OSError:
            pass

    def as_nobody(self, act):
        """Runs it as another user; its exit code."""
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                os._exit(int(act() or 0))
            finally:
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class TakingTest(LeaseCase):
    def test_gpus_are_given_to_one_each_and_come_back(self):
        first = self.take(5)
        self.assertEqual(first.devices, ["0", "1", "2", "3", "4"])
        self.assertEqual(first.variables, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4"})
        self.assertIsNone(self.take(4))
        self.assertEqual(self.take(3).devices, ["5", "6", "7"])
        first.close()
        self.assertEqual(self.take(1).devices, ["0"])

    def test_gpus_with_processes_and_others_than_the_allowed_are_left_alone(self):
        self.set_gpus(4, "GPU-0, 4121, 300, python3, x\nGPU-2, 17, 1, [Not Found]\n")
        self.assertEqual(self.take(1, among=[0, 3]).devices, ["3"])
        self.assertEqual(self.take(1).devices, ["1"])
        self.assertIsNone(self.take(1))

    def test_what_nvidia_smi_does_not_tell_is_not_taken_for_free(self):
        with open(os.path.join(self.root, "nvidia-smi"), "w") as file:
            file.write("#!/bin/sh\ncase $1 in --query-gpu=*) echo 0, GPU-0 ;; *) exit 9 ;; esac\n")
        with self.assertRaises(Refused):
            self.take(1)

    def test_cores_and_memory(self):
        cores = len(os.sched_getaffinity(0))
        first = self.take(0, cores)
        self.assertIsNone(self.take(0, 1))
        first.close()
        self.assertIsNotNone(self.take(0, cores))
        total, available = lease_machine.memory_here()
        self.assertIsNone(self.take(0, 0, total + 1))
        self.assertIsNotNone(self.take(0, 0, available // 4))
        self.assertIsNone(self.take(0, 0, total - available // 4 + 1))

    def test_the_last_process_that_has_it_open_ends_it(self):
        first = self.take(8)
        child = subprocess.Popen(["sleep", "1000"], pass_fds=[first.fd])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.close(first.fd)  # as when a supervisor is killed: the file stays
        self.assertIsNone(self.take(1))
        child.kill()
        child.wait()
        self.assertIsNotNone(self.take(8))

    def test_who_came_earlier_is_before_who_came_later(self):
        first = self.take(6)
        waits = Lease.make(self.folder)
        self.addCleanup(self.close, waits)
        waits.get_in_line(True)
        survey = waits.claim(Needs(4))
        self.assertEqual((len(survey.free), survey.position(waits.arrival, waits.name)), (2, 1))
        self.assertIsNone(self.take(1), "two are free, but somebody waits for four")
        waits.get_in_line(False)  # for another server: it stands in nobody's way
        self.assertIsNotNone(self.take(1))
        waits.get_in_line(True)
        first.close()
        self.assertIsNone(waits.claim(Needs(4)))
        self.assertEqual([entry.state for entry in entries(self.folder)], [lease.HELD, lease.HELD])
        waits.give_back()
        self.assertEqual(len(self.take(7).devices), 7)

    def test_files_of_dead_leases_are_removed_after_a_while(self):
        first = self.take(1)
        os.close(first.fd)
        path = os.path.join(first.folder, first.name)
        entries(self.folder)
        self.assertTrue(os.path.exists(path))
        os.utime(path, (1, 1))
        entries(self.folder)
        self.assertFalse(os.path.exists(path))


class FolderTest(LeaseCase):
    def test_a_folder_that_others_could_change_is_refused(self):
        os.chmod(self.folder, 0o777)
        with self.assertRaises(Refused):
            self.take(1)
        os.rmdir(self.folder)
        os.symlink(self.root, self.folder)
        with self.assertRaises(Refused):
            self.take(1)
        os.unlink(self.folder)

    def test_foreign_files_are_not_followed_and_block_nothing(self):
        secret = os.path.join(self.root, "secret")
        with open(secret, "w") as file:
            file.write("remote-lease1 1 0 0 GPU-0\n")
        name = os.path.join(self.folder, "%s%d." % (lease.PREFIX, os.geteuid()))
        os.symlink(secret, name + "aaaaaaaa")
        os.mkfifo(name + "bbbbbbbb")
        os.mkdir(name + "cccccccc")
        os.link(secret, name + "dddddddd")
        with open(name + "eeeeeeee", "w") as file:
            file.write("remote-lease1 1 0 0 GPU-0 ../../etc/passwd\n")
        self.assertEqual(self.take(8).devices, [str(index) for index in range(8)])
        self.assertEqual(len(entries(self.folder)), 1)
        with open(secret) as file:
            self.assertEqual(file.read(), "remote-lease1 1 0 0 GPU-0\n")

    def test_a_file_counts_for_its_owner_alone(self):
        """Another user can neither hold a lease in the name of this one, nor keep one that has ended."""
        mine = self.take(2)
        path = os.path.join(mine.folder, mine.name)

        def hold():
            with open(path, "rb") as file:
                try:
                    lease.set_lock(file.fileno(), lease.HELD, lease.fcntl.F_WRLCK)
                except OSError:
                    pass
                try:
                    open(path, "r+b")
                    return 1
                except PermissionError:
                    pass
                try:
                    os.unlink(path)
                    return 2
                except PermissionError:
                    pass
                try:
                    with open(os.path.join(self.folder, lease.PREFIX + "0.ffffffff"), "w") as forged:
                        forged.write("remote-lease1 1 0 0 GPU-7\n")
                        forged.flush()
                        lease.set_lock(forged.fileno(), lease.HELD, lease.fcntl.F_WRLCK)
                        return len(entries(self.folder)) - 1
                except OSError:
                    return 3

        self.assertEqual(self.as_nobody(hold), 0)

    def test_users_see_each_other(self):
        mine = self.take(5)
        self.assertEqual(self.as_nobody(lambda: take(Needs(4), self.folder) is not None), 0)

        def other():
            theirs = take(Needs(3), self.folder)
            ids = {entry.uid for entry in entries(self.folder)}
            return 0 if theirs is not None and theirs.devices == ["5", "6", "7"] and ids == {0, NOBODY} else 1

        self.assertEqual(self.as_nobody(other), 0)
        mine.close()


WORKER = """
import os, random, sys, time
sys.path.insert(0, %r)
import lease
import lease_machine
lease_machine.nvidia_gpus = lambda: [lease_machine.Gpu("nvidia", i, "GPU-%%d" %% i, []) for i in range(8)]
if len(sys.argv) > 3 and int(sys.argv[3]):
    os.setgid(65534); os.setuid(65534)
folder, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
needs = lease.Needs(rng.choice([1, 1, 2, 3, 4, 8]))
mine = lease.Lease.make(folder)
mine.get_in_line(True)
while mine.claim(needs) is not None:
    time.sleep(0.005)
marks = []
for gpu in mine.devices:
    marks.append(os.open(os.path.join(folder, "gpu" + gpu), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
print("holds", *mine.devices, flush=True)
time.sleep(rng.uniform(0, 0.05))
if rng.random() < 0.3:
    for gpu in mine.devices:
        os.unlink(os.path.join(folder, "gpu" + gpu))
    os.kill(os.getpid(), 9)
for gpu in mine.devices:
    os.unlink(os.path.join(folder, "gpu" + gpu))
mine.close()
"""


RACER = """
import os, sys, time
sys.path.insert(0, %r)
import lease
import lease_machine
lease_machine.nvidia_gpus = lambda: [lease_machine.Gpu("nvidia", i, "GPU-%%d" %% i, []) for i in range(2)]
folder = sys.argv[1]
while not os.path.exists(os.path.join(folder, "begin")):
    time.sleep(0.001)
done = 0
while done < 20:
    mine = lease.take(lease.Needs(1), folder)
    if mine is None:
        continue
    mark = os.path.join(folder, "gpu" + mine.devices[0])
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    time.sleep(0.002)
    os.unlink(mark)
    mine.close()
    done += 1
"""


class StressTest(LeaseCase):
    def test_who_takes_at_the_same_moment_gets_another_gpu(self):
        workers = [subprocess.Popen([sys.executable, "-c", RACER % SOURCE, self.folder], stderr=subprocess.PIPE) for _ in range(6)]
        open(os.path.join(self.folder, "begin"), "w").close()
        for worker in workers:
            err = worker.communicate(timeout=120)[1]
            self.assertEqual(worker.returncode, 0, err)

    def test_never_two_on_one_gpu_and_nobody_starves(self):
        """Each marks its GPUs by files that only one can make."""
        os.chmod(self.folder, 0o1777)
        workers = []
        for seed in range(ROUNDS):
            other = seed % 3 == 0 and os.geteuid() == 0
            words = [sys.executable, "-c", WORKER % SOURCE, self.folder, str(seed), str(int(other))]
            workers.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for worker in workers:
            out, err = worker.communicate(timeout=120 + ROUNDS)
            self.assertTrue(out.startswith(b"holds"), err)
            self.assertIn(worker.returncode, (0, -signal.SIGKILL), err)
        self.assertEqual(entries(self.folder), [])


if __name__ == "__main__":
    unittest.main()
