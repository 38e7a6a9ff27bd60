"""Jobs for certain computers only: targets, pinned versions, homogeneous redundancy and versions."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from credit.models import (
    App,
    AppVersion,
    HostAppVersion,
    Membership,
    Outcome,
    Result,
    ServerState,
    Team,
    ValidateState,
    Workunit,
)
from portal.models import User
from scheduler.engine.hr_classes import class_of
from scheduler.engine.lanes import Lane, LaneKind, Requirement
from scheduler.lifecycle import transitioner
from scheduler.programs import catalogue
from scheduler.ready_jobs import job_cache
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, result_xml

pytestmark = pytest.mark.django_db
LINUX, WINDOWS = "x86_64-pc-linux-gnu", "windows_x86_64"
NOW = dt.datetime(2027, 1, 4, 12, tzinfo=dt.UTC)


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    for platform in (LINUX, WINDOWS):
        make_version(app, platform=platform)
    return app


@pytest.fixture(params=[True, False], ids=["from ready jobs", "from the queue"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(job_cache, "has_jobs", lambda known: False)
        monkeypatch.setattr(job_cache.JobCache, "take", lambda *args: [])


def make_people(*names: str) -> list[User]:
    return [User.objects.create_user(f"{name}@example.org", "secret", name=name) for name in names]


def known(user: User, **fields: Any) -> Computer:
    """A computer that the scheduler knows."""
    computer = computer_of(user, **fields)
    computer.ask()
    return computer


def wait(app: App, njobs: int = 1, ncopies: int = 1, lane: Lane | None = None, **fields: Any) -> list[Workunit]:
    """Workunits whose results wait, in a lane of their own."""
    number = lane.number if lane is not None else 0
    workunits = []
    for _ in range(njobs):
        quorum = {"min_quorum": ncopies, "target_nresults": ncopies}
        workunits.append(make_workunit(app, output_files=[], lane=number, **quorum, **fields))
        for _ in range(ncopies):
            make_result(workunits[-1], lane=number)
    catalogue.forget()
    return workunits


def ask(computer: Computer, njobs: int = 1, **fields: Any) -> str:
    """As some seconds later, so that what is known of lanes is read again."""
    catalogue.forget()
    return computer.ask(0, njobs, **fields)


def jobs_of(*computers: Computer) -> list[int]:
    return [len(computer.jobs) for computer in computers]


def versions_of(workunit: Workunit) -> list[int]:
    """The numbers of the versions that compute its results."""
    return list(workunit.results.values_list("app_version__version_num", flat=True))


# --- targets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["computer", "person", "team"])
def test_a_targeted_job_goes_to_its_target_alone_and_before_all_others(app: App, alice: User, kind: str) -> None:
    bob, carol = make_people("bob", "carol")
    mine, other_of_mine, of_bob, of_carol = known(alice), known(alice), known(bob), known(carol)
    team = Team.objects.create(name="Peaks")
    for user in (alice, bob):
        Membership.objects.create(user=user, team=team)
    lane = {
        "computer": Lane(LaneKind.COMPUTER, mine.hostid),
        "person": Lane(LaneKind.PERSON, alice.pk),
        "team": Lane(LaneKind.TEAM, team.pk),
    }[kind]
    wait(app, 30)
    targeted = wait(app, lane=lane)[0].results.get().name
    reaches = {"computer": [mine], "person": [mine, other_of_mine], "team": [mine, other_of_mine, of_bob]}[kind]
    for computer in {id(each): each for each in (of_carol, of_bob, other_of_mine)}.values():
        if computer not in reaches:
            ask(computer, 5)
            assert targeted not in computer.jobs
            assert len(computer.jobs) == 5
    ask(reaches[-1])
    assert reaches[-1].jobs == [targeted]


@pytest.mark.parametrize("kind", [LaneKind.COMPUTER, LaneKind.PERSON])
def test_a_targeted_job_that_failed_comes_again_to_the_only_one_who_may_have_it(
    app: App, alice: User, kind: LaneKind
) -> None:
    computer = known(alice)
    target = {LaneKind.COMPUTER: computer.hostid, LaneKind.PERSON: alice.pk}[kind]
    [workunit] = wait(app, lane=Lane(kind, target))
    ask(computer)
    [first] = computer.jobs
    computer.ask(results=result_xml(first, state=3, exit_status=1))
    transitioner.run(timezone.now())
    ask(computer)
    [again] = computer.jobs
    assert again != first
    assert workunit.results.filter(server_state=ServerState.IN_PROGRESS).get().name == again


@pytest.mark.parametrize("kind", [LaneKind.COMPUTER, LaneKind.PERSON])
def test_a_targeted_job_gets_no_copy_that_nobody_may_have(app: App, alice: User, kind: LaneKind) -> None:
    App.objects.update(adaptive_replication=True)
    computer = known(alice)
    target = {LaneKind.COMPUTER: computer.hostid, LaneKind.PERSON: alice.pk}[kind]
    [workunit] = wait(app, lane=Lane(kind, target))
    ask(computer)
    workunit.refresh_from_db()
    assert (len(computer.jobs), workunit.min_quorum, workunit.target_nresults) == (1, 1, 1)


def test_a_job_for_a_computer_comes_whatever_app_is_drawn(app: App, alice: User) -> None:
    other = make_app(name="other", weight=1000)
    make_version(other)
    computer = known(alice)
    wait(other, 20)
    [targeted] = wait(app, lane=Lane(LaneKind.COMPUTER, computer.hostid))
    ask(computer)
    assert computer.jobs == [targeted.results.get().name]


def test_jobs_of_targets_that_never_ask_are_in_nobodys_way(app: App, alice: User) -> None:
    # More than all that a request looks at, before the only job that is for everybody.
    wait(app, 250, lane=Lane(LaneKind.COMPUTER, 999_999))
    wait(app)
    computer = known(alice)
    assert jobs_of(computer) == [0]
    ask(computer)
    assert jobs_of(computer) == [1]


# --- pinned versions ----------------------------------------------------------------------------------------------


def test_a_job_that_asks_for_a_version_is_computed_by_it_though_there_is_a_newer_one(app: App, alice: User) -> None:
    make_version(app, 101)
    computer = known(alice)
    pinned = Lane(requirement=Requirement(100))
    wait(app, lane=pinned, app_version_num=100)
    wait(app)
    ask(computer, 2)
    numbers = Result.objects.filter(name__in=computer.jobs).values_list(
        "workunit__app_version_num", "app_version__version_num"
    )
    assert sorted(numbers) == [(0, 101), (100, 100)]


def test_a_job_for_a_computer_may_ask_for_a_version_too(app: App, alice: User) -> None:
    make_version(app, 101)
    computer = known(alice)
    [workunit] = wait(app, lane=Lane(LaneKind.COMPUTER, computer.hostid), app_version_num=100)
    ask(computer)
    assert versions_of(workunit) == [100]


def test_a_version_that_nobody_may_have_any_more_keeps_its_jobs_and_nobody_elses(app: App, alice: User) -> None:
    make_version(app, 101)
    wait(app, 210, lane=Lane(requirement=Requirement(100)), app_version_num=100)
    AppVersion.objects.filter(version_num=100).update(is_deprecated=True)
    wait(app)
    computer = known(alice)
    ask(computer, 3)
    assert jobs_of(computer) == [1]


def test_own_programs_compute_what_asks_for_their_number(app: App, alice: User) -> None:
    own = (
        "<app_versions><app_version><app_name>alpine</app_name><version_num>100</version_num><flops>4e9</flops>"
        "<avg_ncpus>1</avg_ncpus>"
        "</app_version></app_versions>"
    )
    computer = known(alice, platform="anonymous", extra=own)
    wait(app, lane=Lane(requirement=Requirement(101)), app_version_num=101)
    [fits] = wait(app, lane=Lane(requirement=Requirement(100)), app_version_num=100)
    reply = ask(computer, 2)
    assert computer.jobs == [fits.results.get().name], messages(reply)


# --- classes and versions -----------------------------------------------------------------------------------------


def of_system(user: User, os_name: str) -> Computer:
    platform = WINDOWS if "Windows" in os_name else LINUX
    return known(user, os_name=os_name, platform=platform)


@pytest.mark.usefixtures("way")
def test_all_results_of_a_workunit_go_to_one_class(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="coarse")
    bob, carol = make_people("bob", "carol")
    linux, windows, other_linux = (
        of_system(user, os_name)
        for user, os_name in ((alice, "Linux Debian"), (bob, "Microsoft Windows 11"), (carol, "Linux Mint"))
    )
    [workunit] = wait(app, ncopies=2)
    ask(linux)
    workunit.refresh_from_db()
    assert workunit.hr_class == class_of("coarse", "Linux", "GenuineIntel", "", frozenset())
    [waiting] = workunit.results.filter(server_state=ServerState.UNSENT)
    assert waiting.lane == workunit.lane == Lane(hr_class=workunit.hr_class).number
    ask(windows)
    assert jobs_of(linux, windows, other_linux) == [1, 0, 0]
    ask(other_linux)
    assert jobs_of(linux, windows, other_linux) == [1, 0, 1]


@pytest.mark.usefixtures("way")
def test_all_results_of_a_workunit_are_computed_by_one_version(app: App, alice: User) -> None:
    App.objects.update(homogeneous_app_version=True)
    [bob] = make_people("bob")
    first, second = known(alice), known(bob)
    [workunit] = wait(app, ncopies=2)
    ask(first)
    # A newer one is released before the other copy is sent.
    make_version(app, 101)
    ask(second)
    assert versions_of(workunit) == [100, 100]
    [later] = wait(app)
    ask(second)
    assert versions_of(later) == [101]


def test_a_computer_of_no_class_or_with_own_programs_gets_no_such_jobs(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="fine")
    wait(app)
    assert messages(ask(known(alice, os_name="Haiku"))) == [
        "No tasks sent: the applications compare only computers of one kind, and BOINC does not tell of what kind this "
        "one is"
    ]


def test_a_hundred_classes_that_nobody_else_has_are_in_nobodys_way(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="coarse")
    for hr_class in range(4000, 4210):
        wait(app, lane=Lane(hr_class=hr_class), hr_class=hr_class)
    wait(app)
    computer = known(alice)
    ask(computer, 3)
    assert jobs_of(computer) == [1]


def test_where_classes_do_not_count_any_more_bound_jobs_go_to_everybody(app: App, alice: User) -> None:
    wait(app, lane=Lane(hr_class=4000), hr_class=4000)
    computer = known(alice)
    ask(computer)
    assert jobs_of(computer) == [1]


def test_where_versions_do_not_count_any_more_bound_jobs_go_to_everybody(app: App, alice: User) -> None:
    windows = AppVersion.objects.get(platform__name=WINDOWS)
    wait(app, lane=Lane(requirement=Requirement(0, windows.pk)), bound_version=windows)
    computer = known(alice)
    ask(computer)
    assert jobs_of(computer) == [1]


def test_both_copies_never_go_out_in_one_reply_before_the_first_has_bound_the_second(app: App, alice: User) -> None:
    App.objects.update(homogeneous_app_version=True, one_result_per_user=False)
    computer = known(alice)
    wait(app, ncopies=2)
    ask(computer, 2)
    assert jobs_of(computer) == [1]
    ask(computer, 2)
    assert jobs_of(computer) == [2]


@pytest.mark.usefixtures("way")
def test_a_single_result_that_is_checked_is_checked_within_its_class(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="coarse", adaptive_replication=True)
    [workunit] = wait(app)
    ask(known(alice))
    transitioner.run(timezone.now())
    workunit.refresh_from_db()
    assert (workunit.min_quorum, workunit.hr_class) == (2, 1010)
    second = workunit.results.get(server_state=ServerState.UNSENT)
    assert second.lane == Lane(hr_class=1010).number


# --- nothing stands any more --------------------------------------------------------------------------------------

OVER = ServerState.OVER


@pytest.mark.parametrize(
    ("state", "is_freed"),
    [
        ({"server_state": OVER, "outcome": Outcome.CLIENT_ERROR}, True),
        ({"server_state": OVER, "outcome": Outcome.CLIENT_DETACHED}, True),
        ({"server_state": OVER, "outcome": Outcome.SUCCESS, "validate_state": ValidateState.INVALID}, True),
        ({"server_state": OVER, "outcome": Outcome.SUCCESS, "validate_state": ValidateState.INCONCLUSIVE}, False),
        ({"server_state": ServerState.IN_PROGRESS}, False),
        # It may still come.
        ({"server_state": OVER, "outcome": Outcome.NO_REPLY}, False),
    ],
)
def test_a_workunit_is_for_every_class_again_once_nothing_stands(
    app: App, alice: User, state: dict[str, Any], is_freed: bool
) -> None:
    App.objects.update(homogeneous_redundancy="coarse", homogeneous_app_version=True)
    [workunit] = wait(app, ncopies=2)
    ask(known(alice))
    workunit.results.filter(server_state=ServerState.IN_PROGRESS).update(received_at=NOW, **state)
    Workunit.objects.update(transition_at=NOW)
    transitioner.run(NOW - dt.timedelta(days=60))
    workunit.refresh_from_db()
    waiting = workunit.results.filter(server_state=ServerState.UNSENT)
    assert (workunit.hr_class == 0, workunit.bound_version_id is None, workunit.lane == 0) == (is_freed,) * 3
    assert {result.lane == 0 for result in waiting} == {is_freed}


def test_what_asks_for_a_version_still_does_when_it_is_freed(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="coarse")
    computer = known(alice)
    [workunit] = wait(app, ncopies=2, lane=Lane(requirement=Requirement(100)), app_version_num=100)
    ask(computer)
    bound = Lane(hr_class=1010, requirement=Requirement(100))
    workunit.refresh_from_db()
    assert Lane.of(workunit.lane) == bound
    ask(computer, 0, results=result_xml(computer.jobs[0], exit_status=1, state=3))
    transitioner.run(NOW)
    workunit.refresh_from_db()
    assert Lane.of(workunit.lane) == Lane(requirement=Requirement(100))


# --- replacements -------------------------------------------------------------------------------------------------

RELIABLE_RECORD = {"consecutive_valid": 10, "turnaround_n": 11, "turnaround_avg": 3600.0, "max_jobs_per_day": 4000}


def make_record(computer: Computer, app: App, **fields: Any) -> None:
    version = AppVersion.objects.get(app=app, platform__name=LINUX)
    HostAppVersion.objects.create(
        host_id=computer.hostid, app=app, app_version=version, **{**RELIABLE_RECORD, "turnaround_var": 0, **fields}
    )


@pytest.mark.parametrize(
    ("fields", "is_reliable"),
    [
        ({}, True),
        ({"consecutive_valid": 9}, False),
        ({"turnaround_n": 10}, False),
        ({"turnaround_avg": 7201.0}, False),
        ({"max_jobs_per_day": 3999}, False),
    ],
)
def test_a_replacement_goes_first_to_reliable_computers(
    app: App, alice: User, fields: dict[str, Any], is_reliable: bool
) -> None:
    App.objects.update(reliable_turnaround_secs=7200)
    [bob] = make_people("bob")
    [workunit] = wait(app)
    first = known(bob)
    ask(first)
    ask(first, 0, results=result_xml(first.jobs[0], state=3, exit_status=1))
    transitioner.run(timezone.now())
    replacement = workunit.results.get(server_state=ServerState.UNSENT)
    assert Lane.of(replacement.lane).is_reliable
    other = known(alice)
    # 1,000 jobs a day for each of its four processors
    make_record(other, app, **fields)
    ask(other)
    assert jobs_of(other) == [int(is_reliable)]


def test_after_an_hour_a_replacement_goes_to_anybody(app: App, alice: User) -> None:
    App.objects.update(reliable_turnaround_secs=7200)
    computer = known(alice)
    for age, njobs in ((dt.timedelta(minutes=59), 0), (dt.timedelta(minutes=61), 1)):
        [workunit] = wait(app)
        workunit.results.update(lane=Lane(is_reliable=True).number, created_at=timezone.now() - age)
        ask(computer)
        assert jobs_of(computer) == [njobs]
