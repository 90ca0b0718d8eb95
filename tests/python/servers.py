"""Pretended servers for tests of what runs on servers: a home folder each on this machine, asked by the requests of docs/protocol.md."""
import os
import secrets
import signal
import socket
import subprocess
import time

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/server")
SMI = """#!/bin/sh
case $1 in
  --query-gpu=*) cat "$HOME/bin/gpus" ;;
  --query-compute-apps=*) cat "$HOME/bin/apps" ;;
esac
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def until(condition, seconds=30):
    """Waits for it; its value."""
    limit = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > limit:
            raise AssertionError("it did not come about")
        time.sleep(0.02)


class Server:
    def __init__(self, root, name, gpus=8, shell="sh"):
        self.name = name
        self.shell = shell
        self.home = os.path.join(root, "home of " + name)
        self.project = os.path.join(self.home, "my proj")
        self.jobs = os.path.join(self.project, ".jobs")
        self.leases = os.path.join(self.home, "leases")
        os.makedirs(os.path.join(self.home, "bin"))
        os.makedirs(os.path.join(self.home, "marks"))
        os.makedirs(self.project)
        os.mkdir(self.leases)
        os.chmod(self.leases, 0o1777)
        self.put("nvidia-smi", SMI)
        self.put("gpus", "".join("%d, GPU-%d\n" % (index, index) for index in range(gpus)))
        self.put("apps", "")
        self.env = {key: value for key, value in os.environ.items() if not key.startswith(("REMOTE_", "CUDA_"))}
        self.env.update(HOME=self.home, PATH=self.home + "/bin:" + os.environ["PATH"], REMOTE_LEASES=self.leases)

    def put(self, name, text):
        path = os.path.join(self.home, "bin", name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def file(self, job, name):
        try:
            with open(os.path.join(self.jobs, job, name)) as file:
                return file.read()
        except OSError:
            return ""

    def act(self, action, values, calls):
        """The lines of the answer, as words."""
        lines = []
        for key, value in [("project", self.project), ("jobs", self.jobs)]:
            lines += ["=" + key, "-" + value]
        lines.append("<actions/" + action)
        for key, value in values.items():
            lines += ["=" + key, "-" + value.replace("\n", "\n+")]
        for call in calls:
            lines.append(":" + call[0])
            lines += ["-" + word.replace("\n", "\n+") for word in call[1:]]
        request = "\n".join(lines) + "\n.null\n"
        program = 'remote_program="$1" remote_digest=test; . "$1/main.sh"'
        done = subprocess.run(
            self.shell.split() + ["-c", program, "sh", os.path.realpath(SOURCE)],
            input=request.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env, start_new_session=True, timeout=100,
        )
        out = done.stdout.decode()
        assert "@remote1 end" in out, (out, done.stderr.decode())
        return [line.split() for line in out.splitlines() if line.startswith("@remote1 ")]

    def start(self, jobs, lease="", lifeline=""):
        """`jobs`: (id, command, {variable: value}). What is said of each."""
        # as job_text() in src/jobs/protocol.cpp
        with open(os.path.join(SOURCE, "lib/job.sh")) as file:
            head = 'remote_program=$(cd "${0%job.sh}../.bin/test" && pwd -P)\n' + file.read()
        if lease:
            head += "job_queue\njob_read_devices\n"
        head += "job_folder '%s'\n" % self.project
        values = {"job_head": head, "job_tail": ""}
        values.update({key: value for key, value in (("lease", lease), ("lifeline", lifeline)) if value}, lifeline_activate=":")
        calls = [["start_begin"]]
        for job, command, env in jobs:
            text = "".join("export %s='%s'\n" % pair for pair in env.items()) + ("job_devices\n" if lease else "")
            calls.append(["start_one", job, text + "job_command '%s'\n" % command.replace("'", "'\\''"), "local"])
        return [words[2:] for words in self.act("start.sh", values, calls + [["start_finish"]]) if words[1] == "start"]

    def status(self, *jobs):
        """By job: its phase and all that is said."""
        calls = [["status_begin"], ["status_sizes", *jobs]] + [["status_one", job, "0"] for job in jobs] + [["status_end"]]
        return {words[2]: words[3:] for words in self.act("status.sh", {}, calls) if words[1] == "job"}

    def kill(self, *jobs):
        calls = [["kill_begin", "15", "2", "user:ada"]] + [["kill_one", job, "0"] for job in jobs] + [["kill_finish"], ["say", "end"]]
        return {words[2]: words[3] for words in self.act("kill.sh", {}, calls) if words[1] == "kill"}

    def processes(self):
        """All that runs on this server."""
        found = []
        for pid in os.listdir("/proc"):
            try:
                if pid.isdigit():
                    with open("/proc/%s/environ" % pid, "rb") as file:
                        if ("HOME=" + self.home).encode() in file.read().split(b"\0"):
                            found.append(int(pid))
            except OSError:
                pass
        return found

    def end_all(self):
        while self.processes():
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass


def new_id():
    return secrets.token_hex(16)


def lifeline_request(server, servers, port, jobs, seconds=60.0):
    names = " ".join(each.name for each in servers)
    return (
        "token %s\nserver %s\naddress 127.0.0.1\nport %d\ngrace 1\ntimeout 20\nservers %s\nwhole 1\nqueue %s\njobs %s"
        % ("0" * 64, server.name, port, names, seconds, " ".join("%s %d" % job for job in jobs))
    )
