"""The project of the current folder, opened when it is first needed."""

from pathlib import Path
from typing import Optional

from remote_launcher import Project

_project: Optional[Project] = None


def project() -> Project:
    """The project that contains the current folder. Raises RemoteError where there is none."""
    global _project
    if _project is None:
        _project = Project(".")
    return _project


def project_folder() -> Optional[Path]:
    """The folder with .remote/configs.yaml: the current one or the nearest above it; None where there is none."""
    here = Path(".").absolute()
    return next((one for one in (here, *here.parents) if (one / ".remote" / "configs.yaml").exists()), None)
