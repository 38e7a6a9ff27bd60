"""Clients that report no estimated credit: their owner is told, but not again and again, and they work on."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F
from django.test import Client

from accounting.engine.amounts import NO_WORK
from accounting.models import Answer, HostLedger
from accounting.projects import signing_key
from accounting.rpc import catalogue
from accounting.rpc.instructions import is_new_week
from accounting.wire.requests import AccountManagerRequest, ReportedProject
from portal.languages.messages import Message
from portal.models import User
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import attach, sync
from tests.support.cases import attached

TIDEWATER = "https://tidewater.example.org/science/"
TOLD = "does not report its work"
WEEK_US = 7 * 86_400 * 1_000_000


@pytest.fixture(autouse=True)
def tidewater(db: None, signing_keys: None) -> None:
    make_project(
        "Tidewater",
        account_key="7_key_of_tidewater",
        master_url=TIDEWATER,
        url_signature=signing_key.sign_url(TIDEWATER),
    )
    catalogue.forget()


@pytest.mark.parametrize("case", ["client-6.12.43", "client-7.2.42"])
def test_an_old_client_is_told_at_first_and_weekly_and_its_work_goes_on(
    case: str, alice: User, signed_in: Client
) -> None:
    computer = attached(case, alice)
    assert [TOLD in str(Message.from_json(message)) for message in Answer.objects.get().content["messages"]] == [True]
    for _ in range(2):
        HostLedger.objects.update(last_at=F("last_at") - dt.timedelta(days=7))
        weekly, next_one = computer.send(), computer.send()
        assert [TOLD in message for message in weekly.messages] == [True]
        assert next_one.messages == []
        for reply in (weekly, next_one):
            [entry] = reply.root.findall("account")
            assert entry.findtext("url") == TIDEWATER and float(entry.findtext("resource_share") or 0) > 0
            assert entry.find("detach") is None and entry.find("detach_when_done") is None
    host_id = HostLedger.objects.get().pk
    for page in ("/home/", "/computers/", f"/computers/{host_id}/"):
        shown = signed_in.get(page).content.decode()
        assert TOLD in shown or (page == "/computers/" and "reports no credit" in shown), page


def test_a_client_that_reports_is_told_nothing(alice: User, signed_in: Client) -> None:
    computer = attach(alice)
    HostLedger.objects.update(last_at=F("last_at") - dt.timedelta(days=7))
    assert sync(computer).messages == []
    assert TOLD not in signed_in.get("/home/").content.decode()


@pytest.mark.parametrize(
    ("version", "token", "project", "reports"),
    [
        ("7.7.0", None, None, False),
        # Of 7.8 on, none says anything before it knows that this site takes totals.
        ("7.7.1", None, ReportedProject(TIDEWATER), True),
        ("7.20.5", "a" * 32, None, True),
        ("7.20.5", "a" * 32, ReportedProject(TIDEWATER), False),
        ("7.20.5", "a" * 32, ReportedProject(TIDEWATER, totals=NO_WORK), True),
        ("7.20.5", "a" * 32, ReportedProject(TIDEWATER, fault="cpu_ec is not a number"), True),
        ("no number", None, ReportedProject(TIDEWATER), True),
        ("no number", "a" * 32, ReportedProject(TIDEWATER), False),
    ],
)
def test_who_cannot_report(version: str, token: str | None, project: ReportedProject | None, reports: bool) -> None:
    projects = [project] if project is not None else []
    request = AccountManagerRequest(client_version=version, host_token=token, projects=projects)
    assert request.reports_credit == reports
    assert request.contact().get("reports_credit", True) == reports


@pytest.mark.parametrize(
    ("last_us", "now_us", "is_new"),
    [(None, 0, True), (0, WEEK_US - 1, False), (WEEK_US - 1, WEEK_US, True), (WEEK_US, WEEK_US, False)],
)
def test_a_week_begins_once(last_us: int | None, now_us: int, is_new: bool) -> None:
    assert is_new_week(last_us, now_us) == is_new
