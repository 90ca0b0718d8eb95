"""Runs ``remote --jsonl`` and reads its events (docs/jsonl.md of the program)."""

import asyncio
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any, AsyncIterator, Dict, Iterator, List, Optional, Sequence

from ._errors import RemoteError

Event = Dict[str, Any]

# The stream version that this package reads.
STREAM_VERSION = 1


def find_binary(given: Optional[str] = None) -> str:
    """Finds the program: ``given``, $REMOTE_BINARY, beside the package, or on PATH."""
    for name, path in (("binary", given), ("REMOTE_BINARY", os.environ.get("REMOTE_BINARY"))):
        if path:
            found = shutil.which(os.path.expanduser(path))
            if found is None:
                raise RemoteError(f"cannot run {path}", reason=f"{name} names no program", usage=True)
            return os.path.abspath(found)
    beside = Path(__file__).resolve().parent / "bin" / "remote"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("remote")
    if found is None:
        raise RemoteError(
            "the program remote was not found",
            reason="it is not beside the package and not on PATH",
            hint="install it, or name it with REMOTE_BINARY",
            usage=True,
        )
    return os.path.abspath(found)


class Reader:
    """Parses the lines of a stream and checks that the stream is complete."""

    def __init__(self) -> None:
        self.begun = False
        self.exit_code: Optional[int] = None
        self.errors: List[RemoteError] = []

    def event(self, line: bytes) -> Event:
        try:
            event = json.loads(line.decode("utf-8"))
            name = event["event"]
        except (ValueError, KeyError, TypeError) as error:
            raise RemoteError(
                "remote does not support --jsonl", reason=repr(line[:200]), hint="is it another program of that name?"
            ) from error
        if not self.begun:
            if name != "begin" or event.get("version") != STREAM_VERSION:
                raise RemoteError(
                    "remote and this package do not match",
                    reason=f"its stream is of version {event.get('version')}, this package reads {STREAM_VERSION}",
                    hint="install the same version of both",
                    usage=True,
                )
            self.begun = True
        if name == "error":
            self.errors.append(RemoteError.of_event(event))
        elif name == "end":
            self.exit_code = int(event["exit_code"])
        assert isinstance(event, dict)
        return event

    def finish(self, code: int, stderr: str) -> None:
        """Called at the end of the stream."""
        if self.exit_code is None:
            last = stderr.strip().splitlines()[-1:]
            raise RemoteError(
                "remote ended early",
                reason=f"exit status {code}" + (f": {last[0]}" if last else ""),
                hint="is it older than this package? check with `remote --version`" if not self.begun else None,
            )


def _command(binary: str, folder: Path, words: Sequence[str]) -> List[str]:
    # --jsonl goes first, because everything after "--" is the user's command.
    return [binary, "--jsonl", "--project", str(folder), *words]


class Stream:
    """The events of one run of the program. A context manager: leaving it stops the program.

    The program's stdin is not a terminal, so it asks no questions.
    """

    def __init__(self, binary: str, folder: Path, words: Sequence[str]) -> None:
        self._reader = Reader()
        self._rest = b""
        self._stderr: IO[bytes] = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                _command(binary, folder, words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        except OSError as error:
            self._stderr.close()
            raise RemoteError(f"cannot run {binary}", reason=error.strerror or str(error), usage=True) from error

    @property
    def errors(self) -> List[RemoteError]:
        return self._reader.errors

    @property
    def exit_code(self) -> Optional[int]:
        return self._reader.exit_code

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def events(self, deadline: Optional[float] = None) -> Iterator[Event]:
        """The events. Raises TimeoutError if time.monotonic() reaches ``deadline`` before the next one."""
        source = self.fileno()
        while True:
            if deadline is not None:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([source], [], [], left)[0]:
                    raise TimeoutError
            events = self.read()
            if events is None:
                break
            yield from events
        self.finish()

    def fileno(self) -> int:
        """A file descriptor that is readable when there are new events."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def read(self) -> Optional[List[Event]]:
        """Returns the events that are complete, or None at the end of the stream. Blocks if there is nothing to
        read."""
        piece = os.read(self.fileno(), 1 << 16)
        if not piece:
            return None
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [self._reader.event(line) for line in lines]

    def finish(self) -> None:
        """Called at the end of the stream. Raises RemoteError if the stream is incomplete."""
        code = self._process.wait()
        self._stderr.seek(0)
        self._reader.finish(code, self._stderr.read().decode("utf-8", "replace"))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the program. This does not stop any job."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._stderr.close()


async def async_events(binary: str, folder: Path, words: Sequence[str]) -> AsyncIterator[Event]:
    """Yields the events for ``async for``. Avoids asyncio's own subprocesses, because these may start a thread."""
    loop = asyncio.get_running_loop()
    with Stream(binary, folder, words) as stream:
        while True:
            ready: "asyncio.Future[None]" = loop.create_future()
            loop.add_reader(stream.fileno(), lambda: None if ready.done() else ready.set_result(None))
            try:
                await ready
            finally:
                loop.remove_reader(stream.fileno())
            events = stream.read()
            if events is None:
                break
            for event in events:
                yield event
        stream.finish()


def call(binary: str, folder: Path, words: Sequence[str]) -> "Answer":
    """Runs a command until it ends and collects its events."""
    answer = Answer()
    with Stream(binary, folder, words) as stream:
        for event in stream:
            answer.events.append(event)
            if event["event"] == "result":
                answer.value = event["value"]
        answer.errors = stream.errors
        answer.exit_code = stream.exit_code or 0
    return answer


class Answer:
    """The output of a command."""

    def __init__(self) -> None:
        self.events: List[Event] = []
        self.value: Any = None
        self.errors: List[RemoteError] = []
        self.exit_code = 0

    def __repr__(self) -> str:
        return f"Answer(exit_code={self.exit_code}, value={self.value!r}, events={len(self.events)}, errors={len(self.errors)})"

    def check(self) -> "Answer":
        """Raises the first error if the command failed."""
        if self.exit_code != 0 and self.errors:
            raise self.errors[0]
        if self.exit_code != 0 and self.value is None:
            raise RemoteError(f"remote ended with exit code {self.exit_code}")
        return self

    def named(self, name: str) -> List[Event]:
        return [event for event in self.events if event["event"] == name]
