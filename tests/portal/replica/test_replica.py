"""Pages that only read, on a real streaming replica: one that lags, is killed, or is paused; and after a change."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer

import pytest
from django.db import OperationalError, connection, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoDbBlocker, Settings

from accounting.exchange import exports
from accounting.exchange.day_rows import DayRange
from accounting.models import DataCopy
from accounting.projects import public
from credit.export import run as statistics_export
from portal import environment
from portal.environment import SettingError
from portal.models import Host, User
from portal.replica import reading
from portal.replica.database import replica_database
from portal.replica.own_changes import MARGIN_SECS
from portal.replica.watch import PRIMARY_AT, REPLICA_AT
from portal.requested_work import queue
from tests.support.accounting_factories import credit, make_project
from tests.support.sessions import sign_in_lately
from tests.support.streaming_replica import Replica
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
LAG_MAX_SECS = 3
# Credit and run time on the CPU, and a task that succeeded.
AMOUNTS = (1_000_000, 0, 1_000_000, 0, 1, 0)


@pytest.fixture(scope="module")
def server(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Replica]:
    with django_db_blocker.unblock(), Replica() as found:
        yield found


@pytest.fixture(scope="module")
def connecting(server: Replica) -> Callable[..., None]:
    """How Django connects: in its tests not to a database that the settings did not have."""
    return BaseDatabaseWrapper.ensure_connection


@pytest.fixture
def replica(
    connecting: Callable[..., None],
    transactional_db: None,
    server: Replica,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Replica]:
    """The site's replica, which is in use."""
    settings.REPLICA_URL = "set"
    settings.REPLICA_LAG_MAX_SECS = LAG_MAX_SECS
    found = {**connections.settings["default"], "HOST": str(server.folder), "PORT": "5432"}
    found = replica_database({**found, "OPTIONS": {}}, connections.settings["default"]["OPTIONS"])
    monkeypatch.setitem(connections.settings, reading.ALIAS, found)
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", connecting)
    monkeypatch.setattr(router, "routers", [reading.Router()])
    reading.watch.cache_clear()
    wait_until(reading.watch().is_usable, "the replica to be in use", 90)
    yield server
    reading.watch().stop()
    reading.watch.cache_clear()
    backend = connections[reading.ALIAS]
    backend.close()
    backend.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one
    del connections[reading.ALIAS]


@pytest.fixture
def paused(replica: Replica) -> Iterator[Replica]:
    """It answers, and replays nothing more."""
    replica.ask("SELECT pg_wal_replay_pause()")
    wait_until(lambda: replica.ask("SELECT pg_get_wal_replay_pause_state()") == "paused", "the pause", 10)
    yield replica
    replica.ask("SELECT pg_wal_replay_resume()")


@pytest.fixture
def browser(alice: User, studio: Host) -> Client:
    """Alice's, a while after she has signed in."""
    credit(studio, make_project(), str(timezone.now().date()), AMOUNTS)
    client = Client()
    sign_in_lately(client, alice)
    return client


def statements(client: Client, name: str = "history") -> tuple[int, int]:
    """How many statements a page sends to the primary, and to the replica."""
    with CaptureQueriesContext(connection) as primary, CaptureQueriesContext(connections[reading.ALIAS]) as replica:
        assert client.get(reverse(name)).status_code == 200
    return len(primary), len(replica)


def wait_until_seen(browser: Client) -> None:
    """Until the replica has what the test has made: before, a page could show nothing of it."""
    wanted = reading._one("default", PRIMARY_AT) or 0

    def has_all() -> bool:
        # The pool may still have a connection to a server that was killed.
        with suppress(OperationalError):
            return (reading._one(reading.ALIAS, REPLICA_AT) or 0) >= wanted
        return False

    wait_until(has_all, "the replica", 30)


def test_a_page_asks_the_replica_what_it_asked_the_primary(
    replica: Replica, browser: Client, settings: Settings
) -> None:
    wait_until_seen(browser)
    statements(browser)
    primary, at_replica = statements(browser)
    assert at_replica > 3
    browser.cookies[settings.CHANGED_COOKIE_NAME] = "1"
    # The session and the person are always read from the primary.
    assert statements(browser) == (primary + at_replica, 0)


def test_a_page_after_ones_own_change_shows_it(
    paused: Replica, browser: Client, studio: Host, settings: Settings
) -> None:
    page = reverse("host_settings", args=[studio.pk])
    response = browser.post(page, {"name": "Renamed"})
    cookie = response.cookies[settings.CHANGED_COOKIE_NAME]
    assert cookie["max-age"] == LAG_MAX_SECS + MARGIN_SECS
    studio.refresh_from_db()
    assert studio.given_name == "Renamed"
    address = f"{reverse('history')}?by=computer"
    assert "Renamed" in browser.get(address).content.decode()
    # Without the cookie the page is of the moment at which the replica stopped.
    del browser.cookies[settings.CHANGED_COOKIE_NAME]
    reading.watch()._lag_max_secs = 1e9  # type: ignore[misc]  # for this test
    assert "Renamed" not in browser.get(address).content.decode()


