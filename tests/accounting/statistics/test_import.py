"""What projects granted, imported from real servers: what counts, what is refused, and what goes on."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import psycopg
import pytest
from allauth.account.models import EmailAddress
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from accounting import tasks
from accounting.computers.merge import merge
from accounting.models import (
    AccountTotal,
    GrantedDay,
    GrantedTotal,
    HostClient,
    HostProject,
    Project,
    ProjectProfile,
    StatisticsImport,
)
from accounting.statistics import files, run, sql, store
from portal.celery import app
from portal.databases.params import psycopg_params
from portal.fetch.errors import TimeIsUp
from portal.languages.messages import VERBATIM, Message
from portal.models import Host, User
from tests.support.accounting_factories import make_host, make_project
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.statistics_site import DAY, NOON, HostRecord, StatisticsSite, UserRecord
from tests.support.wait import wait_until

# An import has a session of its own: it sees only what was committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> None:
    settings.STATISTICS_IMPORT_DIR = tmp_path / "statistics import"
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def site() -> Iterator[StatisticsSite]:
    with StatisticsSite() as running:
        yield running


def follow(site: StatisticsSite, name: str = "Alpha") -> Project:
    project = make_project(name)
    Project.objects.filter(pk=project.pk).update(master_url=site.url)
    StatisticsImport.objects.create(project=project)
    return project


@pytest.fixture
def project(site: StatisticsSite) -> Project:
    return follow(site)


def claim(host: Host, project: Project, number: int) -> Host:
    """The host's client says that it is this record of the project."""
    HostProject.objects.update_or_create(host=host, project=project, defaults={"state": {"hostid": number}})
    return host


@pytest.fixture
def studio(alice: User, project: Project) -> Host:
    """Alice's computer, number 17 at the project."""
    return claim(make_host(alice, "studio", "2025-01-01", host_cpid="a" * 32), project, 17)


def read(project: Project) -> str:
    return run.import_project(project.pk, at_once=True)


def days() -> list[tuple[str, int, int]]:
    """Day, computer and credit in micro-credits."""
    rows = GrantedDay.objects.order_by("day", "host_id").values_list("day", "host_id", "credit")
    return [(f"{day:%m-%d}", host, credit) for day, host, credit in rows]


def state_of(project: Project) -> StatisticsImport:
    return StatisticsImport.objects.get(pk=project.pk)


def kept() -> list[Any]:
    models = (GrantedTotal, GrantedDay, AccountTotal)
    return [list(model._default_manager.order_by("pk").values()) for model in models]


