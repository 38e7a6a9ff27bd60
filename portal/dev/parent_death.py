"""Runs a program that receives a signal when the process that started it ends, for any reason.

Run by its path, in place of the program: `python -I -S parent_death.py SIGNAL PARENT PROGRAM [ARGUMENT ...]`, where
SIGNAL is a number and PARENT the caller's process id. It uses the standard library only and becomes PROGRAM.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # prctl(2)


def ends_with_parent(command: list[str], ending: signal.Signals = signal.SIGTERM) -> list[str]:
    """Wrap `command` so that it gets the signal `ending` once the calling thread's process has ended."""
    return [
        sys.executable,
        "-I",
        "-S",
        str(Path(__file__).resolve()),
        str(int(ending)),
        str(os.getpid()),
        *command,
    ]


def main() -> None:
    ending, parent, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, ending, 0, 0, 0) != 0:
        sys.exit(f"prctl refused: {os.strerror(ctypes.get_errno())}")
    # The parent may have ended before prctl took effect: then no signal will ever come.
    if os.getppid() != parent:
        sys.exit(f"the process {parent} that started {command[0]} has ended")
    try:
        os.execvp(command[0], command)  # noqa: S606  # it becomes the program that it was asked to run
    except OSError as error:
        sys.exit(f"{command[0]} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
