"""A file system of its own with little room, for tests of full disks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.needs import go_without


@contextmanager
def small_disk(folder: Path, nbytes: int) -> Iterator[Path]:
    """A tmpfs of this size at ``folder``, for as long as the block lasts.

    Without root's rights the test is skipped; with REQUIRE_E2E=1, as in `.ci/run`, it fails instead.
    """
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={nbytes},mode=700", "cobblestone-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        refusal = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError:
        refusal = "there is no mount program"
    if refusal:
        go_without(f"no file system can be mounted here: {refusal}")
    try:
        yield folder
    finally:
        # Lazily: a server that is just ending may still have a file open there.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, leave_nbytes: int) -> Path:
    """A file that leaves this many bytes, in whole pages, of the file system below ``folder``."""
    filler = folder / "filler"
    free = os.statvfs(folder)
    with filler.open("wb") as file:
        file.write(bytes(free.f_bavail * free.f_frsize - leave_nbytes))
    return filler


def fill_up(folder: Path) -> Path:
    """A file that takes all that is left, also while others write there."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1_000_000)):
            pass
    return filler
