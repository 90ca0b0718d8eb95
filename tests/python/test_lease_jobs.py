"""Jobs with leases, from their start to the end of the last process, on pretended servers. Run by LeaseJobs
(tests/integration/server_python_test.cpp), which sets REMOTE_AGENT."""
import os
import random
import shutil
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from servers import Server, free_port, launch_spec, lease, new_id, until

SHOWS = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"; exec sleep 1000'


class JobsCase(unittest.TestCase):
    def make(self, *names, **named):
        root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, root, True)
        made = [Server(root, name, **named) for name in names]
        for server in made:
            self.addCleanup(server.end_all)
        return made if len(made) > 1 else made[0]

    def leased(self, server):
        return [each for each in server.leased() if not each["waits"]]

    def until_free(self, server):
        until(lambda: not server.leased())

    def until_out(self, server, job, text):
        until(lambda: text in server.file(job, "job.out"))


class NowTest(JobsCase):
    def test_ranks_of_a_server_share_a_lease_until_the_last_process(self):
        server = self.make("a")
        one, two, other = new_id(), new_id(), new_id()
        said = server.start([(one, SHOWS, {}), (two, SHOWS, {})], lease(3))
        self.assertEqual([words[1] for words in said], ["started", "started"])
        for job in (one, two):
            self.until_out(server, job, "0,1,2 PCI_BUS_ID\n")
        said = server.start([(other, SHOWS, {})], lease(6))
        self.assertEqual(said[0][1:3], ["failed", "-"])
        self.assertIn("6 GPUs needed, and 5 of 8 free by now", " ".join(said[0]))
        self.assertEqual(server.kill(one), {one: "killed"})
        self.assertEqual(len(self.leased(server)), 1)
        self.assertEqual(server.kill(two), {two: "killed"})
        self.until_free(server)
        until(lambda: os.listdir(server.leases) == [])
        self.assertEqual(server.start([(new_id(), SHOWS, {})], lease(8))[0][1], "started")

    def test_a_killed_supervisor_or_job_leaves_no_lease_behind_and_none_too_early(self):
        server = self.make("a")
        job = new_id()
        server.start([(job, SHOWS, {})], lease(8))
        self.until_out(server, job, "0,1")
        os.kill(int(server.file(job, "supervisor").split()[0]), signal.SIGKILL)
        self.assertEqual(server.start([(new_id(), SHOWS, {})], lease(1))[0][1], "failed", "the job lives")
        os.kill(int(server.file(job, "pid").split()[0]), signal.SIGKILL)
        self.until_free(server)
        job = new_id()
        server.start([(job, SHOWS, {})], lease(8))
        self.until_out(server, job, "0,1")
        os.kill(int(server.file(job, "pid").split()[0]), signal.SIGKILL)
        self.until_free(server)

    def test_without_a_lease_nothing_is_made(self):
        server = self.make("a")
        job = new_id()
        server.start([(job, "readlink /proc/self/fd/7; echo done", {})])
        self.until_out(server, job, "done")
        self.assertEqual(server.file(job, "job.out"), "done\n")
        self.assertEqual(os.listdir(server.leases), [])


