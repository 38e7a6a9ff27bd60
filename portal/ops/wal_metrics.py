"""The state of the database server's backups, for Prometheus: the WAL archived last, and what slots still hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_ARCHIVED: Final = "SELECT extract(epoch FROM last_archived_time)::float8 FROM pg_stat_archiver"
# A slot that fell behind by more than max_slot_wal_keep_size is lost for good: its receiver has a gap.
_KEPT: Final = """
SELECT slot_name,
       CASE wal_status WHEN 'lost' THEN 'infinity'::float8
                       ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 END
FROM pg_replication_slots
WHERE slot_type = 'physical' AND (restart_lsn IS NOT NULL OR wal_status = 'lost')
ORDER BY slot_name"""


class WalMetrics(Collector):
    """Reads the metrics with two statements, which any role may send."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        archived = GaugeMetricFamily(
            "cobblestone_wal_archived_seconds", "When the last file of the WAL was archived, Unix time."
        )
        gauge = GaugeMetricFamily(
            "cobblestone_wal_kept_bytes",
            "WAL that the receiver of a replication slot has not confirmed; infinite: the slot is lost.",
            labels=["slot"],
        )
        with connection.cursor() as cursor:
            cursor.execute(_ARCHIVED)
            row = cursor.fetchone()
            if row is not None and row[0] is not None:
                archived.add_metric([], row[0])
            cursor.execute(_KEPT)
            for slot, nbytes in cursor.fetchall():
                gauge.add_metric([slot], nbytes)
        yield from (archived, gauge)
