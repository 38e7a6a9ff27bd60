"""The restore drill: backups by the script of deploy/, a disaster, and the database as it was a moment before."""

from __future__ import annotations

import datetime as dt
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Model
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from accounting.models import Day, HostLedger, HostProject, Project
from credit.models import Result, UserCredit
from portal.models import Host, User
from scheduler.submission.submit import submit
from tests.support.am_rpc import HOUR, START, call, hours_credited, make_computer, work
from tests.support.backups import Backups, succeed
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.finished_jobs import DEFAULTS
from tests.support.own_server import OwnServer
from tests.support.second_database import in_database
from tests.support.validator_runs import done, validate, volunteers
from tests.support.wait import wait_until
from tools.simulation.client import SimulatedComputer

DRILL = "drill"
BOOKS: tuple[type[Model], ...] = (User, Host, Day, HostLedger, HostProject, UserCredit, Result)


def books() -> dict[str, list[dict[str, Any]]]:
    """All rows of the ledger and of granted credit, and whose they are."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in BOOKS}


def everything_adds_up() -> str:
    """The last line of what finishes a restore."""
    lines = StringIO()
    # Raises CommandError if there is a difference.
    call_command("finish_restore", stdout=lines)
    return lines.getvalue().splitlines()[-1]


class Volunteer:
    """A client that reports an hour of work at each call, by a clock of its own."""

    def __init__(self, owner: User, project: Project) -> None:
        self.computer: SimulatedComputer = make_computer(owner)
        self._project, self._now = project, START
        self.acknowledged_hours = 0
        self._report()

    def works(self) -> None:
        work(self.computer, self._project, 1)
        self._report()
        # Only now: the reply has come.
        self.acknowledged_hours += 1

    def syncs(self) -> None:
        self._report()

    def credited_hours(self) -> float:
        return hours_credited(self.computer, self._project)

    def _report(self) -> None:
        self._now += HOUR
        assert call(self.computer, self._now).error == (0, "")


def grant_credit(jobs: int) -> None:
    app = make_app()
    version = make_version(app)
    hosts = volunteers(2)
    for _ in range(jobs):
        done(app, version, *hosts)
    validate(app)


@pytest.fixture
def folders(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT, settings.UPLOADS_DIR = tmp_path / "files", tmp_path / "uploads"


@pytest.mark.usefixtures("folders")
@pytest.mark.django_db(transaction=True)
def test_a_database_is_restored_to_the_moment_before_a_disaster(
    alice: User, projects: list[Project], tmp_path: Path
) -> None:
    submit(make_app("filed"), DEFAULTS, [{}], owner=alice, now=NOON)
    grant_credit(3)
    with OwnServer() as broken:
        backups = Backups(tmp_path / "backups", broken)
        broken.copy_database(DRILL)
        with backups.receiving() as receiver, in_database(DRILL, str(broken.folder)):
            volunteer = Volunteer(alice, projects[0])
            base = backups.start("base")
            while base.poll() is None or volunteer.acknowledged_hours < 5:
                volunteer.works()
            succeed(base)
            for _ in range(5):
                volunteer.works()
            everything_adds_up()
            expected, moment = books(), broken.ask("SELECT clock_timestamp()")
            acknowledged_hours = volunteer.acknowledged_hours
            # The disaster: a month is deleted. Clients go on reporting meanwhile.
            broken.ask("DELETE FROM accounting_day WHERE day < '2026-04-01'", DRILL)
            volunteer.works()
            last = books()
            assert last["Day"] != expected["Day"]
            backups.wait_for_wal(broken)
            broken.kill()
            receiver.stop()

    restored = OwnServer()
    output = backups.run("restore", str(restored.data), moment.isoformat())
    (commit,) = re.findall(r"the last commit, at (.*)\+00\n", output)
    with restored, in_database(DRILL, str(restored.folder)):
        assert books() == expected
        rows, results = len(expected["Day"]), len(expected["Result"])
        everything = f"{rows} rows of the ledger, {results} results, 1 files"
        assert everything_adds_up() == f"Last commit at {commit} UTC; {everything}: checks clean."
        assert volunteer.credited_hours() == acknowledged_hours
        # What it reported after the moment was lost, and comes again: its totals count from when it was attached.
        volunteer.syncs()
        assert volunteer.credited_hours() == acknowledged_hours + 1
        everything_adds_up()

    # Without a moment, nothing that was acknowledged is lost: neither the report nor the disaster.
    whole = OwnServer()
    backups.run("restore", str(whole.data))
    with whole, in_database(DRILL, str(whole.folder)):
        assert books() == last


def exposed(file: Path) -> dict[str, float]:
    """What node_exporter would read; everybody may."""
    assert file.stat().st_mode & 0o777 == 0o644
    families = text_string_to_metric_families(file.read_text())
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


def finished_at(backups: Backups) -> float:
    return dt.datetime.fromisoformat(backups.bases()[-1]).timestamp()


@pytest.mark.system
def test_backups_that_are_no_longer_needed_go_with_their_wal(tmp_path: Path) -> None:
    with OwnServer() as server:
        metrics = tmp_path / "backup.prom"
        backups = Backups(tmp_path / "backups", server, BACKUPS_KEPT="1", BACKUP_METRICS=str(metrics))
        with backups.receiving() as receiver:
            backups.run("base")
            first, before = backups.bases(), backups.wal()
            server.ask("CREATE TABLE written AS SELECT generate_series(1, 100000) AS number")
            # Names have seconds.
            wait_until(lambda: f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}" > first[0], "the next second", 5)
            backups.run("base")
            assert len(first) == len(backups.bases()) == 1 and first != backups.bases()
            assert not set(before) & set(backups.wal())
            finished = {"cobblestone_base_backup_finished_seconds": finished_at(backups)}
            assert exposed(metrics) == finished
            server.ask("CREATE TABLE last_commit ()")
            backups.wait_for_wal(server)
            moment = dt.datetime.fromisoformat(backups.run("check").strip().split(", at ")[1])
            last_commit = {"cobblestone_wal_last_commit_seconds": int(moment.timestamp())}
            assert exposed(metrics) == finished | last_commit
            receiver.stop()


def stored(folder: Path, finished_at: str) -> Backups:
    """A folder with what looks like a backup, for what refuses before it reads it."""
    backups = Backups(folder)
    (folder / "base" / finished_at).mkdir(parents=True)
    (folder / "base" / finished_at / "backup_manifest").write_text(
        '{"WAL-Ranges": [{"Start-LSN": "0/2000028", "End-LSN": "0/2000100"}]}'
    )
    (folder / "wal").mkdir()
    return backups


@pytest.mark.system
def test_the_check_fails_if_a_backup_or_the_wal_is_old(tmp_path: Path) -> None:
    assert "is older than 26 hours" in stored(tmp_path / "old", "2026-03-01T01:30:00Z").refuse("check")[1]
    now = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    assert "there is no WAL in" in stored(tmp_path / "without", now).refuse("check")[1]
    empty = Backups(tmp_path / "empty")
    (tmp_path / "empty" / "base").mkdir()
    assert "there is no base backup" in empty.refuse("check")[1]


@pytest.mark.system
def test_a_restore_is_refused_that_cannot_be_right(tmp_path: Path) -> None:
    backups = stored(tmp_path / "backups", "2026-03-01T01:30:00Z")
    target = tmp_path / "data"
    assert "has no time zone" in backups.refuse("restore", str(target), "2026-03-01 02:00:00")[1]
    assert "no base backup from before" in backups.refuse("restore", str(target), "2026-03-01 01:29:59+00")[1]
    assert not target.exists()
    target.mkdir()
    (target / "file").write_text("of another server")
    assert "is not empty" in backups.refuse("restore", str(target))[1]


@pytest.mark.system
def test_a_file_of_the_wal_that_cannot_be_read_stops_a_recovery_instead_of_ending_it(tmp_path: Path) -> None:
    backups = stored(tmp_path / "backups", "2026-03-01T01:30:00Z")
    segment, target = "000000010000000000000001", tmp_path / "target"
    assert backups.refuse("fetch", segment, str(target))[0] == 1
    (tmp_path / "backups" / "wal" / f"{segment}.partial").write_text("begun")
    backups.run("fetch", segment, str(target))
    assert target.read_text() == "begun"
    (tmp_path / "backups" / "wal" / segment).write_text("whole")
    backups.run("fetch", segment, str(target))
    assert target.read_text() == "whole"
    # To PostgreSQL, codes above 125 are errors.
    assert backups.refuse("fetch", segment, str(tmp_path / "missing" / "target"))[0] == 255
    (tmp_path / "backups" / "wal").rename(tmp_path / "elsewhere")
    assert backups.refuse("fetch", segment, str(target))[0] == 255
