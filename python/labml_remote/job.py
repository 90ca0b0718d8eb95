"""labml_remote's jobs: ``JOBS.create(server, command, variables, tags).start()``."""

import dataclasses
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set, TextIO

from remote_launcher import Job as Known
from remote_launcher import Launch, RemoteError

from ._project import project, project_folder, read_text
from .configs import Configs
from .server import SERVERS, Server

_FINAL = ("succeeded", "failed", "killed", "lost")
_FIRST_TAIL = 400  # bytes
_RECORD = "labml_remote.json"  # in the job's folder here: what only this API records about it


class Job:
    """A job. Its attributes are the last known values; ``JOBS.update()`` queries the servers."""

    def __init__(
        self,
        *,
        job_id: str,
        job_key: str,
        server: Server,
        command: str,
        env_vars: Mapping[str, str],
        tags: Iterable[str],
        pid: Optional[int] = None,
        exit_code: Optional[int] = None,
        started: bool = False,
        stopped: bool = False,
    ) -> None:
        self.job_id = job_id
        self.job_key = job_key
        self.server = server
        self.command = command
        self.env_vars: Dict[str, str] = dict(env_vars)
        self.tags: Set[str] = set(tags)
        self.pid = pid
        self.exit_code = exit_code
        self.started = started
        self.stopped = stopped
        self.out_tail_offset = -1
        self.err_tail_offset = -1
        self._known: Optional[Known] = None

    @property
    def running(self) -> bool:
        """Whether it has started and has not ended."""
        return self.started and not self.stopped

    @property
    def path(self) -> Path:
        """Its folder on this machine."""
        folder = Configs.get().project_jobs_folder
        beside = folder.parent / "remote-jobs"  # remote keeps its records here if the labml_remote folder is in use
        return (beside if (beside / self.job_id).exists() else folder) / self.job_id

    def to_dict(self) -> Dict[str, Any]:
        """Its fields, in the form that ``from_dict`` takes."""
        return {
            "job_id": self.job_id,
            "job_key": self.job_key,
            "server": self.server.conf.name,
            "command": self.command,
            "env_vars": self.env_vars,
            "tags": sorted(self.tags),
            "pid": self.pid,
            "exit_code": self.exit_code,
            "started": self.started,
            "stopped": self.stopped,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Job":
        """Makes a job from these fields."""
        return Job(server=SERVERS[data["server"]], **{name: value for name, value in data.items() if name != "server"})

    def save(self) -> None:
        """Stores its variables for later scripts; ``remote`` stores everything else."""
        if not self.path.is_dir():
            return  # not started
        part = self.path / f"{_RECORD}.{os.getpid()}.part"
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump({"env_vars": self.env_vars}, file)
        os.replace(part, self.path / _RECORD)

    def start(self) -> "Job":
        """Starts it on its server."""
        options = ["--id", self.job_id]
        launch = project().job(self.command, self.server.conf.name, self.env_vars, sorted(self.tags), options=options)
        JOBS._forget(self)
        self._take(launch.jobs[0])
        JOBS._keep(self)
        self.save()
        print(f"Started job: {self.job_id}")
        return self

    def _take(self, known: Known) -> None:
        self._known = known
        self.job_key = str(known.key)
        self.job_id = known.id
        self.tags = set(known.tags)
        self.pid = known.pid
        self.exit_code = known.exit_code
        self.started = True
        self.stopped = known.state in _FINAL

    def _load_variables(self) -> None:
        try:
            found = json.loads(read_text(self.path / _RECORD))["env_vars"]
            self.env_vars = {str(name): str(value) for name, value in found.items()}
        except (OSError, RemoteError, ValueError, KeyError, TypeError, AttributeError):
            pass  # not started through this API

    def _alone(self) -> Launch:
        """This job, which may also be a rank of a launch."""
        if self._known is None:
            raise ValueError("the job was not started")
        return Launch(project(), [dataclasses.replace(self._known, fields={**self._known.fields, "launch": None})])

    def update_stopped(self) -> None:
        """Queries the servers to update the state of all jobs."""
        JOBS.update()

    def tail(self) -> None:
        """Prints its output since the last call, unchanged; the first time, the last 400 bytes."""
        self.server.rsync_jobs()
        self.out_tail_offset = self._tail_file("job.out", self.out_tail_offset, sys.stdout)
        self.err_tail_offset = self._tail_file("job.err", self.err_tail_offset, sys.stderr)

    def _tail_file(self, name: str, offset: int, stream: TextIO) -> int:
        try:
            with open(self.path / name, "rb") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - _FIRST_TAIL) if offset < 0 else min(offset, end))
                text = file.read()
                position = file.tell()
        except FileNotFoundError:
            return offset
        # An incomplete multibyte character at the end is held back until the rest arrives.
        cut = _incomplete_end(text)
        print(text[: len(text) - cut].decode("utf-8", "replace"), end="", file=stream, flush=True)
        return position - cut

    def kill(self) -> None:
        """Stops it and checks that none of its processes are left."""
        self._alone().kill()
        JOBS.update()

    def has_tags(self, tags: Iterable[str]) -> bool:
        """Whether it has all of these tags."""
        return all(tag in self.tags for tag in tags)

    def __repr__(self) -> str:
        return f"<Job {self.job_key} on {self.server.conf.name}: {self.command}>"


