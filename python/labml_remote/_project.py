"""The project of the current folder, opened on first use."""

import os
import secrets
import stat
from pathlib import Path
from typing import Optional

from remote_launcher import Project, RemoteError

_MOST_BYTES = 4 << 20

_project: Optional[Project] = None


def project() -> Project:
    """The project that contains the current folder. Raises RemoteError if there is none."""
    global _project
    if _project is None:
        _project = Project(".")
    return _project


def project_folder() -> Optional[Path]:
    """The folder with .remote/configs.yaml: the current one or the nearest parent. None if there is none."""
    here = Path(".").absolute()
    return next((one for one in (here, *here.parents) if (one / ".remote" / "configs.yaml").exists()), None)


def _inside(path: Path) -> bool:
    """Whether the path, after following links, is inside the project."""
    top = (project_folder() or Path(".")).resolve()
    return top in path.resolve().parents


def read_text(file: Path) -> str:
    """A script's text. A script in the project's folder must not link to a file outside it, because its text is sent to
    a server."""
    top = project_folder() or Path(".").absolute()
    named = Path(os.path.abspath(file))
    if top in named.parents:
        if not _inside(file):
            raise RemoteError(f"cannot read {file}", reason="a link leads out of the project", usage=True)
        real = file.resolve().relative_to(top.resolve())
        if real.parent != named.relative_to(top).parent and not {".git", ".remote"}.isdisjoint(real.parts):
            raise RemoteError(f"cannot read {file}", reason=f"a link leads into {real.parent}", usage=True)
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RemoteError(f"cannot read {file}", reason="it is not a regular file", usage=True)
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise RemoteError(f"cannot read {file}", reason=f"it is larger than {_MOST_BYTES} bytes", usage=True)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RemoteError(f"cannot read {file}", reason="it is not UTF-8", hint="save it as UTF-8", usage=True) from error


def write_script(file: Path, text: str) -> None:
    """Writes a script that only this user may read. Replaces a link instead of writing through it."""
    if not _inside(file.parent / "script"):
        raise RemoteError(f"cannot write {file}", reason="a link leads out of the project", usage=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700), "wb") as opened:
        try:
            opened.write(text.encode("utf-8"))
            os.replace(part, file)
        except BaseException:
            part.unlink()
            raise
