"""The credit document's goals with their bounds, measured on simulated populations. Pure.

A bound that the rules miss is reported as missed, with the reason. Neither rules nor bounds are adapted to pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import sqrt
from statistics import fmean, pstdev
from typing import Any, Final

from credit.engine.rules import Rules
from extras.laboratory.messages import CPU_TIME, DRIFT, GPU_TIME, HOSTS, REPLICAS, VERSIONS
from extras.laboratory.trials.figures import (
    Gain,
    cheat_gain,
    credit_per_flop,
    device_neutrality,
    drift,
    gpu_neutrality,
    host_spread,
    project_neutrality,
    wingman_variance,
)
from extras.laboratory.trials.population import HIDDEN_WORK, TAKING_TURNS, Cheat
from extras.laboratory.trials.trial import Outcome, Setup, Trial
from portal.languages.messages import Message

SETTLED_JOBS: Final = 2000
"""Jobs of each version before neutrality, spread and drift are measured."""
MEASURED_JOBS: Final = 12_000
CHEAT_JOBS: Final = 500
JOBS_MAX: Final = 400_000
HONEST_JOBS: Final = 40_000
LEAD_JOBS: Final = 16_000
"""Of sixty honest computers, so 150 for each of their records on average."""
LEAD_LOSS_BOUND: Final = 0.01
BELOW_USUAL_BOUND: Final = 3 * pstdev(HIDDEN_WORK) / fmean(HIDDEN_WORK) / sqrt(LEAD_JOBS - LEAD_JOBS / 16)
"""Three standard deviations of the mean size of the jobs measured, which are all but the first sixteenth:
3 × 0.9 / 1.1 / √15,000 = 2.0 %. Chance alone exceeds it in 0.4 % of the reports on three populations."""
HALF_HIDDEN_WORK: Final = (0.5, 1.5)
FAILING_PERCENT: Final = 3
FAILING_PART: Final = FAILING_PERCENT / 100
"""The fraction of failing jobs on honest computers that fail now and then."""
EVASION_BOUND: Final = 0.02
SINGLE_PICKING_BOUND: Final = 0.04
"""Of single results, where as many long jobs fail as honest hosts may fail: 0.05 × (their size / the mean − 1)."""
ONE_TIME_ADAPTIVE_BOUND: Final = 1.1
"""The default is averaged with another replica's claim for the same job, which may be slightly above it."""
PICKING_JOBS: Final = 300
"""Jobs of the computer that picks. Its first third is discarded: by then most computers have left probation."""
_LIKE_ERRORS: Final = (Cheat.PICK_BY_202, Cheat.PICK_BY_DOWNLOAD, Cheat.PICK_BY_UPLOAD, Cheat.PICK_BY_LOSS)
"""Cheats that the published rules treat as compute errors: measured for single results only."""
EVASIONS: Final = (Cheat.CHERRY_PICK, *_LIKE_ERRORS, Cheat.PICK_BY_OUTPUT)
"""The ways to get rid of long jobs."""
_MEASURED_BY_SEVERAL: Final = frozenset({*TAKING_TURNS, Cheat.PICK_FEW})
"""A single one's honest jobs may by chance be short or long."""
SEVERAL: Final = 5
_IN_BATCHES: Final = frozenset({Cheat.HOLD_BACK, Cheat.HOLD_IN_TURNS, Cheat.FAIL_FIRST})
HOLDING_JOBS_PER_DAY: Final = 20.0
"""Enough that a host that holds the long ones back has ten short ones of each version before its probation ends."""
OTHER_EFFICIENCY: Final = 0.5
"""Efficiency of another project's programs, relative to that here: there the same processor time does half the
FLOPs."""
SINGLE, ADAPTIVE, PAIRS = "way_single", "way_adaptive", "way_pairs"
WAYS: Final = {SINGLE: Setup(), ADAPTIVE: Setup(is_adaptive=True), PAIRS: Setup(nreplicas=2)}
"""How often a job is computed. With adaptive replication once for trusted computers, except for spot-checks."""
_LEVELS: Final = {
    Cheat.LATE: Message("level_late"),
    Cheat.LATE_TIMES: Message("level_late_times"),
    Cheat.RAMP: Message("level_ramp"),
    Cheat.LEAVE: Message("level_leave"),
    Cheat.LEAVE_SLACK: Message("level_leave_slack"),
}
_LEVEL_BOUNDS: Final = {Cheat.LEAVE: 0.05, Cheat.LATE_TIMES: 0.06, Cheat.LEAVE_SLACK: 0.3}
"""Hosts that leave claim at most the default, which may be slightly above honest hosts' mean. Run times bring at most
``max_lead_jobs`` of a thousand jobs, and ``max_lead_share`` of the jobs of a record."""
_PICKING: Final = {
    Cheat.CHERRY_PICK: Message("picking_errors"),
    Cheat.PICK_BY_202: Message("picking_by_202"),
    Cheat.PICK_BY_DOWNLOAD: Message("picking_by_download"),
    Cheat.PICK_BY_UPLOAD: Message("picking_by_upload"),
    Cheat.PICK_BY_LOSS: Message("picking_by_loss"),
    Cheat.PICK_BY_OUTPUT: Message("picking_by_output"),
    Cheat.PICK_IN_TURNS: Message("picking_in_turns"),
    Cheat.HOLD_BACK: Message("picking_hold_back"),
    Cheat.HOLD_IN_TURNS: Message("picking_hold_in_turns"),
    Cheat.FAIL_FIRST: Message("picking_fail_first"),
    Cheat.PICK_FEW: Message("picking_few"),
    Cheat.PICK_AND_EXAGGERATE: Message("picking_and_exaggerate"),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: the measured value (mean over the seeds and the worst of them), and its bound, if it has one."""

    message: Message
    measured: float
    worst: float
    bound: float | None
    note: str = ""

    @property
    def name(self) -> str:
        """The name in English."""
        return str(self.message)

    @property
    def is_met(self) -> bool | None:
        """Whether every seed was within the bound."""
        return None if self.bound is None else self.worst <= self.bound * (1 + 1e-9)


def settled(setup: Setup) -> tuple[list[Outcome], float]:
    """Return outcomes after each version had this many jobs, and the share of all jobs before that.

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


def elsewhere(setup: Setup, efficiency: float) -> Setup:
    """Return another project: programs for CPUs only, less efficient ones."""
    kinds = [replace(kind, efficiency=kind.efficiency * efficiency) for kind in setup.kinds if not kind.gpu_usage]
    return replace(setup, kinds=kinds)


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
        is_adaptive=setup.is_adaptive,
        first_cheats=(cheat,),
    )


