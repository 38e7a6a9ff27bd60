"""Which version of an app runs best on a computer, for each processor type that needs work.

Sources: credit document, "App plan functions", "Anonymous platform" and runtime estimate; work fetch document,
scheduler changes (``get_app_version``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from credit.engine import probation
from credit.engine.facts import HostVersionFacts
from credit.engine.flops import Ceilings, GpuUse, knows_speed, measured_flops, peak_flops, projected_flops
from scheduler.engine.choice import client_versions, plan_classes
from scheduler.engine.facts import AppFacts, Choice, Computer, PlanClassRules, RecordKey, Records, Usage, Version
from scheduler.engine.lanes import ANY_VERSION, Requirement
from scheduler.engine.reasons import Reason
from scheduler.engine.request import CPU, ClientVersion

Choices = dict[str, Choice]
"""The best version by processor type."""
TRIED_AT_FIRST: Final = 4
"""One request in this many tries a slower version that this computer has no run times for."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A version that the computer can run.

    ``nsamples``: run times of it on this computer; ``is_measured``: its speed is known from run times, here or
    elsewhere.
    """

    choice: Choice
    nsamples: int
    is_measured: bool


def usage_of(
    version: Version, plan_class: PlanClassRules | None, computer: Computer, ceilings: Ceilings
) -> Usage | None:
    """Return the devices that a job of this version gets on this computer; None if it cannot run there.

    A plan class defines what its versions use; if it allows more than one processor, a job takes as many as BOINC may
    use. A version without a plan class, or with an undeclared one, defines it itself.
    """
    ncpus, ngpus, min_ram = version.avg_ncpus, version.gpu_usage, version.min_gpu_ram_bytes
    if plan_class is not None:
        if plan_classes.missing(plan_class, version.platform, computer) is not None:
            return None
        ncpus, ngpus = plan_classes.ncpus_of(plan_class, computer), plan_class.gpu_usage or version.gpu_usage
        min_ram = max(min_ram, plan_class.min_gpu_ram_bytes)
    if computer.max_threads is not None and ncpus > max(1, computer.max_threads):
        return None
    if version.processor_type == CPU:
        return Usage(ncpus, 0.0, peak_flops(ncpus, computer.p_fpops, (), ceilings))
    gpu = computer.gpus.get(version.processor_type)
    if gpu is None or gpu.count < ngpus or gpu.ram_bytes < min_ram:
        return None
    if plan_class is not None and not plan_classes.fits_gpu(plan_class, gpu):
        return None
    if plan_class is not None and plan_class.cpu_share:
        ncpus = plan_classes.gpu_ncpus(plan_class.cpu_share, computer.p_fpops, ngpus * gpu.peak_flops)
    use = GpuUse(ngpus, gpu.peak_flops)
    return Usage(ncpus, ngpus, peak_flops(ncpus, computer.p_fpops, [use], ceilings), knows_speed(use, ceilings))


def may_have(version: Version, user_id: int) -> bool:
    """Whether this user's computers may get the version now: it is not withdrawn, and not limited to other testers."""
    return not version.is_deprecated and (version.testers is None or user_id in version.testers)


@dataclass(frozen=True, slots=True)
class Requester:
    """The client's platforms, its version number (0: unknown), and its owner, which decide on versions in a request."""

    platforms: Sequence[str]
    client: int
    user_id: int

    def can_run(self, version: Version) -> bool:
        """Whether the client runs such programs, whatever its version, and may have this one."""
        return version.platform in self.platforms and may_have(version, self.user_id)

    def fits(self, version: Version) -> bool:
        return self.can_run(version) and client_versions.may_run(self.client, version.min_client, version.max_client)


def newest(versions: Iterable[Version], requester: Requester, requirement: Requirement = ANY_VERSION) -> list[Version]:
    """Return the highest version number of each platform and plan class that the client can run and its owner may have.

    With a ``requirement``, only versions that a job asks for, or is bound to.
    """
    number, id_ = requirement
    best: dict[tuple[str, str], Version] = {}
    for version in versions:
        if not requester.fits(version) or (number and version.version_num != number) or (id_ and version.id != id_):
            continue
        key = version.platform, version.plan_class
        if key not in best or best[key].version_num < version.version_num:
            best[key] = version
    return list(best.values())


def inherit(records: Records, version: Version, versions: Iterable[Version]) -> int:
    """Give a version that is new to the computer the record of the newest older one of its platform and plan class.

    Its run times will be much the same, and so will its results on the computer (credit document, deployed server: "new
    version released"). Returns the id of that older version; 0 if there is none, or the record exists already.
    """
    key = RecordKey(version.app_id, version.id, version.processor_type)
    if key in records:
        return 0
    older = [
        (other.version_num, other.id)
        for other in versions
        if (other.platform, other.plan_class) == (version.platform, version.plan_class)
        and other.version_num < version.version_num
        and RecordKey(other.app_id, other.id, version.processor_type) in records
    ]
    if not older:
        return 0
    _, id_ = max(older)
    records[key] = deepcopy(records[RecordKey(version.app_id, id_, version.processor_type)])
    return id_


def newer(records: Records, key: RecordKey, versions: Collection[Version]) -> list[RecordKey]:
    """Return the records of newer versions that took over the statistics of this one's."""
    own = next((version for version in versions if version.id == key.version_id), None)
    if own is None:
        return []
    later = (
        RecordKey(other.app_id, other.id, other.processor_type)
        for other in versions
        if (other.platform, other.plan_class) == (own.platform, own.plan_class) and other.version_num > own.version_num
    )
    return [key for key in later if key in records]


