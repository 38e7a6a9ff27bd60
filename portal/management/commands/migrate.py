"""Django's `migrate`, which does not let the site wait behind it for a lock.

A statement that waits for a table's lock holds up everybody who comes after it. So it waits for two seconds at most,
and the migration, of which nothing is done then, is tried again.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import LockNotAvailable

LOCK_WAIT: Final = "2s"
ATTEMPTS: Final = 30
PAUSE_SECS: Final = 2.0


class Command(migrate.Command):
    _database: BaseDatabaseWrapper

    def handle(self, *args: Any, **options: Any) -> None:
        self._database = connections[options["database"]]
        for attempt in range(1, ATTEMPTS + 1):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                self.stdout.write(f"\n  A table is in use: attempt {attempt} of {ATTEMPTS} waited {LOCK_WAIT}.")
                # Whoever waited behind it is served before the next attempt.
                time.sleep(PAUSE_SECS)
            finally:
                self._set_lock_wait("0")
        raise CommandError(
            "Other transactions hold a table. pg_stat_activity shows which. What was applied is kept: run it again.",
            returncode=1,
        )

    def migration_progress_callback(self, action: str, migration: Any | None = None, fake: bool = False) -> None:
        if action in ("apply_start", "unapply_start") and migration is not None:
            # An index that is made concurrently would stay behind, invalid, if it gave up while it waited for others.
            self._set_lock_wait(LOCK_WAIT if migration.atomic else "0")
        super().migration_progress_callback(action, migration, fake)

    def _set_lock_wait(self, wait: str) -> None:
        with self._database.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [wait])
