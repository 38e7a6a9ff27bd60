"""Find what needs a volunteer's attention: computers that are silent, idle, failing jobs, or not fully counted.

Pages show it (home, the list of computers, the page of one), and mails go to volunteers who asked for them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db.models import BigIntegerField, Count, Exists, F, Max, OuterRef, Q, Sum
from django.db.models.functions import Cast
from django.utils.translation import gettext, gettext_noop, ngettext

from accounting.choosing.texts import listed, types_text
from accounting.engine.choice.facts import CPU, TroubleKind, device_types
from accounting.engine.merge_rules import os_family
from accounting.engine.states import DayFlag, NoteKind
from accounting.models import Day, HostClient, HostLedger, HostProject, Note, ProjectVersion
from portal.models import ClientKey, Host, User
from portal.templatetags.display import count, day, moment_text

WEEK_DAYS: Final = 7
NO_WORK_AFTER: Final = dt.timedelta(days=1)
# A client in use reports several times a day, so by then we know whether two of one name are two computers.
SECOND_RECORD_AFTER: Final = dt.timedelta(days=1)
MIN_FAILED_JOBS: Final = 3
# Honest computers report late once in a while, too; then the waiting credit is soon granted.
MIN_CAPPED_DAYS: Final = 2
FAILING_FRACTION: Final = 0.2
_LOSSES: Final = (NoteKind.INVALID, NoteKind.SUM_BROKEN, NoteKind.DROPPED, NoteKind.EC_ABOVE_TIME)


class Concern(StrEnum):
    """What is wrong with a computer, the most urgent first."""

    KEY_ENDED = "key ended"
    SILENT = "silent"
    FAILING_JOBS = "failing jobs"
    NO_WORK = "no work"
    CAPPED = "capped"
    NOT_COUNTED = "not all counts"
    SEVERAL = "several clients"
    SECOND_RECORD = "second record"
    CANNOT_REPORT = "cannot report"


CONCERN_NAMES: Final = {
    Concern.KEY_ENDED: gettext_noop("key revoked"),
    Concern.SILENT: gettext_noop("silent"),
    Concern.NO_WORK: gettext_noop("no work"),
    Concern.FAILING_JOBS: gettext_noop("failing tasks"),
    Concern.CAPPED: gettext_noop("too much reported"),
    Concern.NOT_COUNTED: gettext_noop("not counted in full"),
    Concern.SEVERAL: gettext_noop("several clients"),
    Concern.SECOND_RECORD: gettext_noop("second record"),
    Concern.CANNOT_REPORT: gettext_noop("reports no credit"),
}
"""The concern in words, for the list of computers."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One concern about one computer: ``text`` follows the computer's name, ``link`` is the question that its page
    answers.

    ``since``: when it began, if known; the last contact of a silent computer. ``page``: the name of the linked page.
    ``about``: the processor type or the project's number, where there may be several.
    """

    concern: Concern
    host_id: int
    host_name: str
    text: str
    link: str
    to_do: str
    since: dt.datetime | None = None
    page: str = "host"
    about: str = ""


@dataclass(frozen=True, slots=True)
class AtProject:
    """What a client last reported about one of its projects: troubles as (kind, type, since), seconds of jobs in store.

    ``types``: the processor types that the project has programs for; None: for all. ``excluded_types``: types that it
    may not use here.
    """

    name: str
    troubles: Sequence[tuple[str, str, dt.datetime]]
    in_store_secs: int
    is_paused: bool
    types: frozenset[str] | None
    excluded_types: frozenset[str]


def idle_types(
    types: Iterable[str], projects: Sequence[AtProject], now: dt.datetime
) -> list[tuple[str, dt.datetime, list[str]]]:
    """Return the processor types that no project has had work for, for a day or longer: type, since when, projects.

    A project counts for a type if it has programs for it, and may use it here. Jobs still in store count as work for
    any type, as clients do not say which of them are for GPUs.
    """
    idle = []
    for type_ in types:
        serving = [p for p in projects if (p.types is None or type_ in p.types) and type_ not in p.excluded_types]
        serving = [project for project in serving if not project.is_paused]
        since = [_without_work_since(project, type_) for project in serving]
        if not since or None in since:
            continue
        latest = max(moment for moment in since if moment is not None)
        if now - latest < NO_WORK_AFTER or (type_ == CPU and any(project.in_store_secs for project in serving)):
            continue
        idle.append((type_, latest, [project.name for project in serving]))
    return idle


def _without_work_since(project: AtProject, type_: str) -> dt.datetime | None:
    moments = [since for kind, of, since in project.troubles if kind != TroubleKind.NO_WORK or of == type_]
    return min(moments, default=None)


def are_failing(succeeded: int, failed: int) -> bool:
    """Whether more of a week's jobs failed than usually do."""
    return failed >= MIN_FAILED_JOBS and failed >= FAILING_FRACTION * (succeeded + failed)


