"""The REST API's tasks: a volunteer's own, by state, computer and app."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from credit.models import Outcome, Result, ValidateState
from portal.models import Host, User
from tests.support.accounting_factories import make_host
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit
from tests.support.rest_api import bearer, call

pytestmark = pytest.mark.django_db

API = "/api/v1/tasks/"


@pytest.fixture
def tasks(studio: Host, bob: User) -> list[Result]:
    """In progress, pending, valid and failed on two computers for two apps; and one of somebody else."""
    alpine, beta = make_app(), make_app("beta")
    attic = make_host(studio.owner, "attic")
    make_success(make_workunit(alpine), make_host(bob, "theirs"))
    return [
        make_result(make_workunit(alpine), studio, deadline_at=timezone.now() - dt.timedelta(minutes=1)),
        make_success(make_workunit(alpine), attic, elapsed_secs=3000.5, claimed_credit=1.25),
        make_success(make_workunit(beta), studio, validate_state=ValidateState.VALID, granted_credit=2.5),
        make_success(make_workunit(beta), attic, outcome=Outcome.CLIENT_ERROR, exit_status=203),
    ]


@pytest.fixture
def headers(studio: Host) -> dict[str, str]:
    return bearer(studio.owner, "read:tasks")


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", [0, 1, 2, 3]),
        ("?order=newest", [3, 2, 1, 0]),
        ("?state=in_progress", [0]),
        ("?state=pending", [1]),
        ("?state=valid", [2]),
        ("?state=error", [3]),
        ("?state=invalid", []),
        ("?app=beta", [2, 3]),
        ("?app=gamma", []),
        ("?host={attic}&app=alpine", [1]),
    ],
)
def test_tasks_of_a_state_computer_or_app(
    tasks: list[Result], headers: dict[str, str], query: str, places: list[int]
) -> None:
    query = query.format(attic=tasks[1].host_id)
    assert [row["id"] for row in call("GET", API + query, headers)["results"]] == [tasks[place].pk for place in places]


def test_a_task_has_the_state_that_it_is_listed_under(tasks: list[Result], headers: dict[str, str]) -> None:
    states = [(row["state"], row["substate"]) for row in call("GET", API, headers)["results"]]
    assert states == [("in_progress", "overdue"), ("pending", "pending"), ("valid", "valid"), ("error", "aborted")]
    for state, substate in states:
        assert call("GET", f"{API}?state={state}", headers)["results"][0]["substate"] == substate


def test_a_task_has_amounts_as_decimal_text(tasks: list[Result], headers: dict[str, str]) -> None:
    task = call("GET", f"{API}{tasks[1].pk}/", headers)
    assert (task["elapsed_secs"], task["claimed_credit"], task["granted_credit"]) == ("3000.500000", "1.250000", None)
    assert (task["app"], task["host_id"]) == ("alpine", tasks[1].host_id)
    assert not {"user", "user_id", "stderr_text", "outputs", "ties"} & set(task)


def test_somebody_elses_tasks_are_not_there_for_operators_either(
    tasks: list[Result], bob: User, operator: User
) -> None:
    assert call("GET", API, bearer(operator))["results"] == []
    assert len(call("GET", API, bearer(bob))["results"]) == 1
    call("GET", f"{API}{tasks[0].pk}/", bearer(bob), status=404)


def test_a_page_of_tasks_takes_one_statement_beside_the_tokens(
    tasks: list[Result], headers: dict[str, str], django_assert_num_queries: Any
) -> None:
    call("GET", API, headers)
    with django_assert_num_queries(2):
        call("GET", API, headers)
