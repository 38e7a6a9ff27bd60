"""The targets of jobs: computers, volunteers and teams that exist, versions that computers get, and broadcasts."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from django.db.models import Q, QuerySet

from credit.models import App, AppVersion, Team
from portal.languages.messages import Message
from portal.models import Host, User
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.engine.limits import MAX_JOBS_PER_SUBMISSION
from scheduler.wire.job_fields import TARGETS, JobError, SubmittedJob

ACTIVE_DAYS: Final = 30
"""A broadcast reaches the computers that have contacted the scheduler within this time."""
REACHES_ALL: Final = "credit.view_result"
"""The permission to send jobs to anybody's computers: its holders see everybody's tasks anyway."""
_KINDS: Final = {
    LaneKind.COMPUTER: Message("target_computer"),
    LaneKind.PERSON: Message("target_person"),
    LaneKind.TEAM: Message("target_team"),
}


def check(app: App, jobs: Sequence[SubmittedJob], owner: User | None) -> None:
    """Refuse targets and versions that do not exist: such jobs would wait for ever. Raises JobError.

    Without permission to see everybody's tasks, owners reach only their own computers, themselves and their team;
    others' numbers are treated as missing, so that nobody learns of them. One statement for each kind of target that is
    used, and one for versions; and those of the owner's permissions if there are targets.
    """
    requested: defaultdict[LaneKind, dict[int, int]] = defaultdict(dict)
    numbers: dict[int, int] = {}
    for place, job in enumerate(jobs):
        if job.target.kind != LaneKind.SHARED:
            requested[job.target.kind].setdefault(job.target.target_id, place)
        if job.target.kind == LaneKind.PERSON and app.one_result_per_user:
            for name in ("min_quorum", "target_nresults"):
                if job.fields[name] > 1:
                    raise JobError(f"jobs[{place}].{name}", Message("one_computer"))
        _check_size(app, job.fields.get("size_class"), f"jobs[{place}].size_class")
        if job.fields["app_version_num"]:
            numbers.setdefault(job.fields["app_version_num"], place)
    within = owner if owner is not None and requested and not owner.has_perm(REACHES_ALL) else None
    for name, kind in TARGETS.items():
        missing = (
            set(requested[kind]) - set(_existing(kind, list(requested[kind]), within)) if requested[kind] else set()
        )
        if missing:
            id_ = min(missing)
            message = Message("no_target", kind=_KINDS[kind], number=str(id_))
            raise JobError(f"jobs[{requested[kind][id_]}].{name}", message)
    if numbers:
        versions = AppVersion.objects.filter(app=app, version_num__in=numbers, is_deprecated=False)
        for number in sorted(set(numbers) - set(versions.values_list("version_num", flat=True))):
            raise JobError(f"jobs[{numbers[number]}].app_version_num", Message("no_such_version", number=str(number)))


def _check_size(app: App, size_class: int | None, where: str) -> None:
    if size_class is None:
        return
    if app.n_size_classes < 2:
        raise JobError(where, Message("no_size_classes"))
    if size_class >= app.n_size_classes:
        raise JobError(where, Message("no_size_class", number=app.n_size_classes))


def gone(lanes: Iterable[int]) -> set[int]:
    """Return those of these lanes whose targets no longer exist."""
    requested: defaultdict[LaneKind, dict[int, int]] = defaultdict(dict)
    for number in lanes:
        requested[Lane.of(number).kind][Lane.of(number).target_id] = number
    missing: set[int] = set()
    for kind in TARGETS.values():
        there = set(_existing(kind, list(requested[kind]))) if requested[kind] else set()
        missing.update(number for id_, number in requested[kind].items() if id_ not in there)
    return missing


def _existing(
    kind: LaneKind, ids: list[int], within: User | None = None
) -> QuerySet[Host, int] | QuerySet[User, int] | QuerySet[Team, int]:
    """Return the existing targets with these numbers; ``within``: only this volunteer's."""
    match kind:
        case LaneKind.COMPUTER:
            own = Q() if within is None else Q(owner=within)
            hosts = Host.objects.filter(own, pk__in=ids, merged_into=None, owner__is_active=True)
            return hosts.values_list("pk", flat=True)
        case LaneKind.PERSON:
            own = Q() if within is None else Q(pk=within.pk)
            return User.objects.filter(own, pk__in=ids, is_active=True).values_list("pk", flat=True)
    own = Q() if within is None else Q(memberships__user=within)
    return Team.objects.filter(own, pk__in=ids).values_list("pk", flat=True)


def one_for_each_computer(jobs: Sequence[SubmittedJob], owner: User | None, now: dt.datetime) -> list[SubmittedJob]:
    """Replace each broadcast job by one for each computer that it is for. Raises JobError.

    Jobs for the owner's computers are marked (`marked`), as are those of a broadcast that is marked as a whole.
    """
    made: list[SubmittedJob] = []
    reached: dict[Lane, list[tuple[int, int]]] = {}
    for place, job in enumerate(jobs):
        if not job.is_broadcast:
            made.append(job)
            continue
        if job.target not in reached:
            reached[job.target] = list(_computers(job.target, now))
        hosts = reached[job.target]
        if not hosts:
            raise JobError(f"jobs[{place}].broadcast", Message("nobody_to_reach", days=ACTIVE_DAYS))
        if len(made) + len(hosts) > MAX_JOBS_PER_SUBMISSION:
            message = Message("too_many_made", number=len(made) + len(hosts), most=MAX_JOBS_PER_SUBMISSION)
            raise JobError(f"jobs[{place}].broadcast", message)
        for number, (host_id, owner_id) in enumerate(hosts, 1):
            made.append(_for_computer(job, number, host_id, is_own=owner is not None and owner_id == owner.pk))
    return made


def marked(jobs: Sequence[SubmittedJob], owner: User | None) -> Sequence[SubmittedJob]:
    """Mark the jobs for the owner, their computers or their team, because they earn no credit; return all jobs.

    Sends one statement for each kind of target used.
    """
    ids: defaultdict[LaneKind, set[int]] = defaultdict(set)
    for job in jobs:
        ids[job.target.kind].add(job.target.target_id)
    ids.pop(LaneKind.SHARED, None)
    if owner is None or not ids:
        return jobs
    own = {Lane(kind, id_) for kind in ids for id_ in _existing(kind, list(ids[kind]), owner)}
    return [replace(job, fields={**job.fields, "is_own": True}) if job.target in own else job for job in jobs]


def _computers(target: Lane, now: dt.datetime) -> QuerySet[Host, tuple[int, int]]:
    """Return the computers that a broadcast reaches, with their owners."""
    is_meant = {
        LaneKind.COMPUTER: Q(pk=target.target_id),
        LaneKind.PERSON: Q(owner=target.target_id),
        LaneKind.TEAM: Q(owner__membership__team=target.target_id),
        LaneKind.SHARED: Q(),
    }[target.kind]
    since = now - dt.timedelta(days=ACTIVE_DAYS)
    hosts = Host.objects.filter(is_meant, scheduler_record__last_rpc_at__gte=since, retired_at=None, merged_into=None)
    return hosts.order_by("pk").values_list("pk", "owner_id")[: MAX_JOBS_PER_SUBMISSION + 1]


def _for_computer(job: SubmittedJob, number: int, host_id: int, *, is_own: bool) -> SubmittedJob:
    """Return a job for one computer. Its name does not say which, because the submitter may not know."""
    fields = {"is_own": is_own, **job.fields, "lane": Lane(LaneKind.COMPUTER, host_id).number}
    return replace(job, name=f"{job.name}_c{number}", fields=fields, is_broadcast=False)
