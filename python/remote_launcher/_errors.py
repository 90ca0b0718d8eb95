"""What is raised when something fails."""

from typing import Any, Mapping, Optional


class RemoteError(Exception):
    """What failed, on which server, why, and what to try.

    Attributes:
        what: what failed.
        server: the server's name in configs.yaml, or None where no server is concerned.
        reason: why; may be empty.
        hint: what to try, or None.
        usage: whether the call or the configuration is wrong, so that the same call cannot succeed.
        cause: why, as one word: "unreachable", "timeout", "auth", "disk_full", … (docs/jsonl.md), or "other".
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
        self.cause = cause or ("usage" if usage else "other")
        super().__init__(what, server, reason, hint, usage, self.cause)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.server, self.what, self.reason) if part)
        return f"{text} (hint: {self.hint})" if self.hint else text

    @staticmethod
    def of_event(event: Mapping[str, Any]) -> "RemoteError":
        """The error of an ``error`` event."""
        return RemoteError(
            str(event.get("what") or "something failed"),
            event.get("server"),
            str(event.get("reason") or ""),
            event.get("hint"),
            bool(event.get("usage")),
            event.get("cause"),
        )
