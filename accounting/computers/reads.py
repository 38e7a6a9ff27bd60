"""Read the list of a volunteer's computers, and the page of one computer.

Amounts are micro-credits, micro-seconds and jobs. The number of statements is fixed, however many computers, projects
and days there are.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.core.paginator import Page, Paginator
from django.db.models import BigIntegerField, F, Sum
from django.db.models.functions import Cast
from django.utils.translation import gettext

from accounting.choosing.reads import computer_of, fractions, read_selection
from accounting.choosing.texts import Why
from accounting.choosing.texts import explain as explain_choice
from accounting.computers.attention import CONCERN_NAMES, Attention, Concern, read_attention
from accounting.computers.contacts import Contacts, read_contacts
from accounting.computers.listing import HostLine, ListFilter, Status, read_filter
from accounting.computers.texts import ClientFact, client_facts
from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.choice.facts import CPU, Choice
from accounting.engine.host_wishes import NO_WISHES, HostWishes
from accounting.engine.recent_work import recent_ec
from accounting.ledger.texts import NoteLine, explain
from accounting.models import Day, HostClient, HostLedger, HostProject, Note, Project
from accounting.reconciliation.reads import Reconciled, last_days, read_reconciled, read_standings
from accounting.rpc.recognise import keys_of_present, number_of
from portal.computers.host_changes import HostChangeRefused
from portal.models import Host, User
from portal.ops.mail_choices import silent_after
from portal.people.access import own_hosts

NOTES_SHOWN: Final = 50
DAYS_SHOWN: Final = 30
HOSTS_A_PAGE: Final = 100
UNMEASURED_FLOPS: Final = 1e9
NOTES_SINCE: Final = dt.timedelta(days=90)


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group's computers in use: their number, how many synced recently, how many need attention; credit of the last
    24 hours.
    """

    name: str
    hosts: int
    active: int
    troubled: int
    recent_ec: int

    @property
    def silent(self) -> int:
        return self.hosts - self.active


@dataclass(frozen=True, slots=True)
class HostList:
    """A volunteer's computers: a page of those in use and of the retired ones; the sums are of all matching computers.

    ``known``: how many there are in all; ``groups``: their groups.
    """

    active: Page[HostLine]
    retired: Page[HostLine]
    recent_ec: int
    total_ec: int
    list_filter: ListFilter
    known: int
    groups: list[GroupLine]
    # How many computers in use have each concern, the most urgent first
    concerns: list[tuple[Concern, str, int]]

    @property
    def total(self) -> int:
        """How many computers a change of the whole list affects: those in use, unless the list is of retired ones."""
        return (
            self.retired.paginator.count if self.list_filter.status is Status.RETIRED else self.active.paginator.count
        )

    @property
    def several(self) -> bool:
        """Whether more than one computer is in use."""
        return self.active.paginator.count > 1


def is_in_contact(host: Host, now: dt.datetime) -> bool:
    """Whether the computer reported within two of the intervals that clients are told, or within a day."""
    interval = dt.timedelta(seconds=max(86_400, 2 * settings.AM_REPEAT_SECS))
    return now - host.last_contact_at <= interval


def _read_lines(user: User, now: dt.datetime) -> list[HostLine]:
    """Read all of the user's computers; eleven statements."""
    # The lists of features are long, and not shown.
    hosts = list(own_hosts(user).defer("p_features").order_by("-last_contact_at", "pk"))
    totals: dict[int, int] = {}
    for standing in read_standings(user):
        totals[standing.host_id] = totals.get(standing.host_id, 0) + standing.settled
    today = now.astimezone(dt.UTC).date()
    yesterday = today - dt.timedelta(days=1)
    worked = {
        (host_id, day): ec
        for host_id, day, ec in Day.objects.filter(user=user, day__range=(yesterday, today))
        .values("host_id", "day")
        .annotate(ec=Cast(Sum(F("cpu_ec") + F("gpu_ec")), BigIntegerField()))
        .values_list("host_id", "day", "ec")
    }
    concerns: dict[int, list[Concern]] = {}
    for attention in read_attention(user, hosts, now, silent_after(user)):
        if attention.concern not in concerns.setdefault(attention.host_id, []):
            concerns[attention.host_id].append(attention.concern)
    return [
        HostLine(
            host=host,
            recent_ec=recent_ec(
                worked.get((host.pk, yesterday), 0), worked.get((host.pk, today), 0), host.last_contact_at, now
            ),
            total_ec=totals.get(host.pk, 0),
            is_active=is_in_contact(host, now),
            concerns=concerns.get(host.pk, []),
        )
        for host in hosts
    ]


