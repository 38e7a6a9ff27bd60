"""Which projects a computer works for, and at what share. Pure: facts and ``now`` in, a choice with its reasons out.

A project is never chosen if the volunteer does not want it, if it has ended or is down, or if it has no program for
the computer. Of the others, those that the volunteer likes come first. Among equals a draw decides. A project's chance
in it is its operator's share, times a boost if it recently got too little. The draw for a computer and a project always
gives the same number, so a choice changes only for a reason. Every processor type gets a project if there is one for
it. A computer gets two projects where possible, so that it has work when one of them has none.
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

from accounting.engine.choice.facts import (
    CPU,
    MAX_SHARE,
    Choice,
    Computer,
    ProjectFacts,
    Score,
    Trouble,
    TroubleKind,
    Verdict,
    Volunteer,
)
from portal.wire import keywords

MIN_PROJECTS: Final = 2
# A computer gets more only for a processor type that none of these serves.
USUAL_PROJECTS: Final = 5
MAX_PROJECTS: Final = 10
# Further types are ignored; a computer has one to four.
MAX_TYPES: Final = 5
# The computer leaves one of its projects only for one of twice its weight.
STAY_POINTS: Final = log(2)
_ONLY_CPU: Final = frozenset({CPU})
# How long one of the computer's projects may be without work, or not answer, before it is passed over.
GRACE: Final = dt.timedelta(days=1)
# The fraction of its share that a project gets if it only fills a gap beside liked projects.
FILLS: Final = 0.1

# Programs for these run on the first, too (BOINC protocol, alternative platforms).
ALTERNATIVE_PLATFORMS: Final[Mapping[str, str]] = {
    "windows_x86_64": "windows_intelx86",
    "x86_64-pc-linux-gnu": "i686-pc-linux-gnu",
    "x86_64-apple-darwin": "i686-apple-darwin",
    "arm64-apple-darwin": "x86_64-apple-darwin",
    "aarch64-android-linux-gnu": "arm-android-linux-gnu",
}


@dataclass(slots=True, eq=False)
class _Candidate:
    """A project that may be chosen: it ``could`` serve these types, and ``serves`` those of them now.

    ``rank``: smaller is better. ``points``: base, need, stay and draw of `Score`.
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
    """The result of the selection: shares by id, the types that each was chosen for, the competing projects."""

    candidates: Sequence[_Candidate]
    shares: dict[int, float]
    covers: dict[int, list[str]]
    pool: Sequence[_Candidate]
    seconds: set[int]
    are_some_liked: bool


_rank: Final = attrgetter("rank")
_id: Final = attrgetter("id")


def choose(projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime) -> Choice:
    """Choose the projects of one computer.

    If any project picked by hand takes computers: these and no others, at the shares picked, whatever their keywords.
    Else 2 to 10 projects by the rules above; fewer if there are not enough.
    """
    projects = sorted(projects, key=_id)
    picked = _picked(projects, volunteer)
    if picked:
        return _by_hand(projects, picked)
    candidates, refused = _candidates(projects, volunteer, computer, now)
    selected = _select(candidates, computer.types[:MAX_TYPES])
    return Choice(selected.shares, (*refused, *_scores(selected)))


def choose_shares(
    projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime
) -> dict[int, float]:
    """Return the shares of `choose` without the reasons, which only pages show. ``projects``: in the order of their
    ids.
    """
    picked = _picked(projects, volunteer)
    if picked:
        return picked
    return _select(_candidates(projects, volunteer, computer, now)[0], computer.types[:MAX_TYPES]).shares


def _candidates(
    projects: Iterable[ProjectFacts], volunteer: Volunteer, computer: Computer, now: dt.datetime
) -> tuple[list[_Candidate], list[Score]]:
    """Return the projects that may be chosen, best first, and why the others may not."""
    candidates: list[_Candidate] = []
    refused: list[Score] = []
    for project in projects:
        could = _could(project, computer)
        score = _refusal(project, volunteer, computer, could)
        if score is None:
            candidates.append(_candidate(project, volunteer, computer, could, now))
        else:
            refused.append(score)
    candidates.sort(key=_rank)
    return candidates, refused


def _picked(projects: Iterable[ProjectFacts], volunteer: Volunteer) -> dict[int, float]:
    """Return the shares of the projects that were picked by hand and take computers."""
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
    """Return the computer's processor types that the project has programs for and may use."""
    could = _programs(project.versions, computer.types, computer.platform)
    excluded_types = computer.excluded_types.get(project.id)
    return could - excluded_types if excluded_types else could