def _incomplete_end(text: bytes) -> int:
    """The number of bytes at the end that start an incomplete UTF-8 character."""
    for count in range(1, min(4, len(text) + 1)):
        byte = text[-count]
        if byte & 0xC0 == 0xC0:
            return count if count < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0


class JobCollection:
    """All jobs of the project, by job id. Iterating yields the ids in the order of their keys."""

    def __init__(self) -> None:
        self._jobs: Dict[str, Job] = {}
        self._new: List[Job] = []  # created but not started
        self._loaded = False

    def _load(self) -> None:
        if not self._loaded and project_folder() is not None:
            self.update()

    def load_all(self) -> None:
        """Reads all jobs. This also happens automatically on first use."""
        self.update()

    def load(self, job_id: str) -> None:
        """Returns a job. Raises KeyError."""
        self.update()
        if job_id not in self._jobs:
            raise KeyError(job_id)

    def _keep(self, job: Job) -> None:
        self._jobs[job.job_id] = job

    def _forget(self, job: Job) -> None:
        self._new = [one for one in self._new if one is not job]

    def update(self) -> None:
        """Queries the servers for the state of the jobs."""
        self._loaded = True
        answer = project().call("job-list", "--stopped", "--hidden").check()
        for known in map(Known.of, answer.value or []):
            job = self._jobs.get(known.id)
            if job is None:
                try:
                    server = SERVERS[known.server]
                except KeyError:
                    continue  # no longer in the configuration
                key = str(known.key)
                job = Job(
                    job_id=known.id, job_key=key, server=server, command=known.command, env_vars={}, tags=known.tags
                )
                job._load_variables()
            job._take(known)
            self._jobs[known.id] = job

    def __iter__(self) -> Iterator[str]:
        return iter([job.job_id for job in self.all() if job.started])

    def __len__(self) -> int:
        return len(self.all())

    def __getitem__(self, job_id: str) -> Job:
        self._load()
        return self._jobs[job_id]

    def all(self) -> List[Job]:
        """All jobs, in the order of their keys."""
        self._load()
        return sorted([*self._jobs.values(), *self._new], key=lambda job: int(job.job_key))

    def filter_by_tags(self, tags: Iterable[str], jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """The jobs that have all of these tags."""
        tags = list(tags)
        return [job for job in (self.all() if jobs is None else jobs) if job.has_tags(tags)]

    def filter_out_by_tags(self, tags: Iterable[str], jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """The jobs that do not have all of these tags."""
        tags = list(tags)
        return [job for job in (self.all() if jobs is None else jobs) if not job.has_tags(tags)]

    def filter_running(self, jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """The jobs that have started and have not ended."""
        return [job for job in (self.all() if jobs is None else jobs) if job.running]

    def by_key(self, key: str) -> Job:
        """The job with this key. Raises KeyError."""
        for job in self.all():
            if job.job_key == str(key):
                return job
        raise KeyError(key)

    def by_pid(self, pid: int) -> Job:
        """The newest job whose process had this id. Raises KeyError."""
        for job in reversed(self.all()):
            if job.pid == int(pid):
                return job
        raise KeyError(pid)

    def job_keys(self) -> List[str]:
        """All keys."""
        return [job.job_key for job in self.all()]

    def create(self, server_id: str, command: str, env_vars: Mapping[str, str], tags: Iterable[str]) -> Job:
        """Creates a job without starting it. It gets the next free key, which may change when it starts."""
        keys = [int(key) for key in self.job_keys()]
        job = Job(
            job_id=uuid.uuid4().hex,
            server=SERVERS[server_id],
            command=command,
            env_vars={name: str(value) for name, value in env_vars.items()},
            tags=tags,
            job_key=str(max(keys, default=0) + 1),
        )
        self._new.append(job)
        return job

    def start_status_watcher(self, check: bool = True) -> None:
        """Does nothing: no watcher is needed, because servers report the state of their jobs when asked."""


JOBS = JobCollection()
