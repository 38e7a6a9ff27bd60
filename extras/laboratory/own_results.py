"""Measure the goals on an app's own last results, from stored data; with the figures of the laboratory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from django.utils.translation import gettext

from credit.engine.rules import credit_of
from credit.models import App, AppVersion, Result, ValidateState, Workunit
from extras.laboratory.messages import DRIFT, HOSTS, REPLICAS, VERSIONS
from extras.laboratory.trials.figures import device_neutrality, drift, host_spread, wingman_variance
from extras.laboratory.trials.goals import Goal
from extras.laboratory.trials.population import Cheat
from extras.laboratory.trials.trial import Outcome
from portal.languages.messages import Message

NUMBERS: Final = (1000, 5000, 20_000)
"""The most workunits to measure."""
LEAST_RESULTS: Final = 100
LEAST_HOST_RESULTS: Final = 20
LEAST_FOR_DRIFT: Final = 1000


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version's results: their number, the number of computers, and the mean grant divided by the estimate's
    credit.
    """

    name: str
    nresults: int
    nhosts: int
    mean: float
    is_compared: bool


@dataclass(frozen=True, slots=True)
class Measured:
    nworkunits: int
    goals: Sequence[Goal]
    versions: Sequence[VersionRow]


def measure_app(app: App, nworkunits: int) -> Measured:
    """Measure the latest workunits with a canonical result. Two statements, and one for the versions' names."""
    outcomes = _outcomes(app, nworkunits)
    return Measured(len({outcome.number for outcome in outcomes}), _goals(outcomes), _versions(app, outcomes))


def _outcomes(app: App, nworkunits: int) -> list[Outcome]:
    """Return outcomes with grants and claims relative to the estimate, like those of simulated jobs."""
    last = Workunit.objects.filter(app=app, canonical_result__isnull=False).order_by("-id").values("pk")[:nworkunits]
    rows = Result.objects.filter(
        workunit__in=last, validate_state=ValidateState.VALID, granted_credit__isnull=False
    ).order_by("workunit_id", "pk")
    columns = rows.values_list(
        "workunit_id",
        "host_id",
        "app_version_id",
        "granted_credit",
        "claimed_credit",
        "is_approximate",
        "workunit__fpops_est",
    )
    numbers: dict[int, int] = {}
    nth: Counter[int | None] = Counter()
    outcomes = []
    for workunit, host, version, granted, claimed, is_approximate, fpops_est in columns:
        nth[host] += 1
        worth = credit_of(fpops_est)
        outcomes.append(
            Outcome(
                numbers.setdefault(workunit, len(numbers)),
                host or 0,
                nth[host],
                version,
                (granted or 0.0) / worth,
                (claimed or 0.0) / worth,
                bool(is_approximate) or claimed is None,
                Cheat.NONE,
                1.0,
                False,
            )
        )
    return outcomes


def _goals(outcomes: Sequence[Outcome]) -> list[Goal]:
    """Return the goals with enough results."""
    on_hosts = [outcome for outcome in outcomes if outcome.host]  # not of deleted computers
    goals: list[tuple[Message, float, float | None]] = []
    if sum(number >= LEAST_RESULTS for number in _count(outcomes, "kind_index").values()) > 1:
        goals.append((VERSIONS, device_neutrality(outcomes, LEAST_RESULTS), 0.03))
    if sum(number >= LEAST_HOST_RESULTS for number in _count(outcomes, "host").values()) > 1:
        spread = host_spread(on_hosts, LEAST_HOST_RESULTS)
        goals.append((HOSTS, spread, 0.05))
    if len({outcome.number for outcome in outcomes}) >= LEAST_FOR_DRIFT:
        goals.append((DRIFT, drift(outcomes), 0.02))
    if len(outcomes) > len({outcome.number for outcome in outcomes}):
        goals.append((REPLICAS, wingman_variance(outcomes), None))
    return [Goal(message, value, value, bound) for message, value, bound in goals]


def _count(outcomes: Sequence[Outcome], name: str) -> Counter[int]:
    return Counter(getattr(outcome, name) for outcome in outcomes if getattr(outcome, name))


def _versions(app: App, outcomes: Sequence[Outcome]) -> list[VersionRow]:
    of_version: dict[int | None, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        of_version[outcome.kind_index].append(outcome)
    names = {
        version.pk: str(version) for version in AppVersion.objects.filter(app=app).select_related("app", "platform")
    }
    return [
        VersionRow(
            names.get(version or 0, gettext("volunteers’ own programs")),
            len(rows),
            len({outcome.host for outcome in rows}),
            fmean(outcome.granted for outcome in rows),
            version is not None and len(rows) >= LEAST_RESULTS,
        )
        for version, rows in sorted(of_version.items(), key=lambda pair: -len(pair[1]))
    ]
