"""Which projects a computer works for, and at what share. Pure: facts and ``now`` in, a choice with its reasons out.

A project that the volunteer does not want, that ended or is down, or that has no program for the computer is never
chosen. Of the others, those come first that the volunteer likes. Among equals a draw decides in which a project's
chance is its operator's share, times what it recently got too little; the draw of a computer and a project always
falls the same, so a choice stays as it is until a reason comes up. Every processor type gets a project if one is to
be had, and a computer has two projects where possible, so that it is not idle when one of them has no work.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import exp, log
from operator import attrgetter
from typing import Final, NamedTuple

from accounting.engine.choice import keywords
from accounting.engine.choice.facts import (
    CPU,
    Choice,
    Computer,
    ProjectFacts,
    Score,
    Trouble,
    TroubleKind,
    Verdict,
    Volunteer,
)

MIN_PROJECTS: Final = 2
# As many as there are equals to have; more only for a processor type that none of them serves.
USUAL_PROJECTS: Final = 5
MAX_PROJECTS: Final = 10
# Types beyond that are not looked at; a computer has one to four.
MAX_TYPES: Final = 5
# A project that is there already is left only for one of twice the weight.
STAY_POINTS: Final = log(2)
_ONLY_CPU: Final = frozenset({CPU})
# How long a project that the computer has may be without work, or not answer, before it is passed over.
GRACE: Final = dt.timedelta(days=1)
# What a project gets, of its share, that is there to fill a gap beside ones that are liked.
FILLS: Final = 0.1
MAX_SHARE: Final = 1e6

# Programs for these run on the first, too (BOINC protocol, alternative platforms).
_ALSO_RUNS: Final[Mapping[str, str]] = {
    "windows_x86_64": "windows_intelx86",
    "x86_64-pc-linux-gnu": "i686-pc-linux-gnu",
    "x86_64-apple-darwin": "i686-apple-darwin",
    "arm64-apple-darwin": "x86_64-apple-darwin",
    "aarch64-android-linux-gnu": "arm-android-linux-gnu",
}


@dataclass(slots=True, eq=False)
class _Entrant:
    """A project that may be chosen: ``could`` serve these types, ``serves`` those of them now.

    ``rank``: the smaller the better. ``points``: of `Score`, its base, need, stay and draw.
    """

    project: ProjectFacts
    liking: float
    because: tuple[int, ...]
    points: tuple[float, float, float, float]
    troubles: tuple[Trouble, ...]
    rank: tuple[float, float, int]
    weight: float
    could: frozenset[str]
    serves: frozenset[str]
    is_well: bool


class _Selected(NamedTuple):
    """What came of the choice: shares by id, the types that each is there for, who competed with whom."""

    entrants: Sequence[_Entrant]
    shares: dict[int, float]
    covers: dict[int, list[str]]
    pool: Sequence[_Entrant]
    spare: set[int]
    are_some_liked: bool


_rank: Final = attrgetter("rank")
_id: Final = attrgetter("id")


def choose(projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime) -> Choice:
    """The projects of one computer.

    Projects picked by hand, if any of them takes computers: these and no others, at the shares picked, whatever their
    keywords. Else 2 to 10 projects by the rules above; fewer if there are not as many that may be chosen.
    """
    projects = sorted(projects, key=_id)
    picked = _picked(projects, volunteer)
    if picked:
        return _by_hand(projects, picked)
    entrants, refused = _entrants(projects, volunteer, computer, now)
    selected = _select(entrants, computer.types[:MAX_TYPES])
    return Choice(selected.shares, (*refused, *_scores(selected)))


def choose_shares(
    projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime
) -> dict[int, float]:
    """The shares of `choose` without its reasons, which only people ask for; ``projects`` by id."""
    picked = _picked(projects, volunteer)
    if picked:
        return picked
    return _select(_entrants(projects, volunteer, computer, now)[0], computer.types[:MAX_TYPES]).shares


def _entrants(
    projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime
) -> tuple[list[_Entrant], list[Score]]:
    """The projects that may be chosen, best first, and why the others may not."""
    entrants: list[_Entrant] = []
    refused: list[Score] = []
    for project in projects:
        could = _could(project, computer)
        score = _refusal(project, volunteer, computer, could)
        if score is None:
            entrants.append(_entrant(project, volunteer, computer, could, now))
        else:
            refused.append(score)
    entrants.sort(key=_rank)
    return entrants, refused


def _picked(projects: Iterable[ProjectFacts], volunteer: Volunteer) -> dict[int, float]:
    """The shares of the projects that were picked by hand and take computers."""
    shares: dict[int, float] = {}
    wishes = volunteer.wishes
    if wishes:
        for project in projects:
            wish = wishes.get(project.id)
            if wish is None or not wish.is_chosen or not project.is_active or project.id in volunteer.without_account:
                continue
            shares[project.id] = project.share if wish.resource_share is None else wish.resource_share
    return shares


def _by_hand(projects: Sequence[ProjectFacts], shares: dict[int, float]) -> Choice:
    scores = []
    for project in projects:
        if project.id in shares:
            scores.append(Score(project.id, Verdict.BY_HAND, shares[project.id]))
        else:
            scores.append(Score(project.id, Verdict.NOT_PICKED if project.is_active else Verdict.ENDED))
    return Choice(shares, tuple(scores), is_by_hand=True)


def _could(project: ProjectFacts, computer: Computer) -> frozenset[str]:
    """The processor types of the computer that the project has programs for and may use."""
    could = _programs(project.versions, computer.types, computer.platform)
    barred = computer.barred.get(project.id)
    return could - barred if barred else could


@lru_cache(maxsize=1 << 12)
def _programs(versions: frozenset[tuple[str, str]], types: tuple[str, ...], platform: str) -> frozenset[str]:
    """Those of the types that the versions serve on the platform."""
    looked_at = frozenset(types[:MAX_TYPES])
    if not versions:
        return looked_at
    runs = ("", platform, _ALSO_RUNS.get(platform, ""))
    # Of a computer whose platform is unknown, any might be right.
    return looked_at & {type_ for where, type_ in versions if where in runs or not platform}


def _refusal(project: ProjectFacts, volunteer: Volunteer, computer: Computer, could: frozenset[str]) -> Score | None:
    """Why the project cannot be chosen at all; None if it can."""
    verdict: Verdict | None = None
    because: tuple[int, ...] = ()
    if not project.is_active:
        verdict = Verdict.ENDED
    elif vetoes := project.kin & volunteer.no:
        verdict, because = Verdict.VETOED, tuple(sorted(vetoes))
    elif project.id in computer.excluded:
        verdict = Verdict.EXCLUDED
    elif project.id in volunteer.without_account:
        verdict = Verdict.NO_ACCOUNT
    elif project.is_down:
        verdict = Verdict.DOWN
    elif not could and not (project.id in computer.current and project.id in computer.barred):
        # One that the computer has, and that its owner keeps from all its processors, stays and does nothing.
        verdict = Verdict.UNFIT
    return Score(project.id, verdict, because=because) if verdict is not None else None


def _entrant(
    project: ProjectFacts, volunteer: Volunteer, computer: Computer, could: frozenset[str], now: dt.datetime
) -> _Entrant:
    troubles = (*project.troubles, *computer.troubles.get(project.id, ()))
    is_here = project.id in computer.current
    serves, is_well = _at_work(troubles, could, is_here=is_here, now=now) if troubles else (could, True)
    if project.id in computer.resting:
        serves = frozenset()
    liking, because = _liking(project, volunteer.yes)
    # A GPU does many times the work of the CPU beside it; CPUs are balanced by the computers without GPUs.
    on_gpu = could != _ONLY_CPU
    base, need = project.base, project.needs[on_gpu]
    stay, draw = STAY_POINTS if is_here else 0.0, _draw(computer.id, project.id)
    rank = -liking, -(base + need + stay + draw), project.id
    points = base, need, stay, draw
    weight = project.weights[on_gpu]
    return _Entrant(project, liking, because, points, troubles, rank, weight, could, serves, is_well)


def _at_work(
    troubles: Iterable[Trouble], could: frozenset[str], *, is_here: bool, now: dt.datetime
) -> tuple[frozenset[str], bool]:
    """The types that the project has work for now, and whether it can be chosen for any of all.

    What the computer has already is given some time before it is passed over, as a gap in the work is often short.
    """
    idle: set[str] = set()
    lasting: set[str] = set()
    for kind, type_, since in troubles:
        types = {type_} if type_ else could
        idle |= types
        if not is_here or kind == TroubleKind.ENDED or now - since >= GRACE:
            lasting |= types
    return could - idle, bool(could - lasting)


def _liking(project: ProjectFacts, yes: frozenset[int]) -> tuple[float, tuple[int, ...]]:
    """How much the volunteer likes the project, up to 1 for its science and 1 for its place; and the keywords for it.

    A "yes" to a keyword is one to all that is part of it.
    """
    if not yes or yes.isdisjoint(project.kin):
        return 0.0, ()
    sums: dict[str, float] = {}
    because: set[int] = set()
    for id_, weight in project.keywords.items():
        keyword = keywords.KEYWORDS.get(id_)
        if keyword is not None and (liked := yes.intersection(keyword.kin)):
            because |= liked
            sums[keyword.category] = sums.get(keyword.category, 0.0) + weight
    # Two decimals: what differs by less is equally liked.
    return round(sum(min(1.0, each) for each in sums.values()), 2), tuple(sorted(because))


@lru_cache(maxsize=1 << 16)
def _draw(computer_id: int, project_id: int) -> float:
    """A number from the Gumbel distribution, always the same for this computer and project.

    The largest of ln(weight) + Gumbel wins with a chance in proportion to its weight.
    """
    digest = blake2b(b"%d %d" % (computer_id, project_id), digest_size=8).digest()
    return -log(-log((int.from_bytes(digest) + 0.5) / 2**64))


def _select(entrants: Sequence[_Entrant], types: Sequence[str]) -> _Selected:
    """Who of the entrants, best first, is chosen, and at what share."""
    chosen: dict[int, _Entrant] = {}
    covers = _cover(entrants, types, chosen)
    well = [entrant for entrant in entrants if entrant.is_well]
    liked = [entrant for entrant in well if entrant.liking > 0]
    pool = liked or well
    for entrant in pool:
        if len(chosen) >= USUAL_PROJECTS:
            break
        chosen.setdefault(entrant.project.id, entrant)
    spare = set()
    if len(chosen) < MIN_PROJECTS:
        for entrant in (*well, *entrants):
            if len(chosen) >= MIN_PROJECTS:
                break
            if entrant.project.id not in chosen:
                chosen[entrant.project.id] = entrant
                spare.add(entrant.project.id)
    chances = _chances(pool)
    shares = {id_: _share(chosen[id_], chances.get(id_, 1.0), beside_liked=bool(liked)) for id_ in sorted(chosen)}
    return _Selected(entrants, shares, covers, pool, spare, bool(liked))


def _scores(selected: _Selected) -> list[Score]:
    """How the entrants came out, best first."""
    scores = []
    for entrant in selected.entrants:
        id_ = entrant.project.id
        if id_ in selected.shares:
            why = _why(entrant, selected.pool, selected.spare)
            scores.append(_score(entrant, why, selected.shares[id_], tuple(selected.covers.get(id_, ()))))
        else:
            scores.append(_score(entrant, _why_not(entrant, selected.are_some_liked), None, ()))
    return scores


def _score(entrant: _Entrant, verdict: Verdict, share: float | None, covers: tuple[str, ...]) -> Score:
    return Score(
        entrant.project.id,
        verdict,
        share,
        entrant.liking,
        entrant.because,
        *entrant.points,
        covers,
        entrant.troubles,
    )


def _cover(entrants: Sequence[_Entrant], types: Sequence[str], chosen: dict[int, _Entrant]) -> dict[int, list[str]]:
    """Choose the best project for each processor type that none chosen before serves; return which got which."""
    covers: dict[int, list[str]] = {}
    for type_ in types:
        best = _best_for(type_, entrants, chosen)
        if best is not None:
            chosen.setdefault(best.project.id, best)
            covers.setdefault(best.project.id, []).append(type_)
    return covers


def _best_for(type_: str, entrants: Sequence[_Entrant], chosen: Mapping[int, _Entrant]) -> _Entrant | None:
    for entrant in (*chosen.values(), *entrants):
        if type_ in entrant.serves:
            return entrant
    # A project that had no work for it is still better than none.
    return next((entrant for entrant in entrants if type_ in entrant.could), None)


def _chances(pool: Sequence[_Entrant]) -> dict[int, float]:
    """How likely each of the pool is to win a place, over all draws; certain ones are left out.

    Only those compete that are as much liked as the one at the last place. Their places are the first arrivals of
    independent exponential clocks with rates as their weights: one has arrived by time t with the chance
    1 - exp(-weight t), and t is where as many are expected as there are places.
    """
    if len(pool) <= USUAL_PROJECTS:
        return {}
    liking = pool[USUAL_PROJECTS - 1].liking
    rivals = [entrant for entrant in pool if entrant.liking == liking]
    places = USUAL_PROJECTS - sum(entrant.liking > liking for entrant in pool)
    if places >= len(rivals):
        return {}
    time = _time_until(places, tuple(entrant.weight for entrant in rivals))
    return {entrant.project.id: 1.0 - exp(-entrant.weight * time) for entrant in rivals}


@lru_cache(maxsize=1 << 12)
def _time_until(arrived: float, rates: tuple[float, ...]) -> float:
    """When so many have arrived, by Newton's method: as their number is concave in time, it never overshoots."""
    time = 0.0
    for _ in range(50):
        left = [exp(-rate * time) for rate in rates]
        missing = arrived - (len(rates) - sum(left))
        slope = sum(rate * part for rate, part in zip(rates, left, strict=True))
        if missing <= 1e-6 or slope <= 0:
            break
        time += missing / slope
    return time


def _share(entrant: _Entrant, chance: float, *, beside_liked: bool) -> float:
    """The resource share; a project that wins a place on few computers gets the more on each."""
    if entrant.project.share <= 0:
        return 0.0
    liking = entrant.liking
    part = max(FILLS, min(1.0, liking)) if beside_liked else 1.0
    share = min(MAX_SHARE, part * entrant.weight / max(chance, 1e-3))
    # Three digits are enough, and keep clients from being told of changes that nobody would notice.
    return float(f"{share:.3g}")


def _why(entrant: _Entrant, pool: Sequence[_Entrant], spare: set[int]) -> Verdict:
    if entrant.liking > 0:
        return Verdict.LIKED
    if entrant.project.id in spare:
        return Verdict.SPARE
    return Verdict.EQUAL if entrant in pool[:USUAL_PROJECTS] else Verdict.COVERS


def _why_not(entrant: _Entrant, some_are_liked: bool) -> Verdict:
    if not entrant.is_well:
        return Verdict.PASSED_OVER
    return Verdict.LESS_LIKED if some_are_liked and entrant.liking <= 0 else Verdict.CROWDED_OUT
