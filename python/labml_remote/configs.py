"""The contents of configs.yaml, under labml_remote's names."""

from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from remote_launcher import RemoteError

from ._project import project, project_folder


def _read(file: Path) -> Dict[str, Any]:
    try:
        import yaml  # type: ignore
    except ImportError:
        raise RemoteError(
            "labml_remote's API needs PyYAML, as labml_remote did",
            hint="pip install pyyaml, or apt install python3-yaml",
            usage=True,
        ) from None
    try:
        found = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RemoteError(f"cannot read {file}", reason=" ".join(str(error).split()), usage=True) from error
    return found if isinstance(found, dict) else {}


class ServerConfig:
    """A server's settings.

    Attributes:
        hostname, username, private_key_file: from configs.yaml, otherwise from ~/.ssh/config or the default.
        password: from configs.yaml.
        properties: all other keys of the server.
    """

    def __init__(self, name: str, configs: Mapping[str, Any], settings: Optional[Mapping[str, str]] = None) -> None:
        known = settings or {}
        rest = dict(configs)
        key = known.get("key")
        self.name: str = name
        self.hostname: Optional[str] = rest.pop("hostname", None) or known.get("host")
        self.username: Optional[str] = rest.pop("username", None) or known.get("user", "ubuntu")
        self.password: Optional[str] = rest.pop("password", None)
        self.private_key_file: Optional[str] = rest.pop("private_key", None) or (None if key in (None, "none") else key)
        self.properties: Dict[str, Any] = rest

    @property
    def private_key(self) -> Any:
        """The key as a paramiko object, or None without a key. Only this needs paramiko."""
        if self.private_key_file is None:
            return None
        from paramiko import RSAKey  # type: ignore

        return RSAKey.from_private_key_file(str((project_folder() or Path(".")) / self.private_key_file))


class Configs:
    """The project's name, folders and servers. Without a configs.yaml: the defaults and no servers."""

    _one: Optional["Configs"] = None

    def __init__(self, configs: Optional[Mapping[str, Any]] = None) -> None:
        folder = project_folder()
        if configs is None:
            configs = {} if folder is None else _read(folder / ".remote" / "configs.yaml")
        top = folder or Path(".").absolute()
        settings = {one.name: one.settings for one in project().servers(ask=False)} if folder else {}
        self.name: str = str(configs.get("name") or top.name)
        self.servers: Dict[str, ServerConfig] = {
            str(name): ServerConfig(str(name), entry or {}, settings.get(str(name)))
            for name, entry in (configs.get("servers") or {}).items()
        }
        self.project_scripts_folder: Path = top / configs.get("scripts_folder", ".remote/scripts")
        self.project_logs_folder: Path = top / configs.get("logs_folder", ".remote/logs")
        self.project_jobs_folder: Path = top / configs.get("jobs_folder", ".remote/jobs")
        self.exclude_file: Path = top / configs.get("exclude_file", ".remote/exclude.txt")
        self.remote_scripts_folder_name: str = configs.get("remote_scripts_folder_name", ".remote-scripts")
        self.remote_jobs_folder_name: str = configs.get("remote_jobs_folder_name", ".jobs")
        # Server.template_script() looks here; a script may name another folder.
        self.template_scripts_folder: Path = self.project_scripts_folder

    @staticmethod
    def get() -> "Configs":
        """The configuration of the current project. It is read once."""
        if Configs._one is None:
            Configs._one = Configs()
        return Configs._one
