"""The statistics export: what it contains, in the form that the strictest reader accepts, and what it does not."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import tracemalloc
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.account_data.erasure import erase_due
from accounting.computers.merge import merge
from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.export import consent, files, run, sql
from credit.figures import table
from credit.models import ExportConsent, GoneUser, HostCredit, Membership, StatisticsExport, Team, UserCredit
from credit.tasks import export_statistics
from portal.dashboard.rules import Course
from portal.databases.params import psycopg_params
from portal.models import Host, User
from portal.object_storage import storage
from portal.people.deletion import GRACE, ask_deletion, cancel_deletion
from tests.support import statistics_reader
from tests.support.credit_factories import make_app
from tests.support.statistics_reader import Answer, misc
from tools.benchmarks.export import fill

# The snapshot is a connection of its own: it sees only what was committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT, settings.VAR_DIR = tmp_path, tmp_path / "var"


def ask(method: str, name: str) -> Answer:
    reply = Client().generic(method, f"/project/stats/{name}")
    return Answer(reply.status_code, reply.headers, reply.getvalue())


def users() -> list[dict[str, str]]:
    return statistics_reader.read(ask, "user.gz", "users", "user")


def hosts() -> list[dict[str, str]]:
    return statistics_reader.read(ask, "host.gz", "hosts", "host")


def agree(user: User, *, hosts: bool = True) -> None:
    consent.save(user, exports_statistics=True, shows_hosts=hosts, now=timezone.now())


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def credited(alice: User, studio: Host) -> User:
    """Alice agreed, and she and her computer were granted something a week ago."""
    week_ago = timezone.now() - dt.timedelta(days=7)
    UserCredit.objects.create(user=alice, total_credit=1234.5678901234567, expavg_credit=80, expavg_at=week_ago)
    HostCredit.objects.create(host=studio, total_credit=1e17, expavg_credit=1e-7, expavg_at=timezone.now())
    agree(alice)
    return alice


def test_a_strict_reader_reads_a_volunteer(credited: User) -> None:
    run.export()
    (alice,) = users()
    assert alice["id"] == str(credited.pk) and alice["name"] == "Alice"
    assert float(alice["total_credit"]) == 1234.5678901234567
    assert alice["cpid"] == md5(f"{credited.cross_project_id}alice@example.org")
    assert int(alice["create_time"]) == int(credited.created_at.timestamp())


def test_the_recent_average_is_as_of_the_export(credited: User) -> None:
    """Half of 80 after the half-life of a week, by the engine's rule."""
    run.export()
    (alice,) = users()
    kept = UserCredit.objects.get(user=credited)
    assert kept.expavg_at is not None
    now = float(alice["expavg_time"])
    expected = decayed(80, kept.expavg_at.timestamp(), now, Rules.published())
    assert float(alice["expavg_credit"]) == pytest.approx(expected, rel=1e-9) == pytest.approx(40, rel=1e-3)
    assert int(ET.fromstring(statistics_reader.fetch(ask, "tables.xml")).findtext("update_time", "")) == int(now)


def test_a_strict_reader_reads_a_computer(credited: User, studio: Host) -> None:
    Host.objects.filter(pk=studio.pk).update(
        p_vendor="Genuine<Intel>", p_model="i7 & more\n</host>", m_nbytes=2**40, client_version="8.2.1",
        coprocs=[{"name": "]]>\\ \t<x>"}],
    )  # fmt: skip
    run.export()
    (host,) = hosts()
    assert host["userid"] == str(credited.pk) and host["m_nbytes"] == str(2**40) and host["ncpus"] == "4"
    assert host["p_vendor"] == "Genuine&lt;Intel&gt;" and host["p_model"] == "i7 &amp; more &lt;/host&gt;"
    # Without an exponent, as BOINC writes numbers, and exact
    assert host["total_credit"] == "100000000000000000" and host["expavg_credit"].startswith("0.0000000")
    assert host["p_fpops"] == "4000000000" and host["p_membw"] == "0"
    assert misc(host) == {"boinc_version": "8.2.1", "vbox_version": "", "coprocs": [{"name": "]]>\\ \t<x>"}]}
    assert host["host_cpid"] == md5("a" * 32 + "alice@example.org")


