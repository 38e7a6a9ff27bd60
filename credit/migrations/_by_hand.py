"""What Django's models cannot say of this app's tables; the last operations of its initial migration."""

from __future__ import annotations

from typing import Final

from django.db import migrations

OPERATIONS: Final = [
    migrations.RunSQL(
        [
            # Grants rewrite these rows: room on the page keeps the updates off the indexes.
            "ALTER TABLE credit_result SET (fillfactor = 40)",
            "ALTER TABLE credit_hostappversion SET (fillfactor = 50)",
            # The arrays hardly shrink, and compressing them would cost the validator time.
            *(
                f"ALTER TABLE credit_loggedpass ALTER COLUMN {column} SET STORAGE EXTERNAL"
                for column in ("records", "workunits", "results")
            ),
        ]
    )
]
