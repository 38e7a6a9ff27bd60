"""Choose jobs for a computer: waiting jobs that it wants and can run.

The rules are in `scheduler.engine`, and docs/explanation/scheduler.md explains them. However many jobs there are, one
statement picks them (`scheduler.rpc.queue`) and another sends them (`scheduler.rpc.writes`).
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from django.conf import settings

from credit.engine.flops import Ceilings
from portal.clients.database.settings_cache import cached_setting
from scheduler.engine.choice import containers, keywords, reliable, sizes, versions
from scheduler.engine.choice.client_versions import ClientLimits, number_of, refused, site_reason
from scheduler.engine.choice.needs import Needs
from scheduler.engine.choice.selection import Limits, Selection, jobs_by_app_weight, jobs_wanted
from scheduler.engine.choice.system_versions import libc_number, os_number
from scheduler.engine.choice.ties import Separation, ties_of
from scheduler.engine.choice.versions import Choices
from scheduler.engine.facts import AppFacts, Choice, Computer, JobQuery, RecordKey, Records, Usage, Version
from scheduler.engine.hr_classes import Redundancy
from scheduler.engine.lanes import ANY_VERSION, LaneKind, Requirement, has_targeted
from scheduler.engine.project_preferences import NOTHING_CHOSEN, ProjectPreferences
from scheduler.engine.reasons import OF_PLAN_CLASSES, Reason, sentence
from scheduler.engine.request import CPU, GPU_TYPES, SchedulerRequest
from scheduler.programs.catalogue import BEFORE_ALL, Catalogue
from scheduler.rpc.rows import KnownResult, Waiting
from scheduler.rpc.store import Account

NO_LIMIT: Final = 1e300
CHOSEN_SCORE: Final = 10_000
"""More than an app has keywords."""


@dataclass(slots=True)
class Dispatch:
    """A request for work while it is answered: the versions for the computer, and the jobs found so far.

    ``scores``: how much the volunteer likes each app (`keywords.score`). ``inherited``: for each missing record, the
    version whose statistics it takes over. ``lost``: jobs to give up; ``again``: jobs to send again. ``ties``: what the
    computer shares with others that may be the same person's (`engine.choice.ties`). ``lanes``: of each app, those for
    this computer in which jobs wait (`engine.lanes`). ``sizes``: of each app with such jobs, lanes of size classes in
    the order that suits it (`engine.choice.sizes`). ``held_files``: what it keeps of earlier jobs.
    """

    catalogue: Catalogue
    computer: Computer
    selection: Selection
    scores: dict[int, int] = field(default_factory=dict)
    inherited: dict[RecordKey, int] = field(default_factory=dict)
    lost: list[KnownResult] = field(default_factory=list)
    again: list[tuple[KnownResult, Choice]] = field(default_factory=list)
    ties: list[int] = field(default_factory=list)
    lanes: dict[int, list[int]] = field(default_factory=dict)
    sizes: dict[int, list[int]] = field(default_factory=dict)
    held_files: list[str] = field(default_factory=list)

    def speed(self, app_id: int) -> float:
        """The FLOPS that the computer does with the app's fastest version, also while it is off."""
        choices = self.selection.choices[app_id].values()
        return max(choice.flops * self.computer.availability(choice.processor_type) for choice in choices)

    def app(self, app_id: int) -> AppFacts:
        """The app, with the size of the jobs that this computer gets of it first."""
        app = self.catalogue.apps[app_id]
        waiting = self.catalogue.lanes[app_id].sizes if app_id in self.sizes else {}
        typical = next((waiting[lane] for lane in self.sizes.get(app_id, ()) if lane in waiting), None)
        return app if typical is None else replace(app, typical_fpops=typical)