class WaitingTest(JobsCase):
    def test_they_wait_in_the_order_of_their_arrival(self):
        server = self.make("a")
        first, second, third = new_id(), new_id(), new_id()
        server.start([(first, SHOWS, {})], lease(6))
        two = new_id()
        said = server.start([(second, SHOWS, {}), (two, SHOWS, {})], lease(8, "waits"))
        self.assertEqual([words[1] for words in said], ["queued", "queued"])
        until(lambda: server.status(two)[two]["reason"] == "place 1 in line")
        self.assertEqual(server.start([(third, SHOWS, {})], lease(1, "waits"))[0][1], "queued")
        until(lambda: server.status(third)[third]["reason"] == "place 2 in line")
        self.assertEqual(server.status(second)[second]["phase"], "queued")
        self.assertEqual(server.start([(new_id(), SHOWS, {})], lease(1))[0][1], "failed", "others wait")
        self.assertEqual(server.file(second, "job.out"), "")
        server.kill(first)
        for job in (second, two):
            self.until_out(server, job, "0,1,2,3,4,5,6,7 PCI_BUS_ID")
        until(lambda: server.status(third)[third]["reason"] == "place 1 in line")
        self.assertEqual(server.status(second)[second]["phase"], "running")
        server.kill(second, two)
        self.until_out(server, third, "0 PCI_BUS_ID")
        server.kill(third)
        self.until_free(server)

    def test_a_kill_takes_it_out_of_the_line(self):
        server = self.make("a")
        first, second, two = new_id(), new_id(), new_id()
        server.start([(first, SHOWS, {})], lease(8))
        server.start([(second, SHOWS, {}), (two, SHOWS, {})], lease(8, "waits"))
        until(lambda: server.status(second)[second]["reason"] == "place 1 in line")
        self.assertEqual(server.kill(second, two), {second: "killed", two: "killed"})
        until(lambda: len(server.leased()) == 1)
        self.assertEqual(server.end(second), "signal 15")
        self.assertEqual(server.status(two)[two]["phase"], "ended")
        server.kill(first)
        self.until_free(server)
        self.assertEqual(server.file(second, "job.out"), "")

    def test_whoever_is_killed_while_it_waits_nothing_is_left(self):
        """The supervisor, the job, the process that waits; of the first job and of another one."""
        for victim in ("supervisor", "pid", "waiter", "other supervisor", "other pid"):
            with self.subTest(victim):
                server = self.make("a")
                first, second, two = new_id(), new_id(), new_id()
                server.start([(first, SHOWS, {})], lease(8))
                server.start([(second, SHOWS, {}), (two, SHOWS, {})], lease(8, "waits"))
                until(lambda: server.status(second)[second]["reason"] == "place 1 in line")
                # Only a job that has begun to wait notices that the waiter is gone.
                waiter = until(lambda: next((pid for pid in server.processes() if can_write(pid, two + "/.turn")), None))
                if victim == "waiter":
                    pid = waiter
                else:
                    pid = int(server.file(two if victim.startswith("other") else second, victim.split()[-1]).split()[0])
                os.kill(pid, signal.SIGKILL)
                if "supervisor" in victim:
                    self.assertEqual([server.status(job)[job]["phase"] for job in (second, two)], ["queued", "queued"])
                if victim in ("pid", "waiter"):
                    until(lambda: server.end(two) == "exit 127")  # its own lifeline, or a person, ends the rest
                server.kill(second, two)
                until(lambda: len(server.leased()) == 1)
                server.kill(first)
                self.until_free(server)
                until(lambda: not server.processes())

    def test_processes_of_others_are_waited_for(self):
        server = self.make("a", gpus=2)
        server.put("apps", "GPU-1, 4121, 100, python3\n")
        job = new_id()
        server.start([(job, SHOWS, {})], lease(2, "waits"))
        until(lambda: server.status(job)[job]["reason"] == "place 1 in line")
        server.put("apps", "")
        self.until_out(server, job, "0,1 PCI_BUS_ID")

    def test_what_a_server_never_has_ends_it(self):
        server = self.make("a", gpus=2)
        job = new_id()
        server.start([(job, SHOWS, {})], lease(3, "waits"))
        until(lambda: server.end(job) == "exit 127")
        self.assertIn("this server does not have the requested resources", server.file(job, "job.err"))


def can_write(pid, end):
    """Whether the process has a file open for writing whose path ends so."""
    folder = "/proc/%d/fd/" % pid
    try:
        for fd in os.listdir(folder):
            if os.readlink(folder + fd).endswith(end) and os.lstat(folder + fd).st_mode & 0o200:
                return True
    except OSError:
        pass  # it has ended
    return False


