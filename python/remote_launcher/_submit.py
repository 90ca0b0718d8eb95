"""A function on the servers: sends it with its arguments, and brings back what rank 0 returns."""

import base64
import importlib
import inspect
import json
import os
import pickle
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

#: In the project's folder, here and on the servers. A name of our own: nothing else is written or removed.
_FOLDER = ".remote_submit"

# What runs on the servers. It is sent with each function, so the package is not needed there.
_WORKER = '''\
import base64, importlib, json, os, pickle, runpy, sys, types

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(here))
task = json.load(open(os.path.join(here, sys.argv[1] + ".json")))
if task["kind"] == "module":
    function = importlib.import_module(task["module"])
    for part in task["name"].split("."):
        function = getattr(function, part)
elif task["kind"] == "script":
    try:
        import remote_launcher
    except ImportError:  # the script imports it, and what it calls of it does not run here
        sys.modules["remote_launcher"] = types.ModuleType("remote_launcher")
        sys.modules["remote_launcher"].__getattr__ = lambda name: None
    names = runpy.run_path(os.path.join(os.path.dirname(here), task["path"]), run_name="__remote_main__")
    sys.modules["__main__"].__dict__.update({k: v for k, v in names.items() if k not in ("__name__", "__file__")})
    function = names[task["name"]]
elif task["kind"] == "source":
    names = sys.modules["__main__"].__dict__
    exec(compile(task["source"], "<notebook>", "exec"), names)
    function = names[task["name"]]
else:
    try:
        import cloudpickle
    except ImportError:
        sys.exit(task["name"] + " was sent by cloudpickle, which the servers do not have: add it to requirements.txt, "
                 + "or define the function at the top of a module of the project")
    function = pickle.loads(base64.b64decode(task["function"]))
args, kwargs = pickle.loads(base64.b64decode(task["arguments"]))
value = function(*args, **kwargs)
if int(os.environ.get("RANK", "0")) == 0:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError) as error:
        sys.exit("the value that " + task["name"] + " returned cannot come back as JSON: " + str(error)
                 + " (return numbers, text, lists or dictionaries; write a file and pull it for all else)")
    part = os.path.join(here, sys.argv[1] + ".part")
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, os.path.join(here, sys.argv[1] + ".value"))
'''


class Submitted:
    """A function that runs on the servers.

    Attributes:
        launch: its ranks, for following and ending.
    """

    def __init__(self, launch: Launch, token: str) -> None:
        self.launch = launch
        self._token = token
        self._value: Optional[List[Any]] = None

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the end and returns what rank 0 returned.

        Raises:
            TimeoutError: it has not ended after ``timeout`` seconds; it goes on.
            RemoteError: it failed; the hint has the end of its traceback.
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
            return json.loads(found[0].read_text("utf-8"))


def _remove(project: "Project", servers: Sequence[str], token: str) -> None:
    """Removes what was sent; a server that is gone keeps it, and that hides no other error."""
    try:
        project.run(f"rm -f {_FOLDER}/{token}.*", servers=servers)
    except RemoteError:
        pass


def _failure(verdict: Verdict) -> RemoteError:
    first = verdict.first_failed
    if first is None:
        return RemoteError("the function did not succeed", verdict.lost_server, "its ranks were ended or lost")
    how = f"signal {first.signal}" if first.signal else f"exit code {first.exit_code}"
    return RemoteError("the function failed", first.server, f"{how}\n{verdict.traceback}".strip())


def _encoded(value: Any, what: str) -> str:
    try:
        return base64.b64encode(pickle.dumps(value)).decode("ascii")
    except Exception as error:
        raise RemoteError(f"cannot send {what}", reason=f"it cannot be pickled: {error}", usage=True) from error


def _describe(project: "Project", function: Callable[..., Any]) -> Dict[str, str]:
    """How the worker finds the function."""
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None)
    if not callable(function) or not name or not module:
        raise RemoteError("cannot send this", reason=f"{function!r} is no function", usage=True)
    plain = "<" not in name  # no lambda, and not defined in a function
    if module != "__main__" and plain:
        return {"kind": "module", "module": module, "name": name}
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if plain and module == "__main__" and script is not None:
        path = Path(script).resolve()
        if project.folder.resolve() in path.parents:
            return {"kind": "script", "path": str(path.relative_to(project.folder.resolve())), "name": name}
    try:
        pickled: bytes = importlib.import_module("cloudpickle").dumps(function)
        return {"kind": "pickle", "name": name, "function": base64.b64encode(pickled).decode("ascii")}
    except ImportError:
        pass
    if plain and getattr(function, "__closure__", None) is None:
        try:
            return {"kind": "source", "name": name, "source": textwrap.dedent(inspect.getsource(function))}
        except (OSError, TypeError):
            pass
    raise RemoteError(
        f"cannot send {name}",
        reason="it is a lambda or lives in another function, or has no source",
        hint="define it at the top of a module of the project, or install cloudpickle here and on the servers",
        usage=True,
    )


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
    task = _describe(project, function)
    task["arguments"] = _encoded((args, kwargs), f"the arguments of {task['name']}")
    chosen = _chosen(project, servers)
    token = uuid.uuid4().hex
    folder = project.folder / _FOLDER
    folder.mkdir(exist_ok=True)
    files = [folder / f"{token}.json", folder / f"{token}.py"]
    try:
        descriptor = os.open(files[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            json.dump(task, file)
        files[1].write_text(_WORKER)
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
            pass  # another submit is on its way
    return Submitted(launch, token)