def read_attention(user: User, hosts: Sequence[Host], now: dt.datetime, silent_after: dt.timedelta) -> list[Attention]:
    """Read the concerns about these computers of the user, silent ones first; eight statements."""
    in_use = [host for host in hosts if host.retired_at is None and host.merged_into_id is None]
    today = now.astimezone(dt.UTC).date()
    first = today - dt.timedelta(days=WEEK_DAYS - 1)
    ledgers = HostLedger.objects.filter(host__in=[host.pk for host in in_use])
    rows = list(ledgers.values_list("pk", "excluded_types", "contact__reports_credit"))
    excluded = {pk: types for pk, types, _ in rows}
    return [
        *_silent(in_use, now, silent_after),
        *_without_key(in_use),
        *_cannot_report(in_use, {pk for pk, _, reports in rows if reports is False}),
        *_without_work([host for host in in_use if now - host.last_contact_at < silent_after], excluded, now),
        *_failing(user, in_use, first, today),
        *_capped(user, in_use, first, today),
        *_not_counted(in_use, first),
        *_several(in_use, now),
        *_second_records(in_use, now),
    ]


def _silent(hosts: Iterable[Host], now: dt.datetime, silent_after: dt.timedelta) -> list[Attention]:
    return [
        Attention(
            Concern.SILENT,
            host.pk,
            host.name,
            _days_text((now - host.last_contact_at).days),
            gettext("What can I do?"),
            gettext("Check that it is switched on and connected, and that BOINC is running."),
            since=host.last_contact_at,
        )
        for host in hosts
        if now - host.last_contact_at >= silent_after
    ]


def _without_key(hosts: Iterable[Host]) -> list[Attention]:
    """Find computers whose key was revoked since their last sync, and that have no other; they can no longer sync.

    If copies of a data folder share a key, it belongs to the computer that used it last.
    """
    names = {host.pk: host.name for host in hosts}
    live = ClientKey.objects.filter(host=OuterRef("host"), revoked_at=None)
    rows = (
        ClientKey.objects.filter(~Exists(live), host__in=list(names), revoked_at__gte=F("host__last_contact_at"))
        .order_by()
        .values("host_id")
        .annotate(latest=Max("revoked_at"))
        .order_by("-latest", "host_id")
    )
    return [
        Attention(
            Concern.KEY_ENDED,
            row["host_id"],
            names[row["host_id"]],
            gettext("cannot sync: its key was revoked on %(date)s.") % {"date": day(row["latest"])},
            gettext("What can I do?"),
            gettext("In BOINC, stop using this site, then add it again with your password or a join token."),
            since=row["latest"],
        )
        for row in rows
    ]


def _days_text(days: int) -> str:
    text = ngettext("has not synced for %(number)s day.", "has not synced for %(number)s days.", days)
    return text % {"number": count(days)}


def _cannot_report(hosts: Iterable[Host], unable: Collection[int]) -> list[Attention]:
    return [
        Attention(
            Concern.CANNOT_REPORT,
            host.pk,
            host.name,
            gettext("has a BOINC client that does not report its work, so no credit is estimated for it."),
            gettext("What can I do?"),
            gettext(
                "Install BOINC 7.8 or newer, which reports it. Until then its tasks go on, and its projects grant "
                "their credit."
            ),
        )
        for host in hosts
        if host.pk in unable
    ]


