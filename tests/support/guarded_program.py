"""A program that tests start and stop, under the guard, so that nothing of it outlives them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support import process_guard
from tests.support.wait import wait_until


class GuardedProgram:
    """A program that may be stopped and started again; use it as a context manager."""

    answer_secs = 60.0
    poll_secs = 0.2

    def __init__(
        self, name: str, command: Sequence[str], log_file: Path, environment: Mapping[str, str], folder: Path
    ) -> None:
        self.name = name
        self.environment = environment
        self._command = command
        self._log_file = log_file
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, again if it was stopped, and wait until it answers."""
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                process_guard.command([*self._command]),
                cwd=self._folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the test, which then stops it
            )
        try:
            wait_until(self._is_up, f"{self.name} to answer", self.answer_secs, self.poll_secs)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it and its children by SIGTERM to its guard, so that no other program is touched."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=process_guard.STOP_SECS + 10)
            self._process = None

    def kill(self) -> None:
        """End its whole family by SIGKILL, as a power cut does: the guard ends as soon as the program has."""
        if self._process is not None:
            for pid in process_guard.descendants(self._process.pid):
                with suppress(ProcessLookupError):  # it ended with the one before
                    os.kill(pid, signal.SIGKILL)
            self._process.wait(timeout=process_guard.STOP_SECS + 10)
            self._process = None

    def pids(self) -> list[int]:
        """Its processes."""
        return [] if self._process is None else process_guard.descendants(self._process.pid)

    def pause(self, resume: bool = False) -> None:
        """Stop its whole family for a while, without its knowledge, or let it go on."""
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT if resume else signal.SIGSTOP)

    def log(self) -> str:
        """Return everything that it has logged since its first start."""
        return self._log_file.read_text(errors="replace")

    def answers(self) -> bool:
        """Whether it is ready; what answers nobody is ready at once."""
        return True

    def _is_up(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"{self.name} ended at once\n{self.log()}")
        return self.answers()