def _groups(lines: Iterable[HostLine]) -> list[GroupLine]:
    """Return all groups by name, including those with only retired computers."""
    by_group: dict[str, list[HostLine]] = {}
    for line in lines:
        for group in line.host.groups:
            by_group.setdefault(group, []).append(line)
    return [_group_line(name, by_group[name]) for name in sorted(by_group, key=str.casefold)]


def _group_line(name: str, lines: Iterable[HostLine]) -> GroupLine:
    in_use = [line for line in lines if line.host.retired_at is None]
    return GroupLine(
        name,
        len(in_use),
        sum(line.is_active for line in in_use),
        sum(bool(line.concerns) for line in in_use),
        sum(line.recent_ec for line in in_use),
    )


def _group_names(lines: Iterable[HostLine]) -> set[str]:
    return {group for line in lines for group in line.host.groups}


def _concerns(lines: Iterable[HostLine]) -> list[tuple[Concern, str, int]]:
    numbers = Counter(concern for line in lines for concern in line.concerns)
    return [(concern, gettext(CONCERN_NAMES[concern]), numbers[concern]) for concern in Concern if numbers[concern]]


def read_chosen(user: User, now: dt.datetime, params: Mapping[str, str]) -> list[int]:
    """Return the ids of all computers of a list, on whatever page; of those in use, unless it is of retired ones.

    Raises HostChangeRefused if the list no longer exists: without its filter, it would be all computers.
    """
    lines = _read_lines(user, now)
    list_filter = read_filter(params, _group_names(lines))
    if list_filter.problems:
        raise HostChangeRefused("groups", gettext("That list no longer exists. Nothing was changed."))
    is_retired = list_filter.status is Status.RETIRED
    return [line.host.pk for line in list_filter.choose(lines) if (line.host.retired_at is not None) == is_retired]


def read_hosts(user: User, now: dt.datetime, params: Mapping[str, str]) -> HostList:
    """Read a page of the user's computers for an address; eleven statements."""
    lines = _read_lines(user, now)
    list_filter = read_filter(params, _group_names(lines))
    chosen = list_filter.choose(lines)
    active = [line for line in chosen if line.host.retired_at is None]
    retired = [line for line in chosen if line.host.retired_at is not None]
    # A filter by a state of computers in use excludes the retired ones.
    if list_filter.status is Status.RETIRED:
        active = []
    elif list_filter.status is not Status.USED:
        retired = []
    return HostList(
        active=Paginator(active, HOSTS_A_PAGE).get_page(params.get("page", "1")),
        retired=Paginator(retired, HOSTS_A_PAGE).get_page(params.get("retired_page", "1")),
        recent_ec=sum(line.recent_ec for line in (*active, *retired)),
        total_ec=sum(line.total_ec for line in (*active, *retired)),
        list_filter=list_filter,
        known=len(lines),
        groups=_groups(lines),
        concerns=_concerns(lines),
    )


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """One project on one computer: totals, credit of the last 24 hours, waiting work, the client's report, wishes.

    ``share``: the part of the computer's work that it is chosen for, 0 to 1; None if it is not chosen.
    """

    project: Project
    credited: Totals
    recent_ec: int
    waiting_ec: int
    remarks: list[str]
    wish: HostWishes
    share: float | None
    is_listed: bool

    @property
    def credit(self) -> int:
        return self.credited.credit

    @property
    def colour(self) -> int:
        return self.project.data_colour


