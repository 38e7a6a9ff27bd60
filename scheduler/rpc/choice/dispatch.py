"""Begins to answer a work request: what may be sent, and which lost jobs are sent again."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from django.conf import settings

from scheduler.engine.choice import reliable, sizes, versions
from scheduler.engine.choice.needs import Needs
from scheduler.engine.choice.selection import Selection
from scheduler.engine.choice.ties import ties_of
from scheduler.engine.facts import AppFacts, Choice, Computer, RecordKey, Records, Usage
from scheduler.engine.hr_classes import Redundancy
from scheduler.engine.lanes import LaneKind
from scheduler.engine.project_preferences import NOTHING_CHOSEN
from scheduler.engine.reasons import Reason
from scheduler.engine.request import CPU, SchedulerRequest
from scheduler.programs.catalogue import Catalogue
from scheduler.rpc.choice.app_versions import VersionChooser
from scheduler.rpc.choice.computer import ceilings, computer_of, job_limits
from scheduler.rpc.choice.refusals import refusal
from scheduler.rpc.rows import KnownResult
from scheduler.rpc.store import Account


@dataclass(slots=True)
class Dispatch:
    """A work request while it is answered: the versions for the computer, and the jobs selected so far.

    ``lost``: jobs to give up; ``again``: jobs to send again. ``ties``: what the computer shares with others that may
    belong to the same person (`engine.choice.ties`). ``lanes``: for each app, those for this computer with waiting jobs
    (`engine.lanes`). ``sizes``: for each app with such jobs, the lanes of size classes in the order that suits it
    (`engine.choice.sizes`). ``held_files``: what it keeps of earlier jobs.
    """

    catalogue: Catalogue
    computer: Computer
    selection: Selection
    chooser: VersionChooser
    ties: list[int]
    held_files: list[str]
    lost: list[KnownResult] = field(default_factory=list)
    again: list[tuple[KnownResult, Choice]] = field(default_factory=list)
    lanes: dict[int, list[int]] = field(default_factory=dict)
    sizes: dict[int, list[int]] = field(default_factory=dict)

    def speed(self, app_id: int) -> float:
        """Return the computer's average FLOPS with the app's fastest version, including the time that it is off."""
        choices = self.selection.choices[app_id].values()
        return max(choice.flops * self.computer.availability(choice.processor_type) for choice in choices)

    def app(self, app_id: int) -> AppFacts:
        """Return the app, with the size of those of its jobs that this computer gets first."""
        app = self.catalogue.apps[app_id]
        waiting = self.catalogue.lanes[app_id].sizes if app_id in self.sizes else {}
        typical = next((waiting[lane] for lane in self.sizes.get(app_id, ()) if lane in waiting), None)
        return app if typical is None else replace(app, typical_fpops=typical)

    def continue_with(self, records: Records) -> None:
        """Continue with the computer's records as they were when they were locked."""
        self.selection.records = records
        self.selection.restricted.clear()
        self.chooser.inherited.clear()
        for choices in self.selection.choices.values():
            for choice in choices.values():
                if choice.version is not None:
                    self.chooser.inherit(choice.version)


def begin(
    request: SchedulerRequest,
    account: Account,
    catalogue: Catalogue,
    in_progress: Iterable[KnownResult],
    now: dt.datetime,
    draw: random.Random,
) -> Dispatch:
    """Choose the versions for the requested work. ``in_progress``: jobs that stay on the computer."""
    preferences = account.project_preferences or NOTHING_CHOSEN
    computer = computer_of(request, preferences)
    refused = refusal(request, account, catalogue, now)
    refused_types = request.refused_types.union(preferences.refused_types)
    work_requests = {type_: work for type_, work in request.work_requests.items() if type_ not in refused_types}
    selection = Selection(
        Needs({} if refused else work_requests, computer),
        computer,
        {},
        catalogue.apps,
        account.records.records,
        job_limits(),
        now.date(),
        Counter([(result.app_id, result.processor_type != CPU) for result in in_progress]),
        disk_bytes=computer.disk_bytes,
        draw=draw,
        own_limit=preferences.max_jobs,
    )
    wanted_types = selection.needs.wanted()
    requester = versions.Requester(request.platforms, computer.client, account.user_id if preferences.tests else 0)
    chooser = VersionChooser(request, catalogue, selection, wanted_types, account.user_id, preferences, requester)
    key_age_secs = now.timestamp() - account.key_created_at
    ties = ties_of(account.user_id, request.address, request.host.host_cpid, key_age_secs, settings.SECRET_KEY)
    dispatch = Dispatch(catalogue, computer, selection, chooser, ties, sorted(request.held_files))
    if refused is not None:
        selection.reasons.add(refused.reason)
        selection.explained[refused.reason] = refused.text
    elif wanted_types:
        selection.choose_among = chooser.choose
        selection.choices = chooser.choose_all()
        _find_lanes(dispatch, account)
    elif request.wants_work:
        selection.reasons.add(Reason.REFUSED_TYPE)
    return dispatch