@lru_cache(maxsize=1 << 12)
def _programs(versions: frozenset[tuple[str, str]], types: tuple[str, ...], platform: str) -> frozenset[str]:
    """Return those of the types that the versions serve on the platform."""
    looked_at = frozenset(types[:MAX_TYPES])
    if not versions:
        return looked_at
    runs = ("", platform, ALTERNATIVE_PLATFORMS.get(platform, ""))
    # If the computer's platform is unknown, any version might fit.
    return looked_at & {type_ for where, type_ in versions if where in runs or not platform}


def _refusal(project: ProjectFacts, volunteer: Volunteer, computer: Computer, could: frozenset[str]) -> Score | None:
    """Return why the project cannot be chosen at all; None if it can."""
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
    elif not could and not _stays_idle(project, computer):
        verdict = Verdict.UNFIT
    return Score(project.id, verdict, because=because) if verdict is not None else None


def _stays_idle(project: ProjectFacts, computer: Computer) -> bool:
    """Whether a project stays on the computer but does nothing, because its owner excluded it from all types that it
    could serve.
    """
    return (
        project.id in computer.current
        and project.id in computer.excluded_types
        and bool(_programs(project.versions, computer.types, computer.platform))
    )


def _candidate(
    project: ProjectFacts, volunteer: Volunteer, computer: Computer, could: frozenset[str], now: dt.datetime
) -> _Candidate:
    troubles = (*project.troubles, *computer.troubles.get(project.id, ()))
    is_here = project.id in computer.current
    serves, is_well = _at_work(troubles, could, is_here=is_here, now=now) if troubles else (could, True)
    if project.id in computer.paused:
        serves = frozenset()
    liking, because = _liking(project, volunteer.yes)
    # A GPU does many times the work of the CPU beside it; CPUs are balanced by the computers without GPUs.
    on_gpu = could != _ONLY_CPU
    base, need = project.base, project.needs[on_gpu]
    stay, draw = STAY_POINTS if is_here else 0.0, _draw(computer.id, project.id)
    rank = -liking, -(base + need + stay + draw), project.id
    points = base, need, stay, draw
    weight = project.weights[on_gpu]
    return _Candidate(project, liking, because, points, troubles, rank, weight, could, serves, is_well)


def _at_work(
    troubles: Iterable[Trouble], could: frozenset[str], *, is_here: bool, now: dt.datetime
) -> tuple[frozenset[str], bool]:
    """Return the types that the project has work for now, and whether it can be chosen for any type.

    A project that the computer already has is given some time before it is passed over, as a gap in the work is often
    short.
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
    """Rate how much the volunteer likes the project, up to 1 for its science and 1 for its place; with the keywords
    responsible.

    A "yes" to a keyword includes everything below it.
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
    # Two decimals: smaller differences do not count.
    return round(sum(min(1.0, amount) for amount in sums.values()), 2), tuple(sorted(because))


@lru_cache(maxsize=1 << 16)
def _draw(computer_id: int, project_id: int) -> float:
    """Draw a number from the Gumbel distribution, always the same for this computer and project.

    The largest of ln(weight) + Gumbel wins with a chance proportional to its weight.
    """
    digest = blake2b(b"%d %d" % (computer_id, project_id), digest_size=8).digest()
    return -log(-log((int.from_bytes(digest) + 0.5) / 2**64))


def _select(candidates: Sequence[_Candidate], types: Sequence[str]) -> _Selected:
    """Select from the candidates, best first, and give each its share."""
    chosen: dict[int, _Candidate] = {}
    covers = _cover_types(candidates, types, chosen)
    well = [candidate for candidate in candidates if candidate.is_well]
    liked = [candidate for candidate in well if candidate.liking > 0]
    pool = liked or well
    for candidate in pool:
        if len(chosen) >= USUAL_PROJECTS:
            break
        chosen.setdefault(candidate.project.id, candidate)
    seconds = set()
    if len(chosen) < MIN_PROJECTS:
        for candidate in (*well, *candidates):
            if len(chosen) >= MIN_PROJECTS:
                break
            if candidate.project.id not in chosen:
                chosen[candidate.project.id] = candidate
                seconds.add(candidate.project.id)
    probabilities = _probabilities(pool)
    shares = {id_: _share(chosen[id_], probabilities.get(id_, 1.0), beside_liked=bool(liked)) for id_ in sorted(chosen)}
    return _Selected(candidates, shares, covers, pool, seconds, bool(liked))