def computer_of(request: SchedulerRequest, preferences: ProjectPreferences = NOTHING_CHOSEN) -> Computer:
    """The computer as its client describes it at this request, as far as its owner lets this project use it."""
    ncpus = min(request.usable_ncpus, settings.AM_MAX_NCPUS)
    host = request.host
    on, active, gpu_active = request.available_fractions
    disk, used = request.disk_usage.get("d_project_share"), request.disk_usage.get("d_boinc_used_project", 0.0)
    free = host.d_free if disk is None or disk <= 0 else max(0.0, disk - max(used, 0.0))
    return Computer(
        ncpus=min(ncpus, preferences.max_cpus or ncpus),
        p_fpops=host.p_fpops,
        gpus={
            gpu.type: replace(gpu, count=min(gpu.count, settings.AM_MAX_GPUS))
            for gpu in request.gpus
            if gpu.type in GPU_TYPES
        },
        features=host.p_features,
        ram_bytes=None if host.m_nbytes is None else host.m_nbytes * request.ram_fraction,
        disk_bytes=free,
        cpu_availability=on * active,
        gpu_availability=on * gpu_active,
        containers=containers.usable(host.containers, host.os_name, request.client_version, request.refused_containers),
        max_threads=preferences.max_threads,
        is_limited=(preferences.max_cpus or ncpus) < ncpus,
        os_name=host.os_name,
        platform=request.platform_name,
        client=number_of(request.client_version),
        virtualbox=host.virtualbox_version,
        allows_vms=host.allows_vms,
        texts=(host.os_version, host.p_vendor, host.p_model),
        os_number=os_number(host.os_name, host.os_version),
        libc_number=libc_number(host.os_version),
    )


@cached_setting
def ceilings() -> Ceilings:
    """The most that a computer may claim to be: the same as for the account manager."""
    return Ceilings(settings.AM_MAX_NCPUS, settings.AM_MAX_CPU_FLOPS, settings.AM_MAX_GPUS, settings.AM_MAX_GPU_FLOPS)


@cached_setting
def client_limits() -> ClientLimits:
    """Which versions of BOINC's client get work here at all."""
    return ClientLimits(
        number_of(settings.MIN_CLIENT_VERSION),
        number_of(settings.MAX_CLIENT_VERSION),
        settings.MIN_CLIENT_VERSION_FROM,
    )


@cached_setting
def _limits() -> Limits:
    return Limits(settings.MAX_JOBS_IN_PROGRESS, settings.MAX_GPU_JOBS_IN_PROGRESS, settings.MAX_JOBS_PER_RPC)


def begin(
    request: SchedulerRequest,
    account: Account,
    catalogue: Catalogue,
    in_progress: Iterable[KnownResult],
    now: dt.datetime,
    draw: random.Random,
) -> Dispatch:
    """Choose the versions for the wanted work. ``in_progress``: jobs that stay on the computer."""
    preferences = account.project_preferences or NOTHING_CHOSEN
    computer = computer_of(request, preferences)
    is_too_soon = asks_too_soon(request, account, now)
    refusal = _refusal(request, account, catalogue, now)
    refused_types = request.refused_types.union(preferences.refused_types)
    wanted_types = {type_: work for type_, work in request.work_requests.items() if type_ not in refused_types}
    needs = Needs({} if request.sends_no_work or is_too_soon or refusal else wanted_types, computer)
    counts = Counter([(known.app_id, known.processor_type != CPU) for known in in_progress])
    selection = Selection(
        needs,
        computer,
        {},
        catalogue.apps,
        account.records.records,
        _limits(),
        now.date(),
        counts,
        disk_bytes=computer.disk_bytes,
        draw=draw,
        own_limit=preferences.max_jobs,
    )
    wanted = needs.wanted()
    if request.sends_no_work:
        selection.reasons.add(Reason.NOT_WANTED)
    elif refusal and request.wants_work:
        selection.reasons.add(refusal)
        why = _blocked_because(account, catalogue)
        selection.explained[refusal] = refused(refusal, request.client_version, client_limits(), why)
    elif is_too_soon:
        selection.reasons.add(Reason.TOO_SOON)
    elif not wanted and request.wants_work:
        selection.reasons.add(Reason.REFUSED_TYPE)
    key_age_secs = now.timestamp() - account.key_created_at
    ties = ties_of(account.user_id, request.address, request.host.host_cpid, key_age_secs, settings.SECRET_KEY)
    work = Dispatch(catalogue, computer, selection, ties=ties, held_files=sorted(request.held_files))
    if wanted:
        tester_id = account.user_id if preferences.tests else 0
        requester = versions.Requester(request.platforms, computer.client, tester_id)
        chooser = _Chooser(request, work, wanted, account.user_id, preferences, requester)
        selection.choose_among = chooser.choose_for
        selection.choices = _choices(chooser)
        targets = {
            LaneKind.COMPUTER: account.host.id if account.host is not None else 0,
            LaneKind.PERSON: account.user_id,
            LaneKind.TEAM: catalogue.teams.get(account.user_id, 0),
        }
        work.lanes = {app_id: lanes for app_id in selection.choices if (lanes := _lanes(work, app_id, targets))}
        work.sizes = {app_id: lanes for app_id in selection.choices if (lanes := _sizes(work, app_id))}
    return work


