"""Blocks, and jobs that find no computer, through the REST API."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from portal.models import ApiToken, Change, Host, User
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.models import WorkBlock
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.rest_api import bearer, call, errors_of
from tests.support.scheduler_clients import computer_of, messages

pytestmark = pytest.mark.django_db
BLOCKS, RESERVED = "/api/v1/blocks/", "/api/v1/reserved-jobs/"


@pytest.fixture
def headers(operator: User) -> dict[str, str]:
    return bearer(operator, ApiToken.Scope.PROJECT)


def test_a_computer_is_blocked_and_gets_jobs_again(headers: dict[str, str], alice: User, operator: User) -> None:
    app = make_app()
    make_version(app)
    make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice)
    computer.ask()
    whom = {"host": computer.hostid}
    block = call("POST", BLOCKS, headers, {**whom, "reason": "Its memory is broken."}, 201)
    assert call("POST", BLOCKS, headers, {**whom, "reason": "Test its memory."})["id"] == block["id"]
    [listed] = call("GET", BLOCKS, headers)["results"]
    assert (listed["host"], listed["user"], listed["reason"]) == (computer.hostid, None, "Test its memory.")
    catalogue.forget()
    assert "Test its memory." in messages(computer.ask(0, 1))[0]
    assert {change.actor for change in Change.objects.get_for_object(WorkBlock.objects.get())} == {operator}
    call("DELETE", f"{BLOCKS}{block['id']}/", headers, status=204)
    call("DELETE", f"{BLOCKS}{block['id']}/", headers, status=404)
    catalogue.forget()
    computer.ask(0, 1)
    assert len(computer.jobs) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"reason": "x"}, "host"),
        ({"host": 1, "user": 1, "reason": "x"}, "host"),
        ({"user": 999_999, "reason": "x"}, "user"),
        ({"host": 2**63, "reason": "x"}, "host"),
        ({"host": 1, "reason": ""}, "reason"),
    ],
)
def test_a_block_of_nobody_or_without_a_reason_is_refused(
    headers: dict[str, str], body: dict[str, Any], field: str
) -> None:
    assert field in errors_of(call("POST", BLOCKS, headers, body, 400))


def test_jobs_that_find_no_computer_are_listed_freed_and_ended(
    headers: dict[str, str], studio: Host, operator: User
) -> None:
    app = make_app(n_size_classes=2)
    lanes = [Lane(LaneKind.COMPUTER, studio.pk).number, Lane(hr_class=4020).number]
    for lane in lanes:
        make_result(make_workunit(app, output_files=[], lane=lane), lane=lane)
    size = Lane(size_class=0).number
    make_result(make_workunit(app, output_files=[], lane=size, size_class=0), lane=size)
    rows = call("GET", RESERVED, headers)["results"]
    # Jobs that all computers may have sooner or later are not listed.
    assert [(row["app"], row["lane"], row["jobs"]) for row in rows] == [("alpine", str(lane), 1) for lane in lanes]
    assert rows[0]["waits_for"].startswith(f"computer {studio.pk} (")
    for lane, action in zip(lanes, ("free", "end"), strict=True):
        order = {"app": "alpine", "lane": str(lane), "action": action}
        assert call("POST", RESERVED, headers, order) == {"jobs": 1}
        assert call("POST", RESERVED, headers, order) == {"jobs": 0}
    assert LogEntry.objects.filter(user=operator).count() == 4
    for wrong in ({"lane": str(size)}, {"lane": "0"}, {"lane": "9" * 19}, {"app": "none"}, {"action": "x"}):
        order = {"app": "alpine", "lane": str(lanes[0]), "action": "free", **wrong}
        assert next(iter(wrong)) in errors_of(call("POST", RESERVED, headers, order, 400))
