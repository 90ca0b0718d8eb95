"""labml_remote's servers: ``SERVERS[name]``; iterating gives the names in the order of configs.yaml."""

from types import SimpleNamespace
from typing import Any, Dict, Iterator, Mapping, Optional

from remote_launcher import RemoteError

from ._project import project
from .configs import Configs, ServerConfig


class Server:
    """A server of the project."""

    def __init__(self, server_id: str) -> None:
        configs = Configs.get()
        if server_id not in configs.servers:
            raise KeyError(server_id)
        self.conf: ServerConfig = configs.servers[server_id]
        self.project_name: str = configs.name

    def setup(self, **_: Any) -> None:
        """Makes the Python environment."""
        project()._prepared(project().call("setup", "--server", self.conf.name), None)

    def rsync(self, **_: Any) -> None:
        """Sends the project."""
        project().rsync(self.conf.name)

    def rsync_jobs(self, **_: Any) -> None:
        """Brings the jobs' output into .remote/jobs."""
        project().call("job-rsync", "--server", self.conf.name).check()

    def update_packages(self, **_: Any) -> None:
        """Installs what requirements.txt or Pipfile ask for."""
        project()._prepared(project().call("update-packages", "--server", self.conf.name), None)

    def shell(self, command: str) -> SimpleNamespace:
        """Runs a command; its ``exit_code``, ``out`` and ``err``."""
        result = project().run(command, self.conf.name)[0]
        code = result.exit_code if result.exit_code is not None else 1
        return SimpleNamespace(exit_code=code, out=result.stdout, err=result.stderr)

    def command(self, command: str, env_vars: Optional[Mapping[str, str]] = None, **_: Any) -> SimpleNamespace:
        """Runs a command in the project's environment and prints what it prints. Raises when it fails."""
        result = project().run(command, self.conf.name, env_vars)[0]
        print(result.stdout, end="")
        if not result.ok:
            raise RemoteError("Failed to run command", self.conf.name, result.stderr.strip())
        return SimpleNamespace(exit_code=0, out=result.stdout, err=result.stderr)


class ServerCollection:
    """All servers, by their names."""

    def __init__(self) -> None:
        self._servers: Dict[str, Server] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(Configs.get().servers))

    def __len__(self) -> int:
        return len(Configs.get().servers)

    def __getitem__(self, server_id: str) -> Server:
        server_id = str(server_id)
        if server_id not in self._servers:
            self._servers[server_id] = Server(server_id)
        return self._servers[server_id]


SERVERS = ServerCollection()
