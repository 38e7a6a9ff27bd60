"""The figures of a preview, from the outcomes of a replay; plain data of bounded size. Pure."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import log2
from typing import Any, Final

from credit.previews.replay import Guesses, ReplayedResult
from credit.previews.run import ReplayedDecision

EXACT: Final = 1e-9
"""The relative tolerance within which a replayed grant equals the actual one."""
MOST_HOSTS: Final = 10
MOST_DAYS: Final = 100
UNEQUAL: Final = 0.10
"""The threshold of a warning: how far equal jobs may earn more, or less, than the mean of all."""
MOVED: Final = 0.02
FEWEST: Final = 30
"""With fewer results a group's mean says little."""
_SIZES_PER_DOUBLING: Final = 4
EDGES: Final = (-0.5, -0.2, -0.1, -0.05, -0.01, 0.01, 0.05, 0.1, 0.2, 0.5)
NO_VERSION: Final = "volunteers' own programs"
NO_CLASS: Final = "no longer known"


@dataclass(slots=True)
class CreditSums:
    """Sums over some results: actual and proposed credit, and the mean for all results of their sizes."""

    before: float = 0.0
    after: float = 0.0
    mean_before: float = 0.0
    mean_after: float = 0.0
    nresults: int = 0
    hosts: set[int] = field(default_factory=set)

    def add(self, outcome: ReplayedResult, mean: tuple[float, float]) -> None:
        self.before += outcome.before.credit or 0.0
        self.after += outcome.after.credit or 0.0
        self.mean_before += mean[0]
        self.mean_after += mean[1]
        self.nresults += 1
        if outcome.host:
            self.hosts.add(outcome.host)

    @property
    def ratios(self) -> tuple[float | None, float | None]:
        """Return what equal jobs earn here relative to the mean: currently, and with the change."""
        return (
            self.before / self.mean_before if self.mean_before else None,
            self.after / self.mean_after if self.mean_after else None,
        )

    def figures(self) -> dict[str, Any]:
        before, after = self.ratios
        return {
            "before": self.before,
            "after": self.after,
            "nresults": self.nresults,
            "nhosts": len(self.hosts),
            "ratio_before": before,
            "ratio_after": after,
        }


def figures(
    outcomes: Sequence[ReplayedResult],
    guesses: Guesses,
    version_names: Mapping[int, str],
    class_of_host: Mapping[int, str],
) -> dict[str, Any]:
    """Compute everything that the page shows, except for names of computers. There is at least one outcome."""
    decided = [o for o in outcomes if o.before.credit is not None and o.after.credit is not None]
    means = _means_by_size(decided)

    def grouped(key: Callable[[ReplayedResult], Hashable]) -> dict[Any, CreditSums]:
        groups: dict[Any, CreditSums] = defaultdict(CreditSums)
        for outcome in decided:
            groups[key(outcome)].add(outcome, means[_size(outcome)])
        return dict(sorted(groups.items()))

    versions = grouped(lambda o: version_names.get(o.version, NO_VERSION))
    classes = grouped(lambda o: class_of_host.get(o.host, NO_CLASS))
    total = CreditSums()
    for outcome in decided:
        total.add(outcome, (0.0, 0.0))
    days = max(1 / 24, (max(o.at for o in outcomes) - min(o.at for o in outcomes)) / 86400)
    return {
        "window": _window(outcomes, days),
        "exact": _exactness(outcomes, guesses),
        "total": {"before": total.before, "after": total.after, "days": days},
        "days": [
            [day, sums.before, sums.after]
            for day, sums in grouped(lambda o: dt.datetime.fromtimestamp(o.at, dt.UTC).date().isoformat()).items()
        ][-MOST_DAYS:],
        "versions": [{"name": name, **sums.figures()} for name, sums in versions.items()],
        "classes": [{"name": name, **sums.figures()} for name, sums in classes.items()],
        "waiting": _waiting(outcomes),
        "spread": _spread(decided),
        "hosts": _most_affected(decided),
    }


def _size(outcome: ReplayedResult) -> int:
    return round(_SIZES_PER_DOUBLING * log2(max(1.0, outcome.workunit_facts.fpops_est)))


