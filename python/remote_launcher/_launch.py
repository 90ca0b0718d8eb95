"""Jobs and launches: follow, wait, stop."""

import html
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from ._errors import RemoteError
from ._stream import Event, Stream, async_events

if TYPE_CHECKING:
    from ._project import Project

_ENDED = ("succeeded", "failed", "killed", "lost")
_FROM_THE_START = "1000000000"


@dataclass(frozen=True)
class Line:
    """A line of a job's output.

    Attributes:
        rank: the rank, or None if the job is not a rank of the launch.
        server: the server's name.
        stream: ``"out"`` or ``"err"``.
        text: without its newline; invalid UTF-8 is replaced by U+FFFD.
        job: the job's key.
        ranks: with ``fold``, all ranks that wrote this line; ``rank`` is the first.
    """

    rank: Optional[int]
    server: str
    stream: str
    text: str
    job: Optional[int] = None
    ranks: Tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """A job, with its state when the servers were last queried: a rank of a launch, or a single command.

    ``state`` is one of queued, starting, running, succeeded, failed, killed, lost, unknown. ``rank`` is the first rank
    if the job runs several. ``fields`` has everything that ``remote job-list --json`` prints.
    """

    key: int
    id: str
    server: str
    state: str
    command: str
    rank: Optional[int]
    pid: Optional[int]
    exit_code: Optional[int]
    signal: Optional[str]
    reason: str
    tags: Tuple[str, ...]
    fields: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in _ENDED

    @staticmethod
    def of(fields: Mapping[str, Any]) -> "Job":
        """Makes a job from the program's JSON."""
        return Job(
            key=int(fields["key"]),
            id=str(fields["id"]),
            server=str(fields["server"]),
            state=str(fields["state"]),
            command=str(fields.get("command") or ""),
            rank=fields.get("rank"),
            pid=fields.get("pid"),
            exit_code=fields.get("exit_code"),
            signal=fields.get("signal"),
            reason=str(fields.get("reason") or ""),
            tags=tuple(fields.get("tags") or ()),
            fields=dict(fields),
        )


@dataclass(frozen=True)
class Attempt:
    """A failed attempt of a launch with restarts. Another attempt followed it.

    Attributes:
        number: counts from 1.
        began_at, failed_at, next_at: when it began, when the first server learned of the failure, and when the next
            attempt began: ``"2026-11-21T07:30:00Z"``.
        cause: ``"exit"``, ``"signal"``, ``"oom"``, ``"lost"``, ``"hang"`` or ``"lifeline"``.
        rank: the rank that failed, or None if a server was lost.
        server: its server, or the lost one.
        exit_code, signal: how the rank ended.
        left_out: whether later attempts skipped the server, because it had failed like this twice.
    """

    number: int
    began_at: str
    failed_at: str
    next_at: str
    cause: str
    rank: Optional[int]
    server: str
    exit_code: Optional[int]
    signal: Optional[str]
    left_out: bool

    @staticmethod
    def of(fields: Mapping[str, Any]) -> "Attempt":
        """Makes an attempt from the program's JSON."""
        return Attempt(
            number=int(fields["number"]),
            began_at=str(fields["began_at"]),
            failed_at=str(fields["failed_at"]),
            next_at=str(fields["next_at"]),
            cause=str(fields["cause"]),
            rank=fields.get("rank"),
            server=str(fields["server"]),
            exit_code=fields.get("exit_code"),
            signal=fields.get("signal"),
            left_out=bool(fields.get("left_out")),
        )


def _exit_codes(jobs: Iterable[Job], first: Optional[Job]) -> Dict[int, Optional[int]]:
    codes: Dict[int, Optional[int]] = {}
    for job in jobs:
        ranks = int(job.fields.get("ranks") or 1)
        for number in range(ranks):
            # the exit code of a job says nothing about each of its ranks, unless all succeeded
            code = job.exit_code if ranks == 1 or job.state == "succeeded" else None
            codes[job.key if job.rank is None else job.rank + number] = code
    if first is not None and first.rank is not None and int(first.fields.get("ranks") or 1) == 1:
        codes[first.rank] = first.exit_code
    return codes


