"""The credit document's goals with their bounds, measured on simulated populations. Pure.

A bound that the rules miss is reported as missed, with the reason. Neither rules nor bounds are adapted to pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from credit.engine.rules import Rules
from credit.laboratory.figures import Gain, cheat_gain, device_neutrality, drift, host_spread, wingman_variance
from credit.laboratory.population import Cheat
from credit.laboratory.trial import Outcome, Setup, Trial

SETTLED_JOBS: Final = 2000
"""Jobs of each version before neutrality, spread and drift are measured."""
MEASURED_JOBS: Final = 12_000
CHEAT_JOBS: Final = 500
JOBS_MAX: Final = 400_000


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: the measured value (mean over the seeds and the worst of them), and its bound, if it has one."""

    name: str
    measured: float
    worst: float
    bound: float | None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether every seed was within the bound."""
        return None if self.bound is None else self.worst <= self.bound * (1 + 1e-9)


def settled(setup: Setup) -> tuple[list[Outcome], float]:
    """Outcomes after each version had so many jobs, and the share of all jobs before that.

    Raises ValueError if a version gets hardly any jobs.
    """
    trial = Trial(setup)
    done: Counter[int | None] = Counter()
    while min((done[kind_index] for kind_index in range(len(setup.kinds))), default=0) < SETTLED_JOBS:
        done.update(outcome.kind_index for outcome in trial.run(2000))
        if len(trial.outcomes) > JOBS_MAX:
            raise ValueError("a version gets hardly any jobs")
    before = len(trial.outcomes)
    outcomes = trial.run(MEASURED_JOBS)
    return outcomes, before / (before + len(outcomes))


def _with_cheat(setup: Setup, cheat: Cheat) -> Gain:
    trial = Trial(_replaced(setup, cheat))
    # The population is known before the cheat is measured: it is not compared with honest hosts' first jobs.
    while sum(outcome.cheat is cheat for outcome in trial.outcomes) < 2 * CHEAT_JOBS:
        trial.run(2000)
        if len(trial.outcomes) > JOBS_MAX:
            break
    warm = len(trial.outcomes) // 10
    mature = [outcome for outcome in trial.outcomes if outcome.cheat is cheat or outcome.number > warm]
    return cheat_gain(mature, cheat, CHEAT_JOBS)


def _replaced(setup: Setup, cheat: Cheat) -> Setup:
    return Setup(
        seed=setup.seed,
        hosts=30,
        kinds=setup.kinds,
        rules=setup.rules,
        host_scale_check=setup.host_scale_check,
        nreplicas=setup.nreplicas,
        first_cheat=cheat,
    )


def measure_goals(rules: Rules, seeds: Sequence[int]) -> list[Goal]:
    """The goals of the document, single results, no probation unless it is said."""
    singles = [settled(Setup(seed=seed, hosts=120, rules=rules))[0] for seed in seeds]
    pairs = [settled(Setup(seed=seed, hosts=120, rules=rules, nreplicas=2))[0] for seed in seeds]
    goals = [
        _goal("device neutrality: versions' mean grants apart", singles, device_neutrality, 0.03),
        _goal("equal jobs on different hosts: mean deviation", singles, host_spread, 0.05),
        _goal("drift of the mean grant per 1,000 jobs", singles, drift, 0.02),
        _goal("device neutrality, two replicas", pairs, device_neutrality, 0.03),
        _goal("replicas' claims for one job apart", pairs, wingman_variance, None),
    ]
    for replicas in (1, 2):
        for check in (False, True):
            goals += _cheat_goals(rules, seeds, replicas, check)
    return goals


def _goal(
    name: str, runs: Sequence[Sequence[Outcome]], figure: Callable[[Sequence[Outcome]], float], bound: float | None
) -> Goal:
    values = [figure(run) for run in runs]
    return Goal(name, fmean(values), max(values), bound)


def _cheat_goals(rules: Rules, seeds: Sequence[int], replicas: int, check: bool) -> list[Goal]:
    """Each cheat's gain over honest hosts, and the document's two promises about it."""
    way = f"{'two replicas' if replicas == 2 else 'single results'}{', host_scale_check' if check else ''}"
    found = {
        cheat: [
            _with_cheat(Setup(seed=seed, rules=rules, nreplicas=replicas, host_scale_check=check), cheat)
            for seed in seeds
        ]
        for cheat in (Cheat.EXAGGERATE, Cheat.ONE_TIME, Cheat.CHERRY_PICK, Cheat.SLACK)
    }
    late = [abs(gain.late - 1) for gain in found[Cheat.EXAGGERATE]]
    early = [gain.early - 1 for gain in found[Cheat.EXAGGERATE]]
    greatest = [gain.greatest for gain in found[Cheat.ONE_TIME]]
    goals = [
        Goal(f"exaggerating tenfold, after {CHEAT_JOBS} jobs, off honest ({way})", fmean(late), max(late), 0.2),
        Goal(f"exaggerating tenfold, gain in the first {CHEAT_JOBS} jobs ({way})", fmean(early), max(early), None),
    ]
    if replicas == 1:
        goals.append(
            Goal(f"one-time cheat: greatest grant over the default ({way})", fmean(greatest), max(greatest), 1.0)
        )
    picking = {Cheat.CHERRY_PICK: "picking short jobs", Cheat.SLACK: "next to nothing on nine of ten jobs"}
    for cheat, words in picking.items():
        gains = [gain.late - 1 for gain in found[cheat]]
        goals.append(Goal(f"{words}: gain ({way})", fmean(gains), max(gains), None))
    return goals
