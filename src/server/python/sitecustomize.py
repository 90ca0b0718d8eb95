"""What a job's Python processes are given: their stacks can be read, torch falls back from libuv, and what ends a worker of
torchrun is on record. Python imports it by itself.

On signal 50, a real-time signal that no program is known to use, faulthandler writes the stacks of all threads to
the file `stacks` of the job's folder, also while the main thread hangs in C code.

From torch 2.4 on, a TCPStore asks for libuv, and a torch that was built without it (Debian's) refuses. USE_LIBUV=0 does
not reach torchrun's own stores, so that the store itself is taught to do without. While a TCPStore waits for rank 0 to listen, any
signal makes it fail, also the one that asks for the stacks; it is taught to try again.

Of torchrun's workers only the agent knows how they ended, and not even that knows what an exception said, unless the program
uses a decorator of torch. An uncaught exception of a worker goes into the job's folder `failures` and, in the form that the
agent reads, into the file that it has named for that. The agent itself gets remote_torch_agent.py, where that lies beside this.

From torch 2.5 on, NCCL's process group records its last collectives, and tells them when `remote job-why` asks (flight.py).

breakpoint() waits for `remote attach` (remote_debugger.py, which lies beside this) in place of reading a stdin that does not exist.

Below mpirun, a rank that raised, or left by SystemExit with a failure, hangs in MPI_Finalize, which waits for the others: it has
ten seconds to exit by itself.

Nothing else changes: another sitecustomize that Python would have found without this one is loaded after it.
"""


