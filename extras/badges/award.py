"""Award the badges that volunteers earned. Run by a task; safe to repeat and to interrupt.

Volunteers are taken in batches, the longest waiting first. Each batch is a fixed number of statements on the sums of
months and the days of open months. The days of a closed month are read only when somebody earned a badge in it, once.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection, transaction

from accounting.engine.amounts import Totals
from accounting.ledger.months import closed_until
from accounting.ledger.partitions import next_month
from accounting.ledger.sql import TRY_LOCK, AdvisoryLock
from accounting.models import ProjectKeyword
from extras.badges import sql
from extras.badges.models import Badge, BadgeAward
from extras.badges.rules import BadgeKind, BadgeRule, ProjectSubjects, Subjects, WorkStep, reached_in, reached_on
from extras.badges.texts import kept_rule
from portal.wire.keywords import KEYWORDS, SCIENCE, kin

BATCH: Final = 250
MOST_BATCHES: Final = 20
"""The most volunteers of one run, so that it takes seconds rather than hours when rules change; the next run
continues."""
EVERY: Final = dt.timedelta(hours=20)
"""A volunteer is checked once in this time, unless the rules change."""
_ONE_DAY: Final = dt.timedelta(days=1)
Steps = dict[int, list[WorkStep]]


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules in force, and the projects' subjects."""

    badges: Sequence[Badge]
    subjects: Subjects
    changed_at: dt.datetime


@dataclass(slots=True)
class _Work:
    """The work of a batch: closed months, and the days since; by volunteer."""

    months: Steps = field(default_factory=dict)
    days: Steps = field(default_factory=dict)

    def steps_of(self, user_id: int) -> list[WorkStep]:
        return [*self.months.get(user_id, []), *self.days.get(user_id, [])]


def award_due(now: dt.datetime) -> int:
    """Award the badges earned by due volunteers, up to a limit; return how many. Without rules, does nothing."""
    rules = _read_rules()
    if rules is None:
        return 0
    params: dict[str, Any] = {"rules_changed": rules.changed_at, "long_ago": now - EVERY, "limit": BATCH * MOST_BATCHES}
    # Once for all batches, as it reads all accounts.
    with connection.cursor() as cursor:
        cursor.execute(sql.DUE, params)
        due = [user_id for (user_id,) in cursor]
    nawarded = 0
    for begin in range(0, len(due), BATCH):
        awards = _award_batch(rules, due[begin : begin + BATCH], now)
        if awards is None:
            break
        nawarded += awards
    return nawarded


def _read_rules() -> _Rules | None:
    badges = list(Badge.objects.filter(is_active=True))
    if not badges:
        return None
    keywords: dict[int, set[int]] = defaultdict(set)
    for project_id, keyword in ProjectKeyword.objects.values_list("project_id", "keyword"):
        keywords[project_id].add(keyword)
    subjects = {project: _subjects_of(ids) for project, ids in keywords.items()}
    return _Rules(badges, subjects, max(badge.changed_at for badge in badges))


def _subjects_of(ids: Iterable[int]) -> ProjectSubjects:
    keywords = kin(ids)
    fields = {
        id_ for id_ in keywords if (keyword := KEYWORDS.get(id_)) and keyword.category == SCIENCE and not keyword.level
    }
    return ProjectSubjects(keywords, frozenset(fields))


def _award_batch(rules: _Rules, due: list[int], now: dt.datetime) -> int | None:
    """Award a batch in one transaction; return how many badges. None if another run is active."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TRY_LOCK, [AdvisoryLock.BADGES.value])
        if cursor.fetchone() == (False,):
            return None
        cursor.execute(sql.LOCK_USERS, {"users": due})
        users = [user_id for (user_id,) in cursor]
        reached = _reached(cursor, rules, users, now.astimezone(dt.UTC).date())
        awards = [
            BadgeAward(user_id=user_id, badge=badge, day=day, rule=kept_rule(badge), awarded_at=now)
            for user_id, badge, day in reached
        ]
        BadgeAward.objects.bulk_create(awards, ignore_conflicts=True)
        # Not before the rules, however late this run read its clock.
        cursor.execute(sql.CHECKED, {"users": users, "now": max(now, rules.changed_at)})
        return len(awards)


def _reached(cursor: Any, rules: _Rules, users: list[int], today: dt.date) -> list[tuple[int, Badge, dt.date]]:
    """Return who earned which badge on which day, without those already awarded."""
    until = closed_until()
    work = _read_work(cursor, users, until, today)
    has = set(BadgeAward.objects.filter(user__in=users).values_list("user_id", "badge_id"))
    reached: list[tuple[int, Badge, dt.date]] = []
    in_months: dict[dt.date, list[tuple[int, Badge]]] = defaultdict(list)
    for user_id in users:
        steps = work.steps_of(user_id)
        for badge in rules.badges:
            if (user_id, badge.pk) in has or (start := reached_in(_rule(badge), steps, rules.subjects)) is None:
                continue
            if until is not None and start < until:
                in_months[start].append((user_id, badge))
            else:
                reached.append((user_id, badge, start))
    for month, theirs in in_months.items():
        days = _read_days(cursor, [user_id for user_id, _ in theirs], month, next_month(month) - _ONE_DAY)
        for user_id, badge in theirs:
            months = work.months[user_id]
            day = reached_on(_rule(badge), months, month, days.get(user_id, []), rules.subjects)
            reached.append((user_id, badge, day))
    return reached


def _rule(badge: Badge) -> BadgeRule:
    return BadgeRule(BadgeKind(badge.kind), badge.threshold, badge.subject)


def _read_work(cursor: Any, users: list[int], until: dt.date | None, today: dt.date) -> _Work:
    """Read the work; three statements. Tomorrow, which a client's clock may have begun, waits."""
    cursor.execute(sql.DAYS, {"users": users, "first": until or dt.date.min, "last": today})
    days = _steps(cursor.fetchall(), None)
    if until is None:
        return _Work(days=days)
    closed = {"users": users, "until": until}
    cursor.execute(sql.ACTIVE_DAYS, closed)
    active = {(user_id, month): ndays for user_id, month, ndays in cursor}
    cursor.execute(sql.MONTHS, closed)
    return _Work(_steps(cursor, active), days)


def _read_days(cursor: Any, users: list[int], first: dt.date, last: dt.date) -> Steps:
    cursor.execute(sql.DAYS, {"users": users, "first": first, "last": last})
    return _steps(cursor.fetchall(), None)


def _steps(rows: Iterable[tuple[Any, ...]], active: dict[tuple[int, dt.date], int] | None) -> Steps:
    """Build steps from rows; ``active``: days with credit of each month; None: the rows are of days."""
    by_project: dict[tuple[int, dt.date], dict[int, Totals]] = defaultdict(dict)
    for user_id, start, project_id, *amounts in rows:
        by_project[user_id, start][project_id] = Totals(*amounts)
    steps: Steps = defaultdict(list)
    for (user_id, start), theirs in by_project.items():
        has_credit = any(work.credit > 0 for work in theirs.values())
        ndays = int(has_credit) if active is None else active.get((user_id, start), 0)
        steps[user_id].append(WorkStep(start, ndays, theirs))
    return steps