def _without_work(hosts: Sequence[Host], excluded: Mapping[int, list[str]], now: dt.datetime) -> list[Attention]:
    by_host: dict[int, list[AtProject]] = {}
    programs: dict[int, set[str]] = {}
    for project_id, type_ in ProjectVersion.objects.values_list("project_id", "processor_type"):
        programs.setdefault(project_id, set()).add(type_)
    rows = HostProject.objects.filter(host__in=[host.pk for host in hosts], listed=True)
    for row in rows.select_related("project").only(
        "host_id", "project__name", "state", "no_rsc", "suspended", "no_new_work"
    ):
        types = programs.get(row.project_id)
        excluded_types = frozenset((*row.no_rsc, *excluded.get(row.host_id, ())))
        by_host.setdefault(row.host_id, []).append(
            _at_project(row, frozenset(types) if types else None, excluded_types)
        )
    lines = []
    for host in hosts:
        types_here = (CPU, *device_types(host.coprocs))
        for type_, since, names in idle_types(types_here, by_host.get(host.pk, []), now):
            lines.append(
                Attention(
                    Concern.NO_WORK,
                    host.pk,
                    host.name,
                    _no_work_text(type_, since, names),
                    gettext("Why?"),
                    gettext("Allow more projects or subjects, so that others can step in."),
                    since=since,
                    about=type_,
                )
            )
    return lines


def _no_work_text(type_: str, since: dt.datetime, names: list[str]) -> str:
    text = ngettext(
        "has had no work for its %(types)s since %(since)s: %(projects)s has none or does not answer.",
        "has had no work for its %(types)s since %(since)s: %(projects)s have none or do not answer.",
        len(names),
    )
    return text % {"types": types_text((type_,)), "since": moment_text(since), "projects": listed(names)}


def _at_project(row: HostProject, types: frozenset[str] | None, excluded_types: frozenset[str]) -> AtProject:
    state: Mapping[str, Any] = row.state
    return AtProject(
        row.project.name,
        [(kind, type_, dt.datetime.fromtimestamp(since, dt.UTC)) for kind, type_, since in state.get("troubles") or ()],
        int(state.get("queued_secs") or 0) + int(state.get("running_secs") or 0),
        bool(row.suspended or row.no_new_work or state.get("suspended") or state.get("no_new_work")),
        types,
        excluded_types,
    )


def _failing(user: User, hosts: Iterable[Host], first: dt.date, today: dt.date) -> list[Attention]:
    names = {host.pk: host.name for host in hosts}
    rows = (
        Day.objects.filter(user=user, day__range=(first, today), host__in=list(names))
        .values("host_id", "project_id", "project__name")
        .annotate(
            succeeded=Cast(Sum("njobs_success"), BigIntegerField()), failed=Cast(Sum("njobs_error"), BigIntegerField())
        )
        .filter(Q(failed__gte=MIN_FAILED_JOBS))
        .order_by("host_id", "-failed", "project_id")
    )
    return [
        Attention(
            Concern.FAILING_JOBS,
            row["host_id"],
            names[row["host_id"]],
            _failing_text(row),
            gettext("What can I do?"),
            gettext("Look at BOINC’s event log. If only the tasks of this project fail, exclude it on this computer."),
            about=str(row["project_id"]),
        )
        for row in rows
        if are_failing(row["succeeded"], row["failed"])
    ]


def _failing_text(row: Mapping[str, Any]) -> str:
    tasks = row["succeeded"] + row["failed"]
    text = ngettext(
        "failed %(failed)s of %(number)s task of %(project)s in the last %(days)s days.",
        "failed %(failed)s of %(number)s tasks of %(project)s in the last %(days)s days.",
        tasks,
    )
    return text % {
        "failed": count(row["failed"]),
        "number": count(tasks),
        "project": row["project__name"],
        "days": WEEK_DAYS,
    }


