"""What configs.yaml says, as far as labml_remote showed it."""

from pathlib import Path
from typing import Any, Dict, Optional

from remote_launcher import Server

from ._project import project


class ServerConfig:
    """A server's settings, with the names that labml_remote has for them."""

    def __init__(self, server: Server) -> None:
        settings = server.settings
        self.name: str = server.name
        self.hostname: Optional[str] = settings.get("host")
        self.username: Optional[str] = settings.get("user")
        key = settings.get("key")
        self.private_key_file: Optional[str] = None if key in (None, "none") else key
        self.password: Optional[str] = None  # never shown
        self.properties: Dict[str, Any] = dict(settings)


class Configs:
    """The project's name, folders and servers."""

    _one: Optional["Configs"] = None

    def __init__(self) -> None:
        here = project()
        folder = here.folder
        self.name: str = folder.name
        self.servers: Dict[str, ServerConfig] = {one.name: ServerConfig(one) for one in here.servers(ask=False)}
        self.project_scripts_folder: Path = folder / ".remote/scripts"
        self.project_logs_folder: Path = folder / ".remote/logs"
        self.project_jobs_folder: Path = folder / ".remote/jobs"
        self.exclude_file: Path = folder / ".remote/exclude.txt"

    @staticmethod
    def get() -> "Configs":
        """The current project's, read once."""
        if Configs._one is None:
            Configs._one = Configs()
        return Configs._one