def is_urgent(selection: Selection) -> bool:
    """Whether the reason for not sending anything is one that the owner has to know of."""
    return not selection.reasons.isdisjoint((Reason.BLOCKED, Reason.CLIENT_TOO_OLD, Reason.CLIENT_TOO_NEW))


def _refusal(request: SchedulerRequest, account: Account, catalogue: Catalogue, now: dt.datetime) -> Reason | None:
    """Why this computer gets no jobs whatever waits; None: it may get some."""
    if _blocked_because(account, catalogue):
        return Reason.BLOCKED
    return site_reason(number_of(request.client_version), client_limits(), now)


def _blocked_because(account: Account, catalogue: Catalogue) -> str:
    """Why operators send this computer no jobs, in their words; empty: they do."""
    of_host = catalogue.blocked_hosts.get(account.host.id, "") if account.host is not None else ""
    return of_host or catalogue.blocked_users.get(account.user_id, "")


def _lanes(work: Dispatch, app_id: int, targets: Mapping[LaneKind, int]) -> list[int]:
    """The lanes of an app that are for this computer, and in which jobs wait."""
    index = work.catalogue.lanes.get(app_id)
    if index is None:
        return []
    app = work.catalogue.apps[app_id]
    hr_class = None if app.redundancy == Redundancy.OFF else work.computer.hr_class(app.redundancy)
    shared = [lane.number for lane in index.of_class(hr_class) if work.selection.choices_for(app, lane.requirement)]
    is_reliable = any(
        reliable.is_reliable(
            work.selection.records.get(choice.key), app, versions.most_a_day(app, work.computer, choice.processor_type)
        )
        for choice in work.selection.choices[app_id].values()
    )
    return index.of_target(targets) + index.of_replacements(is_reliable=is_reliable) + shared


def _sizes(work: Dispatch, app_id: int) -> list[int]:
    """The lanes of the app's size classes, if jobs wait in any, in the order that suits this computer."""
    index = work.catalogue.lanes.get(app_id)
    if index is None or not index.sizes:
        return []
    own = sizes.class_of(work.speed(app_id), work.catalogue.apps[app_id].size_limits)
    return sizes.in_order(own, index.sizes)


def asks_too_soon(request: SchedulerRequest, account: Account, now: dt.datetime) -> bool:
    """Whether the computer asks for jobs, and did so less than MIN_SENDWORK_INTERVAL_SECS ago."""
    if account.host is None or not request.asks_for_jobs:
        return False
    return 0 <= now.timestamp() - account.host.work_asked_at < settings.MIN_SENDWORK_INTERVAL_SECS


