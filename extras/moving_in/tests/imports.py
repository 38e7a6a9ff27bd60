"""Imports of tests, and what they leave in our tables."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from extras.moving_in.boinc import steps
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.machinery.steps import Context, Step
from extras.moving_in.tests.old_project import OldProject

HASHERS: Final = [
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.BCryptPasswordHasher",
]
_RANDOM: Final = {
    "portal_user": ("password", "cross_project_id"),
    "portal_host": ("token",),
    "portal_clientkey": ("id",),
    "account_emailaddress": ("id",),
    "portal_consentevent": ("id",),
    "credit_appopening": ("id",),
    "credit_hostappversion": ("id",),
    "scheduler_storedfile": ("id", "created_at"),
    "scheduler_versionfile": ("id", "file_id"),
    "scheduler_upload": ("id", "started_at", "completed_at"),
    "scheduler_formeroutput": ("id", "key_id"),
    "scheduler_formeruploadkey": ("id",),
    "scheduler_trickle": ("id",),
    "scheduler_planclass": ("id",),
    "scheduler_workblock": ("id", "created_at"),
    "badges_badge": ("id", "changed_at"),
    "badges_badgeaward": ("id", "badge_id"),
}
"""What a second import of the same rows makes otherwise."""
TABLES: Final = (
    *("portal_user", "account_emailaddress", "portal_clientkey", "portal_mailchoice", "portal_consentevent"),
    *("portal_host", "scheduler_hostrecord", "scheduler_userpreferences", "moving_in_mergedhost"),
    *("credit_usercredit", "credit_hostcredit", "credit_useropening", "credit_hostopening", "credit_teamopening"),
    *("credit_appopening", "credit_exportconsent", "credit_team", "credit_membership"),
    *("credit_goneuser", "credit_gonehost", "credit_platform", "credit_app", "credit_appversion", "credit_batch"),
    *("credit_workunit", "credit_result", "credit_hostappversion", "scheduler_archivedworkunit"),
    *("scheduler_archivedtask", "scheduler_trickle", "scheduler_planclass", "scheduler_storedfile"),
    *("scheduler_versionfile", "scheduler_upload", "scheduler_formeroutput", "scheduler_formeruploadkey"),
    *("badges_badge", "badges_badgeaward", "scheduler_workblock"),
)


class Killed(BaseException):
    """The process ends here: what was not committed is gone."""


class KillAt:
    """Ends the process in place of its statement of this number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        self.left -= 1
        if not self.left and "pg_advisory" not in sql:
            raise Killed
        return execute(sql, params, many, context)


def import_(
    project: OldProject,
    some: Sequence[Step] = (),
    now: dt.datetime | None = None,
    folder: Path | None = None,
    *,
    is_last: bool = False,
) -> dict[str, Tally]:
    """Import, or go on."""
    source = project.source()
    try:
        context = Context(source, now or timezone.now(), folder)
        return run.carry_out(steps.SOURCE, some or steps.steps(), context, lambda _line: None, is_last=is_last)
    finally:
        source.close()


def rehearse(project: OldProject, folder: Path | None = None) -> dict[str, Tally]:
    source = project.source()
    try:
        context = Context(source, timezone.now(), folder, writes=False)
        return run.rehearse(steps.steps(), context, lambda _line: None)
    finally:
        source.close()


def content() -> dict[str, list[dict[str, Any]]]:
    """All rows of the tables that an import fills, without what is random."""
    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT to_jsonb(t) FROM {table} t ORDER BY t::text")
            rows = [json.loads(row) if isinstance(row, str) else row for (row,) in cursor]
            for row in rows:
                for name in _RANDOM.get(table, ()):
                    row.pop(name)
            found[table] = sorted(rows, key=str)
    return found
