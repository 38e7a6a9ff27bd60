"""A reset of statistics meets a validator's pass with a record that was created meanwhile: two real connections."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from credit.changes import reset, sql
from credit.models import AppVersion, HostAppVersion
from portal.audit.carry_out import carry_out
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import record, volunteers
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def make_record(version: AppVersion, host: Host) -> None:
    try:
        record(host, version)
    finally:
        connection.close()


def run_pass(version: AppVersion, host: Host) -> None:
    """What a pass locks and writes, in its order: the record, then the version."""
    records = HostAppVersion.objects.filter(app_version=version, host=host)
    try:
        with transaction.atomic():
            assert len(records.select_for_update(no_key=True)) == 1
            records.update(pfc_n=F("pfc_n") + 1, pfc_avg=2.0)
            AppVersion.objects.select_for_update(no_key=True).get(pk=version.pk)
            AppVersion.objects.filter(pk=version.pk).update(pfc_n=F("pfc_n") + 1, pfc_avg=2.0)
    finally:
        connection.close()


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.parametrize(
    ("before", "nsamples"),
    [
        # The reset lets the pass go first, and takes its sample away.
        (sql.LOCK_NEW_RECORDS, 0),
        # The pass follows the reset, and its sample is the first.
        (sql.KEEP_RECORDS, 1),
    ],
)
def test_a_reset_and_a_pass_with_a_new_record_do_not_wait_for_each_other(before: str, nsamples: int) -> None:
    boss = User.objects.create_superuser("boss@example.org", "a long password")
    version = make_version(make_app(), pfc_n=100, pfc_avg=2.0)
    known, new = volunteers(2)
    record(known, version, pfc_n=40, pfc_avg=2.0)
    passes: list[Future[None]] = []

    def meanwhile(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        if statement == before and not passes:
            other.submit(make_record, version, new).result()
            passes.append(other.submit(run_pass, version, new))
            wait_until(waits_for_a_lock, "the pass to wait for the version", 30, poll_secs=0.02)
        return execute(statement, params, many, context)

    with ThreadPoolExecutor(1) as other, connection.execute_wrapper(meanwhile):
        change = carry_out(reset.proposal(version), boss, "a test")
        passes[0].result()
    version.refresh_from_db()
    assert (version.pfc_n, HostAppVersion.objects.get(host=new).pfc_n) == (nsamples, nsamples)
    assert HostAppVersion.objects.get(host=known).pfc_n == 0
    assert change.changes["pfc_n"] == [101 - nsamples, 0]