def _capped(user: User, hosts: Iterable[Host], first: dt.date, today: dt.date) -> list[Attention]:
    """Find computers that reported more than they can have done, on several days, with some of that work still
    waiting.
    """
    names = {host.pk: host.name for host in hosts}
    waits = HostProject.objects.filter(host_id=OuterRef("host_id")).filter(
        Q(pending__0__gt=0) | Q(pending__1__gt=0) | Q(pending__2__gt=0) | Q(pending__3__gt=0)
    )
    rows = (
        Day.objects.filter(user=user, day__range=(first, today), host__in=list(names))
        .annotate(capped=F("flags").bitand(DayFlag.CAPPED.value))
        .filter(Exists(waits), capped__gt=0)
        .values("host_id")
        .annotate(days=Count("day", distinct=True))
        .filter(days__gte=MIN_CAPPED_DAYS)
        .order_by("host_id")
    )
    return [
        Attention(
            Concern.CAPPED,
            row["host_id"],
            names[row["host_id"]],
            gettext(
                "reported more than it could have done on %(number)s of the last %(days)s days. The rest is waiting."
            )
            % {"number": row["days"], "days": WEEK_DAYS},
            gettext("Why?"),
            gettext("Measure its speed again, and check that its processors and GPUs are described correctly below."),
        )
        for row in rows
    ]


def _not_counted(hosts: Iterable[Host], first: dt.date) -> list[Attention]:
    """Find computers with recent notes about work that does not count; each computer's page says why."""
    names = {host.pk: host.name for host in hosts}
    rows = (
        Note.objects.filter(host__in=list(names), day__gte=first, kind__in=_LOSSES)
        .values("host_id")
        .annotate(times=Count("pk"), latest=Max("last_at"))
        .order_by("-latest", "host_id")
    )
    return [
        Attention(
            Concern.NOT_COUNTED,
            row["host_id"],
            names[row["host_id"]],
            _not_counted_text(row["times"]),
            gettext("Why?"),
            gettext("The notes on its page explain why."),
        )
        for row in rows
    ]


def _not_counted_text(times: int) -> str:
    text = ngettext(
        "reported work in the last %(days)s days that does not count in full (%(number)s note).",
        "reported work in the last %(days)s days that does not count in full (%(number)s notes).",
        times,
    )
    return text % {"days": WEEK_DAYS, "number": count(times)}


def _several(hosts: Iterable[Host], now: dt.datetime) -> list[Attention]:
    """Find computers that another one reported as, too, until the two were told apart some days ago."""
    names = {host.pk: host.name for host in hosts}
    apart = (
        HostClient.objects.filter(host__in=list(names), told_apart_at__gte=now - dt.timedelta(days=WEEK_DAYS))
        .values("host_id")
        .annotate(latest=Max("told_apart_at"))
        .order_by("-latest", "host_id")
    )
    return [
        Attention(
            Concern.SEVERAL,
            row["host_id"],
            names[row["host_id"]],
            gettext("was two computers reporting as one."),
            gettext("Which ones?"),
            gettext("Each has its own page: “Split” below leads to the other one once it has synced again."),
            since=row["latest"],
        )
        for row in apart
    ]


def _second_records(hosts: Sequence[Host], now: dt.datetime) -> list[Attention]:
    """Find recent records that began after an equal computer fell silent: BOINC was reinstalled."""
    alike: dict[tuple[str, ...], list[Host]] = {}
    for host in sorted(hosts, key=lambda host: host.created_at):
        if host.domain_name and host.os_name and host.p_model:
            key = host.domain_name.casefold(), os_family(host.os_name), host.p_vendor, host.p_model
            alike.setdefault(key, []).append(host)
    second_records = []
    for several in alike.values():
        *before, newest = several
        older = max(before, key=lambda host: host.last_contact_at, default=None)
        if (
            older is not None
            and newest.created_at > now - dt.timedelta(days=WEEK_DAYS)
            and older.last_contact_at <= min(newest.created_at, now - SECOND_RECORD_AFTER)
        ):
            second_records.append(
                Attention(
                    Concern.SECOND_RECORD,
                    newest.pk,
                    newest.name,
                    gettext(
                        "may be listed twice. Another record with the same name and processor last synced on %(date)s."
                    )
                    % {"date": day(older.last_contact_at)},
                    gettext("Merge them?"),
                    gettext("If BOINC was reinstalled, merge the two records. The history of both is kept."),
                    since=newest.created_at,
                    page="host_merge",
                )
            )
    return second_records
