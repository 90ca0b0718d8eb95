"""labml_remote's helpers for scripts."""

from pathlib import Path
from typing import Mapping, Optional

from remote_launcher import RemoteError

from ._project import read_text


def template(file: Path, replace: Mapping[str, str]) -> str:
    """The file's text with each %%NAME%% replaced by its value."""
    try:
        content = read_text(Path(file))
    except OSError as error:
        raise RemoteError(f"cannot read the script {file}", reason=error.strerror or str(error), usage=True) from error
    for name, value in replace.items():
        content = content.replace(f"%%{name.upper()}%%", value)
    return content


def get_env_vars(env_vars: Optional[Mapping[str, str]]) -> str:
    """Shell lines that export the variables. The shell expands the values, as with labml_remote."""
    return "\n".join(f"export {name}={value}" for name, value in (env_vars or {}).items())
