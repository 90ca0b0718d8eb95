"""How a command's output is shown: ``UIMode``."""

import sys
from enum import Enum

_BYTES_PER_DOT = 128


class UIMode(Enum):
    """``none``: nothing; ``dots``: one dot per 128 bytes; ``full``: the output itself."""

    none = "none"
    dots = "dots"
    full = "full"

    def on_bytes(self, data: bytes, *, is_err: bool) -> None:
        """Shows a piece of output."""
        stream = sys.stderr if is_err else sys.stdout
        if self is UIMode.full:
            stream.write(data.decode("utf-8", "replace"))
        elif self is UIMode.dots and data:
            stream.write("." * max(1, round(len(data) / _BYTES_PER_DOT)))
        stream.flush()

    def end(self) -> None:
        """Ends the line of dots."""
        if self is UIMode.dots:
            print(flush=True)
