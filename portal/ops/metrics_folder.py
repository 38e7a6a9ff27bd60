"""The folder in which the web server's processes share their counters, so that each can report the sums.

Imported before prometheus_client, which reads the environment once, at its import.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


def join(folder: Path) -> None:
    """Count in ``folder`` from now on. The first process to join clears what an earlier run left there.

    Each process holds a shared lock as long as it lives; a process that gets the lock exclusively is alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for old in folder.glob("*.db"):
            old.unlink()
    fcntl.flock(lock, fcntl.LOCK_SH)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
