"""A computer's emulation has what it reported to the account manager: preferences, availability and tasks."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounting.models import HostLedger, HostProject, Project
from accounting.preferences.save import save_set
from emulator.engine.scenario import CPU, DayHours, Hours, Scenario, StartState, Use
from emulator.files.owner import IN_USE
from emulator.pages.host_scenario import scenario_of
from emulator.runs.sweeps import with_parameters
from portal.models import Host, User
from tests.support.am_rpc import attach, host_of
from tests.support.emulator_experiments import carry_out, trial
from tests.support.page_text import text_of
from tests.support.task_lists import DEADLINE, report, running
from tools.simulation.client import Task

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


def scenario_for(alice: User, *tasks: Task, **preferences: float) -> Scenario:
    if preferences:
        save_set(alice, "", preferences, {0: {"start_hour": 0, "end_hour": 24}})
    computer = attach(alice)
    if tasks:
        report(computer, *tasks)
    return scenario_of(alice, host_of(computer), timezone.now())


def test_it_has_the_tasks_of_its_list(alice: User, projects: list[Project]) -> None:
    scenario = scenario_for(alice, running(projects[0], "alpha_1_0"))
    (job,) = scenario.jobs
    assert (job.project, job.name, job.state) == (projects[0].name, "alpha_1_0", StartState.RUNNING)
    # 7,200 s remain, and 0 s have passed: a quarter of its work is done, and none of its time.
    assert job.size_flop == pytest.approx(7200 * scenario.host.processors[0].peak_flops)
    (app,) = [app for app in scenario.project(projects[0].name).apps if app.versions[0].kind == CPU]
    assert app.size.mean == pytest.approx(job.size_flop)
    assert any(projects[0].name in note for note in map(str, scenario.notes))
    assert any("tasks that the client listed (1)" in note for note in map(str, scenario.notes))
    assert 0 <= scenario.week_secs < 7 * 86400
    assert job.deadline_secs == pytest.approx(DEADLINE - timezone.now().timestamp(), abs=7200)


def test_it_has_the_preferences_of_its_place(alice: User, projects: list[Project]) -> None:
    scenario = scenario_for(
        alice,
        start_hour=22,
        end_hour=6,
        net_start_hour=1,
        net_end_hour=2,
        cpu_usage_limit=70,
        max_ncpus_pct=50,
        run_if_user_active=0,
        ram_max_used_busy_pct=40,
    ).preferences
    assert scenario.compute_hours == Hours(22, 6, (DayHours(0, 0, 24),))
    assert scenario.network_hours == Hours(1, 2)
    assert (scenario.cpu_usage_percent, scenario.max_cpus_percent, scenario.ram_busy_fraction) == (70, 50, 0.4)
    assert not scenario.run_if_user_active


def test_it_is_on_as_its_client_measured(alice: User, projects: list[Project]) -> None:
    """On 90 % and active 95 %, of 8 hours a day that preferences allow: so all of these."""
    scenario = scenario_for(alice, start_hour=22, end_hour=6, run_if_user_active=0)
    assert scenario.host.on.fraction == 0.9
    assert scenario.host.active.fraction == 1.0
    assert scenario.host.in_use == Use()


def test_without_a_measurement_use_is_assumed(alice: User, projects: list[Project]) -> None:
    save_set(alice, "", {"run_if_user_active": 0})
    host = host_of(attach(alice))
    HostLedger.objects.filter(host=host).update(contact={})
    scenario = scenario_of(alice, host, timezone.now())
    assert scenario.host.in_use == IN_USE
    assert any("6 h a day" in note for note in map(str, scenario.notes))


def test_wishes_for_the_computer_hold(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    HostProject.objects.filter(host=host_of(computer), project=projects[0]).update(no_new_work=True)
    scenario = scenario_of(alice, host_of(computer), timezone.now())
    assert scenario.project(projects[0].name).no_new_tasks
    assert with_parameters(scenario, {}) == scenario


@pytest.mark.system
def test_a_computers_page_leads_to_the_answer(signed_in: Client, alice: User, projects: list[Project]) -> None:
    """Two tasks of 30 hours on one CPU, due in two days: one of them must be late, and the answer names it."""
    computer = attach(alice)
    tasks = [running(projects[0], f"long_{number}_0") for number in (1, 2)]
    for task in tasks:
        task.deadline_secs = (timezone.now() + 2 * DAY).timestamp()
        task.remaining_secs = 30 * 3600.0
    report(computer, *tasks)
    host = host_of(computer)
    Host.objects.filter(pk=host.pk).update(ncpus=1, coprocs=[])
    address = signed_in.post(reverse("emulate_computer", args=[host.pk]))["Location"]
    experiment = host.owner.experiments.get()
    set_up = text_of(signed_in.get(address))
    assert "tasks that the client listed (2)" in set_up
    signed_in.post(address, trial(experiment, days="5"))
    carry_out()
    answer = text_of(signed_in.get(address)).partition("The answer")[2]
    assert "of long_" not in answer and ("long_1_0" in answer or "long_2_0" in answer)
    assert "after its deadline" in answer
    german = text_of(signed_in.get(address, headers={"Accept-Language": "de"}))
    assert "Die Antwort" in german and "nach ihrer Frist" in german