def choose(
    app: AppFacts,
    versions: Iterable[Version],
    classes: Mapping[str, PlanClassRules],
    computer: Computer,
    wanted_types: Collection[str],
    records: Records,
    today: dt.date,
    ceilings: Ceilings,
    seed: str,
) -> tuple[Choices, set[Reason]]:
    """Return the fastest version for each needed processor type, occasionally another one (`pick`), and why others were
    left out.

    ``versions``: of this app, as ``newest`` picks them. A version whose daily quota is used up is left out, so the next
    best may be taken. ``seed``: the same for the same request.
    """
    contenders: dict[str, list[Contender]] = {}
    reasons: set[Reason] = set()
    for version in versions:
        if version.processor_type not in wanted_types:
            reasons.add(Reason.NO_TYPE)
            continue
        plan_class = classes.get(version.plan_class)
        usage = usage_of(version, plan_class, computer, ceilings)
        if usage is None or usage.peak_flops <= 0:
            lacking = plan_classes.missing(plan_class, version.platform, computer) if plan_class else None
            few = computer.max_threads is not None and version.avg_ncpus > computer.max_threads
            reasons.add(lacking or (Reason.FEW_CPUS if few and plan_class is None else Reason.PLAN_CLASS))
            continue
        key = RecordKey(app.id, version.id, version.processor_type)
        record = records.get(key)
        if not jobs_left(app, record, computer, key.processor_type, today):
            reasons.add(Reason.QUOTA)
            continue
        et = record.et if record else None
        flops = measured_flops(et, version.pfc, usage.peak_flops, app.rules)
        is_measured = flops is not None
        if flops is None:
            scale = plan_class.projected_flops_scale if plan_class is not None else 1.0
            flops = scale * projected_flops(None, None, usage.peak_flops, key.processor_type != CPU, app.rules)
        choice = Choice(key, usage, min(flops, usage.peak_flops), version)
        contenders.setdefault(key.processor_type, []).append(Contender(choice, et.n if et else 0, is_measured))
    return {type_: pick(several, f"{seed}:{app.id}:{type_}").choice for type_, several in contenders.items()}, reasons


def pick(contenders: Sequence[Contender], seed: str) -> Contender:
    """Return the fastest version, among equals the one with the fewest run times here, then the newest; occasionally
    another.

    Otherwise a slower version is never tried, though it may be faster here than where it was measured, or than assumed.
    One of the others, at random, is tried in one of ``TRIED_AT_FIRST`` + its run times here requests. If it was
    measured, that rate is multiplied by its speed relative to the fastest, so that trying slow ones costs little.
    """
    best = max(contenders, key=lambda one: (one.choice.flops, -one.nsamples, one.choice.key.version_id))
    others = [one for one in contenders if one is not best]
    if not others:
        return best
    digest = blake2b(seed.encode(), digest_size=16).digest()
    which, lot = (int.from_bytes(part) / 2**64 for part in (digest[:8], digest[8:]))
    other = others[int(which * len(others))]
    part = other.choice.flops / best.choice.flops if other.is_measured else 1.0
    return other if lot < part / (TRIED_AT_FIRST + other.nsamples) else best


def choose_own(
    app: AppFacts,
    client_versions: Iterable[ClientVersion],
    computer: Computer,
    wanted_types: Collection[str],
    records: Records,
    today: dt.date,
    ceilings: Ceilings,
    version_num: int = 0,
) -> tuple[Choices, set[Reason]]:
    """Choose among the client's own versions of the app (anonymous platform): they state their own speed, which counts
    until enough run times of their jobs are known. ``version_num``: only those that claim this number.
    """
    choices: Choices = {}
    reasons: set[Reason] = set()
    for own in client_versions:
        if own.app_name != app.name or (version_num and own.version_num != version_num):
            continue
        type_ = own.processor_type
        if type_ not in wanted_types:
            reasons.add(Reason.NO_TYPE)
            continue
        gpu = computer.gpus.get(type_)
        if type_ != CPU and (gpu is None or gpu.count < own.gpu_count):
            reasons.add(Reason.PLAN_CLASS)
            continue
        gpus = [GpuUse(own.gpu_count, gpu.peak_flops)] if gpu is not None else []
        peak = peak_flops(own.avg_ncpus, computer.p_fpops, gpus, ceilings)
        key = RecordKey(app.id, 0, type_)
        record = records.get(key)
        if peak <= 0 or not jobs_left(app, record, computer, type_, today):
            reasons.add(Reason.QUOTA if peak > 0 else Reason.PLAN_CLASS)
            continue
        speed = record.et if record and record.et.n >= app.rules.min_host_samples else None
        flops = own.flops
        if speed is not None or not flops:
            flops = projected_flops(speed, None, peak, type_ != CPU, app.rules)
        usage = Usage(own.avg_ncpus, own.gpu_count, peak, all(knows_speed(use, ceilings) for use in gpus))
        _keep_faster(choices, Choice(key, usage, min(flops, peak), client_version=own))
    return choices, reasons


def jobs_left(
    app: AppFacts, record: HostVersionFacts | None, computer: Computer, processor_type: str, today: dt.date
) -> int:
    """Return how many more jobs the record's version may get today; one that never ran has the app's initial quota."""
    most = most_a_day(app, computer, processor_type)
    return probation.jobs_left_today(record, most, today) if record else most


def most_a_day(app: AppFacts, computer: Computer, processor_type: str) -> int:
    return probation.most_jobs_per_day(app.max_jobs_per_day_init, computer.instances(processor_type))


def _keep_faster(choices: Choices, choice: Choice) -> None:
    faster = choices.get(choice.processor_type)
    if faster is None or faster.flops < choice.flops:
        choices[choice.processor_type] = choice
