"""The command ``labml_remote``: the program ``remote`` with the same words."""

import os
import sys

from remote_launcher import RemoteError
from remote_launcher._stream import find_binary


def main() -> None:
    """Becomes ``remote``."""
    try:
        binary = find_binary()
    except RemoteError as error:
        sys.exit(f"error: {error}")
    os.execv(binary, ["remote", *sys.argv[1:]])


if __name__ == "__main__":
    main()
