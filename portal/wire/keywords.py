"""BOINC's keywords: the fields of science and the places of projects. Pure.

The numbers are those that clients forward to project schedulers (BOINC protocol, AM RPC reply, user_keywords), so they
are never changed or reused. data/keywords.csv has one keyword a line, parents before their children.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SCIENCE: Final = "science"
PLACE: Final = "place"


@dataclass(frozen=True, slots=True)
class Keyword:
    """One keyword. ``kin``: its own number and those of all its ancestors, itself first."""

    id: int
    category: str
    name: str
    kin: tuple[int, ...]

    @property
    def level(self) -> int:
        """0 for a keyword without a parent."""
        return len(self.kin) - 1


def _read(path: Path) -> dict[int, Keyword]:
    keywords: dict[int, Keyword] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            id_ = int(row["id"])
            above = keywords[int(row["parent"])].kin if row["parent"] else ()
            if id_ in keywords:
                raise ValueError(f"{path.name}: keyword {id_} occurs twice")
            keywords[id_] = Keyword(id_, row["category"], row["name"], (id_, *above))
    return keywords


KEYWORDS: Final[Mapping[int, Keyword]] = _read(Path(__file__).parent / "data" / "keywords.csv")
"""All keywords by number; each comes before its descendants."""


def known(ids: Iterable[int]) -> frozenset[int]:
    """The numbers that are keywords."""
    return frozenset(id_ for id_ in ids if id_ in KEYWORDS)


def kin(ids: Iterable[int]) -> frozenset[int]:
    """The keywords and all their ancestors; an unknown number has only itself."""
    return frozenset(kin_id for id_ in ids for kin_id in (KEYWORDS[id_].kin if id_ in KEYWORDS else (id_,)))


def under(category: str) -> Iterator[Keyword]:
    """The keywords of a category, each followed by its descendants."""
    return (keyword for keyword in KEYWORDS.values() if keyword.category == category)


def names(ids: Collection[int]) -> list[str]:
    """Names of keywords, in the order of the tree; unknown numbers are left out."""
    return [keyword.name for id_, keyword in KEYWORDS.items() if id_ in ids]