@dataclass(frozen=True, slots=True)
class _Chooser:
    """Chooses versions for the request. ``requester``: user 0, who tests nothing, if the volunteer wants no tests."""

    request: SchedulerRequest
    work: Dispatch
    wanted: list[str]
    user_id: int
    preferences: ProjectPreferences
    requester: versions.Requester

    def usable(self, app: AppFacts, requirement: Requirement = ANY_VERSION) -> list[Version]:
        """The project's own versions that the client can run; none where it has its own (anonymous platform)."""
        if self.request.is_anonymous:
            return []
        return versions.newest(self.work.catalogue.versions_by_app.get(app.id, ()), self.requester, requirement)

    def has_own(self, app: AppFacts) -> bool:
        """Whether the client has its own version of the app."""
        return self.request.is_anonymous and any(own.app_name == app.name for own in self.request.client_versions)

    def needs_other_client(self, app: AppFacts) -> bool:
        """Whether there are versions for the computer, but all for other versions of BOINC."""
        app_versions = self.work.catalogue.versions_by_app.get(app.id, ())
        return not self.request.is_anonymous and any(self.requester.can_run(version) for version in app_versions)

    def choose_for(self, app: AppFacts, requirement: Requirement) -> Choices:
        """The best versions of those that a job asks for, or is bound to."""
        return self.choose(app, self.usable(app, requirement), requirement)[0]

    def choose(
        self, app: AppFacts, usable: list[Version], requirement: Requirement = ANY_VERSION
    ) -> tuple[Choices, set[Reason]]:
        """The best versions of the app for each wanted type, and why others were left out."""
        selection, request = self.work.selection, self.request
        common = selection.computer, self.wanted, selection.records, selection.today, ceilings()
        if request.is_anonymous:
            if requirement.version_id:
                return {}, set()
            return versions.choose_own(app, request.client_versions, *common, requirement.version_num)
        for version in usable:
            _inherit(self.work, version)
        seed = f"{self.user_id}:{request.host.host_cpid}:{request.rpc_seqno}"
        return versions.choose(app, usable, self.work.catalogue.plan_classes, *common, seed)


def _choices(chooser: _Chooser) -> dict[int, Choices]:
    """The best versions of each app, by app and processor type."""
    selection, preferences = chooser.work.selection, chooser.preferences
    chosen: dict[int, Choices] = {}
    any_version = any_paused = False
    for app in chooser.work.catalogue.apps.values():
        if app.testers is not None and chooser.requester.user_id not in app.testers:
            continue
        usable = chooser.usable(app)
        has_version = bool(usable) or chooser.has_own(app)
        if app.is_paused:
            any_paused = any_paused or has_version
        elif has_version or preferences.may_have_app(app.id):
            liking = keywords.score(app, chooser.request)
            barrier = _barrier(app, chooser, liking, has_version=has_version)
            any_version = any_version or has_version or barrier is not None
            choices, reasons = chooser.choose(app, usable) if barrier is None else ({}, {barrier})
            selection.reasons |= reasons
            if choices:
                chosen[app.id] = choices
                # What was chosen for this project goes before what is liked in general.
                chooser.work.scores[app.id] = (liking or 0) + CHOSEN_SCORE * preferences.wants_app(app.id)
    if not any_version:
        lacking = Reason.NO_CLIENT_VERSION if chooser.request.is_anonymous else Reason.NO_APP
        selection.reasons.add(Reason.PAUSED if any_paused else lacking)
    return chosen


def _barrier(app: AppFacts, chooser: _Chooser, liking: int | None, *, has_version: bool) -> Reason | None:
    """Why the computer gets no jobs of the app, whatever its versions need. ``liking``: `keywords.score`."""
    selection = chooser.work.selection
    if not chooser.preferences.may_have_app(app.id):
        return Reason.NOT_CHOSEN
    if liking is None:
        return Reason.KEYWORDS
    if app.is_non_cpu_intensive and selection.is_busy_with(app):
        return Reason.IN_PROGRESS
    if app.redundancy != Redundancy.OFF and not selection.computer.hr_class(app.redundancy):
        return Reason.UNKNOWN_CLASS if has_version else None
    if app.is_homogeneous_version and chooser.request.is_anonymous:
        return Reason.OTHER_VERSION
    if not has_version and chooser.needs_other_client(app):
        return Reason.OTHER_CLIENT
    return None