def _find_lanes(dispatch: Dispatch, account: Account) -> None:
    """Store for each app the lanes with waiting jobs: those for this computer, and those of size classes."""
    if not dispatch.catalogue.lanes:
        return
    targets = {
        LaneKind.COMPUTER: account.host.id if account.host is not None else 0,
        LaneKind.PERSON: account.user_id,
        LaneKind.TEAM: dispatch.catalogue.teams.get(account.user_id, 0),
    }
    for app_id in dispatch.selection.choices:
        if lanes := _lanes(dispatch, app_id, targets):
            dispatch.lanes[app_id] = lanes
        if lanes := _sizes(dispatch, app_id):
            dispatch.sizes[app_id] = lanes


def _lanes(dispatch: Dispatch, app_id: int, targets: Mapping[LaneKind, int]) -> list[int]:
    index = dispatch.catalogue.lanes.get(app_id)
    if index is None:
        return []
    app, selection, computer = dispatch.catalogue.apps[app_id], dispatch.selection, dispatch.computer
    hr_class = None if app.redundancy == Redundancy.OFF else computer.hr_class(app.redundancy)
    shared = [lane.number for lane in index.of_class(hr_class) if selection.choices_for(app, lane.requirement)]
    is_reliable = any(
        reliable.is_reliable(
            selection.records.get(choice.key), app, versions.most_a_day(app, computer, choice.processor_type)
        )
        for choice in selection.choices[app_id].values()
    )
    return index.of_target(targets) + index.of_replacements(is_reliable=is_reliable) + shared


def _sizes(dispatch: Dispatch, app_id: int) -> list[int]:
    """Return the lanes of the app's size classes, if jobs wait in any, in the order that suits this computer."""
    index = dispatch.catalogue.lanes.get(app_id)
    if index is None or not index.sizes:
        return []
    limits = dispatch.catalogue.apps[app_id].size_limits
    return sizes.in_order(sizes.class_of(dispatch.speed(app_id), limits), index.sizes, limits)


def sort_lost(
    dispatch: Dispatch, request: SchedulerRequest, user_id: int, lost: Iterable[KnownResult], now: dt.datetime
) -> None:
    """Sort lost jobs into those to send again as they were and those to give up.

    A job is sent again only to the same installation, in time for its deadline, and with the same version, if the
    computer may still get that version and its owner still wants such jobs.
    """
    platforms = request.platforms
    for result in lost:
        version = dispatch.catalogue.versions.get(result.version_id or 0)
        is_usable = (
            version is not None
            and version.platform in platforms
            and versions.may_have(version, user_id)
            and not request.is_anonymous
            and not request.sends_no_work
            and not result.is_decided
            and not result.error_mask
            and result.projected_flops
            and result.deadline_at is not None
            and told_deadline(result.deadline_at) > now.timestamp()
            and _is_wanted(dispatch, request, result)
        )
        if not is_usable or version is None or result.job is None:
            dispatch.lost.append(result)
            continue
        usage = versions.usage_of(
            version, dispatch.catalogue.plan_classes.get(version.plan_class), dispatch.computer, ceilings()
        ) or Usage(version.avg_ncpus, version.gpu_usage, result.peak_flops or 0.0)
        key = RecordKey(result.app_id, version.id, result.processor_type)
        choice = Choice(key, usage, result.projected_flops or 0.0, version)
        dispatch.again.append((result, choice))
        dispatch.selection.count(result.job, choice)


def _is_wanted(dispatch: Dispatch, request: SchedulerRequest, result: KnownResult) -> bool:
    """Whether the owner, whose preferences may have changed since it was sent, still lets the computer have the job."""
    preferences, limit = dispatch.chooser.preferences, dispatch.selection.own_limit
    return (
        preferences.may_have_app(result.app_id)
        and result.processor_type not in request.refused_types.union(preferences.refused_types)
        and (limit is None or dispatch.selection.in_progress.total() < limit)
    )


def told_deadline(deadline_at: float) -> float:
    """Return the deadline that the client is given for a job: the project waits a little longer."""
    return deadline_at - settings.REPORT_GRACE_SECS
