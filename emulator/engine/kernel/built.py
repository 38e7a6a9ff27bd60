"""The compiled kernel on disk: built once in the background, then used by all processes that emulate.

`runs.kernel_build` compiles into the folder of NUMBA_CACHE_DIR and marks it when it is complete; only then does a
process use it, as compiling takes longer than most runs. The mark names the source, Numba and the processor that the
code is for.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

FOLDER: Final = "NUMBA_CACHE_DIR"
BUILDS: Final = "EMULATOR_BUILDS_KERNEL"
_ENGINE: Final = Path(__file__).parents[1]


def mark(folder: Path) -> Path | None:
    """The file whose presence says that the folder has the compiled kernel; None without Numba."""
    try:
        numba = version("numba")
    except PackageNotFoundError:
        return None
    digest = sha256(f"{numba} {platform.python_version()} {_processor()}".encode())
    for source in sorted(_ENGINE.rglob("*.py")):
        digest.update(source.read_bytes())
    return folder / f"kernel-{digest.hexdigest()[:32]}"


def _processor() -> str:
    """A description of the processor, as far as this machine provides one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())


def is_built() -> bool:
    """Whether this process has the compiled kernel."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return False
    made = mark(Path(folder))
    return made is not None and made.is_file()


def is_wanted() -> bool:
    """Whether this process compiles the functions that it runs: it has the compiled kernel, or builds it."""
    return not _is_off() and (is_built() or os.environ.get(BUILDS) == "1")


def _is_off() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"


def is_missing() -> bool:
    """Whether this process will have the compiled kernel, but does not have it yet."""
    folder = os.environ.get(FOLDER)
    return bool(folder) and not _is_off() and mark(Path(str(folder))) is not None and not is_built()


def start_building() -> None:
    """Starts a process that builds the compiled kernel, unless it exists or is being built. Nobody waits for it."""
    if is_missing():
        command = [sys.executable, "-m", "emulator.runs.kernel_build", "--nice"]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