def test_old_and_tiny_averages_stop_no_export(credited: User, studio: Host) -> None:
    """PostgreSQL refuses a product that is too small for a number: 1e-30 after thirty years is 1e-501."""
    long_ago = timezone.now() - dt.timedelta(days=30 * 365)
    Membership.objects.create(user=credited, team=Team.objects.create(name="Peaks"))
    UserCredit.objects.update(expavg_credit=1e-30, expavg_at=long_ago)
    HostCredit.objects.update(expavg_credit=1e-30, expavg_at=long_ago)
    run.export()
    assert float(users()[0]["expavg_credit"]) == float(hosts()[0]["expavg_credit"]) < 1e-100


def test_names_come_back_as_they_are(credited: User) -> None:
    name = "Zoë \\N \\t 名前 <b>&amp;</b> \x01\x0b\ufffe tab\tfeed\n<user> ’\u2028\x85\x9b"
    User.objects.filter(pk=credited.pk).update(name=name)
    run.export()
    tree = ET.fromstring(statistics_reader.fetch(ask, "user.gz"))
    # No control characters, and no other ends of lines either; line feeds and tabs are blanks.
    assert tree.findtext("user/name") == "Zoë \\N \\t 名前 <b>&amp;</b>   tab feed <user> ’"
    assert len(users()) == 1


def test_no_address_is_published_for_a_volunteer_without_a_name(credited: User, studio: Host) -> None:
    User.objects.filter(pk=credited.pk).update(name="")
    Host.objects.filter(pk=studio.pk).update(host_cpid="")
    run.export()
    assert users()[0]["name"] == "Anonymous"
    assert hosts()[0]["host_cpid"] != md5("alice@example.org")


def test_who_did_not_agree_is_not_in_it(credited: User, bob: User) -> None:
    UserCredit.objects.create(user=bob, total_credit=5)
    HostCredit.objects.create(host=Host.objects.create(owner=bob), total_credit=5)
    run.export()
    assert [user["id"] for user in users()] == [str(credited.pk)] and len(hosts()) == 1
    tables = ET.fromstring(statistics_reader.fetch(ask, "tables.xml"))
    # Sums of the whole project, as BOINC's: 1234.57 and 5.
    assert tables.findtext("nusers_total") == "2" and tables.findtext("nhosts_total") == "2"
    assert float(tables.findtext("total_credit", "")) == pytest.approx(1239.5678901234567)


def test_hidden_computers_are_left_out_whole(credited: User) -> None:
    agree(credited, hosts=False)
    run.export()
    assert len(users()) == 1 and hosts() == []


def test_who_asked_to_be_deleted_is_left_out_at_once(credited: User) -> None:
    User.objects.filter(pk=credited.pk).update(deletion_asked_at=timezone.now())
    run.export()
    assert users() == [] and hosts() == []


def gone() -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    return (
        statistics_reader.read(ask, "user_deleted.gz", "users_deleted", "user"),
        statistics_reader.read(ask, "host_deleted.gz", "hosts_deleted", "host"),
    )


def test_an_erased_account_is_listed_as_deleted(credited: User, studio: Host) -> None:
    run.export()
    cpid = md5(f"{credited.cross_project_id}alice@example.org")
    User.objects.filter(pk=credited.pk).update(deletion_asked_at=timezone.now())
    assert erase_due(timezone.now() + GRACE) == 1
    run.export()
    assert gone() == (
        [{"id": str(credited.pk), "cpid": cpid}],
        [{"id": str(studio.pk), "host_cpid": md5("a" * 32 + "alice@example.org")}],
    )


def test_who_asked_to_be_deleted_is_listed_at_once_and_not_if_they_come_back(credited: User, studio: Host) -> None:
    run.export()
    ask_deletion(credited)
    run.export()
    listed = gone()
    assert [len(each) for each in listed] == [1, 1] and users() == hosts() == []
    assert listed[0][0]["cpid"] == md5(f"{credited.cross_project_id}alice@example.org")
    cancel_deletion(credited)
    run.export()
    assert gone() == ([], []) and len(users()) == len(hosts()) == 1
    ask_deletion(credited)
    run.export()
    assert erase_due(timezone.now() + GRACE) == 1
    run.export()
    assert gone() == listed


def test_who_was_in_no_export_before_they_asked_to_be_deleted_is_not_listed(credited: User, studio: Host) -> None:
    ask_deletion(credited)
    for _ in range(2):
        run.export()
        assert gone() == ([], [])
    erase_due(timezone.now() + GRACE)
    run.export()
    assert gone() == ([], [])


def test_who_agreed_between_two_exports_only_is_not_listed_as_deleted(credited: User) -> None:
    """Nothing of them was published, so no list may have their ids."""
    consent.save(credited, exports_statistics=False, shows_hosts=False, now=timezone.now())
    run.export()
    agree(credited)
    consent.save(credited, exports_statistics=True, shows_hosts=False, now=timezone.now())
    consent.save(credited, exports_statistics=False, shows_hosts=False, now=timezone.now())
    run.export()
    assert gone() == ([], [])


