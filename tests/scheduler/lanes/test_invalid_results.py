"""Operators see which versions and which computers return invalid results, and block from there."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from credit.models import Outcome, ServerState, ValidateState
from portal.models import Host, User
from scheduler.lifecycle import invalid_results
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit

pytestmark = pytest.mark.django_db


def test_a_broken_computer_and_a_broken_version_are_told_apart(alice: User, studio: Host, desk: Client) -> None:
    app = make_app()
    good, bad = make_version(app, 100), make_version(app, 101)
    laptop = Host.objects.create(owner=alice, domain_name="laptop", host_cpid="b" * 32)
    now = timezone.now()
    invalid = {"outcome": Outcome.SUCCESS, "validate_state": ValidateState.INVALID}
    valid = {"outcome": Outcome.SUCCESS, "validate_state": ValidateState.VALID}
    error = {"outcome": Outcome.CLIENT_ERROR}
    for host, version, fields, count in (
        (studio, good, invalid, 2),
        (studio, good, valid, 1),
        (studio, bad, invalid, 1),
        (laptop, bad, error, 2),
        (laptop, good, valid, 3),
    ):
        for _ in range(count):
            over = {"server_state": ServerState.OVER, "received_at": now, "app_version": version, **fields}
            make_result(make_workunit(app), host, **over)
    old = {"server_state": ServerState.OVER, "received_at": now - dt.timedelta(days=8), "app_version": good, **invalid}
    make_result(make_workunit(app), laptop, **old)

    def rows(failures: list[invalid_results.Failures]) -> list[tuple[object, ...]]:
        return [(row.version, row.host, row.ninvalid, row.nerrors, row.nvalid) for row in failures]

    assert rows(invalid_results.by_version(now)) == [(good, None, 2, 0, 4), (bad, None, 1, 2, 0)]
    assert rows(invalid_results.by_host(now)) == [
        (good, studio, 2, 0, 1),
        (bad, studio, 1, 0, 0),
        (bad, laptop, 0, 2, 0),
    ]
    # 2 of 3
    assert invalid_results.by_host(now)[0].share == pytest.approx(2 / 3)
    page = desk.get("/admin/scheduler/workblock/invalid-results/").content.decode()
    assert f"/admin/scheduler/workblock/add/?host={studio.pk}" in page
