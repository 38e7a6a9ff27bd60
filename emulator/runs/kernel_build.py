"""Compile the kernel: `python -m emulator.runs.kernel_build`. It takes about a minute of processor time, once.

With `--nice` it yields to other work on the machine: nobody waits for it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import Final

from emulator.engine.kernel.built import BUILDS, FOLDER, is_built, mark

NICENESS: Final = 10


def main() -> None:
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    made = mark(folder)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another process builds it
        if made is None or is_built():
            return
        if "--nice" in sys.argv:
            os.nice(NICENESS)
        # Code compiled from an unchanged file may call code that has changed in another.
        for old in (*folder.rglob("*.nbi"), *folder.rglob("*.nbc")):
            old.unlink()
        os.environ[BUILDS] = "1"
        _compile()
        for old in folder.glob("kernel-*"):
            old.unlink()
        made.touch()


def _compile() -> None:
    """Make a short run: that compiles everything, as branches are decided while it runs."""
    from emulator.engine.policies.rec import Rec
    from emulator.engine.run import run
    from emulator.engine.scenario import CPU, App, Host, Normal, Preferences, Processor, Project, Scenario, Version

    size = Normal(3.6e12)
    app = App("app", (Version(1e9, 1.0),), size, size, 86_400.0)
    run(Scenario(Host((Processor(CPU, 1, 1e9),)), (Project("project", 1.0, (app,)),), Preferences()), Rec(), 0.1)


if __name__ == "__main__":
    main()
