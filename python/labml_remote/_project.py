"""The project of the current folder, opened when it is first needed."""

from typing import Optional

from remote_launcher import Project

_project: Optional[Project] = None


def project() -> Project:
    """The project that holds the current folder. Raises RemoteError where there is none."""
    global _project
    if _project is None:
        _project = Project(".")
    return _project
