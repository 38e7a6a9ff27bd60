"""What clients list is kept: bounded, of projects that the site knows, and only as their owners wish."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.account_data import copies
from accounting.models import DataCopyPart, FollowedTask, Project, TaskList
from accounting.preferences.save import save_client_display
from accounting.rpc.recognise import split
from accounting.running_tasks import follow
from accounting.wire.client_tasks import MAX_TASKS
from portal.models import User
from tests.support.am_rpc import attach, copy_of, credited, host_of, hours_pass, make_computer, post, sync, work
from tests.support.task_lists import DEADLINE, report, running
from tools.simulation.client import Task

pytestmark = pytest.mark.django_db


def test_a_client_is_asked_for_its_tasks_and_they_are_kept(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    assert computer.asked_for == "active"
    waiting = Task(projects[0].master_url, "later_0", DEADLINE)
    report(computer, running(projects[0], "alpha_1_0"), waiting)
    task_list = TaskList.objects.get()
    assert task_list.host == host_of(computer) and task_list.left_out == 0
    assert task_list.tasks == [
        {
            "project": projects[0].pk,
            "name": "alpha_1_0",
            "state": 1,
            "fraction_done": 0.25,
            "deadline": DEADLINE,
            "elapsed_secs": 0.0,
            "remaining_secs": 7200.0,
        }
    ]


def test_each_report_replaces_the_list(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    report(computer, running(projects[0], "alpha_1_0"))
    first = TaskList.objects.get().at
    report(computer, running(projects[1], "beta_1_0", 0.5))
    task_list = TaskList.objects.get()
    assert [task["name"] for task in task_list.tasks] == ["beta_1_0"] and task_list.at > first
    report(computer)
    assert TaskList.objects.get().tasks == []


def test_a_list_that_stays_empty_is_not_written_again(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    report(computer)
    first = TaskList.objects.get().at
    report(computer)
    assert TaskList.objects.get().at == first


def test_tasks_of_projects_that_the_site_does_not_know_are_only_counted(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    elsewhere = Task("https://private.example.net/", "secret_0", DEADLINE, process=(1, 2))
    report(computer, running(projects[0], "alpha_1_0"), elsewhere)
    task_list = TaskList.objects.get()
    assert "secret" not in json.dumps(task_list.tasks) and len(task_list.tasks) == task_list.left_out == 1


def test_a_task_belongs_to_the_project_under_the_address_that_its_client_has(
    alice: User, projects: list[Project]
) -> None:
    computer = attach(alice)
    other = projects[0].master_url.replace("https://", "HTTPS://", 1).removesuffix("/")
    report(computer, Task(other, "alpha_1_0", DEADLINE, process=(1, 2)), running(projects[0], "alpha_1_0"))
    task_list = TaskList.objects.get()
    assert [(task["project"], task["name"]) for task in task_list.tasks] == [(projects[0].pk, "alpha_1_0")]
    assert task_list.left_out == 1, "the same project's task of the same name"
    report(computer, Task(other, "alpha_2_0", DEADLINE, process=(1, 2)))
    task_list.refresh_from_db()
    assert ([task["name"] for task in task_list.tasks], task_list.left_out) == (["alpha_2_0"], 0)


def test_ten_thousand_tasks_keep_nobodys_work_from_counting(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, projects[0], 1)
    report(computer, *[running(projects[0], f"task_{n}_0") for n in range(10_000)])
    # An hour of one processor
    assert credited(computer, projects[0])[2] == 3600 * 10**6
    task_list = TaskList.objects.get()
    # The message is longer than what is read of it, so not all the others are known.
    assert len(task_list.tasks) == MAX_TASKS and task_list.left_out > 500


def test_strange_numbers_in_a_list_keep_nothing_from_counting(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, projects[0], 1)
    task = Task(projects[0].master_url, "alpha_1_0", float("nan"), 99, (-7, 10**9), float("inf"), -1.0, 1e304)
    report(computer, task)
    assert credited(computer, projects[0])[2] == 3600 * 10**6
    (task_list,) = TaskList.objects.get().tasks
    numbers = ("fraction_done", "deadline", "elapsed_secs", "remaining_secs")
    assert [task_list[number] for number in numbers] == [None] * 4


@pytest.mark.parametrize(("setting", "asked_for"), [("off", ""), ("active", "active"), ("all", "all")])
def test_the_site_asks_for_what_its_setting_says(
    alice: User, projects: list[Project], settings: Settings, setting: str, asked_for: str
) -> None:
    settings.AM_TASKS = setting
    computer = attach(alice)
    assert computer.asked_for == asked_for
    report(computer, running(projects[0], "alpha_1_0"), Task(projects[0].master_url, "later_0", DEADLINE))
    names = [task["name"] for task_list in TaskList.objects.all() for task in task_list.tasks]
    assert names == {"off": [], "active": ["alpha_1_0"], "all": ["alpha_1_0", "later_0"]}[setting]


def test_who_does_not_want_it_is_not_asked_and_what_was_kept_is_forgotten(
    alice: User, bob: User, projects: list[Project]
) -> None:
    hers, his = attach(alice), attach(bob, "cellar")
    for computer in (hers, his):
        report(computer, running(projects[0], f"{computer.name}_0"))
    follow.take_lists()
    save_client_display(alice, "", no_project_notices=False, sends_tasks=False)
    assert [task_list.host.owner for task_list in TaskList.objects.all()] == [bob]
    assert [task.name for task in FollowedTask.objects.all()] == ["cellar_0"]
    # A client that was asked before sends its list once more.
    assert hers.asked_for == "active"
    report(hers, running(projects[0], "studio_0"))
    assert hers.asked_for == "" and not TaskList.objects.filter(host__owner=alice).exists()
    report(his, running(projects[0], "cellar_1"))
    assert his.asked_for == "active"


def test_the_wish_is_saved_on_the_page(signed_in: Client, alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    report(computer, running(projects[0], "alpha_1_0"))
    assert "Show running tasks here" in signed_in.get("/account/preferences/").content.decode()
    signed_in.post("/account/preferences/shown/", {"team_name": "Owls"})
    assert not TaskList.objects.exists()
    signed_in.post("/account/preferences/shown/", {"team_name": "Owls", "sends_tasks": "on"})
    sync(computer)
    assert computer.asked_for == "active"


def test_a_first_contact_may_have_a_list(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    computer.asked_for = "active"
    computer.tasks = [running(projects[0], "alpha_1_0")]
    assert post(computer.request(time.time())).error == (0, "")
    assert [task["name"] for task in TaskList.objects.get().tasks] == ["alpha_1_0"]


def test_an_older_message_changes_no_list(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    report(computer, running(projects[0], "old_0"))
    hours_pass(computer, 1)
    older = computer.request(time.time())
    computer.tasks = [running(projects[0], "new_0")]
    post(computer.request(time.time() + 1))
    post(older)
    assert [task["name"] for task in TaskList.objects.get().tasks] == ["new_0"]


def test_after_a_split_each_record_has_the_list_of_its_own_client(alice: User, projects: list[Project]) -> None:
    one = attach(alice, "node")
    other = copy_of(one, cpid="f" * 32)
    report(one, running(projects[0], "one_0"))
    report(other, running(projects[0], "other_0"))
    record = host_of(other)
    assert split(alice.pk, record.pk, one.cpid, timezone.now())
    one.tasks = [running(projects[0], "one_1")]
    sync(one)
    lists = {task_list.host: [task["name"] for task in task_list.tasks] for task_list in TaskList.objects.all()}
    assert lists == {record: ["other_0"], host_of(one): ["one_1"]} and host_of(one) != record


def test_a_copy_of_ones_data_has_the_tasks(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    report(computer, running(projects[0], "alpha_1_0"))
    follow.take_lists()
    copy, _ = copies.ask_copy(alice)
    copies.make_copy(copy.pk)
    file = b"".join(part.content for part in DataCopyPart.objects.filter(copy=copy).order_by("number"))
    tasks = json.loads(zipfile.ZipFile(io.BytesIO(file)).read("tasks.json"))
    assert [row["tasks"][0]["name"] for row in tasks["listed"]] == ["alpha_1_0"]
    assert [row["name"] for row in tasks["followed"]] == ["alpha_1_0"]
