"""Waits for a lease, as the first process of a job (lib/job.sh) whose launch was told to wait: lease_wait.py FD FOLDER WORD… -- ID…

FD is the lease's file, which the supervisors of all jobs of the launch on this server have open, too; FOLDER the jobs' folder; the IDs those jobs,
this one first. Of the WORDs `together` says that other servers take part: then the launch's lifeline says in the job's file `turn.order` what is to
be done (lifeline_queue.py), and `turn.state` tells it how this stands. Ends with 0 when the ranks may begin: the other jobs, which read their
FIFOs `.turn`, have been told so.
"""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # with -I, Python does not look there
import lease
import lease_machine
from lifeline_job import put
from lifeline_link import free_port

PAUSE, LOOK_AGAIN, PROCESSES_AGAIN = 0.1, 0.5, 3.0


class Turn:
    def __init__(self, fd, folder, words, ids):
        self.lease = lease.Lease.adopt(fd)
        self.needs = lease.parse_needs([word for word in words if "=" in word])
        self.together = "together" in words
        self.port = "port" in words
        self.folders = [os.path.join(folder, each) for each in ids]
        self.fifos = {}
        self.parent = os.getppid()
        self.machine = lease.Machine(self.needs)
        self.told = {}
        self.processes_at = 0.0

    def tell(self, name, text):
        """Into the file of this job, for others, if it is new."""
        if self.told.get(name) != text:
            self.told[name] = text
            put(self.folders[0], name, text + "\n")

    def order(self):
        """What the launch's lifeline wants: `keep` the place, `take`, or `go PORT`."""
        if not self.together:
            return ["take"]
        try:
            with open(os.path.join(self.folders[0], "turn.order")) as file:
                return file.read().split() or ["keep"]
        except OSError:
            return ["keep"]

    def meet_others(self):
        """Their FIFOs stay open here: if this process dies, they read the end."""
        for folder in self.folders[1:]:
            if folder not in self.fifos:
                try:
                    self.fifos[folder] = os.open(os.path.join(folder, ".turn"), os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    pass  # it does not read yet
        return len(self.fifos) == len(self.folders) - 1

    def try_it(self, may_take):
        """Whether it has been taken; tells its place. The drivers are asked only when it may be had as far as leases tell."""
        now = time.monotonic()
        others = [entry for entry in lease.entries(self.lease.folder) if entry.name != self.lease.name]
        idle = [gpu._replace(pids=[]) for gpu in self.machine.gpus]
        self.machine.gpus = idle
        survey = lease.Survey(self.machine, others, self.needs)
        if survey.never():
            raise lease.Refused("this server does not have as much as is asked for")
        self.tell("turn", "place %d in line" % survey.position(self.lease.arrival, self.lease.name))
        if not may_take:
            return False
        if self.needs.memory:
            survey.memory = min(survey.memory, lease_machine.memory_here()[1])
        if survey.ahead(self.lease.arrival, self.lease.name) or not survey.enough() or now < self.processes_at:
            return False
        if self.lease.claim(self.needs) is None:
            return True
        self.processes_at = now + PROCESSES_AGAIN
        return False

    def begin(self, port):
        text = lease.devices_text(self.lease, self.needs) + ("MASTER_PORT=%s\n" % port if port else "")
        for folder in self.folders:
            put(folder, "devices", text)
            put(folder, "started", "%d\n" % time.time())
        for folder in self.folders:
            os.unlink(os.path.join(folder, "queue"))
        for fifo in self.fifos.values():
            os.write(fifo, b"go\n")

    def run(self):
        held = False
        looked = 0.0
        while True:
            if os.getppid() != self.parent:
                return 1  # the job has ended
            here = self.meet_others()
            order = self.order()
            if held and order[0] == "keep":
                self.lease.give_back()
                held = False
            if not held:
                self.lease.get_in_line(order[0] == "take")
            if not held and time.monotonic() - looked >= LOOK_AGAIN:
                held = self.try_it(order[0] == "take" and here)
                looked = time.monotonic()
            if held and not self.together:
                self.begin(free_port() if self.port else "")
                return 0
            if held and order[0] == "go":
                port = order[1] if len(order) > 1 and order[1].isdigit() else ""
                self.begin(port if self.port else "")
                self.tell("turn.state", "gone %s" % (port or "0"))
                return 0
            self.tell("turn.state", "held" if held else "line" if order[0] == "take" else "keep")
            time.sleep(PAUSE)


def main(words):
    end = words.index("--")
    try:
        turn = Turn(int(words[0]), words[1], words[2:end], words[end + 1 :])
        return turn.run()
    except lease.Refused as why:
        print("remote: the lease was not taken: %s" % why, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