@dataclass(frozen=True, slots=True)
class OtherClient:
    """A client that reported as this computer under another cross-project id, or under another number at a project.

    ``number_text``: that number and project; empty: it has another id.
    """

    client: HostClient
    number_text: str


@dataclass(frozen=True, slots=True)
class HostPage:
    """Everything that the page of one computer shows. ``contact``: the client's last report about itself."""

    host: Host
    is_active: bool
    lines: list[ProjectLine]
    credited: Totals
    recent_ec: int
    waiting_ec: int
    # The last days with what was credited on each
    days: list[tuple[dt.date, int]]
    notes: list[NoteLine]
    contact: dict[str, Any]
    merged: list[Host]
    excluded_types: list[str]
    # Why it works for these projects and not for others
    choice: Choice
    why: list[Why]
    # What needs its owner's attention, except silence and notes, which the page shows separately
    attention: list[Attention]
    contacts: Contacts
    # The latest first
    other_clients: list[OtherClient]
    settled: Reconciled

    @property
    def credit(self) -> int:
        return self.credited.credit

    @property
    def client_facts(self) -> list[ClientFact]:
        """How its client runs."""
        return client_facts(self.contact)

    @property
    def cpu_flops(self) -> float | None:
        """Floating point speed of all processors together, FLOPS."""
        return self.host.ncpus * self.host.p_fpops if self.host.p_fpops else None

    @property
    def is_speed_unknown(self) -> bool:
        """Whether the speed is the one that clients send when the benchmark failed or was skipped (BOINC protocol)."""
        return self.host.p_fpops == UNMEASURED_FLOPS

    @property
    def has_wishes(self) -> bool:
        return bool(self.excluded_types) or any(line.wish != NO_WISHES for line in self.lines)

    @property
    def resources(self) -> list[str]:
        """The resources that a project can be denied on this computer, by BOINC's names."""
        devices = [str(device["type"]) for device in self.host.coprocs if device.get("type")]
        unused = [name for line in self.lines for name in line.wish.no_rsc]
        return list(dict.fromkeys([CPU, *devices, *unused, *self.excluded_types]))


def read_host_page(user: User, host: Host, now: dt.datetime) -> HostPage:
    """Read the page of one of the user's computers; twenty-five statements."""
    selection = read_selection(user)
    ledger = HostLedger.objects.filter(host=host).only("contact", "excluded_types", "same_answers", "last_at").first()
    rows = {row.project_id: row for row in HostProject.objects.filter(host=host)}
    date = now.astimezone(dt.UTC).date()
    days = [date - dt.timedelta(days=back) for back in range(DAYS_SHOWN - 1, -1, -1)]
    worked = list(
        Day.objects.filter(user=user, day__range=(days[0], date), host=host)
        .annotate(ec=F("cpu_ec") + F("gpu_ec"))
        .values_list("day", "project_id", "ec")
    )
    by_day = {(project, day): ec for day, project, ec in worked}
    choice = selection.choice_for(computer_of(host, ledger, rows, now), now)
    parts = fractions(choice.shares)
    lines = [
        _line(
            project,
            rows.get(id_),
            recent_ec(by_day.get((id_, days[-2]), 0), by_day.get((id_, date), 0), host.last_contact_at, now),
            parts.get(id_),
        )
        for id_, project in selection.projects.items()
        if id_ in rows or id_ in parts
    ]
    lines.sort(key=lambda line: (-(line.share or 0), -line.credit, line.project.name.casefold()))
    contacts = read_contacts(host, selection.projects)
    concerns = (
        Concern.KEY_ENDED,
        Concern.CANNOT_REPORT,
        Concern.NO_WORK,
        Concern.FAILING_JOBS,
        Concern.CAPPED,
        Concern.SEVERAL,
    )
    return HostPage(
        host=host,
        is_active=is_in_contact(host, now),
        lines=lines,
        credited=_sum(line.credited for line in lines),
        recent_ec=sum(line.recent_ec for line in lines),
        waiting_ec=sum(line.waiting_ec for line in lines),
        days=[(day, sum(ec for of, _, ec in worked if of == day)) for day in days],
        notes=_read_notes(host, selection.projects, now),
        contact=ledger.contact if ledger else {},
        merged=list(Host.objects.filter(merged_into=host).order_by("created_at")),
        excluded_types=ledger.excluded_types if ledger else [],
        choice=choice,
        why=explain_choice(choice, parts, selection.projects),
        attention=[
            line
            for line in read_attention(user, [host], now, silent_after(user))
            if line.concern in concerns and not (line.concern == Concern.SEVERAL and contacts.are_several)
        ],
        contacts=contacts,
        other_clients=_other_clients(host, rows, selection.projects),
        settled=read_reconciled(user, *last_days(date, DAYS_SHOWN), date, host_id=host.pk),
    )


