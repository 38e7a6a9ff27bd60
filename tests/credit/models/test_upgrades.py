"""While a site is upgraded, processes of the version before go on for a while: their statements still work."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from credit.models import AppVersion, HostAppVersion
from scheduler.models import HostRecord
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import record, volunteers

pytestmark = pytest.mark.django_db


def insert_as_before(table: str, since: set[str], values: dict[str, int | float | str | bytes]) -> None:
    """A row of all columns that must have a value, but for those that came since."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND attnotnull"
            " AND NOT atthasdef AND attidentity = '' AND NOT attisdropped",
            [table],
        )
        must = {name for (name,) in cursor.fetchall()}
        assert not must & since
        columns = ", ".join(values)
        places = ", ".join(["%s"] * len(values))
        cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", list(values.values()))


def test_records_of_a_computer_can_be_inserted_without_the_new_columns() -> None:
    version, [host] = make_version(make_app()), volunteers(1)
    insert_as_before(
        "credit_hostappversion",
        {"clean_pfc_n", "clean_pfc_avg", "recent_pfc_n", "recent_pfc_avg", "waiting_pfc_n", "failing_share"},
        {
            **{"host_id": host.pk, "app_id": version.app_id, "app_version_id": version.pk, "processor_type": "CPU"},
            **{"pfc_n": 0, "et_n": 0, "et_q": 0, "turnaround_n": 0, "turnaround_q": 0, "consecutive_valid": 0},
            **{"scale_probation": True, "error_rate": 0.1, "max_jobs_per_day": 0},
        },
    )
    row = HostAppVersion.objects.get()
    assert row.clean_pfc_n == row.recent_pfc_n == row.waiting_pfc_n == row.failing_share == 0


def test_computers_off_probation_start_with_their_samples_as_clean_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    version, hosts = make_version(make_app()), volunteers(5)
    known = {"pfc_n": 20, "pfc_avg": 1.5}
    record(hosts[0], version, scale_probation=False, **known)
    record(hosts[1], version, scale_probation=True, **known)
    record(hosts[2], version, scale_probation=False, **known)
    record(hosts[3], version, scale_probation=False)
    # the new validator has run already
    record(hosts[4], version, scale_probation=False, clean_pfc_n=11, clean_pfc_avg=1.2, **known)
    migration = import_module("credit.migrations.0022_validate_constraints")
    monkeypatch.setattr(migration, "BATCH_ROWS", 1)
    with connection.schema_editor() as editor:
        migration.begin_with_known_samples(apps, editor)
    clean = HostAppVersion.objects.order_by("host_id").values_list("clean_pfc_n", "clean_pfc_avg")
    assert list(clean) == [(20, 1.5), (0, None), (20, 1.5), (0, None), (11, 1.2)]


def test_what_the_scheduler_keeps_of_a_computer_can_be_inserted_without_the_new_columns() -> None:
    [host] = volunteers(1)
    values: dict[str, int | float | str | bytes] = {
        **{"host_id": host.pk, "rpc_seqno": 1, "on_frac": 1, "active_frac": 1, "gpu_active_frac": 1},
        **{"duration_correction_factor": 1, "statistics": "{}", "last_messages": "[]", "jobs_of_day": "[]"},
        "hardware_digest": b"",
    }
    insert_as_before("scheduler_hostrecord", {"cpids", "named_jobs_until", "repeated_seqno", "repeated_times"}, values)
    assert HostRecord.objects.get().cpids == []


def test_a_version_can_be_released_without_the_new_column() -> None:
    version = make_version(make_app())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(attname, ', ') FROM pg_attribute WHERE attrelid = 'credit_appversion'::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('id', 'version_num', 'is_counted')"
        )
        [columns] = cursor.fetchone()
        cursor.execute(
            f"INSERT INTO credit_appversion (version_num, {columns}) SELECT version_num + 1, {columns}"
            " FROM credit_appversion"
        )
    newer = AppVersion.objects.get(version_num=version.version_num + 1)
    assert not newer.is_counted


def test_all_constraints_were_validated_after_they_were_added() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT conname FROM pg_constraint WHERE NOT convalidated")
        assert cursor.fetchall() == []
