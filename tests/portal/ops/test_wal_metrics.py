"""Metrics of backups, of a real server: what was archived, what a slot's receiver lacks, and a slot that is lost."""

from __future__ import annotations

import math
import time

import pytest

from portal.ops.wal_metrics import WalMetrics
from tests.support.own_server import OwnServer
from tests.support.second_database import in_database
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def series() -> dict[str, float]:
    return {
        f"{sample.name}{'/' if sample.labels else ''}{sample.labels.get('slot', '')}": sample.value
        for metric in WalMetrics().collect()
        for sample in metric.samples
    }


def write_wal(server: OwnServer) -> None:
    server.ask("CREATE TABLE written AS SELECT generate_series(1, 100000) AS number")
    server.ask("DROP TABLE written")


def test_the_metrics_follow_the_server() -> None:
    with OwnServer() as server, in_database("postgres", str(server.folder)):
        assert series() == {}
        server.ask("SELECT pg_create_physical_replication_slot('backup', true)")
        before = series()["cobblestone_wal_kept_bytes/backup"]
        write_wal(server)
        assert series()["cobblestone_wal_kept_bytes/backup"] > before + 1_000_000
        server.ask("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        server.ask("SELECT pg_reload_conf()")
        for _ in range(3):
            write_wal(server)
            server.ask("CHECKPOINT")
        wait_until(
            lambda: server.ask("SELECT wal_status FROM pg_replication_slots") == "lost", "the slot to be lost", 30
        )
        assert series() == {"cobblestone_wal_kept_bytes/backup": math.inf}


def test_what_was_archived_has_its_time() -> None:
    with OwnServer() as server:
        server.ask("ALTER SYSTEM SET archive_mode = 'on'")
        server.ask("ALTER SYSTEM SET archive_command = 'true'")
        server.kill()
        server.start()
        begun = time.time()
        with in_database("postgres", str(server.folder)):
            assert series() == {}
            write_wal(server)
            wait_until(lambda: bool(series()), "a file to be archived", 30)
            assert begun - 1 <= series()["cobblestone_wal_archived_seconds"] <= time.time() + 1
