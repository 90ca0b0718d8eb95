"""Commands on this machine: ``LocalExecutor``."""

import subprocess
import threading
from pathlib import Path
from typing import IO

from . import UIMode


class LocalExecutor:
    """Runs shell commands here, with their output in ``log_dir`` as stdout.log, stderr.log and exit_code."""

    def stream(
        self, command: str, *, log_dir: Path, ui_mode: UIMode = UIMode.dots, is_silent: bool = True
    ) -> int:
        """Runs a command to its end; returns its exit code."""

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
        """The same in a thread, for which Python waits at its end."""
        threading.Thread(target=self.stream, args=(command,), kwargs={"log_dir": log_dir, "ui_mode": ui_mode}).start()
        return 0
