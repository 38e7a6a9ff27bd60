"""Gives jobs that wait for certain computers to everybody, or ends them.

Locks: workunits by id, then their results. Waits for a scheduler that is just sending one of them.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.db import connection, transaction

from portal.models import Host
from scheduler.engine.lanes import FIRST_TARGETED, Lane, LaneKind, free_lane
from scheduler.lanes import sql

log = structlog.get_logger(__name__)
BATCH: Final = 1000


def free(app_id: int, lane: int) -> int:
    """Let any computer have the jobs of a lane; return how many workunits there were. Safe to repeat.

    A job for a target keeps its version requirement; all others lose theirs, whether they asked for a version or were
    bound to one or to a class. Results that were sent stay, and are compared with those that come.
    """
    total = 0
    while done := _free_some(app_id, lane):
        total += done
    log.info("jobs_freed", app=app_id, lane=lane, workunits=total)
    return total


def end(app_id: int, lane: int, now: dt.datetime) -> int:
    """End the jobs of a lane as ones that could not be sent; return how many workunits there were. Safe to repeat."""
    total = 0
    while done := _end_some(app_id, lane, now):
        total += done
    log.info("jobs_could_not_be_sent", app=app_id, lane=lane, workunits=total)
    return total


def end_jobs_of_gone_targets(now: dt.datetime) -> int:
    """End the jobs for computers, volunteers and teams that no longer exist; return how many workunits there were."""
    with connection.cursor() as cursor:
        cursor.execute(sql.GONE_LANES)
        gone: list[tuple[int, int]] = cursor.fetchall()
    return sum(end(app_id, lane, now) for app_id, lane in gone)


def _free_some(app_id: int, lane: int) -> int:
    keeps_version = lane >= FIRST_TARGETED or bool(Lane.of(lane).hr_class or Lane.of(lane).requirement.version_id)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_WORKUNITS, {"app": app_id, "lane": lane, "limit": BATCH})
        rows: list[tuple[int, int, int | None]] = cursor.fetchall()
        version_nums = [version_num if keeps_version else 0 for _, version_num, _ in rows]
        lanes = [free_lane(0, number, size) for number, (_, _, size) in zip(version_nums, rows, strict=True)]
        cursor.execute(sql.FREE, {"ids": [id_ for id_, _, _ in rows], "version_nums": version_nums, "lanes": lanes})
    return len(rows)


def _end_some(app_id: int, lane: int, now: dt.datetime) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_WORKUNITS, {"app": app_id, "lane": lane, "limit": BATCH})
        ids = [id_ for id_, _, _ in cursor.fetchall()]
        cursor.execute(sql.END, {"ids": ids, "now": now})
    return len(ids)


def move_jobs(older_id: int, newer_id: int) -> None:
    """Let a computer's reserved jobs follow it to another record, which already has its jobs in progress."""
    lanes = {name: Lane(LaneKind.COMPUTER, id_).number for name, id_ in (("older", older_id), ("newer", newer_id))}
    with connection.cursor() as cursor:
        cursor.execute(sql.LOCK_TARGETED, {"lanes": [lanes["older"]]})
        ids = [id_ for (id_,) in cursor.fetchall()]
        cursor.execute(sql.MOVE_TO_HOST, {"newer": lanes["newer"], "ids": ids})


def forget(user_id: int) -> None:
    """Forget that jobs were for a volunteer or one of their computers, in the transaction that erases these.

    Waiting jobs stay reserved, because nobody else may get them; they end like the jobs of all targets that are gone.
    """
    hosts = Host.objects.filter(owner=user_id).values_list("pk", flat=True)
    targets = [Lane(LaneKind.PERSON, user_id), *(Lane(LaneKind.COMPUTER, id_) for id_ in hosts)]
    with connection.cursor() as cursor:
        cursor.execute(sql.LOCK_TARGETED, {"lanes": [lane.number for lane in targets]})
        cursor.execute(sql.FORGET_TARGETS, {"ids": [id_ for (id_,) in cursor.fetchall()]})
