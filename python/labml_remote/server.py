"""labml_remote's servers: ``SERVERS[name]``. Iterating yields the names in the order of configs.yaml."""

import base64
import shlex
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional

from remote_launcher import RemoteError

from . import util
from ._project import project, write_script
from .configs import Configs, ServerConfig
from .execute import UIMode
from .execute.local import LocalExecutor
from .execute.remote import EvalResult, RemoteExecutor, _execute


class Server:
    """A server of the project."""

    def __init__(self, server_id: str) -> None:
        configs = Configs.get()
        if server_id not in configs.servers:
            raise KeyError(server_id)
        self.conf: ServerConfig = configs.servers[server_id]
        self.project_name: str = configs.name
        self.scripts_folder: Path = configs.template_scripts_folder
        self.remote_exec = RemoteExecutor(self.conf.name)
        self.local_exec = LocalExecutor()
        self._home: Optional[str] = None

    @property
    def client(self) -> Any:
        """Always raises RemoteError, because ``remote`` manages the connections."""
        raise RemoteError("there is no SSH client", self.conf.name, "remote connects by itself", "use shell()")

    @property
    def home_path(self) -> str:
        """The user's home directory on the server."""
        if self._home is None:
            self._home = self.shell("pwd").out
        return self._home

    @property
    def remote_scripts_path(self) -> str:
        """The folder on the server that copy_script() copies to."""
        return f"{self._remote_project()}/{Configs.get().remote_scripts_folder_name}"

    def _remote_project(self) -> str:
        setting = project().servers(self.conf.name, ask=False)[0].settings.get("project", "")
        return self.home_path + setting[1:] if setting.startswith("~/") else setting or f"{self.home_path}/{self.project_name}"

    def setup(self, *, ui_mode: UIMode = UIMode.dots) -> None:
        """Creates the Python environment."""
        project()._prepared(project().call("setup", "--server", self.conf.name), None)

    def rsync(self, *, ui_mode: UIMode = UIMode.dots) -> None:
        """Sends the project."""
        project().rsync(self.conf.name)

    def rsync_jobs(self, *, ui_mode: UIMode = UIMode.dots, is_silent: bool = False) -> None:
        """Copies new output of the server's jobs to their folders on this machine."""
        project().call("job-rsync", "--server", self.conf.name).check()

    def update_packages(self, *, ui_mode: UIMode = UIMode.dots) -> None:
        """Installs the packages in requirements.txt or Pipfile."""
        project()._prepared(project().call("update-packages", "--server", self.conf.name), None)

    def shell(self, command: str) -> EvalResult:
        """Runs a command in the home directory; returns (exit_code, out, err), with whitespace stripped from both
        texts."""
        return self.remote_exec.eval(command)

    def command(
        self,
        command: str,
        env_vars: Optional[Mapping[str, str]] = None,
        *,
        ui_mode: UIMode = UIMode.dots,
        is_background: bool = False,
        is_eval: bool = False,
    ) -> EvalResult:
        """Runs a command in the project's folder and environment. Raises RemoteError if it fails.

        Args:
            ui_mode: how its output is shown as it arrives.
            is_background: return immediately; Python waits for it before it exits.
            is_eval: show nothing and return the output.
        """
        name = self.conf.name
        if is_background and not is_eval:
            threading.Thread(target=_execute, args=(name, command, env_vars, ui_mode)).start()
            return EvalResult(0, "", "")
        result = _execute(name, command, env_vars, UIMode.none if is_eval else ui_mode)
        if result.exit_code != 0:
            raise RemoteError("Failed to run command", name, result.err)
        return result if is_eval else EvalResult(0, "", "")

    @staticmethod
    def _get_log_folder(name: str) -> Path:
        number = 1
        while True:
            folder = Configs.get().project_logs_folder / f"{name}_{number:04d}"
            try:
                folder.mkdir(parents=True)
                return folder
            except FileExistsError:
                number += 1

    def template_script(self, script_name: str, replace: Mapping[str, str]) -> str:
        """A script from ``scripts_folder``, with %%NAME%%, %%HOME%% and these names replaced."""
        values = {**replace, "name": self.project_name, "home": self.home_path}
        return util.template(self.scripts_folder / script_name, values)

    def copy_script(self, script: str, script_name: str) -> str:
        """Copies a script's text to the server; returns its path on the server."""
        if Path(script_name).name != script_name or script_name in ("", ".", ".."):
            raise RemoteError(f"'{script_name}' is not a file name", usage=True)
        write_script(Configs.get().project_scripts_folder / script_name, script)
        remote_path = f"{self.remote_scripts_path}/{script_name}"
        text = base64.b64encode(script.encode("utf-8")).decode("ascii")
        at, where = shlex.quote(remote_path), shlex.quote(self.remote_scripts_path)
        lines = f"set -e; umask 077; mkdir -p {where}; base64 -d >{at} <<'END'\n{text}\nEND\nchmod 700 {at}"
        result = self.remote_exec.eval(lines)
        if result.exit_code != 0:
            raise RemoteError(f"cannot copy {script_name}", self.conf.name, result.err)
        return remote_path

    def run_script(
        self,
        remote_path: str,
        *,
        log_dir: Optional[Path],
        ui_mode: UIMode = UIMode.dots,
        is_background: bool = False,
        is_eval: bool = False,
    ) -> EvalResult:
        """Runs a program that is on the server, in the home directory."""
        command = shlex.quote(remote_path)
        if is_eval:
            return self.remote_exec.eval(command, log_dir=log_dir)
        if is_background:
            return self.remote_exec.background(command, log_dir=log_dir, ui_mode=ui_mode)
        return self.remote_exec.stream(command, log_dir=log_dir, ui_mode=ui_mode)

    def copy_and_run_script(
        self,
        script: str,
        script_name: str,
        *,
        ui_mode: UIMode = UIMode.dots,
        is_background: bool = False,
        is_eval: bool = False,
    ) -> EvalResult:
        """Copies a script's text to the server and runs it."""
        remote_path = self.copy_script(script, script_name)
        log_dir = self._get_log_folder(f"{script_name.replace('.', '__')}_{self.conf.name}")
        return self.run_script(
            remote_path, log_dir=log_dir, ui_mode=ui_mode, is_background=is_background, is_eval=is_eval
        )

    def script(
        self,
        script_name: str,
        replace: Mapping[str, str],
        *,
        ui_mode: UIMode = UIMode.dots,
        is_background: bool = False,
        is_eval: bool = False,
    ) -> EvalResult:
        """Runs a script from ``scripts_folder`` on the server. Raises RemoteError if it fails."""
        result = self.copy_and_run_script(
            self.template_script(script_name, replace),
            "script.sh",
            ui_mode=ui_mode,
            is_background=is_background,
            is_eval=is_eval,
        )
        if result.exit_code != 0:
            raise RemoteError("Failed to run command", self.conf.name, result.err)
        return result


class ServerCollection:
    """All servers, by name."""

    def __init__(self) -> None:
        self._servers: Dict[str, Server] = {}

    def load_all(self) -> None:
        """Reads all servers. This also happens automatically on first use."""
        for name in self:
            self[name]

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
