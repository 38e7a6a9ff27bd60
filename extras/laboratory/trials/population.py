"""A simulated population: versions of different efficiency, computers, honest or not, and the jobs they report.

Pure: random numbers in, jobs out. ``simulation`` puts them into the database. Cheaters do what the credit document has
rules against ("Cheat prevention"), and return wrong outputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.probation import Ending

MAX_TURNAROUND_SECS: Final = 30 * 86400.0
LINUX, WINDOWS = "x86_64-pc-linux-gnu", "windows_x86_64"
BOUND_FACTOR: Final = 100.0
"""A workunit's bound over its estimate; GPU versions take ten times a CPU's peak FLOPs."""
USUAL_FPOPS: Final = 2e13
"""FLOPs of a usual job: two hours of a 4 GFLOPS processor at a good half of its peak."""
CHERRY_PICKED_SIZE: Final = 1.5
"""A computer that picks jobs gives up those that are more than this many times the usual size, or the estimate."""
HIDDEN_WORK: Final = (0.2, 2.0)
"""Actual FLOPs relative to the estimate, for jobs whose estimate hides their size."""
FEW: Final = 1 / 12
"""The fraction of its long jobs that a computer gives up that picks a few: of half of all jobs, so one in 24."""
TURN_JOBS: Final = 200
"""After this many jobs a computer that picks in turns becomes honest, or picks again."""
PICKED_EXAGGERATION: Final = 5.5
"""The mean relative to the shorter: the claims of short jobs then look like everybody's."""


LATE_JOBS: Final = 60
RAMP_JOBS: Final = 20
"""Honest jobs of each version before a computer exaggerates."""
RAMP: Final = 1.05
MOST_RAMP: Final = 50.0
"""The factor on the speed with each job, and its maximum."""
FACTOR_JOBS: Final = 10
"""A record has a factor from this many jobs on."""
SLACK_RECORD_JOBS: Final = 110
"""Jobs of a record, the first of which have next to no run time."""


class Cheat(StrEnum):
    NONE = "none"
    EXAGGERATE = "exaggerate"  # reports ten times its speed, from the start
    LATE = "late"  # the same, after some honest jobs
    LATE_TIMES = "late_times"  # reports ten times its run times after some honest jobs
    RAMP = "ramp"  # reports a little more speed with each job, after some honest ones
    LEAVE = "leave"  # reports ten times its speed, and leaves for a new record before it has a factor
    LEAVE_SLACK = "leave_slack"  # next to no run time until it has a factor, then honest; then it leaves
    ONE_TIME = "one_time"  # occasionally an absurd run time
    WRONG = "wrong"  # made-up outputs
    CHERRY_PICK = "pick"  # lets long jobs fail
    # The same, but its long jobs end otherwise
    PICK_BY_202 = "pick_by_202"  # "aborted by project", which did not
    PICK_BY_DOWNLOAD = "pick_by_download"  # failed downloads
    PICK_BY_UPLOAD = "pick_by_upload"  # failed uploads, or a success with nothing uploaded
    PICK_BY_LOSS = "pick_by_loss"  # left out while no work is sent
    PICK_BY_OUTPUT = "pick_by_output"  # made-up outputs
    PICK_IN_TURNS = "pick_in_turns"  # honest between, until it is off probation
    PICK_AND_EXAGGERATE = "pick_and_exaggerate"  # so that its short jobs look like the usual ones
    HOLD_BACK = "hold_back"  # holds its long jobs while on probation, until they time out; then lets them fail
    HOLD_IN_TURNS = "hold_in_turns"  # holds its long jobs until they time out; then it is honest for as many
    FAIL_FIRST = "fail_first"  # lets long jobs fail at once, does short ones, waits until probation ends; then picks
    PICK_FEW = "pick_few"  # lets a few long jobs fail
    SLACK = "slack"  # reports next to nothing for nine jobs, and honestly for the tenth
    COLLUDE = "collude"  # two volunteers get both replicas of a job, and report ten times their speeds for it


