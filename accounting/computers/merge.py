"""Merge two records of one computer, in one transaction that neither loses nor invents anything.

The days, totals, grants, notes, tasks and client keys of the older record move to the newer one, which stays. The older
one points to the newer, so that a client with the old id is still recognised. Locks, in this order: the owner's row,
then the ledger rows of both computers by host id, then the closing of months. The client RPC and imports of statistics
take them in the same order. `portal.extras.SiteApp.host_merged` moves the rows of other apps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TypeVar

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from accounting.computers import sql
from accounting.computers.merge_texts import lifetime_text, refusal_text
from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.merge_rules import Lifetime, Record, Refusal, Rule, in_order, refusal
from accounting.ledger.locks import lock_ledgers
from accounting.ledger.sql import LOCK_MONTHS
from accounting.models import DataCopy, Day, GrantedTotal, HostClient, HostProject, Note
from accounting.reconciliation.merge import merge_settlements
from accounting.running_tasks import follow
from portal.computers.groups import MAX_GROUPS
from portal.extras import site_apps
from portal.models import ClientKey, Host, User

_Amount = TypeVar("_Amount", int, Decimal)


class MergeRefused(Exception):
    """The two records cannot be merged; ``refusal`` has the rule, the text is for the owner."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal_text(refusal))
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Preview:
    """The data that a merge would combine.

    Amounts are micro-credits, micro-seconds and whole jobs of the older record. ``…_active``: the period in which each
    was in use.
    """

    older: Host
    newer: Host
    older_active: str
    newer_active: str
    days: int
    projects: int
    notes: int
    keys: int
    credit: int
    run_time: int
    jobs: int
    waiting_credit: int


def records_of(owner_id: int) -> dict[int, tuple[Host, Record]]:
    """Read all the owner's records of computers by id, including merged ones, in one statement."""
    hosts = list(Host.objects.filter(owner_id=owner_id))
    lifetimes = {host.pk: Lifetime(host.created_at, max(host.created_at, host.last_contact_at)) for host in hosts}
    parts: dict[int, list[Lifetime]] = {host.pk: [lifetimes[host.pk]] for host in hosts}
    for host in hosts:
        if host.merged_into_id in parts:
            parts[host.merged_into_id].append(lifetimes[host.pk])
    return {host.pk: (host, _record(host, parts[host.pk])) for host in hosts}