class Launch:
    """One over some servers, a rank or two on each."""

    def __init__(self, servers, gpus, ranks, seconds, hold, timeout=20):
        self.servers = servers
        self.jobs = {server: [new_id() for _ in range(ranks)] for server in servers}
        self.gpus = gpus
        port = free_port()
        rank = 0
        for server in servers:
            jobs = [(job, rank + index) for index, job in enumerate(self.jobs[server])]
            rank += len(jobs)
            spec = launch_spec(server, servers, port, jobs, seconds, timeout) if len(servers) > 1 else None
            wanted = lease(gpus, "waits", "chooses_port", "is_together" if len(servers) > 1 else "")
            env = {"MASTER_PORT": "1", "HOLD": "%.2f" % hold, "LOCAL_RANK": "0"}
            commands = [(job, MARKS, dict(env, LOCAL_RANK=str(index))) for index, job in enumerate(self.jobs[server])]
            server.start(commands, wanted, spec)

    def lifeline(self, server):
        """The process of its lifeline there; None: there is none yet."""
        words = server.file(self.jobs[server][0], "lifeline.pid").split()
        return int(words[0]) if words else None

    def results(self):
        return [server.end(job) for server in self.servers for job in self.jobs[server]]

    def kill(self):
        for server in self.servers:
            server.kill(*self.jobs[server])

    def processes(self):
        ids = [("REMOTE_JOB_ID=" + job).encode() for server in self.servers for job in self.jobs[server]]
        for server in self.servers:
            for pid in server.processes():
                try:
                    with open("/proc/%d/environ" % pid, "rb") as file:
                        if set(file.read().split(b"\0")).intersection(ids):
                            yield pid
                except OSError:
                    pass


# Of each GPU the first rank of a server says by a file who has it. One whose process lives belongs to nobody else.
MARKS = """
if [ "$LOCAL_RANK" = 0 ]; then
  for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , " "); do
    old=
    read -r old 2>/dev/null <"$HOME/marks/$gpu"
    if [ -n "$old" ] && kill -0 "$old" 2>/dev/null; then
      echo "GPU $gpu is that of $old, too" >>"$HOME/marks/both"
    fi
    echo $$ >"$HOME/marks/$gpu"
  done
fi
echo "port $MASTER_PORT"
sleep "$HOLD"
if [ "$LOCAL_RANK" = 0 ]; then
  for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , " "); do
    rm -f "$HOME/marks/$gpu"
  done
fi
"""


