"""Selects jobs for a reply: which candidates go to this computer, and on which version.

Pure. The limits are those of docs/explanation/scheduler.md. Each refusal has a reason, which the client shows.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from scheduler.engine.choice import variants, versions
from scheduler.engine.choice.needs import Needs
from scheduler.engine.choice.versions import Choices
from scheduler.engine.facts import AppFacts, Choice, Computer, Job, RecordKey, Records
from scheduler.engine.hr_classes import Redundancy
from scheduler.engine.lanes import ANY_VERSION, Binding, Requirement, bind, is_for_one_person
from scheduler.engine.reasons import Reason
from scheduler.engine.request import CPU


@dataclass(frozen=True, slots=True)
class Limits:
    """Jobs at once for each processor and each GPU, and jobs in one reply: for all apps together."""

    max_jobs_in_progress: int
    max_gpu_jobs_in_progress: int
    max_jobs_per_rpc: int


@dataclass(frozen=True, slots=True)
class SentJob:
    """A job of the reply. ``must_replicate``: it should have been a single one, but this computer is not trusted yet,
    or is spot-checked. ``binding``: what sending it binds its workunit to, if anything.
    """

    job: Job
    choice: Choice
    must_replicate: bool = False
    binding: Binding | None = None


@dataclass(slots=True)
class Selection:
    """The jobs of a reply, while they are being selected.

    ``in_progress``: how many jobs of an app the computer has or gets, on CPUs (False) and on GPUs (True). ``missing``:
    for those that do not fit, how many bytes of memory or disk space the smallest job lacks. ``own_limit``: the most
    jobs at once, over all apps and types, by the volunteer's preferences; None: unlimited. ``explained``: sentences for
    reasons with details of this computer. ``choose_among``: returns the best versions of an app for a job that asks for
    certain ones; the answers are cached.
    """

    needs: Needs
    computer: Computer
    choices: Mapping[int, Choices]
    apps: Mapping[int, AppFacts]
    records: Records
    limits: Limits
    today: dt.date
    in_progress: Counter[tuple[int, bool]]
    disk_bytes: float | None = None
    sent: list[SentJob] = field(default_factory=list)
    reasons: set[Reason] = field(default_factory=set)
    missing: dict[Reason, float] = field(default_factory=dict)
    workunits: set[int] = field(default_factory=set)
    sent_by_key: dict[RecordKey, int] = field(default_factory=dict)
    draw: random.Random = field(default_factory=random.Random)
    own_limit: int | None = None
    choose_among: Callable[[AppFacts, Requirement], Choices] = field(default=lambda _app, _requirement: {})
    restricted: dict[tuple[int, Requirement], Choices] = field(default_factory=dict)
    explained: dict[Reason, str] = field(default_factory=dict)

    def room(self, processor_type: str) -> int:
        """Return how many more jobs of this type the computer may have now."""
        is_gpu = processor_type != CPU
        limits = self.limits
        most = self._instances(is_gpu) * (limits.max_gpu_jobs_in_progress if is_gpu else limits.max_jobs_in_progress)
        njobs = sum(count for (_, on_gpu), count in self.in_progress.items() if on_gpu == is_gpu)
        left = limits.max_jobs_per_rpc - len(self.sent)
        if self.own_limit is not None:
            left = min(left, self.own_limit - self.in_progress.total())
        return max(0, min(most - njobs, left))

    @property
    def full(self) -> Reason:
        """Return which limit of jobs in progress was reached."""
        is_own = self.own_limit is not None and self.in_progress.total() >= self.own_limit
        return Reason.OWN_LIMIT if is_own else Reason.IN_PROGRESS

    def room_of_app(self, app: AppFacts, processor_type: str) -> int:
        """Return how many of these may be of this app."""
        is_gpu = processor_type != CPU
        room = self.room(processor_type)
        most = app.max_gpu_jobs_in_progress if is_gpu else app.max_jobs_in_progress
        if most is not None:
            room = min(room, most * self._instances(is_gpu) - self.in_progress[app.id, is_gpu])
        if app.max_jobs_per_rpc is not None:
            room = min(room, app.max_jobs_per_rpc - sum(sent.job.app_id == app.id for sent in self.sent))
        return max(0, room)

    def is_busy_with(self, app: AppFacts) -> bool:
        """Whether the computer has or gets a job of the app."""
        return any(self.in_progress[app.id, on_gpu] for on_gpu in (False, True))

    def _instances(self, is_gpu: bool) -> int:
        return sum(gpu.count for gpu in self.computer.gpus.values()) if is_gpu else self.computer.ncpus

    def offer(self, job: Job) -> bool:
        """Add the job to the reply, on the fastest version whose processors still need work; return False if there is
        none.
        """
        app = self.apps[job.app_id]
        if app.one_result_per_user and job.workunit_id in self.workunits:
            self.reasons.add(Reason.ONE_PER_USER)
            return False
        is_bound = app.redundancy != Redundancy.OFF or app.is_homogeneous_version
        if is_bound and job.workunit_id in self.workunits:
            # The previous copy decides what this one is bound to.
            return False
        if app.redundancy != Redundancy.OFF and job.hr_class not in (0, self.computer.hr_class(app.redundancy)):
            return False
        choices = self.choices_for(app, job.requirement)
        if not choices:
            self.reasons.add(Reason.OTHER_VERSION)
        usable = [c for type_, c in choices.items() if self.needs.wants(type_)]
        for choice in sorted(usable, key=lambda choice: -choice.flops):
            reason = self._unsuitable(job, choice, app)
            if reason is None:
                self._add(job, choice, app)
                return True
            self.reasons.add(reason)
        return False

    def choices_for(self, app: AppFacts, requirement: Requirement) -> Choices:
        """Return the best versions, by processor type, for jobs with this requirement.

        If versions no longer matter to the app, jobs that were bound to one may run on any.
        """
        if not app.is_homogeneous_version:
            requirement = Requirement(requirement.version_num)
        if requirement == ANY_VERSION:
            return self.choices.get(app.id, {})
        key = app.id, requirement
        if key not in self.restricted:
            self.restricted[key] = self.choose_among(app, requirement)
        return self.restricted[key]

    def _unsuitable(self, job: Job, choice: Choice, app: AppFacts) -> Reason | None:
        ram, disk = self.computer.ram_bytes, self.disk_bytes
        if not self.room_of_app(app, choice.processor_type) or (app.is_non_cpu_intensive and self.is_busy_with(app)):
            return self.full
        left = versions.jobs_left(app, self.records.get(choice.key), self.computer, choice.processor_type, self.today)
        if left <= self.sent_by_key.get(choice.key, 0):
            return Reason.QUOTA
        if job.details is not None and self._files_for(job.details.input_files, choice) is None:
            return Reason.VARIANT
        if ram is not None and job.memory_bytes > ram:
            return self.lacks(Reason.MEMORY, job.memory_bytes - ram)
        if disk is not None and job.disk_bytes > disk:
            return self.lacks(Reason.DISK, job.disk_bytes - disk)
        if self.needs.done_after_secs(job, choice) > job.delay_bound_secs:
            return Reason.DEADLINE
        return None

    def _files_for(self, inputs: Sequence[Mapping[str, Any]], choice: Choice) -> Sequence[variants.File] | None:
        """Return the files that `variants.files_for` finds for this computer."""
        what = choice.version or choice.client_version
        assert what is not None  # there is always one
        main = self.computer.platform
        return variants.files_for(inputs, what.plan_class, what.platform or main, main)

    def lacks(self, reason: Reason, nbytes: float) -> Reason:
        """Note by how many bytes a job did not fit."""
        self.missing[reason] = min(nbytes, self.missing.get(reason, nbytes))
        return reason

    def _add(self, job: Job, choice: Choice, app: AppFacts) -> None:
        is_single = app.is_adaptive and job.min_quorum == 1 and not is_for_one_person(job.lane, job.min_quorum)
        replicate = is_single and self._is_checked(self.records.get(choice.key), app)
        self.count(job, choice)
        self.sent_by_key[choice.key] = self.sent_by_key.get(choice.key, 0) + 1
        self.sent.append(SentJob(job, choice, replicate, self._binding(job, choice, app)))

    def _binding(self, job: Job, choice: Choice, app: AppFacts) -> Binding | None:
        """Return what the workunit is bound to from now on; None if it is bound already, or its app binds none."""
        hr_class = self.computer.hr_class(app.redundancy)
        version_id = choice.key.version_id if app.is_homogeneous_version else 0
        if (hr_class, version_id) in ((0, 0), (job.hr_class, job.version_id)):
            return None
        return bind(job.lane, job.version_num, hr_class, version_id)

    def _is_checked(self, record: HostVersionFacts | None, app: AppFacts) -> bool:
        return self.draw.random() < probation.replication_chance(record, app.rules)

    def count(self, job: Job, choice: Choice) -> None:
        """Count a job of the reply, whether new or resent: less is needed, and less room is left."""
        self.needs.take(job, choice)
        self.workunits.add(job.workunit_id)
        self.in_progress[job.app_id, choice.processor_type != CPU] += 1
        if self.disk_bytes is not None:
            self.disk_bytes -= job.disk_bytes


def jobs_by_app_weight(apps: Sequence[AppFacts], njobs: int, draw: random.Random) -> dict[int, int]:
    """Return how many of ``njobs`` each app gets: drawn by weight, so that the weights hold over many replies.

    Paused apps get none, nor do apps without waiting jobs while others have some.
    """
    usable = [app for app in apps if not app.is_paused]
    usable = [app for app in usable if app.typical_fpops is not None] or usable
    if not usable or njobs <= 0:
        return {}
    if len(usable) == 1:
        return {usable[0].id: njobs}
    drawn = draw.choices([app.id for app in usable], [app.weight for app in usable], k=njobs)
    return {app.id: count for app in usable if (count := drawn.count(app.id))}


def jobs_wanted(selection: Selection, apps: Iterable[AppFacts]) -> dict[str, int]:
    """Estimate how many jobs of each processor type the request can be given, by the size of those that wait.

    At least one of each needed type; GPUs first, because they need fewer.
    """
    counts: dict[str, float] = {}
    for app in apps:
        for type_, choice in selection.choices.get(app.id, {}).items():
            fpops = app.typical_fpops or choice.flops * 3600
            counts[type_] = max(counts.get(type_, 0.0), selection.needs.jobs_for(fpops, choice))
    left = selection.limits.max_jobs_per_rpc - len(selection.sent)
    njobs = {}
    for type_, count in sorted(counts.items(), key=lambda item: item[0] == CPU):
        njobs[type_] = min(ceil(min(count, left)), selection.room(type_), left)
        left -= njobs[type_]
    return njobs
