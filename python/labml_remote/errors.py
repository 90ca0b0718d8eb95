"""labml_remote's error, an alias of remote_launcher's."""

from remote_launcher import RemoteError

__all__ = ["RemoteError"]