def send_again(
    dispatch: Dispatch, request: SchedulerRequest, user_id: int, lost: Iterable[KnownResult], now: dt.datetime
) -> None:
    """Sort lost jobs: those to send again as they were, and those that are given up.

    Again only to the same installation, in time for their deadline, on the version that they were sent for, if its
    computers are still sent that one.
    """
    platforms = request.platforms
    for known in lost:
        version = dispatch.catalogue.versions.get(known.version_id or 0)
        is_usable = (
            version is not None
            and known.job is not None
            and version.platform in platforms
            and versions.may_have(version, user_id)
            and not request.is_anonymous
            and not request.sends_no_work
            and not known.is_decided
            and not known.error_mask
            and known.projected_flops
            and known.deadline_at is not None
            and told_deadline(known.deadline_at) > now.timestamp()
        )
        if not is_usable or version is None:
            dispatch.lost.append(known)
            continue
        usage = versions.usage_of(
            version, dispatch.catalogue.plan_classes.get(version.plan_class), dispatch.computer, ceilings()
        ) or Usage(version.avg_ncpus, version.gpu_usage, known.peak_flops or 0.0)
        key = RecordKey(known.app_id, version.id, known.processor_type)
        dispatch.again.append((known, Choice(key, usage, known.projected_flops or 0.0, version)))


def told_deadline(deadline_at: float) -> float:
    """The deadline that a client is told of a job: the project waits for a while longer."""
    return deadline_at - settings.REPORT_GRACE_SECS


def _inherit(work: Dispatch, version: Version) -> None:
    selection = work.selection
    if older := versions.inherit(selection.records, version, work.catalogue.versions_by_app[version.app_id]):
        work.inherited[RecordKey(version.app_id, version.id, version.processor_type)] = older


def renew_records(work: Dispatch, records: Records) -> None:
    """Continue with the records as they were when they were locked."""
    work.selection.records, work.inherited = records, {}
    work.selection.restricted.clear()
    for choices in work.selection.choices.values():
        for choice in choices.values():
            if choice.version is not None:
                _inherit(work, choice.version)


def job_queries(dispatch: Dispatch, draw: random.Random) -> list[JobQuery]:
    """The queries for the heads of the queues: for each processor type, the apps that can use it."""
    selection = dispatch.selection
    apps = [dispatch.app(app_id) for app_id in selection.choices]
    wanted = jobs_wanted(selection, apps)
    if apps and not any(wanted.values()):
        selection.reasons.add(selection.full)
    most: Counter[int] = Counter()
    for type_, njobs in wanted.items():
        rooms = {app.id: selection.room_of_app(app, type_) for app in apps if type_ in selection.choices[app.id]}
        if not all(rooms.values()):
            selection.reasons.add(selection.full)
        with_room = [app for app in apps if rooms.get(app.id)]
        # What waits for this computer, its owner or their team goes first, whatever else is liked.
        targeted = [app for app in with_room if has_targeted(dispatch.lanes.get(app.id, ()))]
        liked = targeted or keywords.most_liked(with_room, dispatch.scores)
        drawn = jobs_by_app_weight(liked, njobs, draw)
        most.update({app_id: min(count, rooms[app_id]) for app_id, count in drawn.items()})
    return [_query(dispatch, app_id, njobs) for app_id, njobs in most.items()]