def _means_by_size(outcomes: Sequence[ReplayedResult]) -> dict[int, tuple[float, float]]:
    """Return the mean credit of all results of a size: currently, and with the change."""
    sums: dict[int, CreditSums] = defaultdict(CreditSums)
    for outcome in outcomes:
        sums[_size(outcome)].add(outcome, (0.0, 0.0))
    return {size: (s.before / s.nresults, s.after / s.nresults) for size, s in sums.items()}


def _window(outcomes: Sequence[ReplayedResult], days: float) -> dict[str, Any]:
    return {
        "begin": min(o.at for o in outcomes),
        "end": max(o.at for o in outcomes),
        "days": days,
        "nworkunits": len({o.workunit for o in outcomes if not o.is_late}),
        "nresults": len(outcomes),
    }


def _exactness(outcomes: Sequence[ReplayedResult], guesses: Guesses) -> dict[str, int]:
    """Count workunits for which the replay under current settings gives the actual grant, and what it had to guess."""
    different = {
        o.workunit for o in outcomes if abs((o.before.credit or 0.0) - o.granted) > EXACT * max(o.granted, 1e-9)
    }
    return {
        "nworkunits": len({o.workunit for o in outcomes}),
        "ndifferent": len(different),
        "nparts": sum(o.partial_credit > 0 for o in outcomes),
        "nrecords": guesses.records,
        "nversions": guesses.versions,
    }


def _waiting(outcomes: Iterable[ReplayedResult]) -> dict[str, Any]:
    """Count single results that would have waited for a second one."""
    before = {o.workunit for o in outcomes if o.before.credit is None}
    after = {o.workunit for o in outcomes if o.after.credit is None}
    return {
        "before": len(before),
        "after": len(after),
        "credit": sum(o.granted for o in outcomes if o.workunit in after - before),
    }


def _spread(outcomes: Iterable[ReplayedResult]) -> list[int]:
    """Count computers by their change of credit: below the first edge, between each two, from the last one up."""
    hosts = _by_host(outcomes)
    counts: Counter[int] = Counter()
    for results in hosts.values():
        before = sum(o.before.credit or 0.0 for o in results)
        after = sum(o.after.credit or 0.0 for o in results)
        change = (after - before) / before if before else (1.0 if after else 0.0)
        counts[sum(change >= edge for edge in EDGES)] += 1
    return [counts[place] for place in range(len(EDGES) + 1)]


def _by_host(outcomes: Iterable[ReplayedResult]) -> dict[int, list[ReplayedResult]]:
    hosts: dict[int, list[ReplayedResult]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.host:
            hosts[outcome.host].append(outcome)
    return hosts


def _change(outcome: ReplayedResult) -> float:
    return (outcome.after.credit or 0.0) - (outcome.before.credit or 0.0)


def _most_affected(outcomes: Iterable[ReplayedResult]) -> list[dict[str, Any]]:
    """Return the computers whose credit changes most, each with the job that changes most and its grant."""
    changes = {host: (abs(sum(map(_change, results))), results) for host, results in _by_host(outcomes).items()}
    first = sorted(changes.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_HOSTS]
    hosts = []
    for host, (change, results) in first:
        if not change:
            continue
        job = max(results, key=lambda o: abs(_change(o)))
        hosts.append(
            {
                "host": host,
                "before": sum(o.before.credit or 0.0 for o in results),
                "after": sum(o.after.credit or 0.0 for o in results),
                "nresults": len(results),
                "result": job.result,
                "task": {
                    "fpops_est": job.workunit_facts.fpops_est,
                    "partial_credit": job.partial_credit,
                    "elapsed_secs": job.elapsed_secs,
                },
                "sides": [side(job.before), side(job.after)],
            }
        )
    return hosts


def side(decided: ReplayedDecision) -> dict[str, Any] | None:
    """Return the claim and the grant as `credit.previews.texts` needs them; None if it would wait."""
    if decided.claim is None or decided.app is None:
        return None
    return {
        "claim": asdict(decided.claim),
        "credit": decided.granted,
        "rule": decided.grant_rule,
        "max_host_scale": decided.app.rules.max_host_scale,
        "host_scale_check": decided.app.host_scale_check,
    }
