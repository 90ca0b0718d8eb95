"""Drives the program ``remote``: plain SSH servers as one training machine.

>>> from remote_launcher import Project
>>> p = Project(".")
>>> p.prepare()
>>> run = p.launch("python train.py", nproc="auto", servers=["gpu-*"])
>>> for line in run.follow():
...     print(line.rank, line.text)
>>> verdict = run.wait()

The only dependency is the program, which is found beside the package, through the variable
``REMOTE_BINARY``, or on ``PATH``. Every failure raises :class:`RemoteError`.

Objects may be used by one thread at a time. No thread is started, and no process is left behind: a call that is
interrupted (Ctrl-C) stops the program that it started, but never a job.
"""

from ._errors import Cause, RemoteError
from ._launch import Attempt, Job, Launch, Line, Output, StackGroup, StackMember, Stacks, Thread, Verdict
from ._project import CommandResult, Prepared, Project, Server
from ._stream import Answer
from ._submit import Submitted

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Attempt",
    "Cause",
    "CommandResult",
    "Job",
    "Launch",
    "Line",
    "Output",
    "Prepared",
    "Project",
    "RemoteError",
    "Server",
    "StackGroup",
    "StackMember",
    "Stacks",
    "Submitted",
    "Thread",
    "Verdict",
]