PICKING: Final = {
    Cheat.CHERRY_PICK: Ending.FAILED,
    Cheat.PICK_BY_202: Ending.UNASKED_ABORT,
    Cheat.PICK_BY_DOWNLOAD: Ending.NOT_DOWNLOADED,
    Cheat.PICK_BY_UPLOAD: Ending.NOT_UPLOADED,
    Cheat.PICK_BY_LOSS: Ending.LOST,
    Cheat.PICK_BY_OUTPUT: Ending.SUCCESS,
    Cheat.PICK_IN_TURNS: Ending.FAILED,
    Cheat.PICK_AND_EXAGGERATE: Ending.FAILED,
    Cheat.HOLD_BACK: Ending.FAILED,
    Cheat.HOLD_IN_TURNS: Ending.FAILED,
    Cheat.FAIL_FIRST: Ending.FAILED,
    Cheat.PICK_FEW: Ending.FAILED,
}
"""How the unwanted jobs of computers that pick them end."""
TAKING_TURNS: Final = frozenset({Cheat.PICK_IN_TURNS, Cheat.HOLD_IN_TURNS})


@dataclass(frozen=True, slots=True)
class VersionKind:
    """A program: where it runs, what it uses, and the fraction of its devices' peak that it achieves."""

    platform: str
    processor_type: str = ProcessorType.CPU
    plan_class: str = ""
    efficiency: float = 0.5
    avg_ncpus: float = 1.0

    @property
    def gpu_usage(self) -> float:
        return 0.0 if self.processor_type == ProcessorType.CPU else 1.0


KINDS: Final = (
    VersionKind(LINUX, efficiency=0.52),
    VersionKind(WINDOWS, efficiency=0.44),
    VersionKind(LINUX, ProcessorType.NVIDIA, "cuda", 0.11, 0.1),
    VersionKind(WINDOWS, ProcessorType.NVIDIA, "cuda", 0.09, 0.1),
    VersionKind(WINDOWS, ProcessorType.ATI, "opencl_ati", 0.07, 0.2),
    VersionKind(LINUX, plan_class="mt", efficiency=0.38, avg_ncpus=4),
)


@dataclass(slots=True)
class Computer:
    """A simulated computer. ``efficiency``: relative to others of its kind; speeds in FLOPS.

    ``failing_part``: the fraction of its jobs that fail though it is honest. ``benchmark``: the measured speed divided
    by the true one. ``partner``: the computer that it colludes with.
    """

    host_id: int
    user_id: int
    platform: str
    p_fpops: float
    ncpus: int = 4
    gpu_type: str = ""
    gpu_flops: float = 0.0
    efficiency: float = 1.0
    is_anonymous: bool = False
    cheat: Cheat = Cheat.NONE
    failing_part: float = 0.0
    njobs: int = 0
    njobs_of: Counter[int] = field(default_factory=Counter)
    benchmark: float = 1.0
    partner: Computer | None = None

    def kinds(self, kinds: Sequence[VersionKind]) -> list[int]:
        """Return which of these run on it, by their indexes."""
        return [
            kind_index
            for kind_index, kind in enumerate(kinds)
            if kind.platform == self.platform
            and kind.processor_type in (ProcessorType.CPU, self.gpu_type)
            and kind.avg_ncpus <= self.ncpus
        ]

    def nrecord(self, kind_index: int) -> int:
        """Return the number of its current record of the version: one that leaves for a new one has several."""
        size = {Cheat.LEAVE: FACTOR_JOBS, Cheat.LEAVE_SLACK: SLACK_RECORD_JOBS}.get(self.cheat)
        return 0 if size is None else (self.njobs_of[kind_index] - 1) // size


