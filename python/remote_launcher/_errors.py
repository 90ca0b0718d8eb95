"""The errors that the package raises."""

from enum import Enum
from typing import Any, Mapping, Optional


class Cause(str, Enum):
    """Why something failed (see docs/jsonl.md of the program). Compares equal to its string: ``error.cause ==
    "timeout"``."""

    OTHER = "other"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    AUTH = "auth"
    HOST_KEY = "host_key"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    DISK_FULL = "disk_full"
    NO_RESOURCES = "no_resources"
    USAGE = "usage"
    INTERRUPTED = "interrupted"

    @classmethod
    def _missing_(cls, value: object) -> "Cause":
        """Maps an unknown cause from a newer program to OTHER."""
        return cls.OTHER

    def __str__(self) -> str:
        return str(self.value)


class RemoteError(RuntimeError):
    """What failed, on which server, why, and what to try.

    Attributes:
        what: what failed.
        server: the server's name in configs.yaml, or None if no server is involved.
        reason: why it failed; may be empty.
        hint: what to try, or None.
        usage: whether the call or the configuration is wrong. The same call will then fail again.
        cause: why it failed, as one word.
    """

    def __init__(
        self,
        what: str,
        server: Optional[str] = None,
        reason: str = "",
        hint: Optional[str] = None,
        usage: bool = False,
        cause: Optional[str] = None,
    ) -> None:
        self.what = what
        self.server = server
        self.reason = reason
        self.hint = hint
        self.usage = usage
        self.cause = Cause(cause or ("usage" if usage else "other"))
        super().__init__(what, server, reason, hint, usage, self.cause)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.server, self.what, self.reason) if part)
        return f"{text} (hint: {self.hint})" if self.hint else text

    @staticmethod
    def of_event(event: Mapping[str, Any]) -> "RemoteError":
        """Makes the exception for an ``error`` event."""
        return RemoteError(
            str(event.get("what") or "something failed"),
            event.get("server"),
            str(event.get("reason") or ""),
            event.get("hint"),
            bool(event.get("usage")),
            event.get("cause"),
        )
