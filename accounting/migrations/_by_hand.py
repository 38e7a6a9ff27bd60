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

OPERATIONS: Final = [migrations.RunSQL([*_ROOM])]