def _scores(selected: _Selected) -> list[Score]:
    """Return the candidates' scores, best first."""
    scores = []
    for candidate in selected.candidates:
        id_ = candidate.project.id
        if id_ in selected.shares:
            why = _why(candidate, selected.pool, selected.seconds)
            scores.append(_score(candidate, why, selected.shares[id_], tuple(selected.covers.get(id_, ()))))
        else:
            scores.append(_score(candidate, _why_not(candidate, selected.are_some_liked), None, ()))
    return scores


def _score(candidate: _Candidate, verdict: Verdict, share: float | None, covers: tuple[str, ...]) -> Score:
    return Score(
        candidate.project.id,
        verdict,
        share,
        candidate.liking,
        candidate.because,
        *candidate.points,
        covers,
        candidate.troubles,
    )


def _cover_types(
    candidates: Sequence[_Candidate], types: Sequence[str], chosen: dict[int, _Candidate]
) -> dict[int, list[str]]:
    """Choose the best project for each processor type that none chosen before serves; return which got which."""
    covers: dict[int, list[str]] = {}
    for type_ in types:
        best = _best_for(type_, candidates, chosen)
        if best is not None:
            chosen.setdefault(best.project.id, best)
            covers.setdefault(best.project.id, []).append(type_)
    return covers


def _best_for(type_: str, candidates: Sequence[_Candidate], chosen: Mapping[int, _Candidate]) -> _Candidate | None:
    for candidate in (*chosen.values(), *candidates):
        if type_ in candidate.serves:
            return candidate
    # A project that currently has no work for it is still better than none.
    return next((candidate for candidate in candidates if type_ in candidate.could), None)


def _probabilities(pool: Sequence[_Candidate]) -> dict[int, float]:
    """Return how likely each of the pool is to win a place, over all draws; certain winners are left out.

    Only those compete that are liked as much as the one at the last place. Their places are the first arrivals of
    independent exponential clocks with their weights as rates: one has arrived by time t with probability 1 -
    exp(-weight t), and t is where the expected number of arrivals equals the number of places.
    """
    if len(pool) <= USUAL_PROJECTS:
        return {}
    liking = pool[USUAL_PROJECTS - 1].liking
    rivals = [candidate for candidate in pool if candidate.liking == liking]
    places = USUAL_PROJECTS - sum(candidate.liking > liking for candidate in pool)
    if places >= len(rivals):
        return {}
    time = _time_until(places, tuple(candidate.weight for candidate in rivals))
    return {candidate.project.id: 1.0 - exp(-candidate.weight * time) for candidate in rivals}


@lru_cache(maxsize=1 << 12)
def _time_until(arrived: float, rates: tuple[float, ...]) -> float:
    """Return when this many are expected to have arrived. Newton's method never overshoots, as the number is concave in
    time.
    """
    time = 0.0
    for _ in range(50):
        left = [exp(-rate * time) for rate in rates]
        missing = arrived - (len(rates) - sum(left))
        slope = sum(rate * part for rate, part in zip(rates, left, strict=True))
        if missing <= 1e-6 or slope <= 0:
            break
        time += missing / slope
    return time


def _share(candidate: _Candidate, chance: float, *, beside_liked: bool) -> float:
    """Return the resource share; a project that wins a place on few computers gets more on each."""
    if candidate.project.share <= 0:
        return 0.0
    liking = candidate.liking
    part = max(FILLS, min(1.0, liking)) if beside_liked else 1.0
    share = min(MAX_SHARE, part * candidate.weight / max(chance, 1e-3))
    # Three digits, so that clients are not sent negligible changes.
    return float(f"{share:.3g}")


def _why(candidate: _Candidate, pool: Sequence[_Candidate], seconds: set[int]) -> Verdict:
    if candidate.liking > 0:
        return Verdict.LIKED
    if candidate.project.id in seconds:
        return Verdict.SECOND_PROJECT
    return Verdict.EQUAL if candidate in pool[:USUAL_PROJECTS] else Verdict.COVERS_TYPE


def _why_not(candidate: _Candidate, some_are_liked: bool) -> Verdict:
    if not candidate.is_well:
        return Verdict.PASSED_OVER
    return Verdict.LESS_LIKED if some_are_liked and candidate.liking <= 0 else Verdict.OUTRANKED