def _enable(folder):
    import _signal
    import faulthandler
    import os

    job = os.path.dirname(folder)
    file = os.open(os.path.join(job, "stacks"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _signal.signal(50, _signal.SIG_IGN)  # what faulthandler leaves behind when Python ends: a question that comes then ends nobody
    faulthandler.register(50, file=file, all_threads=True)


def _record_failures(folder):
    import os
    import sys

    job = os.path.dirname(folder)
    rank = os.environ.get("RANK", "")
    # of the variables of torchrun, the launcher ranks does not set this one
    if "TORCHELASTIC_RESTART_COUNT" not in os.environ or not rank.isdigit():
        return
    with open("/proc/%d/environ" % os.getppid(), "rb") as file:
        if b"\0TORCHELASTIC_RESTART_COUNT=" in b"\0" + file.read():
            return  # a program that a worker has started
    failures = os.path.join(job, "failures")

    def note(kind, value, trace):
        import json
        import time
        import traceback

        now = time.time()
        text = "".join(traceback.format_exception(kind, value, trace))
        os.makedirs(failures, 0o700, exist_ok=True)
        part = os.path.join(failures, ".rank." + rank)
        with open(part, "w", errors="backslashreplace") as file:
            file.write("%d\n%s" % (now * 1000, text))
        os.replace(part, os.path.join(failures, "rank." + rank))
        for_agent = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if for_agent and not os.path.exists(for_agent):
            more = {"py_callstack": text, "timestamp": str(int(now))}
            with open(for_agent + ".part", "w") as file:
                json.dump({"message": {"message": "%s: %s" % (kind.__name__, value), "extraInfo": more}}, file)
            os.replace(for_agent + ".part", for_agent)

    plain = sys.excepthook

    def hook(kind, value, trace):
        if issubclass(kind, Exception):
            try:
                note(kind, value, trace)
            except Exception:
                pass
        plain(kind, value, trace)

    sys.excepthook = hook


def _end_failed_mpi_rank(_):
    import gc
    import os
    import sys
    import threading

    rank = os.environ.get("RANK", "")
    if not rank.isdigit() or not ("OMPI_COMM_WORLD_RANK" in os.environ or "PMI_RANK" in os.environ):
        return
    path = os.path.join(os.environ["REMOTE_JOB_FOLDER"], "raised.rank." + rank)  # src/agent/mpi/rank.cpp reads it
    plain = sys.excepthook

    def leave_soon(code):
        import signal
        import time

        with open(path, "w") as file:
            file.write("%d %d\n" % (time.time() * 1000, code))
        # not a thread: MPI is finalized when Python has gone already
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)

    def hook(kind, value, trace):
        plain(kind, value, trace)
        try:
            leave_soon(1)
        except Exception:
            pass

    # The interpreter itself, below all frames, reads `code` of a SystemExit only when that ends the program.
    fields = gc.get_referents(SystemExit.__dict__)[0]
    member = fields["code"]  # SystemExit.code would be remembered as it is

    def code_of(error):
        code = member.__get__(error)
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            status = code & 255 if isinstance(code, int) else int(code is not None)
            if status:
                leave_soon(status)
        return code

    def leave(status=None):
        raise SystemExit(status)  # before Python 3.12, the plain one makes no object with a `code`

    sys.excepthook = hook
    sys.exit = leave
    fields["code"] = property(code_of, member.__set__)


def _wait_for_attach(folder):
    """breakpoint(), and with --pdb-on-error an exception that nobody caught, wait for `remote attach` (remote_debugger.py)."""
    import os
    import sys

    job = os.path.dirname(folder)
    if os.path.exists(os.path.join(job, "slurm")) or os.path.exists(os.path.join(job, "batch.sh")):
        return  # attach does not reach Slurm's nodes

    def debugger():
        if folder not in sys.path:
            sys.path.append(folder)
        import remote_debugger

        return remote_debugger

    def has_terminal():
        return sys.stdin is not None and sys.stdin.isatty()

    def at_breakpoint(*arguments, **options):
        if os.environ.get("PYTHONBREAKPOINT") or has_terminal():
            return sys.__breakpointhook__(*arguments, **options)
        debugger().stop_at(job, sys._getframe(1), options.get("header"))

    def teach(pdb):
        plain = pdb.set_trace

        def set_trace(*arguments, **options):
            if has_terminal():
                return plain(*arguments, **options)
            debugger().stop_at(job, sys._getframe(1), options.get("header"))

        pdb.set_trace = set_trace

    sys.breakpointhook = at_breakpoint  # Python 3.6 has none
    _after_import("pdb", teach)
    _wait_after_error(os.path.join(job, "raised"), lambda kind, trace: debugger().post_mortem(job, kind, trace))


def _wait_after_error(noted, wait):
    import os
    import sys

    if os.environ.get("REMOTE_PDB_ON_ERROR") != "1":
        return
    # of each rank the first Python alone: what that starts may fail and be expected to
    rank = os.environ.get("RANK", "-")
    if os.environ.get("REMOTE_PDB_RANK") == rank:
        return
    os.environ["REMOTE_PDB_RANK"] = rank
    try:
        os.unlink(noted)  # of an attempt before
    except OSError:
        pass
    plain = sys.excepthook

    def hook(kind, value, trace):
        plain(kind, value, trace)
        agents = kind.__module__.startswith("torch.distributed.elastic")  # a worker has failed, and waited
        if issubclass(kind, Exception) and not agents and kind.__name__ != "BdbQuit" and trace is not None:
            wait(kind, trace)

    sys.excepthook = hook


def _explain_breakpoint(_):
    import sys

    plain = sys.excepthook

    def hook(kind, value, trace):
        plain(kind, value, trace)
        if (kind.__module__, kind.__name__) == ("bdb", "BdbQuit") and "remote_debugger" not in sys.modules:
            sys.stderr.write(
                "remote: this debugger needs a terminal, and a job has none. breakpoint() waits for `remote attach`, but not under Slurm; "
                "PYTHONBREAKPOINT=0 skips it; `remote job-stacks` shows where a running rank is\n"
            )

    sys.excepthook = hook


def _go_along_with_agent(folder):
    import os

    if "RANK" in os.environ or not os.path.exists(os.path.join(folder, "remote_torch_agent.py")):
        return
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().decode(errors="surrogateescape").split("\0")
    if any(os.path.basename(word) in ("torch.distributed.run", "torchrun") for word in words[:8]):
        import remote_torch_agent

        remote_torch_agent.start(folder, words, _after_import)


def _after_import(name, teach):
    """Calls teach(module) once that module has been imported."""
    import importlib.machinery
    import sys

    class Loader:
        def __init__(self, plain):
            self._plain = plain

        def __getattr__(self, attribute):
            return getattr(self._plain, attribute)

        def exec_module(self, module):
            self._plain.exec_module(module)
            try:
                teach(module)
            except Exception:
                pass  # another version of it, which has to do without

    class Finder:
        def find_spec(self, wanted, path=None, target=None):
            if wanted != name:
                return None
            spec = importlib.machinery.PathFinder.find_spec(wanted, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)
            return spec

    sys.meta_path.insert(0, Finder())


def _teach_tcp_store(_):
    import sys

    def teach(torch_c):
        start = torch_c._c10d_init

        def start_and_teach():
            started = start()
            module = sys.modules.get("torch._C._distributed_c10d")
            plain = getattr(module, "TCPStore", None)
            if plain is not None:

                class TCPStore(plain):
                    def __init__(self, *arguments, **options):
                        while True:
                            try:
                                super().__init__(*arguments, **options)
                                return
                            except RuntimeError as error:
                                if "libuv" in str(error) and options.get("use_libuv", True):
                                    options["use_libuv"] = False
                                elif "Interrupted system call" not in str(error):
                                    raise

                module.TCPStore = TCPStore
            return started

        torch_c._c10d_init = start_and_teach

    _after_import("torch._C", teach)


def _record_flight(folder):
    """PyTorch's flight recorder for `remote job-why` (flight.py), where torch has it and the user has not set it up."""
    import os

    job = os.path.dirname(folder)
    if not os.environ.get("RANK", "").isdigit():
        return

    def teach(version):
        numbers = tuple(int(number) for number in version.__version__.split(".")[:2])
        size, dump, pipe = "TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
        names = "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"
        if numbers < (2, 5) or any(name in os.environ for name in (size, dump, pipe) + names):
            return
        if numbers >= (2, 9):  # it warns of the older names
            size, dump = names
        flight = os.path.join(job, "flight")
        os.makedirs(flight, 0o700, exist_ok=True)
        probe = os.path.join(flight, ".%d" % os.getpid())
        os.mkfifo(probe, 0o600)  # torch fails where it can make no pipe
        os.unlink(probe)
        os.environ.update({size: "2000", dump: os.path.join(flight, "rank."), pipe: os.path.join(flight, "pipe.")})

    _after_import("torch.version", teach)


def _import_from_tree(folder):
    """In the tree of a frozen launch: what is installed as editable comes from there, and not from the project's folder."""
    import os
    import sys

    tree = os.environ.get("REMOTE_TREE")
    if not tree:
        return
    project = os.environ["REMOTE_PROJECT_FOLDER"]
    homes = {project, os.path.realpath(project)}

    def moved(path):
        for home in homes:
            if isinstance(path, str) and (path == home or path.startswith(home + os.sep)):
                new = os.path.normpath(tree + path[len(home) :])
                if not path.startswith(os.path.dirname(tree)) and os.path.realpath(new).startswith(os.path.realpath(tree)):
                    return new
        return path

    sys.path[:] = [moved(entry) for entry in sys.path]
    for name, module in list(sys.modules.items()):
        if name.startswith("__editable__"):  # what setuptools makes
            for table in (getattr(module, "MAPPING", {}), getattr(module, "NAMESPACES", {})):
                for key, value in table.items():
                    table[key] = [moved(one) for one in value] if isinstance(value, list) else moved(value)


def _chain(folder):
    import importlib.machinery
    import importlib.util
    import os
    import sys

    path = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _main():
    import os

    folder = os.path.dirname(os.path.abspath(__file__))
    is_own_job = os.path.basename(os.path.dirname(folder)) == os.environ.get("REMOTE_JOB_ID")
    for part, is_of_job in (
        (_import_from_tree, False),
        (_enable, True),
        (_record_failures, True),
        (_wait_for_attach, True),
        (_end_failed_mpi_rank, False),
        (_explain_breakpoint, False),
        (_teach_tcp_store, False),
        (_record_flight, True),
        (_go_along_with_agent, True),
    ):
        if is_of_job and not is_own_job:
            continue
        try:
            part(folder)
        except Exception:
            pass  # no program fails because of what it is only offered
    _chain(folder)


_main()
