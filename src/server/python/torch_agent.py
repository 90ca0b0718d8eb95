"""Runs inside an agent of torchrun. sitecustomize.py imports it there, before torch.

- The output of each worker goes to separate files, ranks/RANK.out and ranks/RANK.err in the job's folder, and from there, line by
  line and after "[RANK] ", to the agent's own output.
- The end of a worker is recorded immediately, with milliseconds, in failures/agent: torch checks only at intervals, and does not
  report a worker that it then restarts.
- A c10d rendezvous is handled by torch_rendezvous.py.
- If torch is older than 1.9 and has no torch.distributed.run, torch.distributed.launch replaces it.

Python 3.6 or later, standard library only.
"""
import atexit
import os
import signal
import subprocess
import sys
import threading
import time

LONGEST_LINE = 65536  # longer lines are split
LOOK_SECONDS = 0.05
LEFT_SECONDS = 15  # how long workers may take to fail on their own after those of another server have ended
BAR_SECONDS = 0.5  # how often the state of a progress bar is printed
OLD_LAUNCH = """
import sys
from remote_torch_agent import old_arguments
sys.argv[1:] = old_arguments(sys.argv[1:])
from torch.distributed.launch import main
main()
"""


class Stream:
    """Copies one of a worker's two output streams from its file to the agent's own stream."""

    def __init__(self, path, target, rank):
        self.path = path
        self.file = open(path, "rb")
        self.file.seek(0, os.SEEK_END)  # skip the output of earlier attempts, which was already copied
        self.sink = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.target = target
        self.header = b"[%d] " % rank
        self.rest = b""
        self.shown = b""
        self.told = time.monotonic()

    def close_sink(self):
        """Call this when the worker has its own copy."""
        os.close(self.sink)

    def copy(self, last=False):
        """Returns True if there was new output."""
        data = self.file.read(4 * LONGEST_LINE)
        *lines, self.rest = (self.rest + data).split(b"\n")
        while len(self.rest) > LONGEST_LINE:
            lines.append(self.rest[:LONGEST_LINE])
            self.rest = self.rest[LONGEST_LINE:]
        if last and not data and self.rest:
            lines.append(self.rest)
            self.rest = b""
        elif b"\r" in self.rest and not lines and time.monotonic() - self.told > BAR_SECONDS:
            state = last_state(self.rest)
            if state != self.shown:
                lines.append(state)
                self.shown = state
        if lines:
            self.told = time.monotonic()
            self.write(b"".join(self.header + last_state(line) + b"\n" for line in lines))
        return bool(data)

    def write(self, text):
        while text:
            try:
                text = text[os.write(self.target, text) :]
            except OSError:
                return  # the disk is full; the worker's own file may be affected too


