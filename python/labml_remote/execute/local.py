"""Commands on this machine: ``LocalExecutor``."""

import subprocess
import threading
from pathlib import Path
from typing import IO

from . import UIMode


class LocalExecutor:
    """Runs shell commands on this machine. Writes stdout.log, stderr.log and exit_code to ``log_dir``."""

    def stream(
        self, command: str, *, log_dir: Path, ui_mode: UIMode = UIMode.dots, is_silent: bool = True
    ) -> int:
        """Runs a command until it ends; returns its exit code."""

        def copy(source: IO[bytes], name: str, is_err: bool) -> None:
            with source, open(log_dir / name, "ab") as file:
                for line in source:
                    file.write(line)
                    ui_mode.on_bytes(line, is_err=is_err)

        process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None and process.stderr is not None
        errors = threading.Thread(target=copy, args=(process.stderr, "stderr.log", True))
        errors.start()
        copy(process.stdout, "stdout.log", False)
        errors.join()
        code = process.wait()
        (log_dir / "exit_code").write_text(str(code), "utf-8")
        ui_mode.end()
        return code

    def background(self, command: str, *, log_dir: Path, ui_mode: UIMode = UIMode.dots) -> int:
        """Like stream(), but in a thread. Python waits for the thread before it exits."""
        threading.Thread(target=self.stream, args=(command,), kwargs={"log_dir": log_dir, "ui_mode": ui_mode}).start()
        return 0
