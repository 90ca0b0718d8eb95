"""labml_remote's error, which is remote_launcher's."""

from remote_launcher import RemoteError

__all__ = ["RemoteError"]
