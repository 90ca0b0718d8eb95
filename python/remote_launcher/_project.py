"""A project: its servers and the jobs it starts on them."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import RemoteError
from ._launch import Job, Launch
from ._stream import Answer, Stream, call, find_binary
from ._submit import Submitted, submit

Names = Union[str, Sequence[str], None]


@dataclass(frozen=True)
class Server:
    """A server. ``reachable``, ``gpus`` and ``error`` are None if it was not contacted."""

    name: str
    reachable: Optional[bool]
    gpus: Optional[int]
    error: Optional[str]
    settings: Mapping[str, str] = field(repr=False)

    @property
    def hostname(self) -> str:
        """The address or name that this machine connects to."""
        return self.settings.get("host", "")


@dataclass(frozen=True)
class Prepared:
    """What :meth:`Project.prepare` did on a server. ``fields`` has everything that ``remote prepare --json`` prints."""

    server: str
    changed: Tuple[str, ...]
    notes: Tuple[str, ...]
    fields: Mapping[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class CommandResult:
    """How a command ended on a server: with an exit code or by a signal."""

    server: str
    exit_code: Optional[int]
    signal: Optional[str]
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it exited with status 0."""
        return self.exit_code == 0


def _list(names: Names) -> List[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _servers(names: Names) -> List[str]:
    return [word for name in _list(names) for word in ("--server", name)]


def _env(env: Optional[Mapping[str, object]]) -> List[str]:
    return [word for name, value in (env or {}).items() for word in ("--env", name, str(value))]


def _tags(tags: Names) -> List[str]:
    return [word for tag in _list(tags) for word in ("--tag", tag)]


def _lease(gpus: Optional[int], cpus: Optional[int], memory: Optional[str], wait: Optional[bool]) -> List[str]:
    words = [] if gpus is None else ["--gpus", str(gpus)]
    words += [] if cpus is None else ["--cpus", str(cpus)]
    words += [] if memory is None else ["--memory", memory]
    return words + ([] if wait is None else ["--wait" if wait else "--no-wait"])


class Project:
    """A folder with ``.remote/configs.yaml``.

    Args:
        folder: where the search starts; parent folders are searched, too.
        binary: the program; default: $REMOTE_BINARY, beside the package, or on PATH.

    Raises:
        RemoteError: there is no such folder or no such program.
    """

    def __init__(self, folder: Union[str, Path] = ".", binary: Optional[str] = None) -> None:
        self.binary = find_binary(binary)
        start = Path(folder).absolute()
        found = next((one for one in (start, *start.parents) if (one / ".remote" / "configs.yaml").exists()), None)
        if found is None:
            raise RemoteError(
                f"{start} is in no project",
                reason="there is no .remote/configs.yaml in it or above it",
                hint="run `remote init` in the project's folder",
                usage=True,
            )
        self.folder = found

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: no resource stays open between calls."""

    def __repr__(self) -> str:
        return f"Project({str(self.folder)!r})"

    def call(self, *words: str) -> Answer:
        """Runs any command of the program until it ends: ``p.call("job-clean", "--older", "7", "--yes").check()``."""
        return call(self.binary, self.folder, words)

    def servers(self, names: Names = None, ask: bool = True) -> List[Server]:
        """The servers, in the order of configs.yaml.

        Args:
            names: only these (names or globs).
            ask: connect to them; False returns only the configuration.
        """
        answer = self.call("servers", *([] if ask else ["--verbose"]), *_servers(names))
        if answer.value is None:
            answer.check()
        return [
            Server(
                one["server"],
                one["reachable"],
                one["gpus"],
                one["error"],
                {setting["name"]: setting["value"] for setting in one["settings"]},
            )
            for one in answer.value or []
        ]

    def prepare(
        self,
        servers: Names = None,
        force: bool = False,
        on_progress: Optional[Callable[[Mapping[str, Any]], None]] = None,
    ) -> List[Prepared]:
        """Creates the Python environment, sends the project and installs its packages, on all servers in parallel.

        Args:
            servers: names or globs; None: all.
            force: set up and install even if this is already done.
            on_progress: is called with the events of each step (docs/jsonl.md of the program), after all have arrived.

        Raises:
            RemoteError: it failed on a server; the others are still prepared.
        """
        answer = self.call("prepare", "--yes", *(["--force"] if force else []), *_servers(servers))
        return self._prepared(answer, on_progress)

    @contextmanager
    def forward(self, server: str, *ports: Union[int, str]) -> Iterator[List[int]]:
        """Opens ports of a server on 127.0.0.1 until the context exits: ``with p.forward("gpu1", 6006) as (port,): ...``

        Args:
            server: its name, or ``rank:3``.
            ports: as ``remote forward`` takes them: 6006, "8080:80", "9000:node7:9000".

        Raises:
            RemoteError: the server is unreachable, or a port is invalid.
        """
        with Stream(self.binary, self.folder, ["forward", server, *map(str, ports)]) as stream:
            for event in stream:
                if event["event"] == "result":
                    yield [one["local_port"] for one in event["value"]]
                    return
            raise stream.errors[0]

    def login(self, servers: Names = None, open_for: Optional[str] = None) -> List[Mapping[str, Any]]:
        """Opens a login that later calls use.

        Returns the same as ``remote login --json``: ``server``, ``was_open``, ``until`` (Unix time).

        Args:
            servers: names or globs; None: all.
            open_for: how long it stays open after the last command: "30m", "8h"; default: 8 hours.

        Raises:
            RemoteError: a server asks a question (``remote login`` on a terminal answers it), or is unreachable; the
                others are still open.
        """
        answer = self.call("login", *(["--for", open_for] if open_for else []), *_servers(servers))
        return list(answer.check().value or [])

    def logout(self, servers: Names = None) -> List[str]:
        """Closes the logins that :meth:`login` opened; returns the servers."""
        return list(self.call("logout", *_servers(servers)).check().value or [])

    def rsync(self, servers: Names = None) -> List[Prepared]:
        """Sends the project."""
        return self._prepared(self.call("rsync", "--yes", *_servers(servers)), None)

    @staticmethod
    def _prepared(answer: Answer, on_progress: Optional[Callable[[Mapping[str, Any]], None]]) -> List[Prepared]:
        if on_progress is not None:
            for event in answer.events:
                on_progress(event)
        for event in answer.named("server_failed"):
            raise RemoteError.of_event(event)
        answer.check()
        return [
            Prepared(
                one["server"], tuple(one.get("rsync", {}).get("changed", ())), tuple(one.get("notes", ())), dict(one)
            )
            for one in answer.value or []
            if one["ok"]
        ]

    def run(
        self, command: str, servers: Names = None, env: Optional[Mapping[str, object]] = None
    ) -> List[CommandResult]:
        """Runs a shell command line on the servers and waits for it. The command does not outlive this call.

        Raises:
            RemoteError: a server could not run it. A failed command raises nothing.
        """
        answer = self.call("run", *_servers(servers), *_env(env), "--cmd", command)
        for one in answer.value or []:
            if one["error"]:
                break
        else:
            if answer.value is not None:
                text: Dict[Tuple[str, str], List[str]] = {}
                for line in answer.named("output"):
                    text.setdefault((line["server"], line["stream"]), []).append(line["text"] + "\n")
                return [
                    CommandResult(
                        one["server"],
                        one["exit_code"],
                        one["signal"],
                        "".join(text.get((one["server"], "out"), ())),
                        "".join(text.get((one["server"], "err"), ())),
                    )
                    for one in answer.value
                ]
        answer.check()
        raise RemoteError("the command was not run", hint="see `remote servers`")

    def launch(
        self,
        command: Optional[str] = None,
        nproc: Union[int, str, None] = None,
        servers: Names = None,
        env: Optional[Mapping[str, object]] = None,
        launcher: Optional[str] = None,
        tags: Names = None,
        rsync: bool = False,
        python: bool = True,
        image: Optional[str] = None,
        options: Sequence[str] = (),
        name: Optional[str] = None,
        note: Optional[str] = None,
        launch: Optional[str] = None,
        frozen: Optional[bool] = None,
        hang_after: Optional[float] = None,
        on_hang: Optional[str] = None,
        gpus: Optional[int] = None,
        cpus: Optional[int] = None,
        memory: Optional[str] = None,
        wait: Optional[bool] = None,
    ) -> Launch:
        """Starts the ranks of a distributed run, which keeps running without this program.

        Args:
            command: a shell command line, run in the project's folder; default: as in configs.yaml.
            nproc: ranks per server; "auto": one per GPU, or one per core without GPUs. Default: auto; with ``launch``: as in configs.yaml.
            servers: names or globs; None: all.
            env: variables of all ranks.
            launcher: ranks, torchrun or mpi; default: as in configs.yaml, or ranks.
            tags: for finding the launch later.
            rsync: send the project first.
            python: False if the command is not Python (`remote launch`).
            image: run in a container of this image.
            options: more options of `remote torch-launch`.
            name: name of its record (:meth:`record`).
            note: a note in its record.
            launch: one of ``launches`` in configs.yaml (:meth:`launches`); other arguments override it.
            frozen: run in a copy of the code that later syncs do not change; default: as in configs.yaml.
            hang_after: minutes without output or work from any rank until the launch counts as hung; 0: never. Default: as in configs.yaml.
            on_hang: what to do then: leave, kill or restart; default: as in configs.yaml, or leave.
            gpus: free GPUs to reserve for the ranks on each server.
            cpus: cores to reserve.
            memory: memory to reserve, such as "64G".
            wait: queue until these are free; the jobs are ``queued`` until then.

        Raises:
            RemoteError: not all ranks started; those that did are stopped.
        """
        words = ["torch-launch" if python else "launch", *([launch] if launch else []), "--no-follow"]
        if nproc is not None or not launch:
            words += ["--nproc-per-node", "auto" if nproc is None else str(nproc)]
        words += [*_servers(servers), *_env(env), *_tags(tags)]
        words += ["--launcher", launcher] if launcher else []
        words += ["--rsync"] if rsync else []
        words += ["--image", image] if image else []
        words += ["--name", name] if name else []
        words += ["--note", note] if note else []
        words += [] if frozen is None else ["--frozen" if frozen else "--no-frozen"]
        words += [] if hang_after is None else ["--hang-after", str(hang_after)]
        words += ["--on-hang", on_hang] if on_hang else []
        words += _lease(gpus, cpus, memory, wait)
        words += [*options, *(["--cmd", command] if command is not None else [])]
        answer = self.call(*words)
        answer.check()
        return Launch(self, [Job.of(one) for one in answer.named("launched")[0]["jobs"]])

    def sweep(
        self,
        command: Union[str, Sequence[str]],
        parameters: Mapping[str, Sequence[object]],
        servers: Names = None,
        env: Optional[Mapping[str, object]] = None,
        tags: Names = None,
        retry: int = 0,
        options: Sequence[str] = (),
    ) -> Launch:
        """Starts a sweep: one job per combination of the values. The servers run them one after another.

        Args:
            command: a list of arguments or a shell command line; ``{name}`` is replaced by a value.
            parameters: the values of each parameter, by name; values must not contain a comma.
            servers: names or globs; None: all.
            env: variables of all points.
            tags: for finding the sweep later.
            retry: how many times a failed point is run again.
            options: more options of `remote sweep`, such as ``["--gpus", "1"]``.

        Raises:
            RemoteError: nothing was started.
        """
        words = ["sweep", "--retry", str(retry), *_servers(servers), *_env(env), *_tags(tags)]
        for name, values in parameters.items():
            words += ["--param", "%s=%s" % (name, ",".join(str(value) for value in values))]
        words += [*options, *(["--cmd", command] if isinstance(command, str) else ["--", *command])]
        return self._swept(self.call(*words))

    def resume_sweep(self, launch: Union[int, str] = "last", again: Sequence[str] = ()) -> Launch:
        """Runs the missing points of a sweep. ``again``: also "failed" or "unknown" points (see docs/sweep.md)."""
        return self._swept(self.call("sweep", "--resume", str(launch), *(word for state in again for word in ("--again", state))))

    def _swept(self, answer: Answer) -> Launch:
        answer.check()
        return Launch(self, [Job.of(one) for one in answer.value["points"]])

    def sweep_results(self, launch: Union[int, str] = "last", best: Optional[str] = None) -> Mapping[str, Any]:
        """The points of a sweep, as `remote sweep --results --json` prints them. ``best``: "min:loss", "max:acc"."""
        answer = self.call("sweep", "--results", str(launch), *(["--best", best] if best else []))
        answer.check()
        results: Mapping[str, Any] = answer.value
        return results

    def job(
        self,
        command: str,
        server: Optional[str] = None,
        env: Optional[Mapping[str, object]] = None,
        tags: Names = None,
        rsync: bool = False,
        options: Sequence[str] = (),
        gpus: Optional[int] = None,
        cpus: Optional[int] = None,
        memory: Optional[str] = None,
        wait: Optional[bool] = None,
    ) -> Launch:
        """Starts a command on one server as a job that outlives the connection.

        Args:
            server: a name; None: the only server.
            gpus: as in :meth:`launch`, like ``cpus``, ``memory`` and ``wait``.

        Raises:
            RemoteError: it was not started.
        """
        if server is None:
            names = [one.name for one in self.servers(ask=False)]
            if len(names) != 1:
                raise RemoteError("which server?", reason=f"there are {', '.join(names) or 'none'}", usage=True)
            server = names[0]
        words = ["job-run", "--server", server, *_env(env), *_tags(tags), *(["--rsync"] if rsync else [])]
        words += _lease(gpus, cpus, memory, wait)
        answer = self.call(*words, *options, "--cmd", command).check()
        value = answer.value if isinstance(answer.value, list) else [answer.value]
        return Launch(self, [Job.of(one) for one in value])

    def jobs(self, ended: bool = False) -> List[Job]:
        """The unfinished jobs, with their current state from the servers; with ``ended``, all jobs."""
        answer = self.call("job-list", *(["--stopped"] if ended else [])).check()
        return [Job.of(one) for one in answer.value or []]

    def get(self, key: int) -> Launch:
        """The launch or job with this key.

        Raises:
            RemoteError: there is none.
        """
        jobs = [Job.of(one) for one in self.call("job-list", "--stopped", "--hidden").check().value or []]
        found = next((job for job in jobs if job.key == key), None)
        if found is None:
            raise RemoteError(f"there is no job {key}", hint="Project.jobs(ended=True) has all of them", usage=True)
        launch = found.fields.get("launch")
        return Launch(self, [job for job in jobs if launch and job.fields.get("launch") == launch] or [found])

    def launches(self) -> List[str]:
        """The names of ``launches`` in configs.yaml, in the order of the file."""
        return list(self.call("__complete", "launches").check().value or [])

    def history(
        self, tags: Names = None, failed: bool = False, since: Optional[str] = None, sort: Optional[str] = None
    ) -> List[Mapping[str, Any]]:
        """The launches on record, newest first, as ``remote history --json`` prints them, including launches whose jobs are gone.

        Args:
            tags: launches with all of these.
            failed: only failed launches.
            since: "7d", "12h", "2026-11-21".
            sort: name of a number that the ranks printed, lowest first.
        """
        words = [*_tags(tags), *(["--failed"] if failed else [])]
        words += ["--since", since] if since else []
        words += ["--sort", sort] if sort else []
        return list(self.call("history", *words).check().value or [])

    def record(self, launch: Union[int, str] = "last") -> Mapping[str, Any]:
        """Everything on record about a launch, as ``remote show --json`` prints it. Takes a key of its jobs, its name, or "last".

        Raises:
            RemoteError: there is no such launch.
        """
        return dict(self.call("show", str(launch)).check().value or {})

    def note(self, launch: Union[int, str], text: str) -> None:
        """Replaces the note of a launch."""
        self.call("note", str(launch), "--", text).check()

    def pull(self, launch: Union[int, str] = "last") -> Mapping[str, Any]:
        """Copies the outputs of a launch to results/KEY.

        Returns the same as ``remote pull --json``: ``to``, ``files``, ``incomplete`` and more.

        Raises:
            RemoteError: there is no such launch, configs.yaml has no ``outputs``, or a server did not answer.
        """
        return dict(self.call("pull", str(launch)).check().value or {})

    def try_notify(self) -> Mapping[str, Any]:
        """Sends a test notification from the first server, to the recipient in ``notify`` of configs.yaml.

        Returns ``server``, whether it was ``sent``, and the ``answer``.
        """
        return dict(self.call("notify", "--test").check().value or {})

    def rerun(
        self,
        launch: Union[int, str] = "last",
        words: Sequence[str] = (),
        env: Optional[Mapping[str, object]] = None,
        servers: Names = None,
        command: Optional[str] = None,
        code: Optional[str] = None,
        anyway: bool = False,
        name: Optional[str] = None,
        note: Optional[str] = None,
    ) -> Launch:
        """Starts a launch on record again, with the code it had.

        Args:
            launch: a key of its jobs, its name, or "last".
            words: more arguments for its command.
            env: more variables; they override its own.
            servers: instead of its own.
            command: instead of its own.
            code: "then" fails if its code is gone, "now" uses the current code.
            anyway: start it even if it cannot run as before.
            name: default: its own.

        Raises:
            RemoteError: it cannot run as before, and nothing was started; or not all ranks started.
        """
        options = ["rerun", str(launch), "--no-follow", *_servers(servers), *_env(env)]
        options += ["--cmd", command] if command else []
        options += ["--code", code] if code else []
        options += ["--yes"] if anyway else []
        options += ["--name", name] if name else []
        options += ["--note", note] if note else []
        answer = self.call(*options, *(["--", *words] if words else []))
        answer.check()
        return Launch(self, [Job.of(one) for one in answer.named("launched")[0]["jobs"]])

    def diff(self, launch: Union[int, str], other: Union[int, str] = "now") -> Mapping[str, Any]:
        """The differences between two launches, or a launch and the current code, as ``remote diff --json`` prints
        them."""
        return dict(self.call("diff", str(launch), str(other)).check().value or {})

    def compare(self, launches: Sequence[Union[int, str]] = (), tags: Names = None, out: Optional[str] = None) -> Mapping[str, Any]:
        """Writes a ``remote report`` page about several launches, and returns its data: curves and differences.

        Args:
            launches: keys or names.
            tags: all launches with these tags.
            out: the file of the page; default: a file in .remote/reports.
        """
        words = [word for one in launches for word in ("--launch", str(one))]
        words += [*_tags(tags), *(["--out", out] if out else [])]
        return dict(self.call("report", *words).check().value or {})

    def submit(
        self, function: Callable[..., Any], *args: Any, servers: Union[int, str, Sequence[str]] = 1, nproc: int = 1, **kwargs: Any
    ) -> Submitted:
        """Runs a function on the servers, as the ranks of a launch, and returns the result of rank 0.

        Args:
            function: a function, bound method or ``functools.partial`` from a module in the project, from the script that
                runs, or from a notebook. It is pickled with its arguments; objects defined in a notebook or
                in another function need cloudpickle here and on the servers.
            servers: a count (the first ones are used), or names or globs.
            nproc: ranks per server.

        The value of rank 0 comes back as JSON, not as a pickle, so that no server can make this machine run
        anything: numbers, text, booleans, None, lists, tuples (as lists) and dictionaries with text as keys.
        """
        return submit(self, function, args, kwargs, servers, nproc)


