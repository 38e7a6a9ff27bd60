"""Runs a command whose whole family ends with the test, however the test ends.

``python guard.py COMMAND...``: when the process that started the guard dies, even by kill -9, the command
gets SIGTERM; when the command ends, or does not in time, every process that it left behind is killed. So
neither a BOINC client's running job nor a web server's workers outlive the test. Linux only.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType

STOP_SECS = 8.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def command(arguments: list[str]) -> list[str]:
    """Return the command line that runs `arguments` under a guard."""
    return [sys.executable, __file__, str(os.getpid()), *arguments]


def children_of(pid: int) -> list[int]:
    """The children of a process; none if it has just ended."""
    try:
        lists = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for text in lists for child in text.split()]


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    children = children_of(pid)
    return children + [descendant for child in children for descendant in descendants(child)]


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) was refused")


def _children() -> list[int]:
    """The guard's own children: the command and, as the kernel hands orphans to it, what that left behind."""
    lists = (thread / "children" for thread in Path("/proc/self/task").iterdir())
    return [int(pid) for pids in lists for pid in pids.read_text().split()]


def _kill_rest() -> None:
    """Kill what the command left behind, in rounds: the children of a process that dies come to the guard."""
    while pids := _children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main(starter_pid: int, arguments: list[str]) -> int:
    """Run the command, pass SIGTERM and SIGINT on to it, and return its exit code."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != starter_pid:  # it died before the line above
        return 1
    # The command dies with the guard as well. One thread only so far, so the hook is safe.
    child = subprocess.Popen(arguments, preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))

    def stop(_number: int, _frame: FrameType | None) -> None:
        child.send_signal(signal.SIGTERM)
        timer = threading.Timer(STOP_SECS, child.kill)
        timer.daemon = True
        timer.start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    child.returncode = code = _wait_for(child.pid)
    _kill_rest()
    return code if code >= 0 else 128 - code


def _wait_for(pid: int) -> int:
    """The exit code of the command. Orphans that end meanwhile are buried, as init does: who asks for them, such as
    Patroni for its PostgreSQL, must not take them for running.
    """
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
