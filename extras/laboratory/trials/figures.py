"""The credit document's goals as numbers, measured on outcomes. Each is 0 when its goal is met perfectly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from credit.engine.facts import ProcessorType
from extras.laboratory.trials.population import Cheat, VersionKind
from extras.laboratory.trials.trial import Outcome


def _means(outcomes: Iterable[Outcome], key: Callable[[Outcome], Hashable], least: int) -> list[float]:
    """Return the mean grant of each group that has at least this many outcomes, per estimated work.

    By chance a group's jobs are longer or shorter than others' of the same estimate.
    """
    groups: dict[Hashable, list[tuple[float, float]]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append((outcome.granted, outcome.work))
    return [
        sum(granted for granted, _ in rows) / sum(work for _, work in rows)
        for rows in groups.values()
        if len(rows) >= least
    ]


def _over(difference: float, mean: float) -> float:
    """Divide a difference by a mean; 0 if nothing is granted."""
    return difference / mean if mean else 0.0


def device_neutrality(outcomes: Sequence[Outcome], least: int = 100) -> float:
    """Measure how far apart the versions' mean grants are: (greatest − least) / mean, of versions with enough outcomes.

    Goal: "on average, the same credit for a job whichever device" (credit document, "Goals of the new system").
    """
    means = _means((o for o in outcomes if o.kind_index is not None), lambda outcome: outcome.kind_index, least)
    return _over(max(means) - min(means), fmean(means)) if len(means) > 1 else 0.0


def host_spread(outcomes: Sequence[Outcome], least: int = 20) -> float:
    """Measure how far hosts' mean grants are from the mean of all hosts: mean absolute deviation / mean."""
    means = _means(outcomes, lambda outcome: outcome.host, least)
    middle = fmean(means)
    return _over(fmean(abs(mean - middle) for mean in means), middle)


def wingman_variance(outcomes: Sequence[Outcome]) -> float:
    """Measure how far apart replicas' claims for one job are, on average: |a − b| / mean of both."""
    by_job: dict[int, list[float]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.is_approximate:
            by_job[outcome.number].append(outcome.claimed)
    pairs = [claims[:2] for claims in by_job.values() if len(claims) > 1]
    return fmean(_over(abs(a - b), (a + b) / 2) for a, b in pairs) if pairs else 0.0


def drift(outcomes: Sequence[Outcome], per_jobs: int = 1000) -> float:
    """Measure how much the mean grant changes in ``per_jobs`` jobs, by linear regression: |slope| × jobs / mean.

    Grants are adjusted, at the mean rate, for jobs that are longer or shorter than others of the same estimate.
    """
    xs = [float(outcome.number) for outcome in outcomes]
    usual = fmean(outcome.work for outcome in outcomes)
    rate = fmean(outcome.granted for outcome in outcomes) / usual
    ys = [outcome.granted - rate * (outcome.work - usual) for outcome in outcomes]
    x_mean, y_mean = fmean(xs), fmean(ys)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / sum((x - x_mean) ** 2 for x in xs)
    return _over(abs(slope) * per_jobs, y_mean)


def time_credit(kinds: Sequence[VersionKind], outcomes: Iterable[Outcome], *, is_gpu: bool) -> tuple[float, float]:
    """Return honest computers' credit for processor time of this kind, per peak FLOPs, and its efficiency: the FLOPs
    done per peak FLOPs. 0 and 0 without such results.
    """
    places = {place for place, kind in enumerate(kinds) if (kind.processor_type != ProcessorType.CPU) is is_gpu}
    rows = [outcome for outcome in outcomes if outcome.kind_index in places and outcome.cheat is Cheat.NONE]
    peak = sum(outcome.peak_work for outcome in rows)
    return _over(sum(outcome.granted for outcome in rows), peak), _over(sum(outcome.work for outcome in rows), peak)


def project_neutrality(
    kinds: Sequence[VersionKind],
    outcomes: Iterable[Outcome],
    other_kinds: Sequence[VersionKind],
    other_outcomes: Iterable[Outcome],
) -> float | None:
    """Measure how far apart two projects' credit for CPU time is, divided by their mean; None if one grants none.

    Goal: "different projects should grant about the same amount of credit per host-hour, averaged over hosts" (credit
    document, "Goals of the new system"). Hours are weighted by the peak FLOPS of their processors.
    """
    here, _ = time_credit(kinds, outcomes, is_gpu=False)
    there, _ = time_credit(other_kinds, other_outcomes, is_gpu=False)
    return abs(here - there) / fmean((here, there)) if here and there else None


def gpu_neutrality(kinds: Sequence[VersionKind], outcomes: Sequence[Outcome]) -> float | None:
    """Measure how far the ratio of GPU credit to CPU credit is from the ratio of the efficiencies; None without both.

    Goal: "Projects with GPU apps should grant credit in proportion to the efficiency of the apps" (as above).
    """
    cpu_credit, cpu_efficiency = time_credit(kinds, outcomes, is_gpu=False)
    gpu_credit, gpu_efficiency = time_credit(kinds, outcomes, is_gpu=True)
    if not (cpu_credit and gpu_credit):
        return None
    return abs((gpu_credit / cpu_credit) / (gpu_efficiency / cpu_efficiency) - 1)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain from cheating: the mean grant of cheats / that of honest hosts in the same stretch of jobs.

    ``early``: the cheats' first ``until`` results; ``late``: the later ones; 0 if there are none. ``greatest``: the
    largest grant for an impossible run time, divided by the default of that moment; 0 if none was reported.
    """

    early: float
    late: float
    greatest: float


def credit_per_flop(outcomes: Iterable[Outcome], cheat: Cheat = Cheat.NONE) -> float:
    """Return these hosts' grant per FLOP, where 1 is the value of a job's estimate.

    Raises ValueError if there are no such hosts.
    """
    granted = [(outcome.granted, outcome.work) for outcome in outcomes if outcome.cheat is cheat]
    if not granted:
        raise ValueError("there are no such hosts")
    return sum(credit for credit, _ in granted) / sum(work for _, work in granted)


def cheat_gain(outcomes: Sequence[Outcome], cheat: Cheat, until: int = 500) -> Gain:
    """Return this cheat's gain relative to honest hosts. Raises ValueError if there are no cheats or no honest
    hosts.
    """
    cheats = [outcome for outcome in outcomes if outcome.cheat is cheat]
    honest = [outcome for outcome in outcomes if outcome.cheat is Cheat.NONE]
    if not cheats or not honest:
        raise ValueError("there are no such hosts")
    usual = fmean(outcome.granted for outcome in honest)
    early = [outcome.granted for outcome in cheats if outcome.nth <= until]
    late = [outcome.granted for outcome in cheats if outcome.nth > until]
    return Gain(
        early=fmean(early) / usual if early else 0.0,
        late=fmean(late) / usual if late else 0.0,
        greatest=max((o.granted / o.default for o in cheats if o.is_absurd), default=0.0),
    )
