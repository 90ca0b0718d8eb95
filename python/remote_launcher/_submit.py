"""Runs a function on the servers: sends it with its arguments, and returns the result of rank 0."""

import base64
import functools
import importlib
import inspect
import json
import os
import pickle
import pickletools
import sys
import tempfile
import textwrap
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ._errors import RemoteError
from ._launch import Launch, Verdict

if TYPE_CHECKING:
    from ._project import Project

# In the project's folder, here and on the servers. The name is reserved for this: no other path is written or removed.
_FOLDER = ".remote_submit"

# Runs on the servers. It is sent with each function, so the package is not needed there. First it gives __main__ the
# names that the pickle refers to, then it reads the call: the function and its arguments are a single pickle.
_WORKER = '''\
import base64, json, os, pickle, runpy, sys, types

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))
task = json.load(open(os.path.join(here, sys.argv[1] + ".json")))
names = sys.modules["__main__"].__dict__
if "path" in task:
    try:
        import remote_launcher
    except ImportError:  # the script imports it, and what it calls of it does not run here
        sys.modules["remote_launcher"] = types.ModuleType("remote_launcher")
        sys.modules["remote_launcher"].__getattr__ = lambda name: None
    found = runpy.run_path(os.path.join(os.path.dirname(here), task["path"]), run_name="__remote_main__")
    for name, value in found.items():
        if name not in ("__name__", "__file__"):
            if getattr(value, "__module__", None) == "__remote_main__":
                try:
                    value.__module__ = "__main__"
                except (AttributeError, TypeError):
                    pass
            names[name] = value
elif "source" in task:
    exec(compile(task["source"], "<notebook>", "exec"), names)
try:
    function, args, kwargs = pickle.loads(base64.b64decode(task["call"]))
except ImportError as error:
    if (error.name or "").partition(".")[0] != "cloudpickle":
        raise
    sys.exit(task["name"] + " was sent by cloudpickle, which the servers do not have: add it to requirements.txt, "
             + "or define the function at the top of a module of the project")
value = function(*args, **kwargs)
if int(os.environ.get("RANK", "0")) == 0:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError) as error:
        sys.exit("the value that " + task["name"] + " returned cannot come back as JSON: " + str(error)
                 + " (return numbers, text, lists or dictionaries; write a file and pull it for all else)")
    part = os.path.join(here, sys.argv[1] + ".part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    os.replace(part, os.path.join(here, sys.argv[1] + ".value"))
'''