def test_what_the_total_grew_is_granted_on_the_day_of_the_export(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    site.publish(NOON, [HostRecord(17, "1000.25")])
    assert "1 of 1 computers" in read(project)
    total = GrantedTotal.objects.get()
    assert (total.host, total.project_host_id, total.total_credit) == (studio, 17, 1_000_250_000)
    assert (total.avg_credit, total.avg_at.timestamp(), total.as_of.timestamp()) == (1.5, NOON + 0.123456, NOON)
    assert days() == []
    site.publish(NOON + DAY, [HostRecord(17, "1100.75")])
    read(project)
    # 1100.75 - 1000.25
    assert days() == [("03-02", studio.pk, 100_500_000)]
    state = state_of(project)
    assert (state.hosts_read, state.hosts_kept, state.granted, state.trouble) == (1, 1, 100_500_000, None)
    assert (state.first_update_time, state.update_time) == (at(NOON), at(NOON + DAY))


def at(time: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(time, dt.UTC)


def test_a_record_of_a_computer_that_we_knew_before_counts_from_nothing(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    read(project)
    site.publish(NOON + DAY, [HostRecord(17, 50, made_at=NOON + 5)])
    read(project)
    assert days() == [("03-02", studio.pk, 50_000_000)]


def test_a_strangers_number_counts_for_nobody(site: StatisticsSite, project: Project, studio: Host, bob: User) -> None:
    """Bob's client says that it is number 17, but does not know Alice's id."""
    his = claim(make_host(bob, "his", host_cpid="b" * 32), project, 17)
    site.publish(NOON, [HostRecord(17, 5)])
    read(project)
    assert GrantedTotal.objects.get().host == studio
    HostProject.objects.filter(host=studio).delete()
    GrantedTotal.objects.all().delete()
    site.publish(NOON + DAY, [HostRecord(17, 6)])
    read(project)
    # Nor does her id with his address.
    Host.objects.filter(pk=his.pk).update(host_cpid="a" * 32)
    site.publish(NOON + 2 * DAY, [HostRecord(17, 7)])
    read(project)
    assert not GrantedTotal.objects.exists() and state_of(project).hosts_kept == 0


def test_other_addresses_count_once_they_are_proven(site: StatisticsSite, project: Project, studio: Host) -> None:
    other = EmailAddress.objects.create(user=studio.owner, email="Second@example.org", verified=False)
    for day, is_verified in enumerate((False, True)):
        EmailAddress.objects.filter(pk=other.pk).update(verified=is_verified)
        site.publish(NOON + day * DAY, [HostRecord(17, 5, email="second@example.org")])
        read(project)
        assert GrantedTotal.objects.exists() == is_verified


def test_computers_of_a_shared_account_are_found_by_its_address(
    site: StatisticsSite, project: Project, studio: Host, bob: User
) -> None:
    his = claim(make_host(bob, "his", host_cpid="b" * 32), project, 18)
    StatisticsImport.objects.update(account_email="Ops@example.org")
    records = [HostRecord(17, 5, "a" * 32, "ops@example.org"), HostRecord(18, 6, "b" * 32, "ops@example.org")]
    site.publish(NOON, records)
    read(project)
    assert set(GrantedTotal.objects.values_list("host_id", "total_credit")) == {
        (studio.pk, 5_000_000),
        (his.pk, 6_000_000),
    }


def test_an_earlier_id_of_the_same_client_fits_and_that_of_another_client_does_not(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    earlier = HostClient.objects.create(host=studio, cpid="e" * 32, books={})
    site.publish(NOON, [HostRecord(17, 5, "e" * 32)])
    read(project)
    assert GrantedTotal.objects.get().host == studio
    GrantedTotal.objects.all().delete()
    HostClient.objects.filter(pk=earlier.pk).update(told_apart_at=at(NOON))
    site.publish(NOON + DAY, [HostRecord(17, 5, "e" * 32)])
    read(project)
    assert not GrantedTotal.objects.exists()


def test_a_number_that_the_client_no_longer_has_goes_on_to_count(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    """A project may grant old work after the computer got a new number there."""
    site.publish(NOON, [HostRecord(17, 5)])
    read(project)
    claim(studio, project, 99)
    site.publish(NOON + DAY, [HostRecord(17, 7), HostRecord(99, 1, made_at=NOON + 9)])
    read(project)
    assert days() == [("03-02", studio.pk, 3_000_000)]  # 7 - 5, and 1


def test_a_merged_computer_goes_on_under_the_record_that_stays(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    read(project)
    newer = claim(make_host(studio.owner, "studio", "2026-02-02", "2026-02-09", host_cpid="d" * 32), project, 18)
    assert merge(studio.owner_id, studio.pk, newer.pk) == newer
    site.publish(NOON + DAY, [HostRecord(17, 8), HostRecord(18, 2, "d" * 32, made_at=NOON + 9)])
    read(project)
    assert set(GrantedTotal.objects.values_list("host_id", flat=True)) == {newer.pk}
    assert days() == [("03-02", newer.pk, 5_000_000)]  # 8 - 5, and 2


def test_a_merge_and_an_import_at_once_leave_all_with_the_record_that_stays(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    read(project)
    newer = claim(make_host(studio.owner, "studio", "2026-02-02", "2026-02-09", host_cpid="d" * 32), project, 18)
    site.publish(NOON + DAY, [HostRecord(17, 8)])

    def read_in_a_thread() -> None:
        try:
            read(project)
        finally:
            connection.close()

    reading = threading.Thread(target=read_in_a_thread)
    with transaction.atomic():
        merge(studio.owner_id, studio.pk, newer.pk)
        reading.start()
        # The merge has the ledgers until it is committed.
        wait_until(lambda: nwaiting_for_locks() == 1, "the import waits", timeout_secs=60)
    reading.join()
    assert days() == [("03-02", newer.pk, 3_000_000)]


def test_a_computer_that_was_told_apart_takes_its_number_along_and_nothing_counts_twice(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    read(project)
    apart = claim(make_host(studio.owner, "copy", "2026-02-01", "2026-03-01", host_cpid="a" * 32), project, 17)
    Host.objects.filter(pk=studio.pk).update(host_cpid="f" * 32)
    site.publish(NOON + DAY, [HostRecord(17, 8)])
    read(project)
    assert GrantedTotal.objects.get().host == apart
    assert days() == [("03-02", apart.pk, 3_000_000)]


def test_totals_of_a_persons_accounts_are_found_by_their_id_across_projects(
    site: StatisticsSite, project: Project, alice: User, bob: User
) -> None:
    mine, stranger = UserRecord(5, "1e3", alice.cross_project_id), UserRecord(6, 7, "0" * 32)
    his = UserRecord(7, 9, bob.cross_project_id, "bob@example.org")
    site.publish(NOON, users=[mine, stranger, his])
    assert "2 of 3 accounts" in read(project)
    totals = AccountTotal.objects.values_list("user_id", "project_user_id", "total_credit", "avg_credit")
    assert set(totals) == {(alice.pk, 5, 10**9, 0.5), (bob.pk, 7, 9_000_000, 0.5)}


def test_the_same_export_twice_changes_nothing(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON, [HostRecord(17, 5)], [UserRecord(5, 1, studio.owner.cross_project_id)])
    read(project)
    site.publish(NOON + DAY, [HostRecord(17, 6)], [UserRecord(5, 2, studio.owner.cross_project_id)])
    read(project)
    before = kept()
    assert read(project) == "There is no new export."
    # By its version: no body came.
    assert b"If-None-Match" in site.asked("tables.xml")[-1] and len(site.asked("host.gz")) == 2
    site.has_etags = False
    assert read(project) == "There is no new export."
    StatisticsImport.objects.update(update_time=at(NOON), etag="")
    # As if it had not been noted: each record knows of which export it is.
    read(project)
    assert kept() == before


def test_an_older_export_is_ignored(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON + DAY, [HostRecord(17, 5)])
    read(project)
    before = kept()
    site.publish(NOON, [HostRecord(17, 9)])
    assert read(project) == "There is no new export."
    assert kept() == before and state_of(project).trouble is None


def test_an_export_of_the_future_is_refused(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(3_900_000_000, [HostRecord(17, 5)])
    assert read(project) == "tables.xml: update_time is in the future"
    assert state_of(project).update_time is None


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("host.gz", lambda content: content[:-5], "host.gz: was cut off"),
        ("user.gz", lambda content: content + b"more", "user.gz: is not a gzip file, is damaged, or has other data"),
        ("host.gz", lambda content: b"<hosts>\n</hosts>\n", "host.gz: is not a gzip file"),
        ("tables.xml", lambda content: content.replace(b"1772452800", b"x"), "tables.xml: update_time is not a number"),
        ("tables.xml", lambda content: b"<html>Maintenance</html>", "tables.xml: does not begin with <tables>"),
    ],
)
def test_what_is_wrong_changes_nothing_and_says_why(
    site: StatisticsSite, project: Project, studio: Host, name: str, change: Any, reason: str
) -> None:
    users = [UserRecord(5, 1, studio.owner.cross_project_id)]
    site.publish(NOON, [HostRecord(17, 5)], users)
    read(project)
    before = kept()
    site.publish(NOON + DAY, [HostRecord(17, 6)], users)
    good, site.files[name] = site.files[name], change(site.files[name])
    read(project)
    state = state_of(project)
    assert kept() == before and state.update_time == at(NOON)
    assert str(state.trouble).startswith(reason) and state.failures == 1 and state.trouble_since is not None
    site.files[name] = good
    read(project)
    assert kept() != before and (state_of(project).trouble, state_of(project).failures) == (None, 0)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([HostRecord(17, 6), HostRecord(17, 7)], "host.gz: has two records with the id 17"),
        (
            [HostRecord(17, "nan"), HostRecord(18, "1e304"), HostRecord(19, 1)],
            "host.gz: 2 of 3 records are invalid; in the first one, total_credit is not a number from 0 to 9,000,000,0",
        ),
        ([HostRecord(number, 6) for number in range(1, 200)], "host.gz: has 199 records, but tables.xml says 2"),
    ],
)
def test_hostile_records_change_nothing(
    site: StatisticsSite, project: Project, studio: Host, records: list[HostRecord], reason: str
) -> None:
    site.publish(NOON, records)
    site.files["tables.xml"] = site.files["tables.xml"].replace(b"nhosts_total>199", b"nhosts_total>2")
    assert read(project).startswith(reason)
    assert kept() == [[], [], []] and not files.folder_of(project.pk).exists()


def test_an_odd_record_stops_no_other_and_ours_is_named(
    site: StatisticsSite, project: Project, studio: Host, desk: Client
) -> None:
    strangers = [HostRecord(number, 3, cpid="f" * 32) for number in range(20, 25)]
    site.publish(NOON, [HostRecord(17, 6), *strangers])
    read(project)
    assert GrantedTotal.objects.get().total_credit == 6_000_000
    site.publish(NOON + DAY, [HostRecord(17, -5), *strangers])
    assert read(project).endswith("1 odd records were left out or count in part.")
    state = state_of(project)
    assert (state.update_time, state.trouble) == (at(NOON + DAY), None)
    assert (state.hosts_read, state.hosts_odd, state.users_odd, state.odd_ours) == (6, 1, 0, "computer 17")
    # What was known of it stays.
    assert GrantedTotal.objects.get().total_credit == 6_000_000
    page = desk.get(f"/admin/accounting/statisticsimport/{project.pk}/change/").content.decode()
    assert "computer 17" in page


def test_a_file_above_the_limit_is_refused(
    site: StatisticsSite, project: Project, studio: Host, settings: Settings
) -> None:
    site.publish(NOON, [HostRecord(17, 6)])
    settings.STATISTICS_IMPORT_MAX_BYTES = 100
    assert read(project) == "127.0.0.1: transferred more than the limit of 100 bytes"
    assert kept() == [[], [], []]


def test_a_full_disk_is_named_and_given_back_what_came(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON, [HostRecord(17, 6)])
    folder = files.folder_of(project.pk)
    folder.mkdir(parents=True)
    (folder / "host.gz").symlink_to("/dev/full")
    assert "127.0.0.1: its answer could not be stored here" in read(project)
    assert not folder.exists()
    assert "1 of 1 computers" in read(project)


def test_a_download_that_broke_off_goes_on_where_it_ended(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    site.breaks_after = 50
    for _ in range(2):
        assert "the connection broke" in read(project)
    assert state_of(project).failures == 2
    site.breaks_after = None
    assert "1 of 1 computers" in read(project)
    # The file of accounts has fewer than 100 bytes, that of computers more.
    assert ranges(site, "user.gz") == [b"", b"50", b""]
    assert ranges(site, "host.gz") == [b"", b"50"]
    assert GrantedTotal.objects.get().total_credit == 5_000_000
    assert not files.folder_of(project.pk).exists()


def ranges(site: StatisticsSite, name: str) -> list[bytes]:
    """From which byte on the file was asked for, each time."""
    return [request.partition(b"Range: bytes=")[2].partition(b"-")[0] for request in site.asked(name)]


def test_a_download_of_another_version_begins_anew(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    site.breaks_after = 50
    read(project)
    site.breaks_after = None
    site.publish(NOON + DAY, [HostRecord(17, 7)], [UserRecord(5, 1, studio.owner.cross_project_id)])
    assert "1 of 1 computers and 1 of 1 accounts" in read(project)


def test_an_export_that_changes_while_it_is_downloaded_waits(
    site: StatisticsSite, project: Project, studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    real = files.download

    def download(project_id: int, url: str) -> Path:
        path = real(project_id, url)
        site.publish(NOON + DAY, [HostRecord(17, 6)])
        return path

    monkeypatch.setattr(files, "download", download)
    assert read(project) == "tables.xml: the project made a new export in the meantime"
    monkeypatch.undo()
    read(project)
    assert GrantedTotal.objects.get().as_of == at(NOON + DAY)


def test_an_import_that_was_killed_after_the_download_asks_for_no_file_again(
    site: StatisticsSite, project: Project, studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])

    class Killed(BaseException):
        pass

    def keep(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(store, "keep", keep)
    with pytest.raises(Killed):
        read(project)
    monkeypatch.undo()
    # Not at once again, in case it was the import that killed its worker.
    assert run.import_project(project.pk) == "It is not due yet."
    assert "1 of 1 computers" in read(project)
    assert b"If-None-Match" in site.asked("host.gz")[-1] and b"Range" not in site.asked("host.gz")[-1]


def test_private_addresses_are_refused_unless_the_setting_allows_them(
    site: StatisticsSite, project: Project, settings: Settings
) -> None:
    settings.FETCH_ALLOWED_NETWORKS = []
    assert "which is not public and not in FETCH_ALLOWED_NETWORKS" in read(project)
    assert site.requests == []


def test_one_bad_project_keeps_no_other_waiting(site: StatisticsSite, project: Project, studio: Host) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    StatisticsImport.objects.update(next_at=at(NOON + 1))
    with StatisticsSite() as bad:
        other = follow(bad, "Bad")
        bad.is_down = True
        StatisticsImport.objects.filter(project=other).update(next_at=at(NOON))
        assert run.due(at(NOON + 2)) == [other.pk, project.pk]
        for project_id in run.due(at(NOON + 2)):
            tasks.import_statistics_of(project_id)
    assert GrantedTotal.objects.exists()
    assert "the connection broke" in str(state_of(other).trouble)
    totals = state_of(other)
    assert totals.trouble_since is not None and totals.next_at > totals.trouble_since
    assert set(run.due(at(NOON + 2))) == set()


def test_attempts_wait_longer_after_each_failure(site: StatisticsSite, project: Project) -> None:
    site.is_down = True
    waits = []
    for _ in range(12):
        read(project)
        state = state_of(project)
        assert state.asked_at is not None
        waits.append(state.next_at - state.asked_at)
    assert waits[0] < dt.timedelta(minutes=12) and dt.timedelta(minutes=20) < waits[1] < dt.timedelta(minutes=23)
    assert dt.timedelta(days=1) < waits[-1] < dt.timedelta(days=1.2)


def test_a_slow_download_goes_on_soon_but_not_for_ever(
    site: StatisticsSite, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(NOON)

    def ask(*_: Any, **__: Any) -> None:
        raise TimeIsUp("slow.example.org", "took longer than the limit of 240 s")

    monkeypatch.setattr(files, "fetch", ask)
    for failures, least, most in ((0, 9, 11), (5, 9, 11), (29, 9, 11), (30, 1440, 1600)):
        if failures:
            StatisticsImport.objects.update(
                failures=failures, trouble=Message(VERBATIM, text="slow"), trouble_since=at(NOON)
            )
        read(project)
        state = state_of(project)
        assert state.asked_at is not None
        assert dt.timedelta(minutes=least) < state.next_at - state.asked_at < dt.timedelta(minutes=most)


def test_files_that_take_too_long_to_read_are_a_failure_that_operators_see(
    site: StatisticsSite, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(NOON)

    def end_the_time(*_: Any, **__: Any) -> None:
        raise SoftTimeLimitExceeded(run.READ_SECS)

    monkeypatch.setattr(files, "records", end_the_time)
    for failures in (1, 2):
        assert read(project) == "The export took longer than the limit of 1,500 s"
        assert state_of(project).failures == failures and state_of(project).trouble
    assert not files.folder_of(project.pk).exists()
    # Before it is killed, when nothing could be noted
    limits = tasks.import_statistics_of.soft_time_limit, tasks.import_statistics_of.time_limit
    assert limits == (run.READ_SECS, run.READ_SECS + 300)


def test_imports_keep_no_other_tasks_waiting() -> None:
    """Two that are slow would occupy both processes of the worker that validates, mails and settles."""
    assert app.amqp.router.route({}, tasks.import_statistics_of.name)["queue"].name == "requested"


def _is_locked(session: psycopg.Connection[Any], key: int) -> bool:
    row = session.execute(sql.LOCK, {"project": key}).fetchone()
    return row is not None and bool(row[0])


def test_two_workers_do_not_read_the_same_and_few_read_at_a_time(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    site.publish(NOON, [HostRecord(17, 5)])
    with psycopg.connect(**psycopg_params(), autocommit=True) as another:
        for key in (project.pk, -1):
            another.execute(sql.LOCK, {"project": key})
            waits = "waits for its turn" in read(project)
            assert waits == (key == project.pk)
            another.execute("SELECT pg_advisory_unlock_all()")
        for place in range(1, run.AT_ONCE + 1):
            # The reader's session above gives its place back a moment after it was closed.
            wait_until(partial(_is_locked, another, -place), "the place", 30)
        assert "waits for its turn" in read(project)


def test_projects_that_answered_are_followed_unless_an_operator_says_no(db: None, settings: Settings) -> None:
    settings.ROOMS = ["account_manager"]
    known, unknown = make_project("Known"), make_project("Unknown")
    ProjectProfile.objects.create(project=known, said_at=at(NOON))
    run.follow_projects(at(NOON))
    assert [row.project for row in StatisticsImport.objects.all()] == [known] and unknown.pk
    StatisticsImport.objects.update(is_on=False)
    run.follow_projects(at(NOON))
    assert run.due(at(NOON)) == []


def test_numbers_that_the_database_cannot_add_up_change_nothing(
    site: StatisticsSite, project: Project, studio: Host
) -> None:
    for day, total in enumerate(("0", "9e12")):
        site.publish(NOON + day * DAY, [HostRecord(17, total)])
        read(project)
    site.publish(NOON + 2 * DAY, [HostRecord(17, "9e12", made_at=NOON + DAY)])
    before = kept()
    # 18e18 micro-credits
    assert "out of range" in read(project) and kept() == before
