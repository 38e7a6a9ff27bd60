"""Listed tasks are followed until it is decided what became of them."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.account_data import erasure
from accounting.computers.merge import merge
from accounting.engine.client_tasks import TaskCreditState
from accounting.models import AccountSettings, FollowedTask, HostLedger, Project, TaskList
from accounting.running_tasks import follow
from credit.models import ValidateState
from portal.models import Host, User
from portal.people.deletion import GRACE, ask_deletion
from tests.support.accounting_factories import make_host, make_project
from tests.support.credit_factories import make_app, make_result, make_success, make_workunit
from tests.support.task_lists import task_list

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)


@pytest.fixture
def own() -> Project:
    """This site's own project."""
    return make_project(is_own=True)


def followed() -> dict[str, FollowedTask]:
    return {task.name: task for task in FollowedTask.objects.all()}


def test_a_listed_task_is_asked_about_after_a_day_and_one_that_left_the_list_at_once(studio: Host) -> None:
    project = make_project()
    task_list(studio, NOW, "a_0", "b_0", project=project)
    assert follow.take_lists() == 1
    assert {task.ask_after for task in followed().values()} == {NOW + DAY}
    task_list(studio, NOW + HOUR, "b_0", "c_0", project=project)
    assert follow.take_lists() == 1
    found = followed()
    assert {name: task.ask_after for name, task in found.items()} == {
        "a_0": NOW + HOUR,
        "b_0": NOW + HOUR + DAY,
        "c_0": NOW + HOUR + DAY,
    }
    assert (found["a_0"].last_seen_at, found["b_0"].last_seen_at) == (NOW, NOW + HOUR)


def test_a_list_is_taken_over_once(studio: Host) -> None:
    task_list(studio, NOW, "a_0", project=make_project())
    assert [follow.take_lists(), follow.take_lists()] == [1, 0]
    assert FollowedTask.objects.count() == 1


def test_of_one_computer_so_many_tasks_are_followed_and_no_more(studio: Host, bob: User) -> None:
    project, other = make_project(), make_host(bob, "cellar")
    for number in range(4):
        task_list(studio, NOW + number * HOUR, *[f"task_{number}_{n}" for n in range(200)], project=project)
        task_list(other, NOW + number * HOUR, f"his_{number}", project=project)
        assert follow.take_lists() == 2
    # 800 names of hers, of which 500 are followed; his do not suffer.
    assert FollowedTask.objects.filter(host=studio).count() == follow.MAX_FOLLOWED == 500
    assert FollowedTask.objects.filter(host=other).count() == 4


def test_tasks_that_are_decided_make_room_for_new_ones_the_oldest_first(studio: Host, bob: User) -> None:
    project, other = make_project(), make_host(bob, "cellar")
    task_list(other, NOW, "his_0", project=project)
    for number in range(2):
        task_list(studio, NOW + number * HOUR, *[f"task_{number}_{n}" for n in range(200)], project=project)
        follow.take_lists()
        FollowedTask.objects.update(standing=TaskCreditState.GRANTED, granted_credit=1, ask_after=None)
    # 400 and 150 new ones are 50 too many.
    listed = [f"task_1_{n}" for n in range(100)] + [f"task_2_{n}" for n in range(150)]
    task_list(studio, NOW + 2 * HOUR, *listed, project=project)
    follow.take_lists()
    names = set(FollowedTask.objects.filter(host=studio).values_list("name", flat=True))
    assert len(names) == follow.MAX_FOLLOWED and names > set(listed)
    assert {f"task_1_{n}" for n in range(200)} < names
    task_list(studio, NOW + 3 * HOUR, *[f"task_3_{n}" for n in range(200)], project=project)
    follow.take_lists()
    names = set(FollowedTask.objects.filter(host=studio).values_list("name", flat=True))
    assert len(names) == 500 and names > {f"task_3_{n}" for n in range(200)} | {f"task_2_{n}" for n in range(150)}
    assert FollowedTask.objects.filter(host=other).count() == 1


def test_tasks_of_a_project_that_is_gone_are_left_out(studio: Host) -> None:
    gone, project = make_project(), make_project()
    task_list(studio, NOW, "a_0", project=gone)
    Project.objects.filter(pk=gone.pk).delete()
    assert follow.take_lists() == 1
    assert not FollowedTask.objects.exists() and project.followed_tasks.count() == 0


