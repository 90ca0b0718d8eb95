"""Simulated servers for tests of what runs on servers: a home folder each on this machine, and the agent of the environment variable REMOTE_AGENT."""
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time

import agent

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
    def __init__(self, root, name, gpus=8):
        self.name = name
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

    def end(self, job):
        """How a job has ended, as "exit 0"; "" if it has not."""
        end = ""
        for line in self.file(job, "journal.jsonl").splitlines():
            entry = json.loads(line)
            if entry["kind"] in ("ended", "found_ended"):
                how = entry["end"]["how"]
                end = "signal %d" % how["signal"] if how["signal"] else "exit %d" % how["code"]
        return end

    def keep_program(self):
        """Copies the program and the agent into .bin/test, which jobs run from."""
        kept = os.path.join(self.jobs, ".bin/test")
        if os.path.exists(kept):
            return
        for name in ("lib", "python"):
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(kept, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(agent.PROGRAM, os.path.join(kept, "remote-agent"))
        subprocess.run(["chmod", "-R", "u=rwX,go=", self.jobs], check=True)

    def start(self, jobs, lease=None, launch=None):
        """`jobs`: (id, command, {variable: value}). `lease`: see lease(). For each the words of its outcome: id, outcome, pid or "-", and those of the reason."""
        self.keep_program()
        # as make_specs() in src/jobs/start_script.cpp
        common = {"program": "", "project": self.project, "variables": [], "defaults": [], "activate": "", "startup_files": "none", "tree": "", "programs": [], "is_leased": lease is not None, "command": ""}
        new_jobs = []
        for job, command, env in jobs:
            own = {"variables": [{"name": name, "value": value} for name, value in env.items()], "activate": "", "command": command}
            new_jobs.append({"id": job, "backend": "local", "spec": own, "files": []})
        order = {
            "place": self.place(),
            "program": {"digest": "test", "size": 0},  # the one that is there
            "jobs": new_jobs,
            "spec": common,
        }
        if lease:
            order["lease"] = lease
        if launch is not None:
            order["launch"] = launch
        (reply,) = agent.ask({"kind": "start_jobs"}, self.env, agent.to_cbor(order))
        return [[job["id"], job["outcome"], str(job.get("pid") or "-")] + job["reason"].split() for job in reply["jobs"]]

    def place(self):
        return {"project": self.project, "jobs_folder": ".jobs"}

    def ask(self, kind, jobs, **fields):
        return agent.ask(dict(fields, kind=kind, place=self.place(), ids=list(jobs), claim=[]), self.env)

    def status(self, *jobs):
        """By job: the agent's report."""
        messages = self.ask("state", jobs, await_lifeline=False, last_lines=False)
        return {report["id"]: report for message in messages for report in message["jobs"]}

    def kill(self, *jobs):
        """By job: the outcome."""
        messages = self.ask("stop", jobs, dead=[], signal=15, grace_s=2, by={"cause": "user", "number": 0, "text": "ada"})
        return {result["id"]: result["outcome"] for message in messages for result in message["results"]}

    def leased(self):
        """The leases, with those that wait."""
        return agent.ask({"kind": "leases"}, self.env)[0]["leases"]

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


def lease(gpus, *options):
    """What jobs lease together: LeaseToTake in src/wire/leases.hpp. `options`: names of those that are set."""
    terms = {"gpus": gpus, "cpus": 0, "memory": 0, "among": [], "prologue": ""}
    return {"terms": terms, **{name: name in options for name in ("waits", "is_together", "chooses_port")}}


def new_id():
    return secrets.token_hex(16)


def launch_spec(server, servers, port, jobs, seconds=60, timeout=20):
    """For the supervisor of a launch that waits for its leases: see src/wire/launch.hpp. `jobs`: (id, rank)."""
    number = servers.index(server)
    tokens = [f"{each:064}" for each in range(1, len(servers))]
    return {
        "tokens": tokens if number == 0 else [tokens[number - 1]],
        "server": server.name,
        "servers": [{"name": each.name, "ranks": 1, "mpi_host": ""} for each in servers],
        "jobs": [{"id": job, "rank": rank} for job, rank in jobs],
        "program": "",
        "address": "127.0.0.1",
        "port": port,
        "grace_seconds": 1,
        "timeout_seconds": timeout,
        "needed": 0,
        "ends_alone": False,
        "is_whole": True,
        "notifies": False,
        "activate": "",
        "lease_seconds": seconds,
    }
