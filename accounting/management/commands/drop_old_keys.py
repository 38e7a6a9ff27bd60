"""Drop what the version before this one needs of the ledger's tables."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import LockNotAvailable

from accounting.ledger import old_keys


class Command(BaseCommand):
    help = (
        "After an upgrade, when no process of the older version runs and you will not go back: drop the keys without"
        " the user of the ledger's tables. Locks each table for a moment. Safe to interrupt and to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if ("accounting", "0045_old_keys") not in MigrationRecorder(connection).applied_migrations():
            raise CommandError("The new keys are not all there. Run migrate first.", returncode=1)
        try:
            nkeys = old_keys.drop_old_keys()
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            raise CommandError("Other transactions hold a table. Run it again.", returncode=1) from error
        self.stdout.write(f"{nkeys} old keys were dropped." if nkeys else "There are no old keys.")