def _record(host: Host, lifetimes: Iterable[Lifetime]) -> Record:
    return Record(
        id=host.pk,
        owner_id=host.owner_id,
        name=host.name,
        lifetimes=tuple(lifetimes),
        os_name=host.os_name,
        processor=f"{host.p_vendor} {host.p_model}".strip(),
        is_merged=host.merged_into_id is not None,
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """Another computer of the same owner, and why it cannot be merged (None: it can)."""

    host: Host
    lifetime: Lifetime
    refusal: Refusal | None

    @property
    def active(self) -> str:
        """The period in which it was in use."""
        return lifetime_text(self.lifetime)

    @property
    def reason(self) -> str:
        """A sentence saying why it cannot be merged."""
        return refusal_text(self.refusal) if self.refusal is not None else ""


def candidates(host: Host) -> list[Candidate]:
    """Return the owner's other computers, those that can be merged with this one first, then by name."""
    records = records_of(host.owner_id)
    mine = records[host.pk][1]
    possible = [
        Candidate(other, record.lifetimes[0], refusal(mine, record))
        for other, record in records.values()
        if other.pk != host.pk and other.merged_into_id is None
    ]
    return sorted(possible, key=lambda c: (c.refusal is not None, c.host.name.casefold(), c.host.pk))


def preview(owner_id: int, host_id: int, other_id: int) -> Preview:
    """Preview a merge of the two; raises MergeRefused."""
    older, newer, older_life, newer_life = _judge(owner_id, host_id, other_id)
    totals = list(HostProject.objects.filter(host=older).values_list("credited", "pending"))
    credited = reduce(Totals.plus, (Totals(*amounts) for amounts, _ in totals), NO_WORK)
    return Preview(
        older=older,
        newer=newer,
        older_active=lifetime_text(older_life),
        newer_active=lifetime_text(newer_life),
        days=_days_of(older),
        projects=len(totals),
        notes=Note.objects.filter(host=older).count(),
        keys=ClientKey.objects.filter(host=older, revoked_at=None).count(),
        credit=credited.credit,
        run_time=credited.run_time,
        jobs=credited.njobs,
        waiting_credit=sum(Totals(*pending).credit for _, pending in totals),
    )


def _days_of(host: Host) -> int:
    """Count the days on which the computer has any work."""
    return Day.objects.filter(user_id=host.owner_id, host=host).values("day").distinct().count()


def _judge(owner_id: int, host_id: int, other_id: int) -> tuple[Host, Host, Lifetime, Lifetime]:
    """Return (older, newer, their lifetimes); raises MergeRefused. Somebody else's computer counts as missing."""
    records = records_of(owner_id)
    if host_id not in records or other_id not in records:
        raise MergeRefused(Refusal(Rule.UNKNOWN))
    a, b = records[host_id][1], records[other_id][1]
    if reason := refusal(a, b):
        raise MergeRefused(reason)
    older, newer = in_order(a, b)
    return records[older.id][0], records[newer.id][0], older.lifetimes[0], newer.lifetimes[0]


def merge(owner_id: int, host_id: int, other_id: int) -> Host:
    """Merge the two computers and return the one that stays; raises MergeRefused.

    Safe to repeat: two computers that are already merged stay as they are.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
        lock_ledgers(owner_id, host_id, other_id)
        if (joined := _joined_already(owner_id, host_id, other_id)) is not None:
            return joined
        older, newer, _, _ = _judge(owner_id, host_id, other_id)
        merge_settlements(older, newer, timezone.now().date())
        with connection.cursor() as cursor:
            cursor.execute(LOCK_MONTHS)
            cursor.execute(sql.MOVE_MONTHS, {"owner": owner_id, "older": older.pk, "newer": newer.pk})
            cursor.execute(sql.MOVE_DAYS, {"owner": owner_id, "older": older.pk, "newer": newer.pk})
            cursor.execute(sql.MOVE_GRANTED_DAYS, {"owner": owner_id, "older": older.pk, "newer": newer.pk})
            cursor.execute(sql.MOVE_NOTES, {"older": older.pk, "newer": newer.pk})
        GrantedTotal.objects.filter(host=older).update(host=newer)
        # An export of the older one's history that has not been made yet would be empty.
        unfinished = DataCopy.objects.filter(user=owner_id, state__in=[DataCopy.State.WAITING, DataCopy.State.WORKING])
        unfinished.filter(only_host=older.pk).update(only_host=newer.pk)
        _move_totals(older, newer)
        follow.move(older.pk, newer.pk)
        for app in site_apps():
            app.host_merged(older.pk, newer.pk)
        ClientKey.objects.filter(host=older).update(host=newer)
        # Records that were merged into the older one now point to the newer one, so that one step always leads to the
        # record in use.
        Host.objects.filter(Q(pk=older.pk) | Q(merged_into=older)).update(merged_into=newer)
        _move_clients(older, newer)
        if older.given_name and not newer.given_name:
            Host.objects.filter(pk=newer.pk).update(given_name=older.given_name)
        if older.groups:
            groups = list(dict.fromkeys([*newer.groups, *older.groups]))[:MAX_GROUPS]
            Host.objects.filter(pk=newer.pk).update(groups=groups)
        newer.refresh_from_db()
        return newer


def _move_clients(older: Host, newer: Host) -> None:
    """Move the clients that reported as the older record, except those that are now the same computer."""
    cpids = HostClient.objects.filter(host=newer).values("cpid")
    HostClient.objects.filter(host=older).exclude(cpid__in=cpids).exclude(cpid=newer.host_cpid).update(host=newer)
    gone = Q(host=older) | Q(host=newer, record=newer) | Q(host=newer, record__merged_into=newer)
    HostClient.objects.filter(gone).delete()


def _move_totals(older: Host, newer: Host) -> None:
    """Add the older record's settled totals to the newer one's; both ledger rows are locked.

    The client's last report belongs to the record in use, so nothing else of its rows changes. A project that it does
    not have yet brings the owner's wishes along.
    """
    by_project = {row.project_id: row for row in HostProject.objects.filter(host=newer)}
    moved = list(HostProject.objects.filter(host=older))
    sums = []
    for old in moved:
        row = by_project.get(old.project_id) or HostProject(
            host=newer,
            project_id=old.project_id,
            suspended=old.suspended,
            no_new_work=old.no_new_work,
            excluded=old.excluded,
            no_rsc=old.no_rsc,
            drop_waiting=old.drop_waiting,
        )
        row.credited = _added(row.credited, old.credited)
        row.pending = _added(row.pending, old.pending)
        row.dropped = _added(row.dropped, old.dropped)
        sums.append(row)
    HostProject.objects.filter(host=older).delete()
    HostProject.objects.bulk_create(
        sums,
        update_conflicts=True,
        unique_fields=["host", "project"],
        update_fields=["credited", "pending", "dropped"],
    )


def _added(one: Sequence[_Amount], other: Sequence[_Amount]) -> list[_Amount]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _joined_already(owner_id: int, host_id: int, other_id: int) -> Host | None:
    """Return the record that stays if one of the two was merged into the other."""
    for remaining, gone in ((host_id, other_id), (other_id, host_id)):
        if Host.objects.filter(owner_id=owner_id, pk=gone, merged_into_id=remaining).exists():
            return Host.objects.get(owner_id=owner_id, pk=remaining)
    return None