def goal_steps(rules: Rules, seeds: Sequence[int]) -> list[Callable[[], list[Goal]]]:
    """Return the measurements of the document's goals, part by part: each call takes seconds."""
    cheating = [partial(_cheat_goals, rules, seeds, way, check) for way, check in product(WAYS, (False, True))]
    evading = [partial(_evasion_goals, rules, seeds, way) for way in WAYS]
    levels = [partial(_level_goals, rules, seeds, way) for way in WAYS]
    return [
        partial(_neutrality_goals, rules, seeds),
        *cheating,
        *levels,
        *evading,
        partial(_honest_goals, rules, seeds),
        partial(_lead_goals, rules, seeds),
    ]


def _neutrality_goals(rules: Rules, seeds: Sequence[int]) -> list[Goal]:
    """Measure single results and pairs, and another project, without probation."""
    setup = Setup(hosts=120, rules=rules)
    other = elsewhere(setup, OTHER_EFFICIENCY)
    singles = [settled(replace(setup, seed=seed))[0] for seed in seeds]
    pairs = [settled(replace(setup, seed=seed, nreplicas=2))[0] for seed in seeds]
    others = [settled(replace(other, seed=seed))[0] for seed in seeds]
    cpu_times = [
        project_neutrality(setup.kinds, single, other.kinds, run) or 0.0
        for single, run in zip(singles, others, strict=True)
    ]
    gpu_times = [gpu_neutrality(setup.kinds, single) or 0.0 for single in singles]
    return [
        _goal(VERSIONS, singles, device_neutrality, 0.03),
        _goal(HOSTS, singles, host_spread, 0.05),
        _goal(DRIFT, singles, drift, 0.02),
        _goal(Message("goal_versions_pairs"), pairs, device_neutrality, 0.03),
        _goal(REPLICAS, pairs, wingman_variance, None),
        Goal(CPU_TIME, fmean(cpu_times), max(cpu_times), None),
        Goal(GPU_TIME, fmean(gpu_times), max(gpu_times), None),
    ]


def _goal(
    message: Message,
    runs: Sequence[Sequence[Outcome]],
    figure: Callable[[Sequence[Outcome]], float],
    bound: float | None,
) -> Goal:
    values = [figure(run) for run in runs]
    return Goal(message, fmean(values), max(values), bound)