def queries_of_other_apps(dispatch: Dispatch, drawn: Iterable[JobQuery], most: int) -> list[JobQuery]:
    """What to look for at the heads of the other apps' queues, as those that were drawn have too little."""
    of_drawn = {query.app_id for query in drawn}
    others = [dispatch.catalogue.apps[app_id] for app_id in dispatch.selection.choices if app_id not in of_drawn]
    rooms = {
        app.id: max(dispatch.selection.room_of_app(app, type_) for type_ in dispatch.selection.choices[app.id])
        for app in others
    }
    return [_query(dispatch, app.id, min(most, rooms[app.id])) for app in others if rooms[app.id]]


def _query(dispatch: Dispatch, app_id: int, most: int) -> JobQuery:
    selection = dispatch.selection
    ram, disk = dispatch.computer.ram_bytes, selection.disk_bytes
    return JobQuery(
        app_id,
        most,
        dispatch.speed(app_id),
        min(need.begins_after_secs for need in selection.needs.by_type.values() if need.is_open),
        NO_LIMIT if ram is None else ram,
        NO_LIMIT if disk is None else disk,
        dispatch.catalogue.apps[app_id].one_result_per_user,
        *dispatch.catalogue.heads.get(app_id, BEFORE_ALL),
        dispatch.ties,
        settings.SEPARATE_REPLICAS != Separation.OFF,
        settings.SEPARATE_REPLICAS == Separation.STRICT,
        dispatch.lanes.get(app_id, []),
        dispatch.held_files,
        dispatch.sizes.get(app_id, []),
    )


def from_random_place(query: JobQuery, left: int, app: AppFacts, draw: random.Random) -> JobQuery:
    """The query for the jobs that are still missing, from a random place in the app's queue on."""
    rank, begin = _place(app, query.rank if app.first_rank is None else max(query.rank, app.first_rank), draw)
    return replace(query, most=left, rank=rank, begin=begin)


def _place(app: AppFacts, rank: int, draw: random.Random) -> tuple[int, int]:
    """A random place in the queue (`ready_queue.Place`).

    Half of the time it is among the most urgent jobs, else behind them, as these may suit no computer like this one.
    """
    if app.last_rank is not None and app.last_rank > rank and draw.random() < 0.5:
        # Their places may all be lower than those of the urgent ones.
        return draw.randint(rank + 1, app.last_rank), draw.choice((0, draw.randint(0, app.last_place)))
    return rank, draw.randint(app.first_place, app.last_place) if app.first_place < app.last_place else app.first_place


def messages(selection: Selection, waiting: Waiting | None) -> list[str]:
    """Why nothing was sent, the most useful reason first. ``waiting``: the jobs found in the searched queues."""
    if Reason.NOT_WANTED in selection.reasons:
        return []
    if waiting is not None:
        _take_reasons_of(waiting, selection)
    reasons = set(selection.reasons)
    if selection.choices:
        # Some version could have been used, so it does not matter what others lack.
        reasons -= {Reason.NO_APP, Reason.NO_TYPE, Reason.OTHER_CLIENT, Reason.UNKNOWN_CLASS, *OF_PLAN_CLASSES}
    usable = {Reason.MEMORY: selection.computer.ram_bytes, Reason.DISK: selection.disk_bytes}
    return [
        selection.explained.get(reason)
        or sentence(reason, selection.missing.get(reason, 0.0), usable.get(reason) or 0.0)
        for reason in Reason
        if reason in reasons
    ]


def _take_reasons_of(waiting: Waiting, selection: Selection) -> None:
    if not waiting.njobs:
        selection.reasons.add(Reason.NO_JOBS)
        return
    reasons = {Reason.DEADLINE} if waiting.deadline else set()
    for reason, nbytes in ((Reason.MEMORY, waiting.memory_nbytes), (Reason.DISK, waiting.disk_nbytes)):
        if nbytes is not None:
            reasons.add(selection.lacks(reason, nbytes))
    selection.reasons |= reasons or {Reason.ONE_PER_USER}
