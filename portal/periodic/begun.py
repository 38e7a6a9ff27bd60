"""Workers note that they have begun with a periodic task: if the broker loses messages, the others are sent again."""

from __future__ import annotations

from typing import Any, Final

import structlog
from celery import Task
from celery.signals import task_prerun
from django.db import DatabaseError, InterfaceError, connection

from portal.periodic import sql

log = structlog.get_logger("beat")

HEADER: Final = "periodic"
"""The message's header with the name of the entry of the schedule."""


@task_prerun.connect
def note(task: Task[Any, Any], **_: object) -> None:
    """The task runs in any case."""
    name = getattr(task.request, HEADER, None)
    if not isinstance(name, str):
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql.BEGUN, {"name": name})
    except (DatabaseError, InterfaceError) as error:
        log.warning("begin_not_noted", entry=name, reason=type(error).__name__)
