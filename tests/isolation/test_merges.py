"""Merges of computers against what they meet, in many orders of the statements: nothing is lost or doubled."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounting.computers.merge import merge
from accounting.ledger import rollup
from accounting.models import GrantedDay, GrantedTotal, HostProject, Project, Settlement, StatisticsImport
from accounting.reconciliation import refresh
from accounting.statistics import store
from accounting.statistics.files import source_of
from accounting.wire.statistics import HOSTS, USERS, read_tables
from credit.models import FileDeleteState, HostCredit, Result, Workunit
from credit.statistics import feeder
from credit.validator.passes import run_pass
from extras.certificates import registry
from extras.certificates.facts import SHOWN, CertificateRequest, read_scopes
from portal.fetch.fetcher import Version
from portal.models import Host, User
from scheduler.lifecycle import purge, transitioner
from scheduler.models import ArchivedTask, HostRecord
from tests.support import ledger_scenes, work_scenes
from tests.support.interleavings import Scene, Work, connection_of_its_own, try_all
from tests.support.ledger_scenes import books_are_right, or_refusal, report, secs_of
from tests.support.scheduler_clients import names
from tests.support.simulated.clients import Computer
from tests.support.statistics_site import HostRecord as Record
from tests.support.work_scenes import NOON, asks, computer_with_work, credit_is_right, known, waiting_workunit

pytestmark = pytest.mark.django_db(transaction=True)
_exports = itertools.count(1)
NUMBER = 17
"""Of the computer at the project: what its client says (`SentRequest`)."""


class Export:
    """A project's export with one computer."""

    def __init__(self, folder: Path, project: Project, at: dt.datetime, record: Record) -> None:
        self.project = project
        self.paths = {kind: folder / f"{next(_exports)}.gz" for kind in (USERS, HOSTS)}
        for kind, text in ((USERS, ""), (HOSTS, record.text())):
            root = kind.root.decode()
            self.paths[kind].write_bytes(gzip.compress(f"<{root}>\n{text}</{root}>\n".encode()))
        self.tables = read_tables(f"<tables>\n<update_time>{int(at.timestamp())}</update_time>\n</tables>\n".encode())

    def keep(self) -> store.Counts:
        found = StatisticsImport.objects.get(project=self.project)
        with connection_of_its_own() as session:
            return store.keep(session, found, self.tables, Version(), source_of(self.paths))


def three_computers(projects: list[Project]) -> list[Computer]:
    """One person's, one after the other in use; the first one is known to the first project, which granted 1000."""
    user = ledger_scenes.volunteer()
    now = timezone.now()
    found = []
    for ndays in (30, 20, 10):
        made = now - dt.timedelta(days=ndays)
        seen = made + dt.timedelta(days=5)
        each = ledger_scenes.computer_of(user, projects, created_at=made, last_contact_at=seen)
        Host.objects.filter(pk=each.id).update(host_cpid=each.cpid)
        found.append(each)
    HostProject.objects.filter(host=found[0].id, project=projects[0]).update(state={"hostid": NUMBER})
    return found


def record_of(computer: Computer, total: int) -> Record:
    return Record(NUMBER, total, computer.cpid, User.objects.get(pk=computer.owner).email)


def read_before(folder: Path, computer: Computer, project: Project) -> Export:
    """The project's next export, which grants 100; the one before it was read."""
    GrantedTotal.objects.all().delete()
    StatisticsImport.objects.all().delete()
    StatisticsImport.objects.create(project=project)
    now = timezone.now()
    Export(folder, project, now - dt.timedelta(days=2), record_of(computer, 1_000)).keep()
    return Export(folder, project, now - dt.timedelta(days=1), record_of(computer, 1_100))


def granted_is_right(owner: int, project: Project) -> None:
    books_are_right()
    days = GrantedDay.objects.filter(user=owner)
    assert sum(days.values_list("credit", flat=True)) == 100_000_000
    total = GrantedTotal.objects.get(project=project)
    assert (total.total_credit, total.host.merged_into_id) == (1_100_000_000, None)
    assert set(days.values_list("host_id", flat=True)) == {total.host_id}


def test_a_computer_is_merged_while_grants_are_imported(projects: list[Project], tmp_path: Path) -> None:
    def make() -> Scene:
        first, second, _ = three_computers(projects)
        export = read_before(tmp_path, first, projects[0])

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            assert outcomes[1].granted == 100_000_000, outcomes
            granted_is_right(first.owner, projects[0])

        return Scene([lambda: merge(first.owner, first.id, second.id), export.keep], check)

    try_all(make)


def test_two_merges_and_an_import(projects: list[Project], tmp_path: Path) -> None:
    def make() -> Scene:
        first, second, third = three_computers(projects)
        export = read_before(tmp_path, first, projects[0])

        def check(outcomes: list[Any]) -> None:
            assert outcomes[2].granted == 100_000_000, outcomes
            granted_is_right(first.owner, projects[0])

        merges = [
            or_refusal(partial(merge, first.owner, *pair)) for pair in ((first.id, second.id), (second.id, third.id))
        ]
        return Scene([*merges, export.keep], check)

    try_all(make)


def test_a_merge_an_import_and_a_report(projects: list[Project], tmp_path: Path) -> None:
    def make() -> Scene:
        first, second, _ = three_computers(projects)
        export = read_before(tmp_path, first, projects[0])

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            granted_is_right(first.owner, projects[0])
            assert secs_of(first.owner).get("Project 1", 0) == 40 * isinstance(outcomes[2], bytes)

        works = [lambda: merge(first.owner, first.id, second.id), export.keep, report(second, 40)]
        return Scene(works, check)

    try_all(make)