def test_who_never_agreed_is_not_listed_as_deleted(alice: User) -> None:
    UserCredit.objects.create(user=alice, total_credit=5)
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=timezone.now() - GRACE)
    erase_due(timezone.now())
    run.export()
    assert gone() == ([], [])


def test_a_consent_that_is_taken_back_lists_the_ids_as_deleted(credited: User, studio: Host) -> None:
    run.export()
    agree(credited, hosts=False)
    run.export()
    assert [len(each) for each in gone()] == [0, 1]
    consent.save(credited, exports_statistics=False, shows_hosts=False, now=timezone.now())
    run.export()
    assert [len(each) for each in gone()] == [1, 1]
    agree(credited)
    run.export()
    assert gone() == ([], []) and len(users()) == len(hosts()) == 1


def test_who_agrees_again_for_a_moment_stays_listed_as_deleted(credited: User) -> None:
    run.export()
    for agrees in (False, True, False):
        consent.save(credited, exports_statistics=agrees, shows_hosts=agrees, now=timezone.now())
    run.export()
    assert [len(each) for each in gone()] == [1, 1]


def test_a_merged_computer_is_listed_as_deleted(credited: User, studio: Host) -> None:
    long_ago = timezone.now() - dt.timedelta(days=30)
    about = {"os_name": "Linux", "p_vendor": "Intel", "p_model": "i7", "domain_name": "studio"}
    Host.objects.filter(pk=studio.pk).update(created_at=long_ago, last_contact_at=long_ago, **about)
    newer = Host.objects.create(owner=credited, host_cpid="b" * 32, **about)
    HostCredit.objects.create(host=newer, total_credit=1)
    run.export()
    merge(credited.pk, studio.pk, newer.pk)
    run.export()
    assert [host["id"] for host in hosts()] == [str(newer.pk)]
    assert [host["id"] for host in gone()[1]] == [str(studio.pk)]
    # Saved once more, without a change
    agree(credited)
    run.export()
    assert [host["id"] for host in gone()[1]] == [str(studio.pk)]


def test_ids_are_listed_for_sixty_days(alice: User) -> None:
    now = timezone.now()
    GoneUser.objects.create(user_id=1, cpid="a" * 32, gone_at=now - dt.timedelta(days=59))
    GoneUser.objects.create(user_id=2, cpid="b" * 32, gone_at=now - dt.timedelta(days=61))
    run.export()
    assert [user["id"] for user in gone()[0]] == ["1"] and GoneUser.objects.count() == 1


def test_a_team_has_its_members_credit_since_they_joined(credited: User, bob: User) -> None:
    UserCredit.objects.create(user=bob, total_credit=50)
    team = Team.objects.create(name="Peaks & <valleys>", founder=credited, former_credit=7, url="https://example.org/")
    Membership.objects.create(user=credited, team=team, credit_before=234.5678901234567)
    Membership.objects.create(user=bob, team=team, credit_before=20)
    Team.objects.create(name="Idle")
    run.export()
    (found,) = statistics_reader.read(ask, "team.gz", "teams", "team")
    # 7 of former members, 1234.57 - 234.57 and 50 - 20
    assert float(found["total_credit"]) == pytest.approx(1037)
    assert found["name"] == "Peaks &amp; &lt;valleys&gt;" and found["founder_name"] == "Alice"
    assert found["userid"] == str(credited.pk) == users()[0]["id"] and users()[0]["teamid"] == str(team.pk)
    ExportConsent.objects.all().delete()
    run.export()
    (found,) = statistics_reader.read(ask, "team.gz", "teams", "team")
    assert "userid" not in found and "founder_name" not in found


