"""The command ``labml_remote``: runs ``remote`` with the same arguments."""

import os
import sys

from remote_launcher import RemoteError
from remote_launcher._stream import find_binary

# labml_remote ran these in the project's root folder, no matter which subfolder the user was in.
_IN_PROJECT = ("run", "job-run", "launch", "torch-launch", "helper-torch-launch")


def main() -> None:
    """Replaces this process with ``remote``."""
    try:
        binary = find_binary()
    except RemoteError as error:
        sys.exit(f"error: {error}")
    words = sys.argv[1:]
    if words and words[0] in _IN_PROJECT and not any(word.startswith("--workdir") for word in words):
        words[1:1] = ["--workdir", "."]
    os.execv(binary, ["remote", *words])


if __name__ == "__main__":
    main()
