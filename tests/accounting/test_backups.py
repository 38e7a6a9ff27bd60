"""The restore drill: backups by the script of deploy/, a disaster, and the database as it was a moment before."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Model
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from accounting.models import Day, HostLedger, HostProject, Project
from accounting.simulation.client import SimulatedComputer
from credit.models import Result, UserCredit
from portal.models import Host, User
from scheduler.submission.submit import submit
from tests.support.am_rpc import HOUR, START, call, hours_credited, make_computer, work
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.finished_jobs import DEFAULTS
from tests.support.guarded_program import GuardedProgram
from tests.support.own_server import PROGRAMS, OwnServer
from tests.support.second_database import in_database
from tests.support.site_process import CHECKOUT
from tests.support.validator_runs import done, validate, volunteers
from tests.support.wait import wait_until

SCRIPT = CHECKOUT / "deploy" / "cobblestone-backup"
DRILL = "drill"
BOOKS: tuple[type[Model], ...] = (User, Host, Day, HostLedger, HostProject, UserCredit, Result)


class Backups:
    """The script, for one folder, and one server if backups are made."""

    def __init__(self, folder: Path, server: OwnServer | None = None, **settings: str) -> None:
        self.folder = folder
        self.folder.mkdir()
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        self._environment = (
            variables | {"BACKUP_DIR": str(folder), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"} | settings
        )
        if server is not None:
            self._environment |= {"PGHOST": str(server.folder), "PGPORT": "5432", "PGUSER": server.user}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, *words], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words: str) -> str:
        return succeed(self.start(*words))

    def refuse(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        _, complaint = process.communicate()
        assert process.returncode != 0
        return process.returncode, complaint

    def receiving(self) -> GuardedProgram:
        return GuardedProgram("wal", [str(SCRIPT), "wal"], self.folder / "log", self._environment, self.folder)

    def bases(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "base").iterdir())

    def wal(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "wal").iterdir())


def succeed(process: subprocess.Popen[str]) -> str:
    said, complaint = process.communicate()
    assert process.returncode == 0, said + complaint
    return said


def books() -> dict[str, list[dict[str, Any]]]:
    """All rows of the ledger and of granted credit, and whose they are."""
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in BOOKS}


def everything_adds_up() -> None:
    for command in ("check_ledger", "check_credit", "check_files"):
        # Each raises CommandError if there is a difference.
        call_command(command, stdout=StringIO())


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
            wanted, moment = books(), broken.ask("SELECT clock_timestamp()")
            acknowledged_hours = volunteer.acknowledged_hours
            # The disaster: a month is deleted. Clients go on reporting meanwhile.
            broken.ask("DELETE FROM accounting_day WHERE day < '2026-04-01'", DRILL)
            volunteer.works()
            last = books()
            assert last["Day"] != wanted["Day"]
            wait_until(
                lambda: broken.ask("SELECT flush_lsn >= pg_current_wal_flush_lsn() FROM pg_stat_replication"),
                "the last of the WAL to be received",
                30,
            )
            broken.kill()
            receiver.stop()

    restored = OwnServer()
    backups.run("restore", str(restored.data), moment.isoformat())
    with restored, in_database(DRILL, str(restored.folder)):
        assert books() == wanted
        everything_adds_up()
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


def exposed_time(file: Path) -> float:
    """What node_exporter would read; everybody may."""
    assert file.stat().st_mode & 0o777 == 0o644
    (family,) = text_string_to_metric_families(file.read_text())
    (sample,) = family.samples
    assert (sample.name, sample.labels) == ("cobblestone_base_backup_finished_seconds", {})
    return sample.value


def finished_at(backups: Backups) -> float:
    return dt.datetime.fromisoformat(backups.bases()[-1]).timestamp()


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
            assert exposed_time(metrics) == finished_at(backups)
            metrics.unlink()
            assert backups.run("check").endswith("the WAL is up to date\n")
            assert exposed_time(metrics) == finished_at(backups)
            receiver.stop()


def stored(folder: Path, finished_at: str) -> Backups:
    """A folder with what looks like a backup, for what refuses before it reads it."""
    backups = Backups(folder)
    (folder / "base" / finished_at).mkdir(parents=True)
    (folder / "wal").mkdir()
    return backups


def test_the_check_fails_if_a_backup_or_the_wal_is_old(tmp_path: Path) -> None:
    assert "is older than 26 hours" in stored(tmp_path / "old", "2026-03-01T01:30:00Z").refuse("check")[1]
    now = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    assert "no WAL has come" in stored(tmp_path / "without", now).refuse("check")[1]
    empty = Backups(tmp_path / "empty")
    (tmp_path / "empty" / "base").mkdir()
    assert "there is no base backup" in empty.refuse("check")[1]


def test_a_restore_is_refused_that_cannot_be_right(tmp_path: Path) -> None:
    backups = stored(tmp_path / "backups", "2026-03-01T01:30:00Z")
    target = tmp_path / "data"
    assert "has no time zone" in backups.refuse("restore", str(target), "2026-03-01 02:00:00")[1]
    assert "no base backup from before" in backups.refuse("restore", str(target), "2026-03-01 01:29:59+00")[1]
    assert not target.exists()
    target.mkdir()
    (target / "file").write_text("of another server")
    assert "is not empty" in backups.refuse("restore", str(target))[1]


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
