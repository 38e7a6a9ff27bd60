"""Merge the settled credit of two records of one computer, so that their owner's total stays the same."""

from __future__ import annotations

import datetime as dt

from django.db.models import BigIntegerField, F, Sum
from django.db.models.functions import Cast

from accounting.engine.reconciliation import SettledCredit
from accounting.ledger.sql import MOST_CREDIT
from accounting.models import Day, HostProject, Settlement
from portal.models import Host


def merge_settlements(older: Host, newer: Host, today: dt.date) -> None:
    """Add the older record's settlements to the newer one's, before its days and totals are moved.

    Runs in the transaction that merges the two, after their ledger rows were locked. Locks the settlements of both, by
    id. The days themselves no longer show which of them were estimated before which record was first seen. So the total
    of both is preserved, and the part of it that is not granted counts as estimated.
    """
    both = Settlement.objects.select_for_update().filter(host__in=[older, newer]).order_by("pk")
    rows = {(row.host_id, row.project_id): row for row in both}
    rows_of_both = HostProject.objects.filter(host__in=[older, newer])
    credited = rows_of_both.annotate(ec=F("credited__0") + F("credited__1"))
    estimates = {(host, project): ec for host, project, ec in credited.values_list("host_id", "project_id", "ec")}
    for project_id in {project_id for _, project_id in rows}:
        _merge_one(older, newer, project_id, rows, estimates, today)


def _merge_one(
    older: Host,
    newer: Host,
    project_id: int,
    rows: dict[tuple[int, int], Settlement],
    estimates: dict[tuple[int, int], int],
    today: dt.date,
) -> None:
    keys = [(older.pk, project_id), (newer.pk, project_id)]
    present = [rows[key] for key in keys if key in rows]
    # Without statistics, it is estimated up to today.
    unseen = sum(estimates.get(key, 0) for key in keys if key not in rows)
    total = unseen + sum(_seen(row).settled for row in present)
    remaining = rows.get(keys[1], present[0])
    remaining.host = newer
    remaining.seen_on = max([row.seen_on for row in present] + ([today] if unseen else []))
    remaining.read_on = max(row.read_on for row in present)
    remaining.granted = min(sum(row.granted for row in present), MOST_CREDIT)
    remaining.granted_last = min(sum(row.granted_last for row in present), MOST_CREDIT)
    remaining.is_whole = not unseen and all(row.is_whole for row in present)
    estimated = total if remaining.is_whole else total - remaining.granted
    remaining.estimated_before = estimated - _estimated_on(remaining.seen_on, [older, newer], project_id)
    remaining.compared_from = unseen + sum(row.compared_from for row in present)
    remaining.estimated = sum(row.estimated for row in present)
    Settlement.objects.filter(pk__in=[row.pk for row in present if row is not remaining]).delete()
    remaining.save()


def _seen(row: Settlement) -> SettledCredit:
    estimated = row.estimated_before + _estimated_on(row.seen_on, [row.host], row.project_id)
    return SettledCredit(row.seen_on, row.read_on, estimated, row.granted, row.is_whole)


def _estimated_on(day: dt.date, hosts: list[Host], project_id: int) -> int:
    days = Day.objects.filter(user_id=hosts[0].owner_id, day=day, project=project_id, host__in=hosts)
    estimate: dict[str, int | None] = days.aggregate(ec=Cast(Sum(F("cpu_ec") + F("gpu_ec")), BigIntegerField()))
    return estimate["ec"] or 0
