"""Commands on a server: ``RemoteExecutor``."""

import threading
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional

from remote_launcher import RemoteError
from remote_launcher._project import _env
from remote_launcher._stream import Stream

from .._project import project
from . import UIMode


class EvalResult(NamedTuple):
    """The result of a command. ``out`` and ``err`` are empty if the output was shown."""

    exit_code: int
    out: str
    err: str


def _execute(server: str, command: str, env: Optional[Mapping[str, str]], ui_mode: UIMode) -> EvalResult:
    here = project()
    text: Dict[str, List[str]] = {"out": [], "err": []}
    result = None
    with Stream(here.binary, here.folder, ["run", "--server", server, *_env(env), "--cmd", command]) as stream:
        for event in stream:
            if event["event"] == "output":
                line = event["text"] + "\n"
                text[event["stream"]].append(line)
                ui_mode.on_bytes(line.encode("utf-8"), is_err=event["stream"] == "err")
            elif event["event"] == "result" and event["value"]:
                result = event["value"][0]
        ui_mode.end()
        if result is None or result["error"]:
            raise stream.errors[0] if stream.errors else RemoteError("the command was not run", server)
    code = result["exit_code"]
    return EvalResult(1 if code is None else code, "".join(text["out"]).strip(), "".join(text["err"]).strip())


def _keep(log_dir: Optional[Path], result: EvalResult) -> None:
    if log_dir is not None:
        (log_dir / "stdout.log").write_text(result.out, "utf-8")
        (log_dir / "stderr.log").write_text(result.err, "utf-8")
        (log_dir / "exit_code").write_text(str(result.exit_code), "utf-8")


class RemoteExecutor:
    """Runs commands in the user's home directory on a server. The project's folder must exist there."""

    def __init__(self, server: str) -> None:
        self._server = server

    def eval(self, command: str, *, log_dir: Optional[Path] = None, is_silent: bool = True) -> EvalResult:
        """Runs a command without showing its output; returns the output."""
        result = _execute(self._server, f"cd\n{command}", None, UIMode.none)
        _keep(log_dir, result)
        return result

    def stream(
        self, command: str, *, log_dir: Optional[Path] = None, ui_mode: UIMode = UIMode.dots, is_silent: bool = True
    ) -> EvalResult:
        """Runs a command and shows its output as it arrives."""
        result = _execute(self._server, f"cd\n{command}", None, ui_mode)
        _keep(log_dir, result)
        return EvalResult(result.exit_code, "", "")

    def background(
        self, command: str, *, log_dir: Optional[Path] = None, ui_mode: UIMode = UIMode.dots
    ) -> EvalResult:
        """Runs a command in a thread. Python waits for the thread before it exits."""
        threading.Thread(target=self.stream, args=(command,), kwargs={"log_dir": log_dir, "ui_mode": ui_mode}).start()
        return EvalResult(0, "", "")
