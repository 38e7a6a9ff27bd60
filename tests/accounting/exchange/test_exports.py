"""Long ranges of a history are made as files by a worker: who gets one, what is in it, and how many at once."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from typing import IO

import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting import tasks
from accounting.account_data import copies
from accounting.exchange import exports, made_files
from accounting.exchange.day_rows import DayRange
from accounting.models import DataCopy
from portal.models import Host, RequestedWork, User
from portal.requested_work import queue
from tests.support.accounting_factories import credit, make_project
from tests.support.lock_waits import meanwhile
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db

FILES = "/history/files/"
RANGE = "from=2026-03-01&to=2026-03-10"
FORM = {"kind": "csv", "from": "2026-03-01", "to": "2026-03-10"}
WANTED = DayRange(dt.date(2026, 3, 1), dt.date(2026, 3, 10))


@pytest.fixture
def worked(studio: Host, settings: Settings) -> Host:
    """Six rows in the range and one after it; four are sent at once."""
    settings.HISTORY_DOWNLOAD_ROWS = 4
    projects = [make_project("Alpha"), make_project("Beta")]
    for day in ("2026-03-01", "2026-03-05", "2026-03-10"):
        for project in projects:
            credit(studio, project, day, (1_000_001, 2, 259_346_744, 1, 4, 1))
    credit(studio, projects[0], "2026-03-11", (5, 5, 5, 5, 5, 5))
    return studio


def page(client: Client, query: str = "") -> Page:
    return page_of(client, FILES + query)


def links(files_page: Page) -> list[str]:
    return [a.attributes["href"] for a in files_page.all("a") if a.attributes.get("href", "").endswith(".zip")]


def unpacked(content: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_long_range_is_made_by_a_worker_and_is_what_would_have_been_sent(
    signed_in: Client, worked: Host, settings: Settings, kind: str
) -> None:
    asked = signed_in.get(f"/history/history.{kind}?{RANGE}", follow=True)
    assert asked.redirect_chain == [(f"{FILES}?kind={kind}&{RANGE}", 302)]
    files_page = Page(asked.content.decode())
    assert (
        "more than 4 rows cannot be sent right away" in files_page.words
        and f"Make the {kind.upper()} file" in files_page.words
    )
    # To look asks for nothing.
    assert not RequestedWork.objects.exists()
    named = [field.attributes for field in files_page.all("input") if field.attributes["name"] in FORM]
    signed_in.post(f"{FILES}make/", {field["name"]: field["value"] for field in named})
    assert "number 1 in the queue" in page(signed_in).words
    assert queue.carry_out_next() and not queue.carry_out_next()
    (link,) = links(page(signed_in))
    reply = signed_in.get(link)
    assert f'filename="history-2026-03-01-to-2026-03-10.{kind}.zip"' in reply.headers["Content-Disposition"]
    assert "no-store" in reply.headers["Cache-Control"]
    made = unpacked(b"".join(reply))
    settings.HISTORY_DOWNLOAD_ROWS = 6
    sent = b"".join(signed_in.get(f"/history/history.{kind}?{RANGE}"))
    assert made == {f"history-2026-03-01-to-2026-03-10.{kind}": sent}
    assert sent.count(b"2026-03-05") == 2 and b"2026-03-11" not in sent


def test_as_many_rows_as_the_limit_are_sent_at_once(signed_in: Client, worked: Host) -> None:
    assert signed_in.get("/history/history.csv?from=2026-03-01&to=2026-03-05").streaming
    assert signed_in.get("/history/history.csv?from=2026-03-05&to=2026-03-11").status_code == 302


def test_the_page_shows_how_far_a_file_is(signed_in: Client, worked: Host) -> None:
    signed_in.post(f"{FILES}make/", FORM)
    DataCopy.objects.update(state="working", percent=42)
    RequestedWork.objects.update(started_at=timezone.now())
    part = page_of(signed_in, FILES, headers={"HX-Request": "true"})
    assert part.one("progress").attributes["value"] == "42" and "being made" in part.words
    assert part.one("div", id="files").attributes["hx-trigger"] == "every 2s"
    DataCopy.objects.update(state="ready", finished_at=timezone.now())
    assert "hx-trigger" not in page(signed_in).one("div", id="files").attributes


def test_progress_is_counted_in_rows_of_the_range(signed_in: Client, worked: Host) -> None:
    export = exports.ask(worked.owner, DataCopy.Content.CSV, WANTED)
    seen = []
    for _page in made_files.counted_pages(export, page_rows=2):
        export.refresh_from_db()
        seen.append(export.percent)
    # Six rows, two a page: what is done when the next page comes.
    assert seen == [0, 33, 66]


def test_the_same_days_are_made_once_at_a_time(signed_in: Client, worked: Host) -> None:
    for _ in range(2):
        signed_in.post(f"{FILES}make/", FORM)
    signed_in.post(f"{FILES}make/", {**FORM, "kind": "json"})
    assert [copy.content for copy, _ in exports.read(worked.owner)] == ["json", "csv"]
    assert RequestedWork.objects.count() == 2


def test_no_more_than_five_are_kept_and_the_oldest_makes_room(signed_in: Client, worked: Host) -> None:
    for day in range(1, 6):
        signed_in.post(f"{FILES}make/", {**FORM, "from": f"2026-03-0{day}"})
    asked = signed_in.post(f"{FILES}make/", {**FORM, "from": "2026-03-06"}, follow=True).content.decode()
    assert "5 files are already being made for you" in asked
    assert RequestedWork.objects.count() == 5
    while queue.carry_out_next():
        pass
    signed_in.post(f"{FILES}make/", {**FORM, "from": "2026-03-06"})
    assert [copy.first.day for copy, _ in exports.read(worked.owner) if copy.first] == [6, 5, 4, 3, 2]
    assert len(links(page(signed_in))) == 4


def test_a_file_waits_while_a_copy_and_a_file_are_made_for_the_same_person(worked: Host, settings: Settings) -> None:
    settings.REQUESTED_WORK_PER_PERSON = 2
    copies.ask_copy(worked.owner)
    for content in exports.CONTENTS[:2]:
        exports.ask(worked.owner, content, WANTED)
    for _ in range(2):
        assert queue._take(timezone.now()) is not None
    assert queue._take(timezone.now()) is None
    assert [(copy.content, found and found.place) for copy, found in exports.read(worked.owner)] == [
        ("json", 1),
        ("csv", 0),
    ]


def test_a_copy_of_all_data_and_files_do_not_replace_each_other(worked: Host) -> None:
    user = worked.owner
    export = exports.ask(user, DataCopy.Content.CSV, WANTED)
    copy, is_new = copies.ask_copy(user)
    while queue.carry_out_next():
        pass
    assert is_new and copies.read_copy(user)[0] == copy
    assert [each for each, _ in exports.read(user)] == [export]
    copies.ask_copy(user)
    assert exports.find_ready(user, export.pk) is not None and exports.find_ready(user, copy.pk) is None


@pytest.mark.parametrize("who", ["bob", "operator"])
def test_nobody_else_sees_or_gets_it(request: pytest.FixtureRequest, client: Client, worked: Host, who: str) -> None:
    export = exports.ask(worked.owner, DataCopy.Content.CSV, WANTED)
    exports.make(export.pk)
    client.force_login(request.getfixturevalue(who))
    assert client.get(f"{FILES}{export.pk}.zip").status_code == 404
    assert links(page(client)) == []


def test_what_is_not_ready_cannot_be_fetched(signed_in: Client, worked: Host) -> None:
    export = exports.ask(worked.owner, DataCopy.Content.CSV, WANTED)
    assert signed_in.get(f"{FILES}{export.pk}.zip").status_code == 404


def test_it_is_removed_after_a_week(worked: Host) -> None:
    old, new = (exports.ask(worked.owner, content, WANTED) for content in exports.CONTENTS[:2])
    exports.make(old.pk)
    DataCopy.objects.filter(pk=old.pk).update(asked_at=timezone.now() - made_files.KEPT - dt.timedelta(minutes=1))
    tasks.erase()
    assert [copy for copy, _ in exports.read(worked.owner)] == [new]


def test_a_file_that_was_given_up_has_failed_and_can_be_asked_for_again(signed_in: Client, worked: Host) -> None:
    signed_in.post(f"{FILES}make/", FORM)
    DataCopy.objects.update(state="working")
    for _ in range(queue.MAX_TRIES):
        RequestedWork.objects.update(started_at=timezone.now() - dt.timedelta(hours=1), ntries=F("ntries") + 1)
        queue.requeue_lost(timezone.now())
    assert "could not be made" in page(signed_in).words
    tasks.look_after_copies()
    assert DataCopy.objects.get().state == DataCopy.State.FAILED
    signed_in.post(f"{FILES}make/", FORM)
    assert queue.carry_out_next()
    assert len(links(page(signed_in))) == 1


@pytest.mark.parametrize("wrong", [{"from": "2026-99-99"}, {"kind": "pdf"}, {"kind": ""}, {"from": "2026-03-11"}])
def test_what_cannot_be_made_is_refused_in_words(signed_in: Client, worked: Host, wrong: dict[str, str]) -> None:
    reply = signed_in.post(f"{FILES}make/", FORM | wrong)
    assert (reply.status_code, bool(reply.content)) == (400, True)
    assert not DataCopy.objects.exists()
    if (FORM | wrong)["kind"]:
        assert signed_in.get(FILES, FORM | wrong).content == reply.content


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": "csv"},
        {"content": "csv", "first": WANTED.last, "last": WANTED.first},
        {"content": "all", "first": WANTED.first, "last": WANTED.last},
    ],
)
def test_the_database_takes_days_for_histories_only(alice: User, wrong: dict[str, object]) -> None:
    with pytest.raises(IntegrityError, match="datacopy_days"):
        DataCopy.objects.create(user=alice, **wrong)


def test_a_run_that_fails_after_another_has_stored_the_file_leaves_it_alone(worked: Host) -> None:
    export = exports.ask(worked.owner, DataCopy.Content.CSV, WANTED)

    def write(copy: DataCopy, file: IO[bytes]) -> None:
        # A worker that was held to be lost
        exports.make(copy.pk)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        made_files.make(export.pk, write)
    assert exports.find_ready(worked.owner, export.pk) is not None


@pytest.mark.django_db(transaction=True)
def test_of_two_windows_that_ask_for_the_same_days_at_once_the_second_gets_the_firsts_file(alice: User) -> None:
    with meanwhile(lambda: exports.ask(alice, DataCopy.Content.CSV, WANTED)) as begin:
        with transaction.atomic():
            first = exports.ask(alice, DataCopy.Content.CSV, WANTED)
            second = begin()
        assert second.result() == first
    assert DataCopy.objects.get() == first
