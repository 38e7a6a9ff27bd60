"""Machines whose clocks are set wrong while their programs run, by Debian's libfaketime."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Final

from tests.support.needs import go_without
from tests.support.site_process import CHECKOUT

_PRELOADED: Final = Path(f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}/faketime/libfaketimeMT.so.1")
_SITE_PACKAGES: Final = CHECKOUT / "tests" / "support" / "cluster" / "under_faketime"


class MachineClock:
    """The clock of one machine; what programs measure time spans by is not set with it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"{name}.clock"
        self.set(0)
        self._file.chmod(0o644)

    def set(self, ahead_secs: int) -> None:
        """So far ahead of the right time; negative: behind it. Programs notice within a second."""
        changed = self._file.with_suffix(".new")
        changed.write_text(f"{ahead_secs:+d}\n")
        changed.replace(self._file)

    def variables(self) -> dict[str, str]:
        """What a program of the machine has in its environment."""
        python_path = [str(_SITE_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            "LD_PRELOAD": str(_PRELOADED),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
            "PYTHONPATH": ":".join(python_path),
        }


def require() -> None:
    """For one of the long tests: other systems than Debian may not have the library."""
    if not _PRELOADED.exists():
        go_without(f"{_PRELOADED} is not installed (Debian's package faketime)")
