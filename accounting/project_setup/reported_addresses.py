"""Learn other addresses of projects from computers' reports.

A computer that had a project, and now reports its number or account key there at an unknown address, shows that the
project moved (accounting/rpc/attachments.py). This is believed once computers of several owners report it that have
worked for the project. Somebody with several accounts can still make an address up. Then work at it is booked to the
project, which they could claim at its own address as well. No account key is sent there, and projects that owners
attached there get no orders.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from contextlib import suppress
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from accounting.engine.addresses import address_key
from accounting.models import Project, ProjectAddress
from accounting.project_setup import answer_history, sql
from accounting.project_setup.changes import OTHER_ADDRESS
from accounting.projects.addresses import learn

REPORTS_COUNT_FOR: Final = dt.timedelta(days=14)
MAX_REPORTED: Final = 20
"""The most addresses of one project known only from computers' reports; an operator has to look at more."""


def learn_reported(now: dt.datetime) -> int:
    """Learn the addresses that enough owners' computers have reported lately; return how many.

    One transaction for each address; it locks the project, but not against rows that refer to it.
    """
    if not settings.AM_ADDRESS_OWNERS:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(sql.REPORTED_ADDRESSES, {"since": now - REPORTS_COUNT_FOR})
        rows = cursor.fetchall()
    owners: dict[tuple[int, str], set[int]] = defaultdict(set)
    spellings: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for project_id, url, user_id in rows:
        at = project_id, address_key(url)
        if not at[1]:
            continue
        owners[at].add(user_id)
        spellings[at][url] += 1
    learnt = 0
    for at, users in owners.items():
        if len(users) >= settings.AM_ADDRESS_OWNERS:
            learnt += _learn(at[0], spellings[at].most_common(1)[0][0], now)
    return learnt


def _learn(project_id: int, url: str, now: dt.datetime) -> bool:
    source = ProjectAddress.Source.CLIENTS
    with transaction.atomic(), suppress(ValueError):
        project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
        if project is None or project.addresses.filter(source=source).count() >= MAX_REPORTED:
            return False
        if learn(project, url, source) is not None:
            answer_history.add(project, now, [(OTHER_ADDRESS, "", url)])
            return True
    return False