def _other_clients(host: Host, rows: Mapping[int, HostProject], projects: Mapping[int, Project]) -> list[OtherClient]:
    clients = HostClient.objects.filter(host=host).exclude(cpid__in=keys_of_present(host, rows.values()))
    others = []
    for client in clients.select_related("record").order_by("-seen_at"):
        number = number_of(client.cpid)
        project = projects.get(number[0]) if number is not None else None
        place = project.name if project is not None else gettext("a deleted project")
        text = gettext("Computer %(number)s at %(project)s") % {"number": number[1], "project": place} if number else ""
        others.append(OtherClient(client, text))
    return others


def _sum(totals: Iterable[Totals]) -> Totals:
    result = NO_WORK
    for amounts in totals:
        result = result.plus(amounts)
    return result


def _line(project: Project, row: HostProject | None, credit: int, share: float | None) -> ProjectLine:
    if row is None:
        return ProjectLine(
            project, NO_WORK, credit, 0, [gettext("not attached yet")], NO_WISHES, share, is_listed=False
        )
    return ProjectLine(
        project=project,
        credited=Totals(*row.credited),
        recent_ec=credit,
        waiting_ec=Totals(*row.pending).credit,
        remarks=_remarks(row, share),
        wish=HostWishes(
            row.suspended, row.no_new_work, row.excluded, tuple(row.no_rsc), row.update_asked, row.drop_waiting
        ),
        share=share,
        is_listed=row.listed,
    )


def _remarks(row: HostProject, share: float | None) -> list[str]:
    """Return the parts of the client's last report about the project that may interest its owner."""
    if not row.listed:
        awaited = share is not None and not row.excluded and not any(row.credited)
        return [gettext("not attached yet") if awaited else gettext("not attached")]
    state = row.state
    if row.excluded:
        return [gettext("will be detached when its tasks are finished")]
    remarks = [gettext("no work for %(types)s") % {"types": name} for name in state.get("no_work", [])]
    if failures := state.get("failures"):
        remarks.append(
            gettext("%(number)s requests in a row failed") % {"number": failures}
            if failures > 1
            else gettext("the last request failed")
        )
    if state.get("ended"):
        remarks.append(gettext("the project says that it has ended"))
    if state.get("suspended"):
        remarks.append(gettext("suspended"))
    if state.get("no_new_work"):
        remarks.append(gettext("no new tasks"))
    if state.get("by_owner"):
        remarks.append(gettext("attached by hand"))
    return remarks


def _read_notes(host: Host, projects: dict[int, Project], now: dt.datetime) -> list[NoteLine]:
    notes = Note.objects.filter(host=host, day__gte=(now - NOTES_SINCE).date()).order_by("-last_at", "-pk")
    lines = []
    for note in notes[:NOTES_SHOWN]:
        project = projects.get(note.project_id) if note.project_id is not None else None
        lines.append(NoteLine(note, project, explain(note, project.name if project else "")))
    return lines