def test_a_merge_while_grants_are_settled(projects: list[Project], tmp_path: Path) -> None:
    def make() -> Scene:
        first, second, _ = three_computers(projects)
        read_before(tmp_path, first, projects[0]).keep()
        report(second, 40)()
        Host.objects.filter(pk=second.id).update(last_contact_at=timezone.now())

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            refresh.refresh(projects[0].pk, timezone.now())
            granted_is_right(first.owner, projects[0])
            assert set(Settlement.objects.filter(host__owner=first.owner).values_list("host", flat=True)) == {second.id}

        settle = [lambda: refresh.refresh(projects[0].pk, timezone.now())]
        return Scene([lambda: merge(first.owner, first.id, second.id), *settle], check)

    try_all(make)


def test_a_certificate_is_issued_while_computers_are_merged(projects: list[Project]) -> None:
    def make() -> Scene:
        first, second, _ = three_computers(projects)
        for each in (first, second):
            before = Host.objects.get(pk=each.id).last_contact_at
            report(each, 3_600)()
            Host.objects.filter(pk=each.id).update(last_contact_at=before)
        rollup.roll_up(timezone.now(), timezone.now().date())
        user = User.objects.get(pk=first.owner)
        wanted = CertificateRequest(dt.date(2024, 1, 1), timezone.now().date(), "all", SHOWN)

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            facts = outcomes[1].statement["facts"]
            # An hour of each computer at both projects
            assert (facts["cpu_hours"], facts["tasks"]) == (4, 4 * 360), facts
            assert facts["computers"] in (1, 2)
            books_are_right()

        issue = [lambda: registry.issue(user, wanted, read_scopes(user), timezone.now())]
        return Scene([lambda: merge(user.pk, first.id, second.id), *issue], check)

    try_all(make)


def two_computers() -> tuple[User, Host, Host]:
    """One person's, of which the second one is in use since yesterday."""
    user = work_scenes.volunteer()
    old, new = NOON - dt.timedelta(days=9), NOON - dt.timedelta(days=1)
    older = computer_with_work(user, created_at=old, last_contact_at=old + dt.timedelta(days=1))
    return user, older, computer_with_work(user, created_at=new, last_contact_at=NOON)


@pytest.mark.parametrize("are_three", [False, True])
def test_credit_is_granted_and_fed_while_computers_are_merged(are_three: bool) -> None:
    def make() -> Scene:
        app = work_scenes.app_with_jobs(0)
        user, older, newer = two_computers()
        waiting_workunit(app, older)
        run_pass(app.pk, NOON)
        waiting_workunit(app, older)
        waiting_workunit(app, newer)

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            run_pass(app.pk, NOON)
            granted = Result.objects.filter(app=app, granted_at__isnull=False)
            assert set(granted.values_list("host", flat=True)) == {newer.pk}
            assert granted.count() == 3
            assert set(HostCredit.objects.filter(host__owner=user).values_list("host", flat=True)) == {newer.pk}
            credit_is_right()

        works: list[Work] = [lambda: merge(user.pk, older.pk, newer.pk), lambda: feeder.feed(NOON, app)]
        if are_three:
            works.append(lambda: run_pass(app.pk, NOON))
        return Scene(works, check)

    try_all(make)


def test_tasks_are_archived_while_their_computer_is_merged() -> None:
    def make() -> Scene:
        app = work_scenes.app_with_jobs(0)
        user, older, newer = two_computers()
        for each in (older, newer):
            waiting_workunit(app, each)
        run_pass(app.pk, NOON)
        later = NOON + dt.timedelta(days=400)
        Workunit.objects.filter(app=app).update(
            file_delete_state=FileDeleteState.DONE, assimilated_at=NOON, transition_at=None
        )

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            purge.run(later)
            archived = ArchivedTask.objects.filter(user=user).values_list("host", flat=True)
            assert list(archived) == [newer.pk] * 2
            credit_is_right()

        return Scene([lambda: merge(user.pk, older.pk, newer.pk), lambda: purge.run(later)], check)

    try_all(make)


@pytest.mark.parametrize("are_three", [False, True])
def test_a_computer_asks_for_jobs_while_it_is_merged(are_three: bool) -> None:
    def make() -> Scene:
        app = work_scenes.app_with_jobs(4, 1, target_nresults=1, min_quorum=1, transition_at=NOON)
        user = work_scenes.volunteer()
        older, newer = known(user), known(user)
        assert older.hostid != newer.hostid
        asks(older, 1)()
        assert len(older.jobs) == 1
        old = NOON - dt.timedelta(days=9)
        Host.objects.filter(pk=older.hostid).update(created_at=old, last_contact_at=old + dt.timedelta(days=1))

        def check(outcomes: list[Any]) -> None:
            assert isinstance(outcomes[0], Host), outcomes
            results = Result.objects.filter(app=app).exclude(host=None)
            assert set(results.values_list("host", flat=True)) == {newer.hostid}
            # What the older record had is sent again: the client has not got it.
            assert set(results.values_list("name", flat=True)) == {*older.jobs, *names(outcomes[1], "result")}
            njobs = sum(row[3] for row in HostRecord.objects.get(host=newer.hostid).jobs_of_day)
            assert njobs == results.count()
            credit_is_right()

        works: list[Work] = [lambda: merge(user.pk, older.hostid, newer.hostid), asks(newer, 1)]
        if are_three:
            works.append(lambda: transitioner.run(NOON))
        return Scene(works, check)

    try_all(make)
