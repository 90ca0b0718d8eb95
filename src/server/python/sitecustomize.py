"""Code for a job's Python processes: makes their stacks readable, lets torch work without libuv, and records the failures of
torchrun's workers. Python imports it automatically.

On signal 50, a real-time signal that no known program uses, faulthandler writes the stacks of all threads to the file `stacks` in
the job's folder, even while the main thread hangs in C code.

Since torch 2.4, a TCPStore requests libuv, and fails if torch was built without it (as Debian's). USE_LIBUV=0 has no effect on
torchrun's own stores, so the store itself is changed to work without it. While a TCPStore waits for rank 0 to listen, any signal
makes it fail, even the one that requests the stacks; it is changed to try again.

Only the agent knows how torchrun's workers ended, and even the agent does not know the exception unless the program uses a
decorator of torch. An uncaught exception of a worker is written to the folder `failures` in the job's folder and, in the format
that the agent reads, to the file that it has named for that purpose. The agent itself imports remote_torch_agent.py, if it is in
the same folder as this file.

Since torch 2.5, NCCL's process group records its last collectives, and dumps them when `remote job-why` asks (flight.py).

breakpoint() waits for `remote attach` (remote_debugger.py, in the same folder as this file) instead of reading a stdin that does
not exist.

Under mpirun, a rank that raised an exception, or exited by SystemExit with a failure, hangs in MPI_Finalize, which waits for the
others. It has ten seconds to exit on its own.

Nothing else changes: another sitecustomize that Python would have found without this one is loaded afterwards.
"""


def _enable(folder):
    import _signal
    import faulthandler
    import os

    job = os.path.dirname(folder)
    file = os.open(os.path.join(job, "stacks"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    _signal.signal(50, _signal.SIG_IGN)  # faulthandler restores this action when Python exits, so that a late request kills nothing
    faulthandler.register(50, file=file, all_threads=True)


def _record_failures(folder):
    import os
    import sys

    job = os.path.dirname(folder)
    rank = os.environ.get("RANK", "")
    # of torchrun's variables, this is one that the launcher ranks does not set
    if "TORCHELASTIC_RESTART_COUNT" not in os.environ or not rank.isdigit():
        return
    with open("/proc/%d/environ" % os.getppid(), "rb") as file:
        if b"\0TORCHELASTIC_RESTART_COUNT=" in b"\0" + file.read():
            return  # a program started by a worker
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
        # not a thread, because MPI is finalized after Python has shut down
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)

    def hook(kind, value, trace):
        plain(kind, value, trace)
        try:
            leave_soon(1)
        except Exception:
            pass

    # The interpreter itself, below all frames, reads `code` of a SystemExit only when it ends the program.
    fields = gc.get_referents(SystemExit.__dict__)[0]
    member = fields["code"]  # SystemExit.code would be recorded as it is

    def code_of(error):
        code = member.__get__(error)
        if sys._getframe().f_back is None and threading.current_thread() is threading.main_thread():
            status = code & 255 if isinstance(code, int) else int(code is not None)
            if status:
                leave_soon(status)
        return code

    def leave(status=None):
        raise SystemExit(status)  # before Python 3.12, the original does not create an object with a `code`

    sys.excepthook = hook
    sys.exit = leave
    fields["code"] = property(code_of, member.__set__)


def _wait_for_attach(folder):
    """breakpoint() and, with --pdb-on-error, an uncaught exception wait for `remote attach` (remote_debugger.py)."""
    import os
    import sys

    job = os.path.dirname(folder)
    if os.path.exists(os.path.join(job, "slurm")) or os.path.exists(os.path.join(job, "batch.sh")):
        return  # attach cannot reach Slurm's nodes

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

    sys.breakpointhook = at_breakpoint  # Python 3.6 does not have it
    _after_import("pdb", teach)
    _wait_after_error(os.path.join(job, "raised"), lambda kind, trace: debugger().post_mortem(job, kind, trace))


def _wait_after_error(noted, wait):
    import os
    import sys

    if os.environ.get("REMOTE_PDB_ON_ERROR") != "1":
        return
    # only the first Python of each rank, because failures of programs that it starts may be expected
    rank = os.environ.get("RANK", "-")
    if os.environ.get("REMOTE_PDB_RANK") == rank:
        return
    os.environ["REMOTE_PDB_RANK"] = rank
    try:
        os.unlink(noted)  # from a previous attempt
    except OSError:
        pass
    plain = sys.excepthook

    def hook(kind, value, trace):
        plain(kind, value, trace)
        agents = kind.__module__.startswith("torch.distributed.elastic")  # a worker has failed, and has already waited
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
    """Calls teach(module) after that module was imported."""
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
                pass  # a different version, for which this is not supported

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
    """Enables PyTorch's flight recorder for `remote job-why` (flight.py), if torch has it and the user has not configured it."""
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
        if numbers >= (2, 9):  # it warns about the older names
            size, dump = names
        flight = os.path.join(job, "flight")
        os.makedirs(flight, 0o700, exist_ok=True)
        probe = os.path.join(flight, ".%d" % os.getpid())
        os.mkfifo(probe, 0o600)  # torch fails if it cannot create a pipe
        os.unlink(probe)
        os.environ.update({size: "2000", dump: os.path.join(flight, "rank."), pipe: os.path.join(flight, "pipe.")})

    _after_import("torch.version", teach)


def _import_from_tree(folder):
    """In the tree of a frozen launch, imports editable packages from the tree instead of the project's folder."""
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
        if name.startswith("__editable__"):  # created by setuptools
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
            pass  # optional features must not make a program fail
    _chain(folder)


_main()
