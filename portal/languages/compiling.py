"""Compiles catalogues to the form that is read at run time (``.mo``): ``python -m portal.languages.compiling``.

Needs neither settings nor GNU gettext, so that those who install a release can do it.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def compile_stale(root: Path = ROOT) -> list[Path]:
    """Compile catalogues that changed, remove files whose catalogue is gone, and return the changed files."""
    changed = []
    for compiled in _files(root, ".mo"):
        if not compiled.with_suffix(".po").exists():
            compiled.unlink(missing_ok=True)
            changed.append(compiled)
    for source in _files(root, ".po"):
        compiled = source.with_suffix(".mo")
        if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
            _compile(source, compiled)
            changed.append(compiled)
    return changed


def _files(root: Path, suffix: str) -> list[Path]:
    return [path for apps in ("*", "extras/*") for path in root.glob(f"{apps}/locale/*/LC_MESSAGES/*{suffix}")]


def _compile(source: Path, compiled: Path) -> None:
    # Not needed, and not imported, while nothing has changed.
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with source.open("rb") as file:
        catalog = read_po(file, abort_invalid=True)
    # Otherwise the header has the time of this run, and two images of one commit differ.
    catalog.creation_date = dt.datetime.fromtimestamp(0, dt.UTC)
    # Several processes may do this at once, as in tests: each reader gets a complete file.
    with tempfile.NamedTemporaryFile(dir=compiled.parent, delete=False) as made:
        write_mo(made, catalog)
    made_path = Path(made.name)
    made_path.chmod(0o644)
    made_path.replace(compiled)


if __name__ == "__main__":
    compile_stale()