def last_state(line):
    """The last state of a progress bar, which repeatedly returns to the beginning of the line."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def append(path, line):
    try:
        with open(path, "ab") as file:
            file.write(line)
    except OSError:
        pass


class Agent:
    def __init__(self, job):
        self.job = job
        self.streams = []
        self.lock = threading.Lock()
        self.copier = None
        self.attempt = None
        self.here = set()  # the local ranks that have started in this attempt
        self.restarts = 0
        self.began = 0.0
        self.workers = []
        self.next_look = 0.0

    def output_of(self, rank):
        """The two streams of a new worker, which are watched from now on; both are None if they cannot be created."""
        folder = os.path.join(self.job, "ranks")
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            streams = []
            for name, target in (("out", 1), ("err", 2)):
                path = os.path.join(folder, "%d.%s" % (rank, name))
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
                streams.append(Stream(path, target, rank))
        except OSError:
            return None, None
        with self.lock:
            self.streams += streams
            if self.copier is None:
                self.copier = threading.Thread(target=self.copy_all, daemon=True)
                self.copier.start()
                atexit.register(self.finish)
        return streams

    def copy_all(self):
        while True:
            with self.lock:
                news = [stream.copy() for stream in self.streams]
            if time.monotonic() >= self.next_look:
                self.next_look = time.monotonic() + 1
                self.end_waiting_workers()
            if not any(news):
                time.sleep(LOOK_SECONDS)

    def end_waiting_workers(self):
        """When a server is gone, torch restarts without it as soon as a worker fails. A worker that waits for that server may
        hang until a timeout of half an hour instead, so it is stopped if it was started before the server left the launch."""
        left, patience = self.left()
        if left is not None and self.began < left <= time.time() - patience:
            with self.lock:
                workers = list(self.workers)
            for worker in workers:
                worker.end()

    def left(self):
        """When a server last left the launch (its supervisor writes NAME BY to `left`), and how long workers are given; None:
        never."""
        path = os.path.join(self.job, "left")
        try:
            with open(path) as file:
                lost = " lost:" in file.read()
            # if a server was lost, they have already had the time until that was detected
            return os.stat(path).st_mtime, 0 if lost else LEFT_SECONDS
        except OSError:
            return None, 0

    def finish(self):
        """Copies all remaining output, including an incomplete last line, before the agent's own last lines."""
        with self.lock:
            self.copy_the_rest()

    def copy_the_rest(self):
        for stream in self.streams:
            for _ in range(4096):
                if not stream.copy():
                    break
            stream.copy(last=True)

    def forget(self, attempt, local_rank):
        """Forgets the failures of an earlier attempt. Torch increases its count only if a worker of this agent has failed. If the
        workers restart because of another agent, the only sign is a local rank that starts a second time."""
        same = attempt == self.attempt and local_rank not in self.here
        first = self.attempt is None
        self.here = self.here | {local_rank} if same else {local_rank}
        if same:
            return
        own_failure = not first and attempt[0] != self.attempt[0]
        self.attempt = attempt
        if first:
            return  # under Slurm, all agents share the folder, and another one may have started before
        self.restarts += 1
        with self.lock:
            self.began = time.time()
            line = self.tell_restart(self.restarts, self.first_failure() if own_failure else "")
            self.workers = []
            self.copy_the_rest()  # because the new workers write to the same files
            for stream in self.streams:
                stream.file.close()
                if stream.target == 2:
                    append(stream.path, line)
            self.streams = []
        folder = os.path.join(self.job, "failures")
        try:
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
        except OSError:
            pass

    def first_failure(self):
        """The reason why the workers restart: " after rank 3: signal 9", or an empty text if the failure was on another server."""
        try:
            with open(os.path.join(self.job, "failures", "agent"), encoding="ascii", errors="replace") as file:
                rank, kind, code = file.readline().split()[:3]
            return " after rank %d: %s %d" % (int(rank), "signal" if kind == "signal" else "exit", int(code))
        except (OSError, ValueError):
            return ""

    def tell_restart(self, number, why):
        """Prints a line for the timeline of `remote report`, because torch itself prints nothing by default. Returns the line,
        which also divides a worker's output (agent/launch)."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.began)) + ".%03dZ" % (self.began % 1 * 1000)
        line = ("remote: the workers begin anew (restart %s) at %s%s\n" % (number, at, why)).encode()
        try:
            os.write(2, line)
        except OSError:
            pass
        return line

    def ended(self, rank, code, when):
        if code == 0:
            return
        kind, number = ("signal", -code) if code < 0 else ("exit", code)
        folder = os.path.join(self.job, "failures")
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            node = os.environ.get("SLURMD_NODENAME")
            line = "%d %s %d %d torchrun%s\n" % (rank, kind, number, when * 1000, "@" + node if node else "")
            file = os.open(os.path.join(folder, "agent"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)
        except OSError:
            pass

    def take_the_blame(self):
        """The agent itself has failed, so a worker that it stopped with TERM because of that is not the failure."""
        path = os.path.join(self.job, "failures", "agent")
        if "SLURMD_NODENAME" in os.environ:
            return  # all agents write to it
        try:
            with open(path) as file:
                others = [line for line in file if line.split()[1:3] != ["signal", "15"]]
            with open(path + ".part", "w") as file:
                file.writelines(others)
            os.replace(path + ".part", path)
        except OSError:
            pass


def watch_workers(agent):
    plain = subprocess.Popen

    class Popen(plain):
        worker = None

        def __init__(self, *arguments, **options):
            env = options.get("env") or {}
            rank = str(env.get("RANK", ""))
            if not rank.isdigit() or "LOCAL_RANK" not in env or "RANK" in os.environ:
                super().__init__(*arguments, **options)
                return
            agent.forget((env.get("TORCHELASTIC_RESTART_COUNT"), env.get("GROUP_WORLD_SIZE")), env["LOCAL_RANK"])
            streams = (None, None)
            if options.get("stdout") is None and options.get("stderr") is None:
                streams = agent.output_of(int(rank))
            if streams[0] is not None:
                options["stdout"], options["stderr"] = streams[0].sink, streams[1].sink
            try:
                super().__init__(*arguments, **options)
            finally:
                for stream in streams:
                    if stream is not None:
                        stream.close_sink()
            self.worker = int(rank)
            self.once = threading.Lock()
            with agent.lock:
                agent.workers.append(self)
            threading.Thread(target=self.await_end, daemon=True).start()

        def await_end(self):
            try:
                info = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            except OSError:
                return  # poll() was faster
            if info is not None:
                self.note(info.si_status if info.si_code == os.CLD_EXITED else -info.si_status)

        def end(self):
            if self.returncode is None:
                try:
                    self.send_signal(signal.SIGKILL)
                except OSError:
                    pass

        def poll(self):
            code = super().poll()
            if code is not None and self.worker is not None:
                self.note(code)
            return code

        def note(self, code):
            when = time.time()
            if self.once.acquire(False):
                agent.ended(self.worker, code, when)

    subprocess.Popen = Popen


def finish_first(agent):
    plain = sys.excepthook

    def hook(kind, value, trace):
        agent.finish()
        if kind.__name__ not in ("ChildFailedError", "SignalException"):
            agent.take_the_blame()
        plain(kind, value, trace)

    sys.excepthook = hook


def leave_when_failed(module):
    """An agent whose workers have failed for good exits immediately, so that its end is known and the ranks on other servers are
    stopped. Before 2.0, torch waits up to 300 seconds for the other agents, whose workers may never end."""
    wait = module.SimpleElasticAgent._exit_barrier

    def barrier(self):
        if self._worker_group.state != module.WorkerState.FAILED:
            wait(self)

    module.SimpleElasticAgent._exit_barrier = barrier


def old_arguments(arguments):
    """Converts the arguments of torch.distributed.run to those of torch.distributed.launch in torch 1.8 and older."""
    taken = ["--use_env"]
    while arguments:
        word = arguments[0]
        name, _, value = word.partition("=")
        if word in ("-r", "-t"):
            arguments = arguments[2:]
            continue
        if not word.startswith("-"):
            break
        if name == "--rdzv_backend" or (name == "--max_restarts" and value != "0"):
            sys.exit("remote: this torch is older than 1.9: it has neither c10d rendezvous nor restarts")
        if name not in ("--monitor_interval", "--rdzv_id", "--max_restarts"):
            taken.append(word)
        arguments = arguments[1:]
    return taken + arguments


class OldTorch:
    """The last of all finders. It provides torch.distributed.run if torch has none."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name != "torch.distributed.run":
            return None
        import importlib.util

        script = os.path.join(self.folder, "old_launch.py")
        with open(script, "w") as file:
            file.write(OLD_LAUNCH)
        return importlib.util.spec_from_file_location(name, script)


def start(folder, words, after_import):
    """folder: the folder of this file. words: the command line. after_import(NAME, FUNCTION) calls FUNCTION with the module."""
    values = {}
    for word in words:
        name, _, value = word.partition("=")
        values.setdefault(name, value)  # later options may belong to the program
    agent = Agent(os.path.dirname(folder))
    watch_workers(agent)
    finish_first(agent)
    # Otherwise torch leaves a new folder in /tmp every time.
    os.environ.setdefault("PET_LOG_DIR", os.path.join(os.path.dirname(folder), "torch"))
    sys.meta_path.append(OldTorch(folder))
    after_import("torch.distributed.elastic.agent.server.api", leave_when_failed)
    key = os.environ.pop("REMOTE_RENDEZVOUS_KEY", "")  # the workers do not need it
    if values.get("--rdzv_backend") == "remote_c10d":
        import remote_torch_rendezvous

        remote_torch_rendezvous.meet(values["--rdzv_endpoint"], key, agent, after_import)
