"""Django's `migrate`, which does not let the site wait behind it for a lock.

A statement that waits for a table's lock holds up everybody who comes after it. So it waits for two seconds at most,
and the migration, of which nothing is done then, is tried again. Two of it do not run at once: each would take for
left over what the other is just making. The second waits until the first has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import DatabaseError, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import LockNotAvailable

from portal.databases.errors import is_database_lost

LOCK_WAIT: Final = "2s"
ATTEMPTS: Final = 30
PAUSE_SECS: Final = 2.0
LONGEST_WAIT_SECS: Final = 1800
"""For another one, which may be making indexes of large tables"""
# "mg", the number of an advisory lock
_LOCK: Final = 0x6D67


class Command(migrate.Command):
    _database: BaseDatabaseWrapper

    def handle(self, *args: Any, **options: Any) -> None:
        self._database = connections[options["database"]]
        try:
            with self._alone():
                self._migrate(*args, **options)
        except (DatabaseError, InterfaceError) as error:
            if not is_database_lost(error):
                raise
            raise CommandError(
                f"The database was lost: {str(error).strip()}. What was applied is kept: run it again.", returncode=1
            ) from error

    def _migrate(self, *args: Any, **options: Any) -> None:
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
                with suppress(DatabaseError, InterfaceError):
                    self._set_lock_wait("0")
        raise CommandError(
            "Other transactions hold a table. pg_stat_activity shows which. What was applied is kept: run it again.",
            returncode=1,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of one that is killed, PostgreSQL still ends the last statement, and keeps its lock until then."""
        until = time.monotonic() + LONGEST_WAIT_SECS
        is_told = False
        # A statement that waited for it would be waited for in turn, by an index that is made concurrently.
        while not self._is_true("SELECT pg_try_advisory_lock(%s)"):
            if time.monotonic() >= until:
                raise CommandError("Another `migrate` has not ended yet. Run it again when it has.", returncode=1)
            if not is_told:
                self.stdout.write("Another `migrate`, or what is left of one that was killed, is at it: waiting.")
                is_told = True
            # Nothing but asking again tells that the other one has ended.
            time.sleep(PAUSE_SECS)
        try:
            yield
        finally:
            # A connection that was lost has no locks.
            with suppress(DatabaseError, InterfaceError):
                self._is_true("SELECT pg_advisory_unlock(%s)")

    def _is_true(self, query: str) -> bool:
        with self._database.cursor() as cursor:
            cursor.execute(query, [_LOCK])
            return bool(cursor.fetchone()[0])

    def migration_progress_callback(self, action: str, migration: Any | None = None, fake: bool = False) -> None:
        if action in ("apply_start", "unapply_start") and migration is not None:
            # An index that is made concurrently would stay behind, invalid, if it gave up while it waited for others.
            self._set_lock_wait(LOCK_WAIT if migration.atomic else "0")
        super().migration_progress_callback(action, migration, fake)

    def _set_lock_wait(self, wait: str) -> None:
        with self._database.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, false)", [wait])