def test_tasks_of_the_sites_own_project_are_settled_one_by_one(studio: Host, own: Project) -> None:
    app = make_app()
    granted = make_success(make_workunit(app), studio, validate_state=ValidateState.VALID, granted_credit=12.5)
    pending = make_success(make_workunit(app), studio)
    running = make_result(make_workunit(app), studio)
    task_list(studio, NOW, granted.name, pending.name, running.name, "no_such_task", project=own)
    follow.take_lists()
    task_list(studio, NOW + HOUR, running.name, project=own)
    follow.follow(NOW + HOUR)
    found = followed()
    assert (found[granted.name].standing, found[granted.name].granted_credit) == (TaskCreditState.GRANTED, 12.5)
    assert (found[granted.name].ask_after, found[granted.name].settled_at) == (None, NOW + HOUR)
    assert found[pending.name].standing == TaskCreditState.PENDING and found[pending.name].ask_after == NOW + 2 * HOUR
    assert found[running.name].asks == 0

    pending.validate_state, pending.granted_credit = ValidateState.VALID, 3.25
    pending.save()
    follow.follow(NOW + 2 * HOUR)
    assert followed()[pending.name].granted_credit == 3.25
    # Unknown three times, after 1 and 2 hours more
    follow.follow(NOW + 2 * HOUR)
    assert followed()["no_such_task"].standing == TaskCreditState.OPEN
    follow.follow(NOW + 4 * HOUR)
    assert followed()["no_such_task"].standing == TaskCreditState.UNKNOWN
    assert followed()["no_such_task"].ask_after is None


def test_somebody_elses_task_is_not_told_of(studio: Host, own: Project, bob: User) -> None:
    his = make_success(
        make_workunit(make_app()), make_host(bob, "cellar"), validate_state=ValidateState.VALID, granted_credit=12.5
    )
    task_list(studio, NOW, his.name, project=own)
    for hours in (24, 25, 27):
        follow.follow(NOW + hours * HOUR)
    task = FollowedTask.objects.get()
    assert (task.standing, task.granted_credit) == (TaskCreditState.UNKNOWN, None)


def test_lists_are_forgotten_after_a_week_and_tasks_after_a_month(studio: Host) -> None:
    task_list(studio, NOW, "a_0", project=make_project())
    follow.follow(NOW + 7 * DAY)
    assert TaskList.objects.exists()
    follow.follow(NOW + 8 * DAY)
    assert not TaskList.objects.exists() and FollowedTask.objects.exists()
    follow.follow(NOW + 30 * DAY)
    assert FollowedTask.objects.exists()
    follow.follow(NOW + 31 * DAY)
    assert not FollowedTask.objects.exists()


def test_a_list_that_overtook_its_owners_wish_is_forgotten(studio: Host, alice: User) -> None:
    task_list(studio, NOW, "a_0", project=make_project())
    AccountSettings.objects.create(user=alice, sends_tasks=False)
    follow.follow(NOW)
    assert not TaskList.objects.exists() and not FollowedTask.objects.exists()


def test_merging_gives_the_tasks_to_the_record_in_use(alice: User) -> None:
    project = make_project()
    old, new = (
        make_host(alice, "attic", "2026-01-01", "2026-02-10"),
        make_host(alice, "attic", "2026-02-10", "2026-03-20"),
    )
    task_list(old, NOW - DAY, "both_0", "old_0", project=project)
    task_list(new, NOW, "both_0", "new_0", project=project)
    follow.take_lists()
    merge(alice.pk, old.pk, new.pk)
    assert set(FollowedTask.objects.values_list("host", "name")) == {
        (new.pk, name) for name in ("both_0", "old_0", "new_0")
    }
    assert [row.host for row in TaskList.objects.all()] == [new]


def test_nothing_of_an_erased_account_is_left(studio: Host, alice: User) -> None:
    task_list(studio, NOW, "a_0", project=make_project())
    follow.take_lists()
    ask_deletion(alice)
    assert erasure.erase_due(dt.datetime.now(dt.UTC) + GRACE + DAY) == 1
    assert not (TaskList.objects.exists() or FollowedTask.objects.exists() or HostLedger.objects.exists())
