"""What Django's models cannot say of this app's tables; the last operations of its initial migration."""

from __future__ import annotations

from typing import Final

from django.db import migrations

# Each request rewrites these rows: room on the page keeps the updates off the indexes.
OPERATIONS: Final = [migrations.RunSQL("ALTER TABLE scheduler_hostrecord SET (fillfactor = 50)")]