class Submitted:
    """A function that runs on the servers.

    Attributes:
        launch: its ranks, for following and stopping them.
        servers: the names of the servers that run it, in rank order.
        world_size: how many ranks run it.
    """

    def __init__(self, launch: Launch, token: str, name: str, nproc: int) -> None:
        self.launch = launch
        self.servers: Tuple[str, ...] = tuple(dict.fromkeys(job.server for job in launch.jobs))
        self.world_size: int = nproc * len(self.servers)
        self._name = name
        self._token = token
        self._value: Optional[List[Any]] = None

    def __repr__(self) -> str:
        ranks = "1 rank" if self.world_size == 1 else f"{self.world_size} ranks"
        return f"<Submitted {self._name}: {ranks} on {', '.join(self.servers)}, launch {self.launch.key}>"

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits until it ends and returns the result of rank 0.

        Raises:
            TimeoutError: it has not ended after ``timeout`` seconds; it keeps running.
            RemoteError: it failed; the hint has the last lines of its traceback.
        """
        if self._value is None:
            verdict = self.launch.wait(timeout)
            try:
                if not verdict:
                    raise _failure(verdict)
                self._value = [self._bring()]
            finally:
                _remove(self.launch.project, sorted({job.server for job in self.launch.jobs}), self._token)
        return self._value[0]

    def _bring(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            self.launch.pull(f"{_FOLDER}/{self._token}.value", to=folder)
            found = list(Path(folder).rglob(f"{self._token}.value"))
            if not found:
                raise RemoteError("the function returned no value", self.launch.jobs[0].server)
            try:
                return json.loads(found[0].read_text("utf-8"))
            except (ValueError, RecursionError) as error:  # a hostile server may send anything
                raise RemoteError("the value is not understood", self.launch.jobs[0].server, str(error)) from error


def _remove(project: "Project", servers: Sequence[str], token: str) -> None:
    """Removes the files that were sent. If a server is unreachable, the files stay there, without hiding any other
    error."""
    try:
        project.run(f"rm -f {_FOLDER}/{token}.*", servers=servers)
    except RemoteError:
        pass


def _failure(verdict: Verdict) -> RemoteError:
    first = verdict.first_failed
    if verdict.hung_s is not None:
        return RemoteError("the function hung", None, f"its ranks were stopped after hanging for {verdict.hung_s} s")
    if first is None:
        return RemoteError("the function did not succeed", verdict.lost_server, "its ranks were ended or lost")
    how = f"signal {first.signal}" if first.signal else f"exit code {first.exit_code}"
    return RemoteError("the function failed", first.server, f"{how}\n{verdict.traceback}".strip())


def _cannot(name: str, reason: str, hint: str = "") -> RemoteError:
    return RemoteError(f"cannot send {name}", reason=reason, hint=hint, usage=True)


def _names_main(pickled: bytes) -> bool:
    """Whether the pickle refers to names in __main__."""
    return any(
        argument == "__main__" or (isinstance(argument, str) and argument.startswith("__main__ "))
        for _, argument, _ in pickletools.genops(pickled)
    )


def _name(function: Callable[..., Any]) -> str:
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__qualname__", type(inner).__qualname__))


def _task(project: "Project", function: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, str]:
    """The input of the worker: the call and the definitions of the names in __main__ that it refers to.

    The call is a single pickle, so that an object that occurs twice in it, such as the ``self`` of a bound method,
    stays one object.
    """
    if not callable(function):
        raise _cannot("this", f"{function!r} is not a function")
    name = _name(function)
    task = {"name": name}
    call = (function, args, kwargs)
    problem = ""
    try:
        pickled = pickle.dumps(call, protocol=4)
    except Exception as error:  # any exception of the object counts
        problem = f"it cannot be pickled: {error}"
    else:
        task["call"] = base64.b64encode(pickled).decode("ascii")
        if not _names_main(pickled):
            return task
        script = Path(getattr(sys.modules.get("__main__"), "__file__", None) or os.devnull).resolve()
        top = project.folder.resolve()
        if script.is_file() and top in script.parents:  # no file: a notebook, or Python reading from stdin
            return {**task, "path": str(script.relative_to(top))}
    try:
        whole: bytes = importlib.import_module("cloudpickle").dumps(call)
        return {**task, "call": base64.b64encode(whole).decode("ascii")}
    except ImportError:
        pass
    except Exception as error:
        raise _cannot(name, f"it cannot be pickled: {error}") from error
    # Without cloudpickle, a plain function in a notebook is sent as source code; its arguments must not need the
    # notebook.
    if not problem and inspect.isfunction(function) and function.__closure__ is None:
        try:
            rest = pickle.dumps((args, kwargs), protocol=4)
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            problem = "it has no source"
        else:
            if not _names_main(rest):
                return {**task, "source": source}
            problem = "its arguments are of a class that this notebook or script defines"
    hint = "define it at the top of a module of the project, or install cloudpickle here and on the servers"
    raise _cannot(name, problem or "it belongs to an object that this notebook or script defines", hint)


def _chosen(project: "Project", servers: Union[int, str, Sequence[str]]) -> Sequence[str]:
    if not isinstance(servers, int):
        return [servers] if isinstance(servers, str) else servers
    names = [one.name for one in project.servers(ask=False)]
    if not 1 <= servers <= len(names):
        raise RemoteError(f"{servers} servers are asked for", reason=f"there are {len(names)}", usage=True)
    return names[:servers]


def submit(
    project: "Project",
    function: Callable[..., Any],
    args: Tuple[Any, ...],
    kwargs: Dict[str, Any],
    servers: Union[int, str, Sequence[str]],
    nproc: int,
) -> Submitted:
    """See :meth:`Project.submit`."""
    task = _task(project, function, args, kwargs)
    chosen = _chosen(project, servers)
    token = uuid.uuid4().hex
    folder = project.folder / _FOLDER
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            raise RemoteError(f"cannot use {folder}", reason="it is not a folder", hint="remove it", usage=True) from None
    files = [folder / f"{token}.json", folder / f"{token}.py"]
    try:
        for path, text in zip(files, (json.dumps(task), _WORKER)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
        try:
            launch = project.launch(
                f"{_FOLDER}/{token}.py {token}", nproc=nproc, servers=chosen, tags=["submit", task["name"]], rsync=True
            )
        except BaseException:
            _remove(project, chosen, token)
            raise
    finally:
        for path in files:
            if path.exists():
                path.unlink()
        try:
            folder.rmdir()
        except OSError:
            pass  # another submit is running
    return Submitted(launch, token, task["name"], nproc)