def test_a_replica_that_is_too_far_behind_is_not_read(paused: Replica, browser: Client) -> None:
    User.objects.create_user("somebody@example.org", "secret")
    wait_until(lambda: not reading.watch().is_usable(), "the lag to be noticed", 15)
    assert statements(browser)[1] == 0
    paused.ask("SELECT pg_wal_replay_resume()")
    wait_until(reading.watch().is_usable, "the replica to have caught up", 15)
    assert statements(browser)[1] > 0


def test_a_killed_replica_is_noticed_without_an_error_page(
    replica: Replica, browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    wait_until_seen(browser)
    content = b"".join(browser.get(reverse("history_csv")))
    replica.kill()
    try:
        assert b"".join(browser.get(reverse("history_csv"))) == content
        for _ in range(3):
            assert browser.get(reverse("history")).status_code == 200
        # It is known to be away, and not asked any more.
        assert not reading.watch().is_usable()
        assert len([record for record in caplog.records if "replica_failed" in record.getMessage()]) <= 1
    finally:
        replica.start()
    wait_until(reading.watch().is_usable, "the replica to be used again", 90)
    wait_until_seen(browser)
    assert statements(browser)[1] > 0


def test_a_replica_that_does_not_answer_any_more_holds_up_a_page_for_seconds_only(
    replica: Replica, browser: Client
) -> None:
    wait_until_seen(browser)
    statements(browser)
    # If the page hung, the test would end with the resumption, after a minute, and the replica would be in use.
    resumption = Timer(60, replica.pause, [True])
    resumption.start()
    replica.pause()
    try:
        assert browser.get(reverse("history")).status_code == 200
        assert not reading.watch().is_usable()
    finally:
        resumption.cancel()
        replica.pause(resume=True)


def test_a_download_is_read_from_the_replica_after_its_view_has_returned(replica: Replica, browser: Client) -> None:
    wait_until_seen(browser)
    with CaptureQueriesContext(connections[reading.ALIAS]) as captured:
        response = browser.get(reverse("history_csv"))
        before = len(captured)
        content = b"".join(response)
    assert content.count(b"\n") == 2
    assert len(captured) == before + 2


def test_a_slow_download_occupies_no_session(replica: Replica, browser: Client) -> None:
    wait_until_seen(browser)
    response = browser.get(reverse("history_csv"))
    assert response.streaming
    is_held = [connections[reading.ALIAS].connection is not None for _part in response]
    assert is_held and not is_held[-1]


def test_several_servers_are_refused_without_their_password(replica: Replica) -> None:
    found = environment.database("postgresql://me:secret@a:1,b:2/site", "REPLICA_URL")
    with pytest.raises(SettingError, match="REPLICA_URL") as raised:
        replica_database(found, connections.settings["default"]["OPTIONS"])
    assert "secret" not in str(raised.value)


def test_public_sums_come_from_the_replica(replica: Replica) -> None:
    with CaptureQueriesContext(connections[reading.ALIAS]) as captured:
        public.read_public()
    assert len(captured) == 2


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_file_that_a_worker_makes_has_all_that_was_there_when_it_began(
    replica: Replica, browser: Client, alice: User, studio: Host, is_behind: bool, request: pytest.FixtureRequest
) -> None:
    if is_behind:
        request.getfixturevalue("paused")
    today = timezone.now().date()
    credit(studio, make_project("Another"), str(today), AMOUNTS)
    with CaptureQueriesContext(connections[reading.ALIAS]) as captured:
        copy = exports.ask(alice, DataCopy.Content.JSON, DayRange(today - dt.timedelta(days=1), today))
        assert queue.carry_out_next()
    copy.refresh_from_db()
    assert copy.state == DataCopy.State.READY
    days = [each["sql"] for each in captured.captured_queries if "accounting_day" in each["sql"]]
    assert bool(days) is not is_behind


def test_the_statistics_export_is_a_snapshot_of_the_replica(
    replica: Replica, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STATISTICS_DIR = tmp_path / "statistics"
    used: list[str] = []
    write: Callable[..., None] = statistics_export._write

    def note(*arguments: object) -> None:
        used.append(reading.reading_connection().alias)
        write(*arguments)

    monkeypatch.setattr(statistics_export, "_write", note)
    made = statistics_export.export()
    assert made is not None
    assert made.failure == ""
    assert used == [reading.ALIAS]