def test_the_files_are_of_one_snapshot(credited: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credit that is granted while volunteers are written is in no file of this export."""
    before = run._write_kind

    def slowly(*args: Any) -> int:
        count = before(*args)
        HostCredit.objects.update(total_credit=1)
        return count

    monkeypatch.setattr(run, "_write_kind", slowly)
    run.export()
    assert hosts()[0]["total_credit"] == "100000000000000000"


def test_reading_again_is_answered_with_not_modified(credited: User) -> None:
    run.export()
    etag = ask("HEAD", "user.gz").headers["ETag"]
    again = Client().get("/project/stats/user.gz", headers={"If-None-Match": etag})
    assert again.status_code == 304 and again.headers["ETag"] == etag
    run.export()
    assert ask("HEAD", "user.gz").headers["ETag"] != etag
    changed = Client().get("/project/stats/user.gz", headers={"If-None-Match": etag})
    assert changed.status_code == 200 and b"".join(changed)


def test_a_reader_gets_to_the_end_of_the_file_that_it_began(credited: User) -> None:
    run.export()
    published = files.find_published("user.gz")
    assert published is not None
    with published.open() as opened:
        for total in (2, 3):
            UserCredit.objects.update(total_credit=total)
            run.export()
        content = opened.read()
    assert len(content) == published.nbytes and content != ask("GET", "user.gz").body


def test_the_stored_files_have_the_time_of_their_etag(credited: User, tmp_path: Path) -> None:
    """nginx makes an ETag of a file's time and size."""
    for _ in range(3):
        run.export()
    published = files.find_published("user.gz")
    assert published is not None
    stat = (tmp_path / published.path).stat()
    assert published.etag == f'"{int(stat.st_mtime):x}-{stat.st_size:x}"' == ask("HEAD", "user.gz").headers["ETag"]


def test_nginx_is_told_which_file_it_is(credited: User, settings: Settings) -> None:
    made = run.export()
    assert made is not None
    settings.DOWNLOAD_ACCEL_PREFIX = "/stored/"
    reply = Client().get("/project/stats/user.gz")
    assert reply.headers["X-Accel-Redirect"] == f"/stored/statistics/{made.pk}/user.gz"
    assert reply.headers["Content-Type"] == "application/gzip" and "no-transform" in reply.headers["Cache-Control"]


def test_a_failed_export_leaves_the_one_before(credited: User, monkeypatch: pytest.MonkeyPatch) -> None:
    run.export()
    before = ask("GET", "user.gz")

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("credit.export.writers.tables", full)
    with pytest.raises(OSError, match="No space"):
        run.export()
    assert ask("GET", "user.gz").body == before.body
    last = StatisticsExport.objects.first()
    assert last is not None and "No space left" in last.failure and last.finished_at is not None


def test_what_a_killed_worker_left_is_cleared_away(credited: User, tmp_path: Path) -> None:
    killed = StatisticsExport.objects.create(started_at=timezone.now(), is_in_storage=True)
    left = tmp_path / killed.folder
    left.mkdir(parents=True)
    (left / "user.gz").write_bytes(b"half")
    old, new = (tmp_path / "var" / f"unfinished-statistics-{name}" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "user.gz").write_bytes(b"half")
    os.utime(old, (0, 0))
    # This one was killed before it had stored anything.
    StatisticsExport.objects.create(started_at=timezone.now(), is_in_storage=True)
    made = [run.export() for _ in range(3)]
    # The published set, and the one before
    assert sorted(path.name for path in left.parent.iterdir()) == sorted(str(each.pk) for each in made[1:] if each)
    assert list((tmp_path / "var").iterdir()) == [new]
    assert StatisticsExport.objects.get(pk=killed.pk).failure == "The worker was ended."


def test_a_set_whose_row_a_restored_database_has_forgotten_is_replaced(credited: User, tmp_path: Path) -> None:
    first = run.export()
    assert first is not None
    next_set = tmp_path / "statistics" / str(first.pk + 1)
    next_set.mkdir()
    (next_set / "user.gz").write_bytes(b"of another time")
    run.export()
    assert len(users()) == 1
    assert [path.name for path in next_set.glob("user.*")] == ["user.gz"]


def test_a_set_that_could_not_be_stored_whole_is_not_published_and_goes_with_the_next(
    credited: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = run.export()
    before = ask("GET", "user.gz")
    keep = storage.keep

    def keep_some(path: str, *what: Any) -> str:
        if path.endswith("host.gz"):
            raise OSError(28, "No space left on device")
        return keep(path, *what)

    with monkeypatch.context() as disk:
        disk.setattr(storage, "keep", keep_some)
        with pytest.raises(OSError, match="No space"):
            run.export()
    assert ask("GET", "user.gz").body == before.body
    third = run.export()
    assert first is not None and third is not None
    assert sorted(path.name for path in (tmp_path / "statistics").iterdir()) == [str(first.pk), str(third.pk)]


def test_an_export_that_was_interrupted_is_not_one_that_was_published(
    credited: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("credit.export.writers.tables", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.export()
    made = StatisticsExport.objects.get()
    assert made.finished_at is not None and made.failure
    assert list(table.EXPORT(timezone.now())) == []


def test_operators_see_how_far_it_is(credited: User, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    report = run._report_progress

    def report_and_read(made: StatisticsExport, nrecords: int) -> None:
        report(made, nrecords)
        seen.append(StatisticsExport.objects.get(finished_at=None).nrecords)

    monkeypatch.setattr(run, "_PROGRESS_ROWS", 1)
    monkeypatch.setattr(run, "_report_progress", report_and_read)
    export_statistics()
    # A volunteer, and the end of volunteers and of teams; a computer, and the ends of computers and of those deleted.
    assert seen == [1, 1, 1, 2, 2, 2, 2]
    last = StatisticsExport.objects.get()
    assert (last.nusers, last.nteams, last.nhosts, last.failure) == (1, 0, 1, "") and last.nbytes > 500


def test_the_dashboard_says_that_the_export_is_old(credited: User) -> None:
    assert list(table.EXPORT(timezone.now())) == []
    run.export()
    later = timezone.now() + dt.timedelta(days=3)
    age, volunteers = table.EXPORT(later)
    assert age.value == pytest.approx(3 * 86_400, abs=60) and volunteers.value == 1
    figure = next(each for each in table.CREDIT if each.name == age.name)
    assert figure.trouble is not None
    assert "two days old" in figure.trouble(Course(latest={"": age.value}))
    assert figure.trouble(Course(latest={"": 86_400})) == ""


def test_only_one_export_runs_at_a_time(credited: User) -> None:
    with psycopg.connect(**psycopg_params(), autocommit=True) as other:
        other.execute(sql.LOCK)
        assert run.export() is None
        with pytest.raises(CommandError, match="running"):
            call_command("export_statistics")
    call_command("export_statistics")
    assert StatisticsExport.objects.count() == 1


def test_nothing_but_the_files_is_published(credited: User) -> None:
    run.export()
    for name in ("tables.xml.gz", "..%2Fcurrent", "current", ".", "password.gz"):
        assert ask("GET", name).status == 404, name


def test_the_reader_finds_what_readers_choke_on() -> None:
    """The reader of these tests is strict: a tag that is not at column 0, or two elements of a name, are refused."""
    head = b'<?xml version="1.0" encoding="utf-8"?>\n<users>\n'
    for body in (b" <user>\n </user>\n", b"<user>\n <id>1</id>\n <id>2</id>\n</user>\n", b"<user> \n</user>\n"):
        with pytest.raises(statistics_reader.Unreadable):
            list(statistics_reader.records(head + body + b"</users>\n", "users", "user"))


def test_apps_are_named_as_people_know_them(credited: User) -> None:
    make_app("alpine", user_friendly_name="Alpine\x01 &\n<valleys>\ufffe")
    make_app("old", is_deprecated=True)
    run.export()
    tree = ET.fromstring(statistics_reader.fetch(ask, "tables.xml"))
    assert [app.text for app in tree.findall("applications/application/name")] == ["Alpine & <valleys>"]


def test_memory_does_not_grow_with_the_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 computers, 1.2 MB of records unpacked: anyone who kept them would take more than that."""
    fill(500)
    monkeypatch.setattr(files, "_PARTS_NBYTES", 32 * 1024)
    run.export()  # what is imported at the first use does not count
    tracemalloc.start()
    try:
        run.export()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    content = statistics_reader.fetch(ask, "host.gz")
    assert len(content) > 1e6 and most < 0.5e6
    kept = dict(HostCredit.objects.values_list("pk", "total_credit"))
    assert {int(host["id"]): float(host["total_credit"]) for host in hosts()} == kept and len(kept) == 1000


def test_a_hundredth_of_a_large_project_is_published_whole() -> None:
    """10,000 volunteers with 20,000 computers. Volunteers are read strictly, computers counted: that is cheap."""
    fill(10_000)
    run.export()
    content = statistics_reader.fetch(ask, "host.gz")
    assert content.count(b"\n<host>\n") == content.count(b"\n</host>\n") == 20_000
    kept = dict(UserCredit.objects.values_list("pk", "total_credit"))
    assert {int(user["id"]): float(user["total_credit"]) for user in users()} == kept and len(kept) == 10_000


def test_a_volunteer_agrees_on_a_page(signed_in: Client, alice: User) -> None:
    assert "Publish my computers" in signed_in.get("/project/statistics/").content.decode()
    signed_in.post("/project/statistics/", {"exports_statistics": "on"})
    choice = ExportConsent.objects.get(user=alice)
    assert choice.exports_statistics and not choice.shows_hosts
