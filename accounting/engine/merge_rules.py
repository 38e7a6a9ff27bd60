"""Decide whether two records may be one computer, and which of them stays. Pure: facts in, verdict out.

A computer gets a second record when its client was reinstalled and nothing told us that it is the same machine. Then
the first record ended before the second began. Two records that reported at the same time are two computers.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Lifetime:
    """From the first to the last contact, both included."""

    start: dt.datetime
    end: dt.datetime


@dataclass(frozen=True, slots=True)
class Record:
    """The facts that the rules use.

    ``lifetimes``: the record's own, then those of records merged into it before.
    """

    id: int
    owner_id: int
    name: str
    lifetimes: tuple[Lifetime, ...]
    os_name: str
    processor: str
    is_merged: bool


class Rule(StrEnum):
    SELF = "self"
    UNKNOWN = "unknown"
    OWNER = "owner"
    MERGED = "merged"
    LIFETIMES = "lifetimes"
    SYSTEM = "system"
    PROCESSOR = "processor"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The rule that forbids a merge, and the records concerned: one with a missing fact, or two that differ.

    ``lifetimes``: the overlapping ones.
    """

    rule: Rule
    records: tuple[Record, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()


def in_order(a: Record, b: Record) -> tuple[Record, Record]:
    """Return (older, newer): the newer one is in use, or was last, and stays."""
    older, newer = sorted((a, b), key=lambda record: (record.lifetimes[0].end, record.id))
    return older, newer


def refusal(a: Record, b: Record) -> Refusal | None:
    """Return why the two cannot be merged; None if they can."""
    if a.id == b.id:
        return Refusal(Rule.SELF)
    if a.owner_id != b.owner_id:
        return Refusal(Rule.OWNER)
    for record in (a, b):
        if record.is_merged:
            return Refusal(Rule.MERGED, (record,))
    return _system(a, b) or _processor(a, b) or _lifetimes(a, b)


def _system(a: Record, b: Record) -> Refusal | None:
    for record in (a, b):
        if not record.os_name:
            return Refusal(Rule.SYSTEM, (record,))
    if os_family(a.os_name) == os_family(b.os_name):
        return None
    return Refusal(Rule.SYSTEM, (a, b))


def _processor(a: Record, b: Record) -> Refusal | None:
    for record in (a, b):
        if not record.processor:
            return Refusal(Rule.PROCESSOR, (record,))
    if _folded(a.processor) == _folded(b.processor):
        return None
    return Refusal(Rule.PROCESSOR, (a, b))


def _lifetimes(a: Record, b: Record) -> Refusal | None:
    for one in a.lifetimes:
        for other in b.lifetimes:
            if (one.start < other.end and other.start < one.end) or one == other:
                return Refusal(Rule.LIFETIMES, (a, b), (one, other))
    return None


# What clients call the systems of one family; an upgrade changes the rest of the name.
_FAMILIES = ("windows", "linux", "darwin", "android", "freebsd", "netbsd", "openbsd", "sunos")


def os_family(os_name: str) -> str:
    """Map "Microsoft Windows 11" to "windows"; an unknown system to its whole name, folded."""
    words = _folded(os_name).split()
    return next((family for family in _FAMILIES if family in words), " ".join(words))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
