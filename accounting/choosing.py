"""Which projects a volunteer's computers work for, and at what share. Pure: facts in, choice out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol


class Candidate(Protocol):
    """What the choice needs to know of a project."""

    @property
    def id(self) -> int: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def default_share(self) -> float: ...


class Wish(NamedTuple):
    """A volunteer's word on a project: chosen by hand or not, at which share (None: the project's default)."""

    is_chosen: bool
    resource_share: float | None


def choose(projects: Iterable[Candidate], wishes: Mapping[int, Wish]) -> dict[int, float]:
    """Resource shares by project id.

    Projects chosen by hand, if there are any; else every active project. A project that is not active is never
    chosen. Shares are relative numbers, as BOINC's: a project gets its share of the sum of all.
    """
    active = {project.id: project for project in projects if project.is_active}
    by_hand = {id_ for id_, wish in wishes.items() if wish.is_chosen}
    # A volunteer whose chosen projects have all ended gets what everybody gets, not an idle computer.
    chosen = (by_hand & active.keys()) or active.keys()
    shares = {}
    for id_ in sorted(chosen):
        wish = wishes.get(id_)
        by_wish = wish.resource_share if wish is not None and id_ in by_hand else None
        shares[id_] = active[id_].default_share if by_wish is None else by_wish
    return shares