@dataclass(frozen=True)
class Verdict:
    """The result of a launch.

    Attributes:
        ok: whether it succeeded. An elastic launch that continued without some servers (``left``) counts as a success.
        first_failed: the first job that failed on its own, or None.
        traceback: the last lines of its stderr.
        exit_codes: in the order of the ranks: by rank, or by key for a job without a rank. None if a signal
            ended it or this rank's own exit code is unknown.
        total, succeeded: counts of ranks.
        lost_server: the server whose loss stopped the others, or None.
        left: the servers that an elastic launch continued without.
        hung_s: if the launch was stopped because it hung, for how many seconds it had hung. Otherwise None.
        attempts: for a launch with restarts, the failed attempts before the last one, in order.
        jobs: the jobs in their final state.
    """

    ok: bool
    first_failed: Optional[Job]
    traceback: str
    exit_codes: Dict[int, Optional[int]]
    total: int
    succeeded: int
    lost_server: Optional[str]
    left: Tuple[str, ...]
    jobs: Tuple[Job, ...]
    hung_s: Optional[int] = None
    attempts: Tuple[Attempt, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Thread:
    """A thread's Python stack, innermost call first: ``"forward (model.py:12)"``."""

    name: str
    frames: Tuple[str, ...]


@dataclass(frozen=True)
class StackMember:
    """A process of a job. ``reason`` explains why it has no stack."""

    job: int
    server: str
    pid: int
    rank: Optional[int]
    reason: str = ""


@dataclass(frozen=True)
class StackGroup:
    """Processes that are at the same place in the code."""

    members: Tuple[StackMember, ...]
    threads: Tuple[Thread, ...]


@dataclass(frozen=True)
class Stacks:
    """Where the ranks are in the code: equal stacks are grouped, the outlier comes first. ``without``: processes with
    no stack."""

    groups: Tuple[StackGroup, ...]
    without: Tuple[StackMember, ...]


@dataclass(frozen=True)
class WhyRank:
    """The activity of a rank between two samples. ``cpu``: processors used; ``cpu_wait``: processors waited for."""

    job: int
    server: str
    pid: int
    rank: Optional[int]
    moved: bool
    cpu: float
    cpu_wait: float
    throttled: float
    silent_s: Optional[int]


@dataclass(frozen=True)
class WhyGroup:
    """Ranks that do the same thing at the same place. ``odd``: the others wait for these ranks, or these ranks
    differ."""

    ranks: Tuple[WhyRank, ...]
    odd: bool
    doing: str
    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Why:
    """Why a launch hangs or is slow. ``kind`` is ``moving``, ``slow``, ``held_up``, ``ended``, ``mismatch``, ``link``,
    ``same_place``, ``standing`` or ``unknown``; ``text`` is the verdict, ``next`` the suggested command."""

    kind: str
    factor: Optional[float]
    seconds: float
    text: Tuple[str, ...]
    next: str
    groups: Tuple[WhyGroup, ...]
    links: Tuple[Tuple[str, str], ...]
    full_disks: Tuple[Tuple[str, str], ...]


def _why_group(fields: Mapping[str, Any]) -> WhyGroup:
    names = ("job", "server", "pid", "rank", "moved", "cpu", "cpu_wait", "throttled", "silent_s")
    ranks = tuple(WhyRank(*(one[name] for name in names)) for one in fields["ranks"])
    return WhyGroup(ranks, fields["odd"], fields["doing"], fields["function"], fields["file"], fields["line"])


def _member(fields: Mapping[str, Any]) -> StackMember:
    return StackMember(
        int(fields["job"]), str(fields["server"]), int(fields["pid"]), fields.get("rank"), str(fields.get("reason") or "")
    )


class Output:
    """The output lines of a launch as they arrive, until all of its jobs have ended. Works with ``for`` and ``async for``.

    Reconnects if a connection is lost, without losing or repeating a line. Leaving the loop, or Ctrl-C, stops following
    but not the jobs. Use it as a context manager if you leave the loop early::

        with run.follow() as lines:
            for line in lines: ...
    """

    def __init__(self, launch: "Launch", words: Sequence[str]) -> None:
        self._launch = launch
        self._words = list(words)
        self._stream: Optional[Stream] = None

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops following."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __iter__(self) -> Iterator[Line]:
        project = self._launch.project
        self.close()
        self._stream = Stream(project.binary, project.folder, self._words)
        try:
            for event in self._stream:
                line = self._launch._take(event)
                if line is not None:
                    yield line
            _raise_first(self._stream.errors)
        finally:
            self.close()

    async def __aiter__(self) -> AsyncIterator[Line]:
        project = self._launch.project
        events = async_events(project.binary, project.folder, self._words)
        errors = []
        try:
            async for event in events:
                if event["event"] == "error":
                    errors.append(RemoteError.of_event(event))
                line = self._launch._take(event)
                if line is not None:
                    yield line
            _raise_first(errors)
        finally:
            await events.aclose()  # type: ignore[attr-defined]


def _raise_first(errors: Sequence[RemoteError]) -> None:
    if errors:
        raise errors[0]


class Launch:
    """The ranks of a launch, or a single job.

    Attributes:
        project: its project.
        jobs: the last known state; :meth:`refresh` queries the servers.
    """

    def __init__(self, project: "Project", jobs: Sequence[Job]) -> None:
        if not jobs:
            raise ValueError("a launch has jobs")
        self.project = project
        self.jobs: List[Job] = list(jobs)
        self._verdict: Optional[Event] = None

    @property
    def key(self) -> int:
        """The key of its first job, which identifies it to the program."""
        return self.jobs[0].key

    @property
    def id(self) -> str:
        """The id of the launch, or of the job if it is a single job."""
        return str(self.jobs[0].fields.get("launch") or self.jobs[0].id)

    @property
    def ended(self) -> bool:
        """Whether all of its jobs had ended when the servers were last queried."""
        return all(job.ended for job in self.jobs)

    @property
    def _is_launch(self) -> bool:
        return bool(self.jobs[0].fields.get("launch"))

    def _selection(self) -> List[str]:
        if self._is_launch:
            return ["--launch", str(self.key)]
        return [word for job in self.jobs for word in ("--job", str(job.key))]

    def __repr__(self) -> str:
        states = ", ".join(sorted({job.state for job in self.jobs}))
        return f"<Launch {self.key}: {len(self.jobs)} jobs, {states}>"

    def _repr_html_(self) -> str:
        """An HTML table for notebooks."""
        cells = ("key", "rank", "server", "state", "exit_code")
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape('' if v is None else str(v))}</td>" for v in values) + "</tr>"
            for values in ([getattr(job, cell) for cell in cells] for job in self.jobs)
        )
        head = "".join(f"<th>{cell.replace('_', ' ')}</th>" for cell in cells)
        return f"<table><caption>{html.escape(self.jobs[0].command)}</caption><tr>{head}</tr>{rows}</table>"

    def _take(self, event: Event) -> Optional[Line]:
        """Handles an event; returns its line, if it is one."""
        name = event["event"]
        if name == "output":
            ranks = tuple(event.get("ranks", ()))
            return Line(event["rank"], event["server"], event["stream"], event["text"], event.get("job"), ranks)
        if name == "ended":
            ended = Job.of(event["job"])
            self.jobs = [ended if job.id == ended.id else job for job in self.jobs]
        elif name == "verdict":
            self._verdict = event
        return None

    def follow(
        self,
        rank: Union[int, Iterable[int], None] = None,
        lines: Optional[int] = None,
        follow: bool = True,
        grep: Optional[str] = None,
        fold: bool = False,
        since: Union[float, str, None] = None,
    ) -> Output:
        """The output of all ranks, or of some, line by line as it arrives.

        Args:
            rank: only this rank, or these ranks.
            lines: start this many lines before the end; None: start at the first line.
            follow: False stops at the end of the existing output.
            grep: only lines that match this POSIX extended regular expression.
            fold: return a line that several ranks write at about the same time once, with its ``ranks``.
            since: start with output from this many seconds ago; also an age or a day, such as "10m" or "2026-11-21".
        """
        words = ["job-tail", *self._selection()]
        if since is not None:
            words += ["--since", since if isinstance(since, str) else "%ds" % math.ceil(since)]
        if lines is not None or since is None:
            words += ["--lines", _FROM_THE_START if lines is None else str(lines)]
        if rank is not None:
            words += ["--rank", str(rank) if isinstance(rank, int) else ",".join(map(str, rank))]
        elif self._is_launch:
            words += ["--all"]
        if not follow:
            words += ["--no-follow"]
        if grep is not None:
            words += ["--grep", grep]
        if fold:
            words += ["--fold"]
        return Output(self, words)

    def refresh(self) -> "Launch":
        """Queries the servers for the state of its jobs; returns itself."""
        words = ["job-list", "--launch", str(self.key)] if self._is_launch else ["job-list", "--stopped", "--hidden"]
        answer = self.project.call(*words).check()
        known = {job.id: job for job in map(Job.of, answer.value or [])}
        self.jobs = [known.get(job.id, job) for job in self.jobs]
        return self

    def wait(self, timeout: Optional[float] = None) -> Verdict:
        """Waits until all jobs have ended.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            TimeoutError: it has not ended in time; the jobs keep running.
            RemoteError: a server stopped answering.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._verdict = None
        with Stream(self.project.binary, self.project.folder, ["job-wait", *self._selection()]) as stream:
            try:
                for event in stream.events(deadline):
                    self._take(event)
            except TimeoutError:
                raise TimeoutError(f"{self!r} has not ended after {timeout} s") from None
            _raise_first(stream.errors)
        return self._judged()

    def _judged(self) -> Verdict:
        found: Event = self._verdict or {}
        failed = [job for job in self.jobs if job.state != "succeeded"]
        first = Job.of(found["first"]) if found.get("first") else None
        last_lines = list(found.get("last_lines") or ())
        if not found and failed and failed[0].state == "failed":  # a single job has no verdict
            first = failed[0]
            last_lines = [line.text for line in self.follow(lines=20, follow=False) if line.stream == "err"]
        left = tuple(found.get("left") or ())
        return Verdict(
            ok=not failed or bool(left),
            first_failed=first,
            traceback="\n".join(last_lines),
            exit_codes=_exit_codes(self.jobs, first),
            total=int(found.get("total", len(self.jobs))),
            succeeded=int(found.get("succeeded", len(self.jobs) - len(failed))),
            lost_server=found.get("lost_server"),
            left=left,
            jobs=tuple(self.jobs),
            hung_s=found.get("hung_s"),
            attempts=tuple(Attempt.of(one) for one in found.get("attempts") or ()),
        )

    def kill(self, grace: int = 10) -> None:
        """Stops all running jobs and checks that no process is left.

        Args:
            grace: seconds between SIGTERM and SIGKILL.

        Raises:
            RemoteError: a server did not answer, or processes are still running.
        """
        answer = self.project.call("job-kill", *self._selection(), "--grace", str(grace), "--yes").check()
        left = [entry for entry in answer.value or [] if not entry["ended"]]
        if left:
            raise RemoteError("not all of it was ended", left[0]["server"], "; ".join(left[0]["survivors"]))
        self.refresh()

    def stacks(self) -> Stacks:
        """The Python stacks of all running ranks."""
        answer = self.project.call("job-stacks", *self._selection()).check()
        value = answer.value or {"groups": [], "without": []}
        return Stacks(
            tuple(
                StackGroup(
                    tuple(_member(one) for one in group["members"]),
                    tuple(Thread(one["name"], tuple(one["frames"])) for one in group["threads"]),
                )
                for group in value["groups"]
            ),
            tuple(_member(one) for one in value["without"]),
        )

    def why(self, between: int = 5) -> Why:
        """Finds out why it hangs or is slow, from two samples of all ranks.

        Args:
            between: seconds between the samples.

        Raises:
            RemoteError: a server did not answer, so there is not enough data.
        """
        value = self.project.call("job-why", *self._selection(), "--between", str(between)).check().value
        return Why(
            value["kind"],
            value["factor"],
            value["seconds"],
            tuple(value["text"]),
            value["next"],
            tuple(_why_group(group) for group in value["groups"]),
            tuple((one["server"], one["to"]) for one in value["links"]),
            tuple((one["server"], one["full_disk"]) for one in value["servers"] if one["full_disk"]),
        )

    def pull(self, *paths: str, to: Union[str, Path] = ".", job: Optional[Job] = None) -> None:
        """Copies files that it wrote to this machine.

        Args:
            paths: relative to the project on the server; may be patterns.
            to: the folder on this machine.
            job: copy from this job's server; default: the first job.
        """
        key = str((job or self.jobs[0]).key)
        words = ["job-pull", "--job", key, "--to", str(Path(to).absolute()), *paths]
        self.project.call(*words).check()