def _way(way: str, *, check: bool = False) -> list[Message | str]:
    """Name how often a job is computed, and whether with ``host_scale_check``, as part of a goal's name."""
    return [Message(way), "host_scale_check"] if check else [Message(way)]


def _cheat_goals(rules: Rules, seeds: Sequence[int], way: str, check: bool) -> list[Goal]:
    """Measure each cheat's gain over honest hosts, and the document's two promises about it."""
    setup = replace(WAYS[way], rules=rules, host_scale_check=check)
    words = _way(way, check=check)
    cheat_goals = {
        cheat: [_with_cheat(replace(setup, seed=seed), cheat) for seed in seeds]
        for cheat in (Cheat.EXAGGERATE, Cheat.ONE_TIME, Cheat.CHERRY_PICK, Cheat.SLACK)
    }
    late = [abs(gain.late - 1) for gain in cheat_goals[Cheat.EXAGGERATE]]
    early = [gain.early - 1 for gain in cheat_goals[Cheat.EXAGGERATE]]
    greatest = [gain.greatest for gain in cheat_goals[Cheat.ONE_TIME]]
    goals = [
        Goal(Message("goal_exaggerating", number=CHEAT_JOBS, way=words), fmean(late), max(late), 0.2),
        Goal(Message("goal_exaggerating_first", number=CHEAT_JOBS, way=words), fmean(early), max(early), None),
    ]
    if setup.nreplicas == 1:
        bound = ONE_TIME_ADAPTIVE_BOUND if setup.is_adaptive else 1.0
        goals.append(Goal(Message("goal_one_time_way", way=words), fmean(greatest), max(greatest), bound))
    picking = {Cheat.CHERRY_PICK: Message("picking_short"), Cheat.SLACK: Message("slack_often")}
    for cheat, cheating in picking.items():
        gains = [gain.late - 1 for gain in cheat_goals[cheat]]
        goals.append(Goal(Message("goal_way_gain", cheat=cheating, way=words), fmean(gains), max(gains), None))
    return goals


def _level_goals(rules: Rules, seeds: Sequence[int], way: str) -> list[Goal]:
    """Measure the gain of hosts whose claims change their level: on average over twice ``CHEAT_JOBS`` jobs."""
    goals = []
    for cheat, cheating in _LEVELS.items():
        levels = [_with_cheat(replace(WAYS[way], rules=rules, seed=seed), cheat) for seed in seeds]
        gains = [(gain.early + gain.late) / 2 - 1 for gain in levels]
        bound = _LEVEL_BOUNDS.get(cheat, EVASION_BOUND)
        name = Message("goal_way_gain", cheat=cheating, way=_way(way))
        goals.append(Goal(name, fmean(gains), max(gains), bound))
    return goals