class TogetherTest(JobsCase):
    def test_a_launch_over_two_servers_begins_when_both_have_room(self):
        a, b = self.make("a", "b")
        blocker = new_id()
        b.start([(blocker, SHOWS, {})], lease(8))
        launch = Launch([a, b], 4, 2, 60, 0.1)
        until(lambda: b.status(*launch.jobs[b])[launch.jobs[b][0]]["phase"] == "queued")
        for server in (a, b):
            until(lambda: server.status(*launch.jobs[server])[launch.jobs[server][1]]["reason"] == "place 1 in line")
        self.assertEqual([a.file(job, "job.out") for job in launch.jobs[a]], ["", ""])
        b.kill(blocker)
        until(lambda: all(result.startswith("exit 0") for result in launch.results()))
        ports = {server.file(job, "job.out") for server in (a, b) for job in launch.jobs[server]}
        self.assertEqual(len(ports), 1)
        self.assertNotIn("port 1\n", ports)
        self.until_free(a)
        self.until_free(b)
        until(lambda: not a.processes() + b.processes())

    def test_a_lifeline_that_dies_alone_is_replaced_and_the_launch_has_its_turn(self):
        a, b = self.make("a", "b")
        for blocked in (False, True):
            for dies in (a, b):
                blocker = new_id()
                if blocked:
                    b.start([(blocker, SHOWS, {})], lease(8))
                launch = Launch([a, b], 8, 2, 60, 300, timeout=3)
                until(lambda: all(server.file(launch.jobs[server][0], "lifeline") == "ok\n" for server in (a, b)))
                if blocked:
                    until(lambda: all(server.file(launch.jobs[server][0], "turn.state") in ("held\n", "line\n") for server in (a, b)))
                else:
                    until(lambda: all(server.file(job, "devices") for server in (a, b) for job in launch.jobs[server]))
                died = launch.lifeline(dies)
                os.kill(died, signal.SIGKILL)
                until(lambda: launch.lifeline(dies) != died)
                b.kill(blocker)
                until(lambda: all(server.file(job, "devices") for server in (a, b) for job in launch.jobs[server]))
                for server in (a, b):
                    server.kill(*launch.jobs[server])
                until(lambda: all(launch.results()))
                self.until_free(a)
                self.until_free(b)
                until(lambda: not a.processes() + b.processes())

    def test_a_server_that_never_meets_the_first_one_ends_what_waits(self):
        a, b = self.make("a", "b")
        job = new_id()
        spec = launch_spec(a, [a, b], free_port(), [(job, 0)], timeout=3)
        a.start([(job, SHOWS, {})], lease(1, "waits", "is_together"), spec)
        until(lambda: a.end(job))
        self.assertIn('"cause":"lost","number":0,"text":"b"', a.file(job, "journal.jsonl"))
        until(lambda: not a.processes())

    def test_what_is_not_complete_is_given_back(self):
        a, b = self.make("a", "b")
        blocker = new_id()
        busy = b
        b.start([(blocker, SHOWS, {})], lease(8))
        launch = Launch([a, b], 8, 1, 1, 0.1)
        until(lambda: self.leased(a))
        until(lambda: not self.leased(a))
        self.assertEqual(self.leased(busy)[0]["cpus"], 0)
        launch.kill()
        b.kill(blocker)
        self.until_free(a)
        self.until_free(b)
        until(lambda: not a.processes() + b.processes())


class StressTest(JobsCase):
    def test_random_launches(self):
        count = int(os.environ.get("LEASE_LAUNCHES", "24"))
        servers = self.make("a", "b", "c", "d")
        dice = random.Random(int(os.environ.get("LEASE_SEED", "7")))
        waiting = []
        for number in range(count):
            chosen = dice.sample(servers, dice.choice([1, 1, 2, 3, 4]))
            waiting.append((number, Launch(chosen, dice.choice([1, 2, 4, 8]), dice.choice([1, 2]), 3, dice.uniform(0, 0.5), 5)))
            if dice.random() < 0.25:  # something of a launch is killed, at whatever step it is
                launch = dice.choice(waiting)[1]
                pids = list(launch.processes()) + [pid for pid in map(launch.lifeline, launch.servers) if pid]
                if pids:
                    try:
                        os.kill(dice.choice(pids), signal.SIGKILL)
                    except OSError:
                        pass
            if dice.random() < 0.1:
                dice.choice(waiting)[1].kill()
        until(lambda: all(all(launch.results()) for _, launch in waiting) or self.end_lost(waiting), 60 + 4 * count)
        for server in servers:
            self.assertFalse(os.path.exists(os.path.join(server.home, "marks/both")))
            self.until_free(server)
            until(lambda: not server.processes(), 40)
        good = sum(result.startswith("exit 0") for _, launch in waiting for result in launch.results())
        self.assertGreater(good, count // 2)

    @staticmethod
    def end_lost(waiting):
        """As a person would: a job whose supervisor was killed has no result."""
        for _, launch in waiting:
            for server in launch.servers:
                for job in launch.jobs[server]:
                    if not server.end(job):
                        words = server.file(job, "supervisor").split()
                        if words and not os.path.exists("/proc/" + words[0]):
                            server.kill(*launch.jobs[server])
                            with open(os.path.join(server.jobs, job, "journal.jsonl"), "a") as file:
                                file.write('{"kind":"found_ended","end":{"how":{"code":0,"signal":9},"by":"kill","node":""}}\n')
        return False


if __name__ == "__main__":
    unittest.main()
