"""Programs of a cluster: started without waiting, killed, paused, and started again as systemd does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support import process_guard
from tests.support.guarded_program import GuardedProgram
from tests.support.site_process import CHECKOUT


class ClusterProgram(GuardedProgram):
    """One service of one machine. ``is_ready`` says whether it answers; `start` does not wait for that."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(name, command, folder / f"{name}.log", environment or os.environ, CHECKOUT)
        self.is_ready = is_ready

    def pids(self, program: str = "") -> list[int]:
        """Its processes, without the guard; ``program``: those of this name."""
        if self._process is None:
            return []
        return [pid for pid in process_guard.descendants(self._process.pid) if program in _name_of(pid)]

    def signal(self, number: signal.Signals, program: str = "") -> None:
        """SIGKILL, SIGSTOP or SIGCONT to each of them."""
        for pid in self.pids(program):
            with suppress(ProcessLookupError):  # it ended with the one before
                os.kill(pid, number)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
