"""Texts of a row, with what was done to them told."""

from __future__ import annotations

from extras.moving_in.engine import texts
from extras.moving_in.engine.tally import Tally
from extras.moving_in.source import Row
from portal.wire.names import cleaned


def text(row: Row, name: str, tally: Tally, most: int, key: str = "id") -> str:
    """The column as text of ``most`` characters, as it is but for what cannot be kept."""
    raw = row[name]
    if not raw:
        return ""
    found, repair = texts.read(raw if isinstance(raw, bytes) else str(raw).encode())
    if repair is not texts.Repair.NONE:
        tally.tell(f"{name}: {repair.value}", f"{row[key]} {found}")
    if len(found) > most:
        tally.tell(f"{name}: longer than {most} characters, cut", f"{row[key]} {found}")
        found = found[:most]
    return found


def line(row: Row, name: str, tally: Tally, most: int, key: str = "id") -> str:
    """The same on one line, without what is not seen."""
    return cleaned(text(row, name, tally, most, key)).strip()


def ascii_text(row: Row, name: str) -> str:
    """A column that has ASCII, such as a key; empty if it has not."""
    raw = (row[name] or b"").replace(b"\0", b"")
    return raw.decode("ascii") if raw.isascii() else ""