@dataclass(slots=True)
class Report:
    """One result: its computer, its program (None: the computer's own), and the reported values."""

    computer: Computer
    kind: VersionKind
    kind_index: int | None
    elapsed_secs: float
    cpu_secs: float
    peak_flops: float
    is_right: bool = True
    ending: Ending = Ending.SUCCESS
    # The job is still out, or was never reported
    is_out: bool = False

    @property
    def has_failed(self) -> bool:
        return self.ending is not Ending.SUCCESS

    @property
    def turnaround_secs(self) -> float:
        """How long the job was out: slightly longer than it ran, but at most ``MAX_TURNAROUND_SECS``."""
        return min(self.elapsed_secs * 1.02 + 30, MAX_TURNAROUND_SECS)


@dataclass(slots=True)
class Job:
    """``work``: its FLOPs relative to the estimate."""

    fpops_est: float
    work: float
    reports: list[Report]


@dataclass(frozen=True, slots=True)
class Hardware:
    """The distribution of computers. Spreads are standard deviations of logarithms; 22.1: about 4 GFLOPS.

    ``wrong_benchmarks``: the fraction of computers whose benchmark is wrong, and the measured speed divided by the true
    one.
    """

    log_p_fpops: float = 22.1
    speed_spread: float = 0.35
    efficiency_spread: float = 0.15
    gpu_part: float = 1 / 3
    wrong_benchmarks: tuple[float, float] = (0.0, 1.0)


def make_computer(
    rng: Random,
    host_id: int,
    user_id: int,
    *,
    anonymous_part: float,
    cheats: Cheats,
    hardware: Hardware = Hardware(),
) -> Computer:
    """Make a typical computer: benchmarks and efficiencies vary, one in three has a GPU."""
    platform = rng.choice((LINUX, WINDOWS))
    computer = Computer(
        host_id,
        user_id,
        platform,
        p_fpops=rng.lognormvariate(hardware.log_p_fpops, hardware.speed_spread),
        ncpus=rng.choice((2, 4, 4, 8, 8, 16)),
        efficiency=rng.lognormvariate(0, hardware.efficiency_spread),
        is_anonymous=rng.random() < anonymous_part,
    )
    wrong_part, wrong_by = hardware.wrong_benchmarks
    if wrong_part and rng.random() < wrong_part:
        computer.benchmark = wrong_by
        computer.p_fpops *= wrong_by
    if rng.random() < hardware.gpu_part:
        types = (ProcessorType.NVIDIA, ProcessorType.ATI)
        computer.gpu_type = ProcessorType.NVIDIA if platform == LINUX else rng.choice(types)
        computer.gpu_flops = rng.lognormvariate(29.6, 0.5)  # about 7 TFLOPS
    if cheats:
        [computer.cheat] = rng.choices([*cheats, Cheat.NONE], [*cheats.values(), max(0.0, 1 - sum(cheats.values()))])
    return computer


Cheats = dict[Cheat, float]
"""The fraction of computers that cheat, and how."""


def cheating(cheats: Cheats, ncomputers: int) -> list[Cheat]:
    """Return how each cheating computer cheats: a fraction of all computers, at least one; colluders come in pairs."""
    chosen = []
    for cheat, part in cheats.items():
        size = 2 if cheat is Cheat.COLLUDE else 1
        chosen += [cheat] * (size * max(1, round(part * ncomputers / size)))
    return chosen


def make_job(
    rng: Random,
    computers: Sequence[Computer],
    kinds: Sequence[VersionKind],
    nreplicas: int,
    usual_fpops: float,
    works: Sequence[float] = (1.0,),
    size_spread: float = 0.5,
) -> Job:
    """Make a job of some size, done by this many computers, each of another volunteer; another one repeats a failed
    result.

    ``works``: its possible FLOPs relative to the estimate, all equally likely.
    """
    fpops_est = usual_fpops * rng.lognormvariate(0, size_spread)
    job = Job(fpops_est, rng.choice(works) if len(works) > 1 else works[0], [])
    users: set[int] = set()
    nright = 0
    while nright < nreplicas and len(users) < 3 * nreplicas:
        partner = _partner(job, users)
        computer = partner or rng.choice(computers)
        if computer.user_id in users:
            if len(computers) <= 3 * nreplicas:
                users.add(-len(users))  # few computers: do not search for ever
            continue
        users.add(computer.user_id)
        report = make_report(rng, computer, kinds, fpops_est, fpops_est / usual_fpops, job.work)
        job.reports.append(report)
        if partner is not None:
            for job_report in job.reports:
                job_report.peak_flops *= 10
        nright += not report.has_failed
    return job


