"""One trial: a population works on a stream of jobs, and the engine decides each as in a pass of the validator.

It stands in for the scheduler (jobs sent on probation), and decides when passes end (versions' averages move) and when
the feeder renews scales (every ten minutes), on its own clock. Grants are relative to the job's estimate, so that jobs
of different size can be compared: 1 is the estimate's credit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts
from credit.engine.normalisation import renew_scales
from credit.engine.passes import ComparedWorkunit, PassDecisions, add_samples, decide_batch
from credit.engine.probation import (
    Ending,
    count_ending,
    count_invalid,
    count_sent,
    replication_chance,
)
from credit.engine.rules import Rules, credit_of
from credit.engine.states import ValidateState
from extras.laboratory.trials.population import (
    BOUND_FACTOR,
    KINDS,
    USUAL_FPOPS,
    Cheat,
    Computer,
    Hardware,
    Job,
    Report,
    VersionKind,
    make_computer,
    make_job,
    pair,
)

DAY_SECS: Final = 86_400.0
FEEDER_SECS: Final = 600.0
DELAY_BOUND_SECS: Final = 7 * DAY_SECS
MOST_JOBS_PER_DAY: Final = 400
"""More than computers ask for here."""
BATCH: Final = 12
"""Jobs of a version that a host that fails its long ones first lets fail, and then computes: enough for a factor."""
ABSURD_SECS: Final = 1e9
_NO_DAY: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a trial.

    ``hosts``: computers, each of a different volunteer. ``jobs_per_host_day``: how quickly the stream flows.
    ``pass_jobs``: workunits of a validator pass. ``first_cheats``: how the very first computers cheat, with programs of
    the project; the others are honest. ``works``: FLOPs of jobs relative to the estimate. ``failing_part``: the
    fraction of honest computers' jobs that fail. ``is_equal``: all are equally efficient. ``is_adaptive``: single
    results of trusted computers are accepted. ``size_spread``: the standard deviation of the logarithm of jobs'
    estimates. ``received_scales``: factors from other projects, by plan class.
    """

    seed: int = 1
    hosts: int = 60
    kinds: Sequence[VersionKind] = KINDS
    rules: Rules = field(default_factory=Rules.published)
    host_scale_check: bool = False
    nreplicas: int = 1
    anonymous_part: float = 0.0
    first_cheats: Sequence[Cheat] = ()
    works: Sequence[float] = (1.0,)
    failing_part: float = 0.0
    is_equal: bool = False
    is_adaptive: bool = False
    jobs_per_host_day: float = 5.0
    pass_jobs: int = 20
    hardware: Hardware = field(default_factory=Hardware)
    size_spread: float = 0.5
    received_scales: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A valid result.

    ``granted`` and ``claimed`` are relative to the estimate. ``kind_index`` is its version's, None for a volunteer's
    own program. ``nth`` counts the host's results from 1. ``default`` is the default claim of the moment, and
    ``is_absurd`` says whether an impossible run time was reported. ``work``: the job's FLOPs relative to the estimate.
    ``peak_work``: run time × peak FLOPS as reported, relative to the estimate.
    """

    number: int
    host: int
    nth: int
    kind_index: int | None
    granted: float
    claimed: float
    is_approximate: bool
    cheat: Cheat
    default: float
    is_absurd: bool
    work: float = 1.0
    peak_work: float = 0.0


class Trial:
    """A population, its app and its statistics; `run` continues from the present state."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.rng = Random(setup.seed)
        self.app = AppFacts(1, setup.rules, host_scale_check=setup.host_scale_check)
        self.app.target_nresults = 2 if setup.is_adaptive else setup.nreplicas
        platforms = sorted({kind.platform for kind in setup.kinds})
        self.versions = [
            VersionFacts(
                kind_index + 1,
                processor_type=kind.processor_type,
                platform_id=platforms.index(kind.platform) + 1,
                plan_class=kind.plan_class,
                version_num=100,
                cross_project_scale=setup.received_scales.get(kind.plan_class),
            )
            for kind_index, kind in enumerate(setup.kinds)
        ]
        self.computers = [self._computer(number) for number in range(setup.hosts)]
        pair(self.computers)
        self.records: dict[tuple[int, int, int], HostVersionFacts] = {}
        self.outcomes: list[Outcome] = []
        self._batches: dict[int, Counter[str]] = {}
        self._held: list[tuple[float, int, HostVersionFacts]] = []
        self._order = count()
        self.now = 0.0
        self._fed_at = 0.0
        self._jobs = 0
        self._results_of = [0] * setup.hosts

    def _computer(self, number: int) -> Computer:
        setup = self.setup
        made = make_computer(
            self.rng,
            number,
            number,
            anonymous_part=setup.anonymous_part,
            cheats={},
            hardware=setup.hardware,
        )
        if number < len(setup.first_cheats):
            made.cheat, made.is_anonymous = setup.first_cheats[number], False
        made.failing_part = setup.failing_part
        if setup.is_equal:
            made.efficiency = 1.0
        return made

    def run(self, njobs: int) -> list[Outcome]:
        """Run this many more jobs; return their outcomes."""
        setup = self.setup
        begun = len(self.outcomes)
        step_secs = DAY_SECS / (setup.jobs_per_host_day * setup.hosts)
        for _ in range(njobs):
            self.now += step_secs
            self._jobs += 1
            self._time_out()
            self._decide()
            if self._jobs % setup.pass_jobs == 0:
                self._end_pass()
            if self.now - self._fed_at >= FEEDER_SECS:
                self._feed()
        return self.outcomes[begun:]

    def _decide(self) -> None:
        setup = self.setup
        nreplicas = 2 if setup.is_adaptive else setup.nreplicas
        job = make_job(self.rng, self.computers, setup.kinds, nreplicas, USUAL_FPOPS, setup.works, setup.size_spread)
        least = nreplicas
        valid: list[tuple[Report, ResultFacts]] = []
        for report in job.reports:
            record = self._record(report)
            if not self._is_taken(record, report):
                continue
            facts = self._facts(report, record)
            if setup.is_adaptive and not valid:
                replicate = self.rng.random() < replication_chance(record, setup.rules)
                least = 2 if replicate else 1
            self._end(record, report)
            if report.has_failed:
                continue
            if not report.is_right:
                count_invalid(record, self.now, DELAY_BOUND_SECS, setup.rules)
                continue
            valid.append((report, facts))
            if len(valid) < least:
                continue
            decided = self._validate(job, [facts for _, facts in valid], least)
            if not decided.waiting_ids:
                self._keep_outcomes(job, valid, decided)
                return
            least = 2
        # Others will do it; their result would be no different from other jobs.

    def _validate(self, job: Job, valid: Sequence[ResultFacts], min_quorum: int) -> PassDecisions:
        """Run a pass over this job alone."""
        bound = job.fpops_est * BOUND_FACTOR
        size = job.fpops_est, bound, min_quorum, min_quorum, DELAY_BOUND_SECS
        states = [ValidateState.VALID] * len(valid)
        workunit = ComparedWorkunit(*size, id=0, places=range(len(valid)), states=states)
        return decide_batch(self.app, [workunit], valid, self.now)

    def _keep_outcomes(self, job: Job, valid: Sequence[tuple[Report, ResultFacts]], decided: PassDecisions) -> None:
        default = self.app.min_avg_pfc or 1.0
        worth = credit_of(job.fpops_est)
        for (report, facts), claim, due in zip(valid, decided.claims, decided.credits_due, strict=True):
            assert claim is not None  # all are valid
            host = report.computer.host_id
            self._results_of[host] += 1
            self.outcomes.append(
                Outcome(
                    self._jobs,
                    host,
                    self._results_of[host],
                    report.kind_index,
                    due / worth,
                    (claim.claimed_credit or 0.0) / worth,
                    claim.is_approximate,
                    report.computer.cheat,
                    default,
                    report.elapsed_secs >= ABSURD_SECS,
                    job.work,
                    facts.elapsed_secs * facts.peak_flops / job.fpops_est,
                )
            )

    def _end(self, record: HostVersionFacts, report: Report) -> None:
        """Count the job's ending, or hold the job until it times out.

        A host that holds jobs back takes none for a day after the first, or after a failure: the held ones time out a
        day after its probation may end. One that does so in turns holds them on probation or not.
        """
        cheat = report.computer.cheat
        is_held = cheat is Cheat.HOLD_IN_TURNS or (cheat is Cheat.HOLD_BACK and record.scale_probation)
        if is_held and report.has_failed:
            probation_end = record.host_scale_time or 0.0
            ends_at = max(self.now + DELAY_BOUND_SECS, probation_end + DAY_SECS)
            heappush(self._held, (ends_at, next(self._order), record))
        else:
            self._count(record, report.ending)

    def _time_out(self) -> None:
        while self._held and self._held[0][0] <= self.now:
            *_, record = heappop(self._held)
            self._count(record, Ending.FAILED)

    def _count(self, record: HostVersionFacts, ending: Ending) -> None:
        count_ending(record, ending, self.now, DELAY_BOUND_SECS, MOST_JOBS_PER_DAY, self.setup.rules)

    def _is_taken(self, record: HostVersionFacts, report: Report) -> bool:
        """Whether a host does a job of its batch. One that fails first lets the batch's long jobs fail, does the short
        ones, and then one more when probation may end. After that it does, or fails, whatever it gets.
        """
        if report.computer.cheat is not Cheat.FAIL_FIRST:
            return True
        batch = self._batches.setdefault(id(record), Counter())
        if batch["over"] or not record.scale_probation:
            batch["over"] = 1
            return True
        part = "failed" if batch["failed"] < BATCH else "done"
        may_end = record.host_scale_time is not None and self.now > record.host_scale_time
        is_taken = report.has_failed == (part == "failed") and (batch[part] < BATCH or may_end)
        batch[part] += is_taken
        return is_taken

    def _record(self, report: Report) -> HostVersionFacts:
        host = report.computer.host_id
        kind_index = report.kind_index
        index = self.setup.kinds.index(report.kind)
        key = (host, -2 - index if kind_index is None else kind_index, report.computer.nrecord(index))
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = HostVersionFacts()
        return record

    def _facts(self, report: Report, record: HostVersionFacts) -> ResultFacts:
        """Build the facts; the job was sent one turnaround ago."""
        kind_index = report.kind_index
        sent_at = self.now - report.turnaround_secs
        count_sent(record, sent_at, DELAY_BOUND_SECS, _NO_DAY)
        return ResultFacts(
            record,
            None if kind_index is None else self.versions[kind_index],
            report.elapsed_secs,
            report.peak_flops,
            sent_at,
            self.now,
            is_anonymous=kind_index is None,
            cpu_secs=report.cpu_secs,
            p_fpops=report.computer.p_fpops,
        )

    def _end_pass(self) -> None:
        """Add the pass's samples to the versions' averages, as the validator does under their locks."""
        for version in self.versions:
            add_samples(self.app, version, version.pfc)
            version.samples.clear()
            version.grants.clear()

    def _feed(self) -> None:
        self._fed_at = self.now
        renew_scales(self.app, self.versions)
