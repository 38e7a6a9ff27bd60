"""result_status.php: state and credit of tasks by their names, and nothing else."""

from __future__ import annotations

from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from django.test import Client

from credit.models import ValidateState
from portal.models import Host
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit

pytestmark = pytest.mark.django_db


def ask(**given: str) -> ElementTree.Element:
    reply = Client().get(f"/project/result_status.php?{urlencode(given)}")
    assert reply.status_code == 200 and reply["Content-Type"].startswith("text/xml")
    return ElementTree.fromstring(reply.content)


def test_the_name_of_a_task_tells_its_state_and_credit_and_nothing_else(studio: Host) -> None:
    workunit = make_workunit(make_app())
    task = make_success(workunit, studio, validate_state=ValidateState.VALID, granted_credit=12.5)
    unsent = make_result(workunit)
    reply = ask(names=f"{task.name}, no_such_task,{unsent.name},{task.name}")
    (result,) = reply.findall("result")
    assert {element.tag: element.text for element in result} == {
        "name": task.name,
        "server_state": "5",
        "outcome": "1",
        "validate_state": "1",
        "granted_credit": "12.5",
    }
    # Who will get a task is nobody's business: one that was not sent is unknown.
    assert [error.text for error in reply.findall("error")] == [
        "name no_such_task unknown",
        f"name {unsent.name} unknown",
    ]


def test_names_cannot_be_tried_by_number_nor_asked_without_end(studio: Host) -> None:
    task = make_result(make_workunit(make_app()), studio)
    assert ask(ids=str(task.pk)).tag == "error"
    assert ask(names=",,").tag == "error"
    assert ask(names=",".join(f"task_{n}" for n in range(100))).tag == "results"
    assert "100" in (ask(names=",".join(f"task_{n}" for n in range(101))).findtext("error_msg") or "")
    assert ask(names="x" * 20_001).tag == "error"


def test_hostile_names_are_only_unknown() -> None:
    reply = ask(names="<b>&'\"\0,é" + "x" * 300)
    assert reply.tag == "results" and len(reply.findall("error")) == 2