def pair(computers: Sequence[Computer]) -> None:
    """Cheaters collude in pairs; an odd one out stays honest."""
    colluding = [computer for computer in computers if computer.cheat is Cheat.COLLUDE]
    half = len(colluding) // 2
    for alone in colluding[2 * half :]:
        alone.cheat = Cheat.NONE
    for one, other in zip(colluding[:half], colluding[half : 2 * half], strict=True):
        one.partner, other.partner = other, one


def _partner(job: Job, users: set[int]) -> Computer | None:
    """Return who gets the job's second replica, if the first one's computer colludes with somebody."""
    partner = job.reports[0].computer.partner if len(job.reports) == 1 else None
    return None if partner is None or partner.user_id in users else partner


def make_report(
    rng: Random, computer: Computer, kinds: Sequence[VersionKind], fpops_est: float, size: float, work: float = 1.0
) -> Report:
    """Make a computer's report of a job of this ``size`` (1: the usual one), and this ``work`` (1: as estimated)."""
    kind_index = rng.choice(computer.kinds(kinds))
    kind = kinds[kind_index]
    peak_flops = kind.avg_ncpus * computer.p_fpops + kind.gpu_usage * computer.gpu_flops
    true_flops = kind.avg_ncpus * computer.p_fpops / computer.benchmark + kind.gpu_usage * computer.gpu_flops
    elapsed = fpops_est * work / (true_flops * kind.efficiency * computer.efficiency) * rng.uniform(0.95, 1.05)
    busy = elapsed * min(kind.avg_ncpus, computer.ncpus) * 0.97
    computer.njobs += 1
    computer.njobs_of[kind_index] += 1
    nth = computer.njobs_of[kind_index]
    report = Report(computer, kind, None if computer.is_anonymous else kind_index, elapsed, busy, peak_flops)
    match computer.cheat:
        case Cheat.EXAGGERATE | Cheat.LEAVE:
            report.peak_flops *= 10
        case Cheat.LATE if nth > LATE_JOBS:
            report.peak_flops *= 10
        case Cheat.LATE_TIMES if nth > LATE_JOBS:
            report.elapsed_secs *= 10
        case Cheat.RAMP if nth > RAMP_JOBS:
            report.peak_flops *= min(MOST_RAMP, RAMP ** (nth - RAMP_JOBS))
        case Cheat.LEAVE_SLACK if (nth - 1) % SLACK_RECORD_JOBS < FACTOR_JOBS:
            report.elapsed_secs /= 100
        case Cheat.ONE_TIME if rng.random() < 0.02:
            report.elapsed_secs = 1e304
        case Cheat.WRONG:
            report.is_right = rng.random() < 0.5
        case Cheat.SLACK if computer.njobs % 10:
            report.elapsed_secs /= 100
    if computer.cheat in PICKING:
        _pick(rng, report, max(size, work))
    elif computer.failing_part and rng.random() < computer.failing_part:
        report.ending = Ending.FAILED
    return report


def _pick(rng: Random, report: Report, size: float) -> None:
    cheat = report.computer.cheat
    if cheat is Cheat.PICK_AND_EXAGGERATE:
        report.peak_flops *= PICKED_EXAGGERATION
    is_honest_now = cheat in TAKING_TURNS and report.computer.njobs // TURN_JOBS % 2 == 1
    if cheat is Cheat.PICK_FEW:
        is_honest_now = rng.random() >= FEW
    if size > CHERRY_PICKED_SIZE and not is_honest_now:
        report.ending = PICKING[cheat]
        report.is_right = cheat is not Cheat.PICK_BY_OUTPUT
