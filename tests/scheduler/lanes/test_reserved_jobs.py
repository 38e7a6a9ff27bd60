"""Jobs that nobody comes for: operators see them, and free or end them; those for missing targets end."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from accounting.account_data.erasure import erase_due
from credit.models import (
    App,
    AppVersion,
    AssimilateState,
    FileDeleteState,
    Membership,
    Outcome,
    Result,
    ServerState,
    Team,
    Workunit,
    WorkunitError,
)
from portal.models import Host, User
from portal.people.deletion import GRACE
from scheduler.engine.lanes import Lane, LaneKind, Requirement
from scheduler.lanes.reads import read_lanes
from scheduler.lanes.release import end_jobs_of_gone_targets, free
from scheduler.lifecycle import purge, transitioner
from scheduler.lifecycle.host_merge import merge_records
from scheduler.models import ArchivedTask, ArchivedWorkunit, WorkBlock
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of
from tests.support.work_scenes import computer_with_work

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    app = make_app(homogeneous_redundancy="coarse")
    make_version(app)
    return app


def wait(app: App, lane: Lane, **fields: int) -> Workunit:
    workunit = make_workunit(app, output_files=[], lane=lane.number, min_quorum=1, target_nresults=1, **fields)
    make_result(workunit, lane=lane.number)
    return workunit


def test_operators_see_who_is_waited_for_and_who_could_come(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    team = Team.objects.create(name="Peaks")
    Membership.objects.create(user=alice, team=team)
    for lane, fields in (
        (Lane(LaneKind.COMPUTER, computer.hostid), {}),
        (Lane(LaneKind.COMPUTER, 999_999), {}),
        (Lane(LaneKind.PERSON, alice.pk), {}),
        (Lane(LaneKind.TEAM, team.pk), {}),
        (Lane(hr_class=1010), {"hr_class": 1010}),
        (Lane(hr_class=4020), {"hr_class": 4020}),
        (Lane(requirement=Requirement(100)), {"app_version_num": 100}),
        (Lane(requirement=Requirement(99)), {"app_version_num": 99}),
    ):
        wait(app, lane, **fields)
    rows = {row.name.split(" (")[0]: (row.njobs, row.nowners, row.is_gone) for row in read_lanes(timezone.now())}
    assert rows == {
        f"computer {computer.hostid}": (1, 1, False),
        "computer 999999": (1, 0, True),
        f"volunteer {alice.pk}": (1, 1, False),
        f"team {team.pk}": (1, None, False),
        "Linux, x86": (1, 1, False),
        "FreeBSD, PowerPC": (1, 0, False),
        "version 1.00": (1, None, False),
        "version 0.99": (1, None, True),
    }


def test_a_job_of_a_class_that_nobody_has_is_freed_on_the_page_and_computed(
    app: App, alice: User, desk: Client
) -> None:
    workunit = wait(app, Lane(hr_class=4020), hr_class=4020)
    page = desk.get("/admin/scheduler/retryentry/reserved/").content.decode()
    assert "FreeBSD, PowerPC" in page
    address = f"/admin/scheduler/retryentry/reserved/{app.pk}/{workunit.lane}"
    assert desk.post(f"{address}/free/").status_code == 302
    workunit.refresh_from_db()
    assert (workunit.lane, workunit.hr_class) == (0, 0)
    computer = computer_of(alice)
    computer.ask(0, 1)
    assert len(computer.jobs) == 1
    assert desk.post(f"{address}/dance/").status_code == 404


def test_or_it_is_ended_and_its_workunit_fails_with_the_reason(app: App, desk: Client) -> None:
    workunit = wait(app, Lane(hr_class=4020), hr_class=4020)
    desk.post(f"/admin/scheduler/retryentry/reserved/{app.pk}/{workunit.lane}/end/")
    transitioner.run(timezone.now())
    workunit.refresh_from_db()
    assert workunit.error_mask == WorkunitError.COULD_NOT_SEND


@pytest.mark.parametrize(
    ("lane", "version_num", "freed"),
    [
        # A job for a computer that asks for a version still does, so does one that was bound to a class.
        (Lane(LaneKind.COMPUTER, 7), 100, (100, Lane(requirement=Requirement(100)).number)),
        (Lane(hr_class=4020, requirement=Requirement(100)), 100, (100, Lane(requirement=Requirement(100)).number)),
        (Lane(requirement=Requirement(100)), 100, (0, 0)),
    ],
)
def test_what_is_freed_still_asks_for_what_nobody_freed_it_from(
    app: App, lane: Lane, version_num: int, freed: tuple[int, int]
) -> None:
    workunit = wait(app, lane, app_version_num=version_num)
    assert free(app.pk, lane.number) == 1
    workunit.refresh_from_db()
    assert (workunit.app_version_num, workunit.lane) == freed
    assert workunit.results.get().lane == freed[1]


def test_jobs_for_who_is_gone_end_within_the_hour(app: App, alice: User, studio: Host) -> None:
    team = Team.objects.create(name="Peaks")
    kept = wait(app, Lane(LaneKind.COMPUTER, studio.pk)), wait(app, Lane(LaneKind.TEAM, team.pk))
    bob = User.objects.create_user("bob@example.org", "secret", name="Bob", is_active=False)
    gone = [wait(app, Lane(kind, id_)) for kind, id_ in ((LaneKind.TEAM, 999), (LaneKind.PERSON, bob.pk))]
    for computer in (999, computer_with_work(bob).pk):
        gone.append(wait(app, Lane(LaneKind.COMPUTER, computer)))
    assert end_jobs_of_gone_targets(timezone.now()) == 4
    outcomes = Result.objects.filter(workunit__in=gone).values_list("outcome", flat=True)
    assert set(outcomes) == {Outcome.COULD_NOT_SEND}
    assert {workunit.results.get().outcome for workunit in kept} == {Outcome.INIT}


def test_jobs_and_blocks_follow_a_computer_when_its_records_are_merged(app: App, alice: User) -> None:
    older, newer = computer_of(alice), computer_of(alice)
    for computer in (older, newer):
        computer.ask()
    waiting = wait(app, Lane(LaneKind.COMPUTER, older.hostid))
    # Its result has just failed; the transitioner makes another one soon. The merge has moved the first one already.
    failed = wait(app, Lane(LaneKind.COMPUTER, older.hostid))
    failed.results.update(host_id=newer.hostid, server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR)
    block = WorkBlock.objects.create(host_id=older.hostid, reason="It is broken.")
    merge_records(older.hostid, newer.hostid)
    waiting.refresh_from_db()
    assert waiting.lane == waiting.results.get().lane == Lane(LaneKind.COMPUTER, newer.hostid).number
    failed.refresh_from_db()
    assert failed.lane == waiting.lane
    block.refresh_from_db()
    assert block.host_id == newer.hostid


def test_a_withdrawn_version_is_told_of(app: App) -> None:
    wait(app, Lane(requirement=Requirement(100)), app_version_num=100)
    AppVersion.objects.update(is_deprecated=True)
    [row] = read_lanes(timezone.now())
    assert row.is_gone


def test_an_erased_account_leaves_no_trace_of_whom_jobs_were_for(app: App, alice: User, bob: User) -> None:
    """Jobs that are over forget it. Waiting jobs go to nobody else: they end like those of any target that is gone."""
    host, other = computer_with_work(alice), computer_with_work(bob)
    targets = [Lane(LaneKind.COMPUTER, host.pk), Lane(LaneKind.PERSON, alice.pk), Lane(LaneKind.COMPUTER, other.pk)]
    freed = wait(app, targets[0])
    make_result(freed, host, server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR, lane=freed.lane)
    assert free(app.pk, freed.lane) == 1
    for lane in targets:
        wait(app, lane)
    over, archived = wait(app, targets[0]), wait(app, targets[0])
    Result.objects.filter(workunit__in=[over, archived]).update(
        server_state=ServerState.OVER, outcome=Outcome.CLIENT_ERROR, host=host, user=alice
    )
    Workunit.objects.filter(pk=archived.pk).update(
        assimilate_state=AssimilateState.DONE,
        assimilated_at=timezone.now() - dt.timedelta(days=400),
        file_delete_state=FileDeleteState.DONE,
        error_mask=WorkunitError.COULD_NOT_SEND,
    )
    assert purge.run(timezone.now()) == 1
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=timezone.now() - GRACE)
    assert erase_due(timezone.now()) == 1
    for model in (Workunit, Result):
        assert set(model.objects.values_list("lane", flat=True)) == {0, 1 << 60, 2 << 60, targets[2].number}
    assert not any("lane" in facts for facts in ArchivedWorkunit.objects.values_list("facts", flat=True))
    assert not any("lane" in facts for facts in ArchivedTask.objects.values_list("facts", flat=True))
    assert end_jobs_of_gone_targets(timezone.now()) == 2
