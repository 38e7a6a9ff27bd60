"""A copy of everything held about a volunteer: what is in it, who gets it, and what is never in it."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import zipfile

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounting import tasks
from accounting.account_data import copies
from accounting.exchange import made_files
from accounting.models import DataCopy, DataCopyPart, Project
from accounting.preferences.save import save_set
from credit.models import ResultPart
from portal.models import ClientKey, Host, RequestedWork, User
from portal.people.api_tokens import issue_token
from portal.people.join_tokens import make_join_token
from portal.requested_work import queue
from scheduler.models import BetaTester, UserPreferences
from tests.support.accounting_factories import credit, make_host, make_note
from tests.support.am_rpc import attach
from tests.support.credit_factories import NOON, make_app, make_result, make_workunit
from tests.support.page_reader import page_of

DATA = "/account/data/"


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.post("/account/login/", {"login": "alice@example.org", "password": "alice's secret"})
    return client


@pytest.fixture
def worked(alice: User, projects: list[Project]) -> list[str]:
    """Something of everything; the secrets that must not be in a copy."""
    studio = attach(alice)
    attic = make_host(alice, "attic")
    credit(attic, projects[0], "2024-02-29", (1_000_001, 0, 259_346_744, 0, 4, 1), flags=1)
    make_note(attic, "reset", "2024-02-29", project=projects[0])
    save_set(alice, "", {"max_ncpus_pct": 55})
    token = issue_token(alice, name="sheet", scopes=["read:hosts"], lifetime=None)
    _, join_token = make_join_token(alice, group="lab", max_hosts=3, lifetime=dt.timedelta(days=1))
    hashes = [bytes(key.key_hash).hex() for key in ClientKey.objects.all()]
    tokens = list(Host.objects.values_list("token", flat=True))
    return [studio.authenticator, token, join_token, alice.password, alice.client_password, *hashes, *tokens]


def made(user: User) -> zipfile.ZipFile:
    copy, is_new = copies.ask_copy(user)
    assert is_new
    copies.make_copy(copy.pk)
    copy.refresh_from_db()
    assert (copy.state, copy.percent) == ("ready", 100)
    content = b"".join(made_files.read_parts(copy))
    assert len(content) == copy.size_bytes
    return zipfile.ZipFile(io.BytesIO(content))


def test_everything_is_in_it(alice: User, worked: list[str]) -> None:
    archive = made(alice)
    assert archive.testzip() is None
    named = [line.split()[0] for line in archive.read("README.txt").decode().splitlines() if line[:1].islower()]
    assert sorted(archive.namelist()) == sorted(["README.txt", *named])
    (row,) = csv.DictReader(io.StringIO(archive.read("history.csv").decode(), newline=""))
    assert (row["day"], row["cpu_secs"], row["host"], row["flags"]) == ("2024-02-29", "259.346744", "attic", "capped")
    account = json.loads(archive.read("account.json"))
    assert account["account"]["email"] == "alice@example.org"
    assert account["settings"][0]["preferences"]["max_ncpus_pct"] == 55
    computers = json.loads(archive.read("computers.json"))
    assert [computer["domain_name"] for computer in computers] == ["studio", "attic"]
    totals = json.loads(archive.read("totals.json"))
    assert ["1000001", "0", "259346744", "0", "4", "1"] in [[str(each) for each in row["credited"]] for row in totals]
    assert [note["kind"] for note in json.loads(archive.read("notes.json"))] == ["reset"]
    access = json.loads(archive.read("access.json"))
    assert access["api_tokens"][0]["name"] == "sheet" and len(access["client_keys"]) == 1


def test_no_table_about_a_volunteer_is_forgotten(alice: User, worked: list[str]) -> None:
    """Every model that points to a person or a computer is read for the copy, or is here with the reason why not."""
    left_out = {
        "AccountBlock",  # operators' reasons; anyone who is blocked gets no copy
        "BestDay",  # of days that are in it
        "Change",  # what operators changed
        "ConfirmationRequest",  # what operators asked one another to confirm
        "MaintenanceRun",  # what operators started
        "LogEntry",  # what operators did
        "LoginToken",  # a digest of a secret that is good for a day
        "Month",  # sums of days that are in it
        "SupportAction",  # the same
        "User_groups",  # rights of operators
        "User_user_permissions",
    }
    about = {
        model.__name__: model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(field.related_model in (User, Host) for field in model._meta.get_fields() if field.concrete)
    }
    with CaptureQueriesContext(connection) as seen:
        made(alice)
    # A long list is read by a cursor: DECLARE … FOR SELECT.
    read = " ".join(query["sql"] for query in seen.captured_queries if query["sql"].startswith(("SELECT", "DECLARE")))
    assert {name for name, table in about.items() if f'FROM "{table}"' not in read} == left_out


def test_no_secret_is_in_it(alice: User, worked: list[str]) -> None:
    archive = made(alice)
    text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert len(worked) >= 6 and all(len(secret) >= 20 for secret in worked)
    assert [secret for secret in worked if secret in text] == []


def test_tasks_of_the_project_server_are_in_it(alice: User, bob: User) -> None:
    workunit = make_workunit(make_app())
    mine, others = (make_result(workunit, make_host(user, "studio")) for user in (alice, bob))
    rows = json.loads(made(alice).read("credit/result.json"))
    assert [row["id"] for row in rows] == [mine.pk] != [others.pk]
    assert json.loads(made(bob).read("emulator/experiment.json")) == []


def test_parts_of_tasks_are_in_it_and_those_of_others_are_not(alice: User, bob: User) -> None:
    workunit = make_workunit(make_app())
    claim = {"claim_rule": 11, "raw_pfc": 1.0, "claimed_pfc": 1.0, "claimed_credit": 1.0, "is_approximate": False}
    mine, _ = (
        ResultPart.objects.create(
            result=make_result(workunit, make_host(user, "studio")),
            granted_at=NOON,
            from_secs=0,
            to_secs=1,
            credit=1,
            **claim,
        )
        for user in (alice, bob)
    )
    rows = json.loads(made(alice).read("credit/resultpart.json"))
    assert [row["id"] for row in rows] == [mine.pk]


def test_preferences_that_a_client_sent_to_the_project_are_in_it(alice: User, bob: User) -> None:
    text = "<mod_time>1700000000</mod_time>\n<max_ncpus_pct>55</max_ncpus_pct>"
    UserPreferences.objects.create(user=alice, mod_time=1.7e9, text=text)
    archive = made(alice)
    (row,) = json.loads(archive.read("scheduler/userpreferences.json"))
    assert row == {"user_id": alice.pk, "mod_time": 1.7e9, "text": text, "of_project": {}}
    assert "scheduler/userpreferences.json    preferences of volunteers" in archive.read("README.txt").decode()
    assert json.loads(made(bob).read("scheduler/userpreferences.json")) == []


def test_nothing_of_others_is_in_it(alice: User, bob: User, worked: list[str]) -> None:
    archive = made(bob)
    text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert "bob@example.org" in text
    assert "alice" not in text and "attic" not in text and "259.346744" not in text


def test_a_click_makes_it_and_the_page_offers_it(browser: Client, worked: list[str]) -> None:
    assert "Make a copy" in page_of(browser, DATA).words
    browser.post(f"{DATA}copy/")
    assert "number 1 in the queue" in page_of(browser, DATA).words
    assert queue.carry_out_next()
    data_page = page_of(browser, DATA)
    (link,) = [a.attributes["href"] for a in data_page.all("a") if a.attributes.get("href", "").endswith(".zip")]
    reply = browser.get(link)
    assert zipfile.is_zipfile(io.BytesIO(b"".join(reply)))
    assert "no-store" in reply.headers["Cache-Control"]


def test_the_page_shows_how_far_it_is(browser: Client, alice: User) -> None:
    copy, _ = copies.ask_copy(alice)
    DataCopy.objects.filter(pk=copy.pk).update(state="working", percent=42)
    part = page_of(browser, DATA, headers={"HX-Request": "true"})
    assert part.one("progress").attributes["value"] == "42"
    assert part.one("div", id="copy").attributes["hx-trigger"] == "every 2s"
    DataCopy.objects.filter(pk=copy.pk).update(state="ready", finished_at=timezone.now())
    assert "hx-trigger" not in page_of(browser, DATA).one("div", id="copy").attributes


def test_a_copy_that_gets_ready_while_the_page_is_made_is_offered(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies.ask_copy(alice)

    def made_meanwhile(*asked: object) -> dict[int, queue.Standing]:
        assert queue.carry_out_next()
        return {}

    monkeypatch.setattr(queue, "standings", made_meanwhile)
    assert "Download the copy" in browser.get("/account/data/").content.decode()


def test_progress_is_counted_in_rows(alice: User, worked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(alice, "node")
    for day in range(1, 10):
        credit(host, Project.objects.all()[0], f"2024-03-{day:02}", (1, 1, 1, 1, 1, 1))
    copy, _ = copies.ask_copy(alice)
    seen = []
    for _page in made_files.counted_pages(copy, page_rows=3):
        copy.refresh_from_db()
        seen.append(copy.percent)
    # Ten rows, three a page: what is done when the next page comes.
    assert seen == [0, 30, 60, 90]


def test_one_is_made_at_a_time_and_a_new_one_replaces_it(alice: User, bob: User) -> None:
    first, _ = copies.ask_copy(alice)
    assert copies.ask_copy(alice) == (first, False)
    assert copies.ask_copy(bob)[1]
    copies.make_copy(first.pk)
    second, is_new = copies.ask_copy(alice)
    assert is_new and list(DataCopy.objects.filter(user=alice)) == [second]
    assert not DataCopyPart.objects.exists()


def test_a_copy_that_is_made_twice_makes_one_file(alice: User) -> None:
    copy, _ = copies.ask_copy(alice)
    copies.make_copy(copy.pk)
    parts = list(DataCopyPart.objects.values_list("pk", flat=True))
    copies.make_copy(copy.pk)
    assert list(DataCopyPart.objects.values_list("pk", flat=True)) == parts
    copies.make_copy(copy.pk + 1)


def test_a_copy_whose_worker_was_killed_is_made_by_another(alice: User, browser: Client) -> None:
    copy, _ = copies.ask_copy(alice)
    # What a worker leaves that is killed at work:
    assert queue._take(timezone.now() - queue.LOST_AFTER - dt.timedelta(seconds=1))
    DataCopy.objects.update(state="working", percent=42)
    assert "being made" in page_of(browser, DATA).words
    queue.requeue_lost(timezone.now())
    tasks.look_after_copies()
    assert queue.carry_out_next() and not queue.carry_out_next()
    copy.refresh_from_db()
    assert copy.state == DataCopy.State.READY


def test_a_copy_that_was_given_up_has_failed_for_good(alice: User, browser: Client) -> None:
    """Also when the queue has forgotten it, a day later."""
    copy, _ = copies.ask_copy(alice)
    DataCopy.objects.update(state="working")
    for _ in range(queue.MAX_TRIES):
        RequestedWork.objects.update(started_at=timezone.now() - dt.timedelta(hours=1), ntries=F("ntries") + 1)
        queue.requeue_lost(timezone.now())
    tasks.look_after_copies()
    queue.requeue_lost(timezone.now() + dt.timedelta(days=2))
    assert not RequestedWork.objects.exists()
    tasks.look_after_copies()
    assert not queue.carry_out_next()
    copy.refresh_from_db()
    assert copy.state == DataCopy.State.FAILED and copy.finished_at is not None
    assert "could not be made" in page_of(browser, DATA).words


def test_a_lost_worker_does_not_block_the_next_copy(browser: Client, alice: User) -> None:
    copy, _ = copies.ask_copy(alice)
    DataCopy.objects.update(state="working")
    for _ in range(queue.MAX_TRIES):
        RequestedWork.objects.update(started_at=timezone.now() - dt.timedelta(hours=1), ntries=F("ntries") + 1)
        queue.requeue_lost(timezone.now())
    assert "could not be made" in page_of(browser, DATA).words
    again, is_new = copies.ask_copy(alice)
    assert is_new and again != copy


def test_a_large_file_goes_in_pieces(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_files, "PART_BYTES", 100)
    archive = made(alice)
    assert archive.testzip() is None
    assert DataCopyPart.objects.count() > 5


def test_it_is_removed_after_a_week(alice: User, bob: User) -> None:
    old, _ = copies.ask_copy(alice)
    copies.make_copy(old.pk)
    new, _ = copies.ask_copy(bob)
    DataCopy.objects.filter(pk=old.pk).update(asked_at=timezone.now() - made_files.KEPT - dt.timedelta(minutes=1))
    tasks.erase()
    assert list(DataCopy.objects.all()) == [new]
    assert not DataCopyPart.objects.exists()


@pytest.mark.parametrize("who", ["bob", "operator"])
def test_nobody_else_gets_it(request: pytest.FixtureRequest, client: Client, alice: User, who: str) -> None:
    copy, _ = copies.ask_copy(alice)
    copies.make_copy(copy.pk)
    client.force_login(request.getfixturevalue(who))
    assert client.get(f"{DATA}{copy.pk}.zip").status_code == 404
    assert "Download the copy" not in client.get(DATA).content.decode()


def test_a_copy_that_is_not_ready_cannot_be_fetched(browser: Client, alice: User) -> None:
    copy, _ = copies.ask_copy(alice)
    assert browser.get(f"{DATA}{copy.pk}.zip").status_code == 404


def test_it_says_that_somebody_agreed_to_test_and_what_they_uploaded(alice: User, bob: User) -> None:
    BetaTester.objects.create(user=alice)
    archive = made(alice)
    (row,) = json.loads(archive.read("scheduler/betatester.json"))
    assert row["user_id"] == alice.pk and row["agreed_at"]
    assert json.loads(made(bob).read("scheduler/betatester.json")) == []
    assert {"scheduler/submissiondraft.json", "scheduler/releasedraft.json"} <= set(archive.namelist())
