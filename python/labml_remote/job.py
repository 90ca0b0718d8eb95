"""labml_remote's jobs: ``JOBS.create(server, command, variables, tags).start()``."""

import dataclasses
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Set

from remote_launcher import Job as Known
from remote_launcher import Launch

from ._project import project
from .configs import Configs
from .server import SERVERS, Server

_FINAL = ("succeeded", "failed", "killed", "lost")


class Job:
    """A job. Its attributes are as they were known last; ``JOBS.update()`` asks the servers."""

    def __init__(
        self, *, server: Server, command: str, env_vars: Mapping[str, str], tags: Iterable[str], job_key: str
    ) -> None:
        self.server = server
        self.command = command
        self.env_vars: Dict[str, str] = dict(env_vars)
        self.tags: Set[str] = set(tags)
        self.job_key = job_key
        self.job_id = ""  # it has one once it is started
        self.pid: Optional[int] = None
        self.exit_code: Optional[int] = None
        self.started = False
        self.stopped = False
        self._known: Optional[Known] = None
        self._shown: Dict[str, int] = {}

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.started and not self.stopped

    @property
    def path(self) -> Path:
        """Its folder on this machine."""
        return Configs.get().project_jobs_folder / self.job_id

    def start(self) -> "Job":
        """Starts it on its server."""
        launch = project().job(self.command, self.server.conf.name, self.env_vars, sorted(self.tags))
        JOBS._forget(self)
        self._take(launch.jobs[0])
        JOBS._keep(self)
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

    def _alone(self) -> Launch:
        """This job, also where it is a rank of a launch."""
        if self._known is None:
            raise ValueError("the job was not started")
        return Launch(project(), [dataclasses.replace(self._known, fields={**self._known.fields, "launch": None})])

    def update_stopped(self) -> None:
        """Asks whether it has ended."""
        JOBS.update()

    def tail(self) -> None:
        """Prints what it wrote since the last call; the first time, the end of what there is."""
        lines = {"out": 0, "err": 0}
        first = not self._shown
        written: List[Any] = list(self._alone().follow(follow=False))
        for line in written[-10:] if first else written:
            position = lines[line.stream]
            lines[line.stream] += 1
            if first or position >= self._shown.get(line.stream, 0):
                print(line.text, file=sys.stderr if line.stream == "err" else sys.stdout)
        self._shown = {name: sum(1 for line in written if line.stream == name) for name in lines}

    def kill(self) -> None:
        """Ends it, and sees that nothing of it is left."""
        self._alone().kill()
        JOBS.update()

    def has_tags(self, tags: Iterable[str]) -> bool:
        """Whether it has all of these tags."""
        return all(tag in self.tags for tag in tags)

    def __repr__(self) -> str:
        return f"<Job {self.job_key} on {self.server.conf.name}: {self.command}>"


class JobCollection:
    """All jobs of the project, by their ids; iterating gives the ids in the order of the keys."""

    def __init__(self) -> None:
        self._jobs: Dict[str, Job] = {}
        self._new: List[Job] = []  # created and not started
        self._loaded = False

    def _load(self) -> None:
        if not self._loaded:
            self.update()

    def _keep(self, job: Job) -> None:
        self._jobs[job.job_id] = job

    def _forget(self, job: Job) -> None:
        self._new = [one for one in self._new if one is not job]

    def update(self) -> None:
        """Asks the servers how the jobs are."""
        self._loaded = True
        answer = project().call("job-list", "--stopped", "--hidden").check()
        for known in map(Known.of, answer.value or []):
            job = self._jobs.get(known.id)
            if job is None:
                try:
                    server = SERVERS[known.server]
                except KeyError:
                    continue  # the configuration has lost it
                job = Job(server=server, command=known.command, env_vars={}, tags=known.tags, job_key=str(known.key))
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
        """All jobs, by their keys."""
        self._load()
        return sorted([*self._jobs.values(), *self._new], key=lambda job: int(job.job_key))

    def filter_by_tags(self, tags: Iterable[str], jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """Those that have all of these tags."""
        tags = list(tags)
        return [job for job in (self.all() if jobs is None else jobs) if job.has_tags(tags)]

    def filter_out_by_tags(self, tags: Iterable[str], jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """The others."""
        tags = list(tags)
        return [job for job in (self.all() if jobs is None else jobs) if not job.has_tags(tags)]

    def filter_running(self, jobs: Optional[Iterable[Job]] = None) -> List[Job]:
        """Those that were started and have not ended."""
        return [job for job in (self.all() if jobs is None else jobs) if job.running]

    def by_key(self, key: str) -> Job:
        """The job with this key. Raises KeyError."""
        for job in self.all():
            if job.job_key == str(key):
                return job
        raise KeyError(key)

    def by_pid(self, pid: int) -> Job:
        """The newest job whose process had this number. Raises KeyError."""
        for job in reversed(self.all()):
            if job.pid == int(pid):
                return job
        raise KeyError(pid)

    def job_keys(self) -> List[str]:
        """All keys."""
        return [job.job_key for job in self.all()]

    def create(self, server_id: str, command: str, env_vars: Mapping[str, str], tags: Iterable[str]) -> Job:
        """A job that is not started yet. Its key is the next one, and may become another when it starts."""
        keys = [int(key) for key in self.job_keys()]
        job = Job(
            server=SERVERS[server_id],
            command=command,
            env_vars={name: str(value) for name, value in env_vars.items()},
            tags=tags,
            job_key=str(max(keys, default=0) + 1),
        )
        self._new.append(job)
        return job

    def start_status_watcher(self, check: bool = True) -> None:
        """Does nothing: the state of a job is asked from its server, which knows it without a watcher."""


JOBS = JobCollection()
