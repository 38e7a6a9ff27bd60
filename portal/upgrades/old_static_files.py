"""Static files of former versions, which `collectstatic` leaves where they are: remove them after some days.

A file that the present manifest does not name is noted with the time, and removed when it was noted long enough ago.
So the time begins when it was first missed, whatever its own times are.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger("static")
_PACKED: Final = (".gz", ".br")


class NoManifest(Exception):
    """The manifest cannot be read, so nothing is known of any file; the text says why."""


def prune(root: Path, notes: Path, now: dt.datetime, kept: dt.timedelta) -> list[str]:
    """Remove what no manifest has named for so long; the removed files. ``notes``: since when each was missed.

    Not while `collectstatic` runs: the manifest that it is about to write may name what is removed. Safe to interrupt
    and to repeat. Raises NoManifest, and OSError if a file cannot be read, written or removed.
    """
    named = _named(root)
    before = _read_notes(notes)
    missed = {name: min(before.get(name, now), now) for name in _files(root) if not _is_named(name, named)}
    removed = sorted(name for name, since in missed.items() if since <= now - kept and name in before)
    for name in removed:
        (root / name).unlink(missing_ok=True)
        del missed[name]
    _write_notes(notes, missed)
    _remove_empty_folders(root)
    log.info("old_static_files_removed", removed=len(removed), kept=len(missed))
    return removed


def _named(root: Path) -> set[str]:
    """The files of the present manifest, under their own names and those with a hash, and the manifest itself."""
    manifest = root / "staticfiles.json"
    try:
        paths = json.loads(manifest.read_text())["paths"]
        named = {*paths, *paths.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoManifest(f"{manifest} cannot be read ({error}): run collectstatic first.") from error
    if not named:
        raise NoManifest(f"{manifest} names no file: run collectstatic first.")
    return {*named, manifest.name}


def _is_named(name: str, named: set[str]) -> bool:
    return name in named or any(name.endswith(end) and name.removesuffix(end) in named for end in _PACKED)


def _files(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            yield (Path(folder) / name).relative_to(root).as_posix()


def _read_notes(notes: Path) -> dict[str, dt.datetime]:
    try:
        found = json.loads(notes.read_text())
        return {str(name): dt.datetime.fromisoformat(since).astimezone(dt.UTC) for name, since in found.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError, OverflowError):
        # As if this were the first time: files stay the longer.
        log.warning("notes_of_static_files_unreadable", file=str(notes))
        return {}


def _write_notes(notes: Path, missed: dict[str, dt.datetime]) -> None:
    unfinished = notes.with_name(f"{notes.name}.new")
    unfinished.write_text(json.dumps({name: since.isoformat() for name, since in sorted(missed.items())}, indent=0))
    unfinished.replace(notes)


def _remove_empty_folders(root: Path) -> None:
    for name, _, _ in os.walk(root, topdown=False):
        folder = Path(name)
        if folder != root and not any(folder.iterdir()):
            folder.rmdir()
