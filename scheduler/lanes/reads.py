"""The lanes with waiting jobs, and who could take these jobs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import connection
from django.utils.translation import gettext

from credit.models import App, AppVersion, Team
from portal.models import Host, User
from scheduler.engine.hr_classes import Redundancy, class_name, class_of
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.lanes import sql

MAX_SHOWN: Final = 200
ACTIVE_DAYS: Final = 30
MAX_HOSTS: Final = 20_000
"""How many of the computers that asked last are counted by class."""


@dataclass(frozen=True, slots=True)
class WaitingLane:
    """Jobs of an app that wait for certain computers.

    ``nowners``: volunteers with suitable computers that asked recently; None: not counted. ``is_gone``: the target or
    the version no longer exists.
    """

    app: App
    lane: Lane
    njobs: int
    since: dt.datetime
    name: str
    nowners: int | None
    is_gone: bool


@dataclass(frozen=True, slots=True)
class WaitingSize:
    """Jobs of an app that wait in one of its size classes, 0 for the slowest computers.

    By the last census: ``begins_at``, the least FLOPS of its computers, and ``nhosts``, how many there are; None: it
    did not find that. ``is_gone``: the app has fewer classes by now.
    """

    app: App
    number: int
    begins_at: float | None
    nhosts: int | None
    njobs: int
    is_gone: bool


@dataclass(slots=True)
class _Owners:
    """The volunteers whose computers asked recently, by the class of their computers, and by computer."""

    by_class: dict[int, set[int]] = field(default_factory=dict)
    by_host: dict[int, int] = field(default_factory=dict)


def read_lanes(now: dt.datetime) -> list[WaitingLane]:
    """Read the lanes, those whose oldest job has waited longest first; at most `MAX_SHOWN`.

    A fixed number of statements.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.WAITING_LANES, [MAX_SHOWN])
        rows: list[tuple[int, int, int, dt.datetime]] = cursor.fetchall()
    apps = App.objects.in_bulk({app_id for app_id, *_ in rows})
    lanes = [Lane.of(number) for _, number, _, _ in rows]
    names = _names(lanes)
    owners = _owners(now) if rows else _Owners()
    return [
        WaitingLane(
            apps[app_id],
            lane,
            njobs,
            since,
            _name(lane, names),
            _nowners(lane, apps[app_id], owners),
            _is_gone(lane, names, apps[app_id]),
        )
        for lane, (app_id, _, njobs, since) in zip(lanes, rows, strict=True)
    ]


def read_sizes() -> list[WaitingSize]:
    """The size classes of all apps that have any, or whose jobs still wait in some. Two statements."""
    apps = sorted(App.objects.all(), key=lambda app: app.name)
    with connection.cursor() as cursor:
        cursor.execute(sql.WAITING_SIZES, [[app.pk for app in apps]])
        rows: list[tuple[int, int, int]] = cursor.fetchall()
    return [size for app in apps for size in _sizes(app, rows)]


def _sizes(app: App, rows: Sequence[tuple[int, int, int]]) -> Iterator[WaitingSize]:
    njobs = {number: count for app_id, number, count in rows if app_id == app.pk}
    has_classes = app.n_size_classes > 1 and not app.is_deprecated
    begins = dict(enumerate([0.0, *app.size_limits]))
    nhosts = dict(enumerate(app.size_nhosts))
    for number in sorted({*njobs, *(range(app.n_size_classes) if has_classes else ())}):
        is_gone = number >= app.n_size_classes
        yield WaitingSize(app, number, begins.get(number), nhosts.get(number), njobs.get(number, 0), is_gone)


_Names = Mapping[tuple[LaneKind, int], str]


def _names(lanes: Sequence[Lane]) -> _Names:
    """Return the names of the targets that still exist, and the labels of the versions that are not withdrawn."""
    ids = {kind: {lane.target_id for lane in lanes if lane.kind == kind} for kind in LaneKind}
    names: dict[tuple[LaneKind, int], str] = {}
    for host in Host.objects.filter(pk__in=ids[LaneKind.COMPUTER], merged_into=None, owner__is_active=True):
        names[LaneKind.COMPUTER, host.pk] = str(host)
    for user in User.objects.filter(pk__in=ids[LaneKind.PERSON], is_active=True):
        names[LaneKind.PERSON, user.pk] = str(user)
    for team in Team.objects.filter(pk__in=ids[LaneKind.TEAM]):
        names[LaneKind.TEAM, team.pk] = str(team)
    version_ids = {lane.requirement.version_id for lane in lanes} - {0}
    for version in AppVersion.objects.filter(pk__in=version_ids, is_deprecated=False):
        names[LaneKind.SHARED, version.pk] = version.number_label
    return names


def _name(lane: Lane, names: _Names) -> str:
    if lane.kind != LaneKind.SHARED:
        named = {"name": names.get((lane.kind, lane.target_id), "?"), "number": lane.target_id}
        return {
            LaneKind.COMPUTER: gettext("computer %(number)s (%(name)s)"),
            LaneKind.PERSON: gettext("volunteer %(number)s (%(name)s)"),
            LaneKind.TEAM: gettext("team %(number)s (%(name)s)"),
        }[lane.kind] % named
    if lane.is_reliable:
        return gettext("reliable computers, and after an hour all")
    number, id_ = lane.requirement
    parts = [class_name(lane.hr_class)] if lane.hr_class else []
    if id_:
        parts.append(gettext("version %(label)s") % {"label": names.get((LaneKind.SHARED, id_), f"({id_})")})
    elif number:
        parts.append(gettext("version %(label)s") % {"label": f"{number / 100:.2f}"})
    return "; ".join(parts)


def _is_gone(lane: Lane, names: _Names, app: App) -> bool:
    if lane.kind != LaneKind.SHARED:
        return (lane.kind, lane.target_id) not in names
    number, id_ = lane.requirement
    if id_:
        return (LaneKind.SHARED, id_) not in names
    return bool(number) and not app.versions.filter(version_num=number, is_deprecated=False).exists()


def _owners(now: dt.datetime) -> _Owners:
    since = now - dt.timedelta(days=ACTIVE_DAYS)
    hosts = Host.objects.filter(scheduler_record__last_rpc_at__gte=since, retired_at=None, merged_into=None)
    owners = _Owners()
    for host in hosts.only("owner_id", "os_name", "p_vendor", "p_model", "p_features").order_by(
        "-scheduler_record__last_rpc_at"
    )[:MAX_HOSTS]:
        owners.by_host[host.pk] = host.owner_id
        features = frozenset(host.p_features.split())
        for redundancy in (Redundancy.COARSE, Redundancy.FINE):
            hr_class = class_of(redundancy, host.os_name, host.p_vendor, host.p_model, features)
            owners.by_class.setdefault(hr_class, set()).add(host.owner_id)
    return owners


def _nowners(lane: Lane, app: App, owners: _Owners) -> int | None:
    match lane.kind:
        case LaneKind.COMPUTER:
            return int(lane.target_id in owners.by_host)
        case LaneKind.PERSON:
            return int(lane.target_id in owners.by_host.values())
        case LaneKind.SHARED if lane.hr_class and app.homogeneous_redundancy != Redundancy.OFF:
            return len(owners.by_class.get(lane.hr_class, ()))
    return None
