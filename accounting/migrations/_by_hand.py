"""What Django's models cannot say of this app's tables; the last operations of its initial migration."""

from __future__ import annotations

from typing import Final

from django.db import migrations

TABLES: Final = {
    # Partitioned by month; accounting/ledger/partitions.py makes the partitions.
    "day": """
CREATE TABLE accounting_day (
    user_id bigint NOT NULL REFERENCES portal_user (id) DEFERRABLE INITIALLY DEFERRED,
    day date NOT NULL,
    project_id bigint NOT NULL,
    host_id bigint NOT NULL,
    cpu_ec bigint NOT NULL CHECK (cpu_ec >= 0),
    gpu_ec bigint NOT NULL CHECK (gpu_ec >= 0),
    cpu_time bigint NOT NULL CHECK (cpu_time >= 0),
    gpu_time bigint NOT NULL CHECK (gpu_time >= 0),
    njobs_success bigint NOT NULL CHECK (njobs_success >= 0),
    njobs_error bigint NOT NULL CHECK (njobs_error >= 0),
    flags smallint NOT NULL,
    PRIMARY KEY (user_id, day, project_id, host_id)
) PARTITION BY RANGE (day)
"""
}

# Each report rewrites these rows: room on the page keeps the updates off the indexes.
_ROOM: Final = [
    "ALTER TABLE accounting_hostledger SET (fillfactor = 50)",
    "ALTER TABLE accounting_hostproject SET (fillfactor = 60)",
]
# Keys that have the user, by whom these tables can be split.
_KEYS: Final = {
    "hostledger": "host_id, user_id",
    "tasklist": "host_id, user_id",
    "hostclient": "id, user_id",
    "note": "id, user_id",
    "settlement": "id, user_id",
    "followedtask": "id, user_id",
    "grantedtotal": "id, user_id",
    "accounttotal": "id, user_id",
    "userproject": "id, user_id",
}
_REFERENCES: Final = [
    ("hostledger", "host_id"),
    ("hostproject", "host_id"),
    ("answer", "host_id"),
    ("tasklist", "host_id"),
    ("hostclient", "host_id"),
    ("note", "host_id"),
    ("settlement", "host_id"),
    ("followedtask", "host_id"),
    ("grantedtotal", "host_id"),
    ("hostclient", "record_id"),
]

OPERATIONS: Final = [
    migrations.RunSQL(
        [
            *_ROOM,
            *(
                f"ALTER TABLE accounting_{table} DROP CONSTRAINT accounting_{table}_pkey, ADD PRIMARY KEY ({columns})"
                for table, columns in _KEYS.items()
            ),
            *(
                f"ALTER TABLE accounting_{table} ADD CONSTRAINT accounting_{table}_{column}_user_id"
                f" FOREIGN KEY ({column}, user_id) REFERENCES portal_host (id, owner_id) DEFERRABLE INITIALLY DEFERRED"
                for table, column in _REFERENCES
            ),
        ]
    )
]