def picking_gains(
    rules: Rules,
    seed: int,
    cheats: Sequence[Cheat],
    way: str = SINGLE,
    *,
    check: bool = True,
    failing_part: float = 0.0,
) -> dict[Cheat, float]:
    """Measure computers' gain per FLOP from doing only short jobs, where the estimate does not show which these are.

    One computer for each of these cheats, in one population: several shift the averages of versions slightly, and gain
    a few per cent more than one alone. All computers are equally efficient: on probation a more efficient one gets
    less, and a less efficient one more.
    """
    first = [cheat for cheat in cheats for _ in range(SEVERAL if cheat in _MEASURED_BY_SEVERAL else 1)]
    setup = replace(WAYS[way], seed=seed, hosts=120, rules=rules, host_scale_check=check, failing_part=failing_part)
    if not _IN_BATCHES.isdisjoint(cheats):
        setup = replace(setup, jobs_per_host_day=HOLDING_JOBS_PER_DAY)
    trial = Trial(replace(setup, first_cheats=first, works=HIDDEN_WORK, is_equal=True))
    done: Counter[Cheat] = Counter()
    while any(done[cheat] < PICKING_JOBS * first.count(cheat) for cheat in cheats):
        done.update(outcome.cheat for outcome in trial.run(2000))
    mature = trial.outcomes[len(trial.outcomes) // 3 :]
    return {cheat: credit_per_flop(mature, cheat) / credit_per_flop(mature) - 1 for cheat in cheats}


def picking_gain(rules: Rules, seed: int, cheat: Cheat, way: str = SINGLE, **setup: Any) -> float:
    """Measure the gain of a single cheat; see ``picking_gains``."""
    return picking_gains(rules, seed, [cheat], way, **setup)[cheat]


def _evasion_goals(rules: Rules, seeds: Sequence[int], way: str) -> list[Goal]:
    """Measure the gain from ways to get rid of long jobs: nothing, with ``host_scale_check``."""
    gains = [picking_gain(rules, seed, Cheat.CHERRY_PICK, way, check=False) for seed in seeds]
    hidden = Message("goal_way_gain", cheat=Message("picking_hidden"), way=_way(way))
    goals = [Goal(hidden, fmean(gains), max(gains), None)]
    words = _way(way, check=True)
    for cheat, picking in _PICKING.items():
        if way != SINGLE and cheat in _LIKE_ERRORS:
            continue
        gains = [picking_gain(rules, seed, cheat, way) for seed in seeds]
        name = Message("goal_picking", cheat=picking, way=words)
        goals.append(Goal(name, fmean(gains), max(gains), _picking_bound(cheat, way)))
    for cheat in (Cheat.CHERRY_PICK, Cheat.HOLD_BACK, Cheat.PICK_AND_EXAGGERATE):
        gains = [picking_gain(rules, seed, cheat, way, failing_part=FAILING_PART) for seed in seeds]
        name = Message("goal_picking_failing", cheat=_PICKING[cheat], percent=FAILING_PERCENT, way=words)
        goals.append(Goal(name, fmean(gains), max(gains), _picking_bound(cheat, way)))
    return goals


def _picking_bound(cheat: Cheat, way: str) -> float | None:
    """Return the bound that the rules can hold; docs/explanation/credit.md explains why single results allow more."""
    if way != SINGLE:
        return EVASION_BOUND
    if cheat is Cheat.PICK_AND_EXAGGERATE:
        return None
    return SINGLE_PICKING_BOUND if cheat in (Cheat.PICK_FEW, Cheat.HOLD_IN_TURNS) else EVASION_BOUND


def honest_loss(rules: Rules, seed: int, failing_part: float, way: str = SINGLE) -> float:
    """Measure the average loss by ``host_scale_check`` of honest computers, which fail this fraction of their jobs."""

    def granted(check: bool) -> float:
        setup = replace(WAYS[way], seed=seed, hosts=120, rules=rules, host_scale_check=check)
        setup = replace(setup, works=HIDDEN_WORK, failing_part=failing_part)
        return credit_per_flop(Trial(setup).run(HONEST_JOBS)[HONEST_JOBS // 4 :])

    return 1 - granted(True) / granted(False)


def _honest_goals(rules: Rules, seeds: Sequence[int]) -> list[Goal]:
    goals = []
    for way in WAYS:
        for part, name in (
            (0.0, Message("goal_honest", way=_way(way))),
            (FAILING_PART, Message("goal_honest_failing", percent=FAILING_PERCENT, way=_way(way))),
        ):
            losses = [honest_loss(rules, seed, part, way) for seed in seeds]
            goals.append(Goal(name, fmean(losses), max(losses), EVASION_BOUND))
    return goals


def lead_loss(rules: Rules, seed: int, works: Sequence[float]) -> tuple[float, float]:
    """Measure the loss of new honest computers by the bound on leads, and how far below usual jobs they are."""

    def outcomes(rules: Rules) -> list[Outcome]:
        done = Trial(Setup(seed=seed, rules=rules, works=works)).run(LEAD_JOBS)
        # Before, too little is known about the versions.
        return [outcome for outcome in done if outcome.number > LEAD_JOBS / 16]

    bounded = outcomes(rules)
    granted = sum(outcome.granted for outcome in bounded)
    without = sum(outcome.granted for outcome in outcomes(replace(rules, max_lead_jobs=None)))
    return 1 - granted / without, 1 - granted / sum(outcome.default for outcome in bounded)


def _lead_goals(rules: Rules, seeds: Sequence[int]) -> list[Goal]:
    goals = []
    for works, sizes, bound in (
        ((1.0,), Message("sizes_estimated"), LEAD_LOSS_BOUND),
        (HALF_HIDDEN_WORK, Message("sizes_half"), LEAD_LOSS_BOUND),
        # Small samples overpay without the bound; docs/explanation/credit.md says by how much.
        (HIDDEN_WORK, Message("sizes_far"), None),
    ):
        losses, below = zip(*(lead_loss(rules, seed, works) for seed in seeds), strict=True)
        goals.append(Goal(Message("goal_lead", sizes=sizes), fmean(losses), max(losses), bound))
        goals.append(Goal(Message("goal_lead_usual", sizes=sizes), fmean(below), max(below), BELOW_USUAL_BOUND))
    return goals
