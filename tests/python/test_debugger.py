"""breakpoint() in a job, and what attach.py brings of it, with real processes. Run by Debugger (tests/integration/debugger_test.cpp)."""
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server/python")
ID = "0123456789abcdef0123456789abcdef"


def until(what, condition, process=None):
    end = time.time() + 60
    while time.time() < end:
        found = condition()
        if found:
            return found
        if process is not None and process.poll() is not None and not condition():
            raise AssertionError("%s: the program has ended with %s" % (what, process.returncode))
        time.sleep(0.02)
    raise AssertionError("waited too long: " + what)


class Client:
    """As attach.py, for a test that looks between the messages."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        at = os.open(os.path.dirname(path), os.O_RDONLY)
        self.socket.connect("/proc/self/fd/%d/%s" % (at, os.path.basename(path)))
        os.close(at)
        self.socket.settimeout(60)
        self.lines = self.socket.makefile("r")

    def message(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def until_prompt(self):
        """What comes up to the next prompt, and that."""
        text = ""
        while True:
            message = self.message()
            if message is None or "prompt" in message:
                return text, message and message["prompt"]
            text += message.get("text", "")

    def send(self, **message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def say(self, line):
        self.send(line=line)
        return self.until_prompt()[0]

    def close(self):
        self.lines.close()
        self.socket.close()


class DebuggerTest(unittest.TestCase):
    def setUp(self):
        # a folder whose path no socket's address could have
        self.base = tempfile.mkdtemp()
        self.job = os.path.join(self.base, "d" * 120, ID)
        os.makedirs(self.job + "/python")
        os.chmod(self.job, 0o700)
        shutil.copy(SERVER + "/sitecustomize.py", self.job + "/python/")
        shutil.copy(SERVER + "/debugger.py", self.job + "/python/remote_debugger.py")
        self.processes = []
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.base)

    def start(self, text, rank="1", **variables):
        path = self.base + "/train.py"
        with open(path, "w") as file:
            file.write(text)
        env = dict(os.environ, PYTHONPATH=self.job + "/python", REMOTE_JOB_ID=ID, **variables)
        env.pop("PYTHONBREAKPOINT", None) if "PYTHONBREAKPOINT" not in variables else None
        if rank:
            env["RANK"] = rank
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-u", path], cwd=self.base, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, universal_newlines=True
        )
        self.processes.append(process)
        return process

    def waiting(self):
        """The records, by name: [PID, START, RANK, LINE, ERROR, FILE]."""
        found = {}
        folder = self.job + "/debug"
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if not name.startswith(".") and not name.endswith(".sock"):
                try:
                    with open(os.path.join(folder, name)) as file:
                        found[name] = file.read().rstrip("\n").split(" ", 5)
                except FileNotFoundError:
                    pass
        return found

    def wait(self, process, count=1):
        """The names of the records, when there are so many."""
        until("a record", lambda: len(self.waiting()) >= count, process)
        return sorted(self.waiting())

    def client(self, name):
        client = Client("%s/debug/%s.sock" % (self.job, name))
        self.clients.append(client)
        return client

    def ends(self, process, code=0):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        return out, err

    def test_steps_prints_and_goes_on(self):
        process = self.start("def f(x):\n    y = x * 2\n    breakpoint()\n    y += 1\n    return y\n\nprint('got', f(4))\n")
        (name,) = self.wait(process)
        record = self.waiting()[name]
        self.assertEqual(record[0], str(process.pid))
        self.assertEqual(record[2:], ["1", "3", "-", "train.py"])
        for path, mode in (("", 0o700), ("/" + name, 0o600), ("/%s.sock" % name, 0o600)):
            self.assertEqual(stat.S_IMODE(os.stat(self.job + "/debug" + path).st_mode), mode)
        client = self.client(name)
        text, prompt = client.until_prompt()
        self.assertIn("train.py", text)
        self.assertEqual(prompt, "(Pdb) ")
        self.assertEqual(client.say("y"), "8\n")
        client.say("!y = 20")
        while "-> return y" not in client.say("n"):
            pass
        self.assertEqual(self.waiting()[name][3], "5")
        client.send(line="c")
        self.assertEqual(client.message(), {"over": True})
        out, _ = self.ends(process)
        self.assertIn("remote: waiting in breakpoint() at train.py:3: remote attach 1\n", out)
        self.assertIn("got 21\n", out)
        self.assertEqual(os.listdir(self.job + "/debug"), [])

    def test_ctrl_d_lets_it_go_on_without_its_breakpoints(self):
        process = self.start("import pdb\npdb.set_trace()\nx = 1\nx = 2\nprint('done')\n")
        client = self.client(self.wait(process)[0])
        client.until_prompt()
        client.say("b 4")
        client.send(leave=True)
        self.assertIn("done", self.ends(process)[0])

    def test_q_asks_and_ends_the_rank(self):
        process = self.start("breakpoint()\nx = 1\nprint('done')\n")
        client = self.client(self.wait(process)[0])
        client.until_prompt()
        client.send(line="q")
        self.assertIn("[y/N]", client.until_prompt()[1])
        client.send(line="maybe")
        self.assertIn("[y/N]", client.until_prompt()[1])
        client.send(line="n")
        self.assertEqual(client.until_prompt()[1], "(Pdb) ")
        client.send(line="q")
        client.until_prompt()
        client.send(line="y")
        self.assertIn("BdbQuit", self.ends(process, 1)[1])

    def test_a_lost_client_and_one_that_takes_its_place(self):
        process = self.start("x = 5\nbreakpoint()\nx += 1\nprint('done', x)\n")
        name = self.wait(process)[0]
        first = self.client(name)
        first.until_prompt()
        first.say("!x = 7")
        first.close()  # the laptop is gone
        self.assertEqual(self.wait(process), [name])
        second = self.client(name)
        self.assertIn("train.py", second.until_prompt()[0])
        self.assertEqual(second.say("x"), "7\n")
        third = self.client(name)  # while the second one hangs somewhere
        self.assertIn("train.py", third.until_prompt()[0])
        self.assertEqual(second.message(), {"taken": True})
        third.send(line="c")
        self.assertIn("done 8", self.ends(process)[0])

    def test_two_threads_at_once(self):
        process = self.start(
            "import threading\n\ndef work(n):\n    breakpoint()\n    print('thread', n)\n\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]\n"
            "for thread in threads:\n    thread.start()\nfor thread in threads:\n    thread.join()\n"
        )
        seen = set()
        for name in self.wait(process, 2):
            client = self.client(name)
            client.until_prompt()
            seen.add(client.say("p n"))
            client.send(line="c")
            self.assertEqual(client.message(), {"over": True})
        self.assertEqual(seen, {"1\n", "2\n"})
        self.ends(process)

    def test_a_forked_child_waits_by_itself(self):
        process = self.start(
            "import os\n\ndef stop():\n    breakpoint()\n    return\n\nchild = os.fork()\nstop()\n"
            "if child == 0:\n    os._exit(3)\nprint('child', os.waitpid(child, 0)[1] >> 8)\n"
        )
        names = self.wait(process, 2)
        self.assertEqual(len({name.partition(".")[2] for name in names}), 2)
        for name in names:
            client = self.client(name)
            client.until_prompt()
            client.send(line="c")
            self.assertEqual(client.message(), {"over": True})
        self.assertIn("child 3", self.ends(process)[0])

    def test_stepping_over_a_fork(self):
        process = self.start(
            "import os\nbreakpoint()\nchild = os.fork()\nif child == 0:\n    os._exit(3)\nprint('child', os.waitpid(child, 0)[1] >> 8)\n"
        )
        parent = self.wait(process)[0]
        client = self.client(parent)
        client.until_prompt()
        while "-> if child" not in client.say("n"):
            pass
        names = self.wait(process, 2)
        names.remove(parent)
        child = self.client(names[0])  # stops there too, by itself
        child.until_prompt()
        self.assertEqual(child.say("child"), "0\n")
        child.send(line="c")
        self.assertEqual(child.message(), {"over": True})
        self.assertNotEqual(client.say("child"), "0\n")
        client.send(line="c")
        self.assertIn("child 3", self.ends(process)[0])

    def test_a_child_of_another_thread_ends_nobodys_session(self):
        process = self.start(
            "import os, sys, threading, time\n\ndef work():\n    breakpoint()\n    return\n\n"
            "thread = threading.Thread(target=work)\nthread.start()\n"
            "while not os.path.exists('go'):\n    time.sleep(0.02)\nchild = os.fork()\nif child == 0:\n    sys.exit(3)\n"
            "print('child', os.waitpid(child, 0)[1] >> 8)\nopen('gone', 'w').close()\nthread.join()\n"
        )
        client = self.client(self.wait(process)[0])
        client.until_prompt()
        open(self.base + "/go", "w").close()
        until("the child's end", lambda: os.path.exists(self.base + "/gone"), process)
        self.assertEqual(client.say("1 + 1"), "2\n")
        self.assertEqual(len(self.waiting()), 1)
        client.send(line="c")
        self.assertIn("child 3", self.ends(process)[0])

    def test_pythonbreakpoint_of_the_user_wins(self):
        for value in ("0", "builtins.print"):
            out, _ = self.ends(self.start("breakpoint()\nprint('done')\n", PYTHONBREAKPOINT=value))
            self.assertIn("done", out)
        self.assertFalse(os.path.exists(self.job + "/debug"))

    def test_after_an_error(self):
        process = self.start("def f(a):\n    raise ValueError('no')\n\nf(3)\n", REMOTE_PDB_ON_ERROR="1")
        (name,) = self.wait(process)
        attached = time.time() * 1000
        self.assertEqual(self.waiting()[name][2:], ["1", "2", "ValueError", "train.py"])
        client = self.client(name)
        client.until_prompt()
        self.assertEqual(client.say("p a"), "3\n")
        client.send(line="q")
        self.assertEqual(client.message(), {"over": True})
        out, err = self.ends(process, 1)
        with open(self.job + "/raised") as file:  # not when somebody let it go on
            self.assertLess(int(file.read()), attached)
        self.assertIn("waiting in pdb after ValueError at train.py:2: remote attach 1", out)
        self.assertIn("ValueError: no", err)

    def test_what_a_rank_starts_does_not_wait_after_its_error(self):
        text = "import subprocess, sys\nprint('child', subprocess.call([sys.executable, '-c', '1/0']))\n"
        self.assertIn("child 1", self.ends(self.start(text, REMOTE_PDB_ON_ERROR="1"))[0])

    def test_without_the_option_an_error_ends_it(self):
        self.ends(self.start("1/0\n"), 1)
        self.assertFalse(os.path.exists(self.job + "/debug"))
        self.assertFalse(os.path.exists(self.job + "/raised"))

    def test_an_attempt_knows_nothing_of_the_error_before(self):
        with open(self.job + "/raised", "w") as file:
            file.write("1\n")
        self.ends(self.start("print(1)\n", REMOTE_PDB_ON_ERROR="1"))
        self.assertFalse(os.path.exists(self.job + "/raised"))

    def test_under_slurm_nothing_waits(self):
        open(self.job + "/batch.sh", "w").close()
        self.assertIn("not under Slurm", self.ends(self.start("breakpoint()\nx = 1\n"), 1)[1])

    def test_a_signal_ends_one_that_waits(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start("breakpoint()\nx = 1\n")
            until("its record", lambda: [r for r in self.waiting().values() if r[0] == str(process.pid)], process)
            process.send_signal(number)
            self.ends(process, -number)

    def test_attach_py(self):
        process = self.start("x = 5\nbreakpoint()\nprint('done', x)\n")
        path = "%s/debug/%s.sock" % (self.job, self.wait(process)[0])
        relay = [sys.executable, "-I", SERVER + "/attach.py"]

        def piped(text):
            run = subprocess.run(relay + [path], input=text, stdout=subprocess.PIPE, universal_newlines=True, timeout=60)
            return run.returncode, run.stdout

        code, out = piped("!x = 6\nx\n")
        self.assertEqual(code, 10)  # the pipe has ended, and the rank waits
        self.assertTrue(out.endswith("(Pdb) !x = 6\n(Pdb) x\n6\n(Pdb) \n"), out)
        self.assertEqual(piped("")[0], 10)
        code, out = piped("q\nwhat\nn\np x + 1")
        self.assertEqual(code, 10)
        self.assertIn("Please answer y or n.\n", out)
        self.assertIn("(Pdb) p x + 1\n7\n", out)
        self.assertEqual(piped("q\n")[0], 10)  # the question was not answered
        self.assertEqual(piped("c\n")[0], 0)
        self.assertIn("done 6", self.ends(process)[0])
        self.assertEqual(subprocess.run(relay + [path], stderr=subprocess.DEVNULL).returncode, 13)

    def test_ctrl_c_just_before_attach_py_waits_for_a_key(self):
        process = self.start("breakpoint()\nprint('done')\n")
        path = "%s/debug/%s.sock" % (self.job, self.wait(process)[0])
        # readline calls this hook when the prompt stands there and it does not wait yet
        program = (
            "import os, readline, runpy, signal, sys\n"
            "readline.set_pre_input_hook(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
            "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
        )
        terminal, slave = os.openpty()
        self.addCleanup(os.close, terminal)
        relay = subprocess.Popen([sys.executable, "-I", "-c", program, SERVER + "/attach.py", path], stdin=slave, stdout=slave)
        os.close(slave)
        self.processes.append(relay)
        self.assertEqual(relay.wait(timeout=60), 10)
        client = self.client(self.wait(process)[0])
        client.until_prompt()
        client.send(line="c")
        self.assertIn("done", self.ends(process)[0])

    @unittest.skipUnless(os.geteuid() == 0, "needs a second user")
    def test_another_user_cannot_connect(self):
        process = self.start("breakpoint()\nprint('done')\n")
        name = self.wait(process)[0]
        path = "%s/debug/%s.sock" % (self.job, name)
        program = "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
        where = self.job + "/debug"
        refused = [sys.executable, "-I", "-c", program, name + ".sock"]
        run = subprocess.run(refused, cwd=where, stderr=subprocess.PIPE, universal_newlines=True)
        self.assertIn("PermissionError", run.stderr)
        # and if somebody opened the way, by who they are
        for one in (self.base, os.path.dirname(self.job), self.job, where):
            os.chmod(one, 0o755)
        os.chmod(path, 0o666)
        program += "; s.settimeout(60); print(s.recv(99))"
        refused[3] = program
        run = subprocess.run(refused, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(run.stdout.strip(), "b''")
        client = self.client(name)
        self.assertEqual(client.until_prompt()[1], "(Pdb) ")
        client.send(line="c")
        self.assertIn("done", self.ends(process)[0])


if __name__ == "__main__":
    unittest.main()
