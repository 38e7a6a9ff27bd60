"""How a policy from outside is kept from the site: its run's process is started in a sandbox. No Django.

With `bubblewrap` the process is alone in namespaces of its own: it sees only the system's libraries, the Python
environment and the emulator's code, all read-only; it has no network, no other processes, no settings and no
capabilities. With `limits` it only starts with an empty environment. Both have the limits of emulator.runs.process, and
may write no file. docs/threat-model.md says what neither prevents.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

BUBBLEWRAP: Final = "bubblewrap"
LIMITS: Final = "limits"
KINDS: Final = (BUBBLEWRAP, LIMITS)
PACKAGE: Final = Path(__file__).parents[1]
# Merged into /usr on today's systems, and then links.
_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")


def environment() -> dict[str, str]:
    """The whole environment: one thread per library, and memory as the limits count it."""
    return {"OPENBLAS_NUM_THREADS": "1", "PYTHONMALLOC": "malloc", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def is_available(kind: str) -> bool:
    """Whether the program is there; whether the system lets it make namespaces shows when it runs."""
    return kind == LIMITS or shutil.which("bwrap") is not None


def command(kind: str, program: list[str]) -> list[str]:
    """The command that runs the program in a sandbox of this kind."""
    if kind == LIMITS:
        return program
    bwrap = shutil.which("bwrap") or "bwrap"
    binds = [part for path in _SYSTEM for part in ("--ro-bind-try", path, path)]
    own = {sys.base_prefix, sys.prefix, str(PACKAGE)}
    binds += [part for path in sorted(own) for part in ("--ro-bind", path, path)]
    return [
        *(bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *binds,
        *("--dev", "/dev", "--chdir", str(PACKAGE.parent)),
        *program,
    ]
