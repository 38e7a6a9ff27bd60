"""Generated computers, jobs and requests, against a model of whom each job may go to, written from the documents."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion, Membership, Result, ServerState, Team
from portal.models import User
from scheduler.engine.lanes import is_for_one_person
from scheduler.lifecycle import transitioner
from scheduler.models import WorkBlock
from scheduler.programs import catalogue
from scheduler.submission.submit import submit
from tests.support.credit_factories import make_app, make_version
from tests.support.scheduler_clients import Computer, key_of, result_xml

pytestmark = pytest.mark.django_db

LINUX, WINDOWS = "x86_64-pc-linux-gnu", "windows_x86_64"
JOB = {"fpops_est": 1e10, "output_files": [{"open_name": "out", "max_nbytes": 100, "optional": True}]}


@dataclass(frozen=True)
class Machine:
    """A computer of the model. ``client``: BOINC's version as servers write it."""

    computer: Computer
    user_id: int
    team_id: int
    system: str
    client: int


APPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "classes": {"homogeneous_redundancy": "coarse"},
    "versions": {"homogeneous_app_version": True},
    "both": {"homogeneous_redundancy": "fine", "homogeneous_app_version": True},
}


class World:
    """Three people in two teams, eight computers, and apps that bind workunits to a class, a version, both, or none."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        teams = [Team.objects.create(name=f"Team {number}") for number in range(2)]
        self.apps = {name: make_app(name=name, max_jobs_per_day_init=1000, **fields) for name, fields in APPS.items()}
        for app in self.apps.values():
            for platform in (LINUX, WINDOWS):
                make_version(app, 100, platform)
                make_version(app, 101, platform, min_client_version=72_000)
        self.targets: dict[int, dict[str, int]] = {}
        self.machines = [self._machine(number, teams) for number in range(8)]
        catalogue.forget()
        for machine in self.machines:
            machine.computer.ask()

    def _machine(self, number: int, teams: list[Team]) -> Machine:
        name = f"volunteer{number % 3}@example.org"
        user = User.objects.filter(email=name).first() or User.objects.create_user(name, "secret", name=name)
        team = teams[user.pk % 2]
        Membership.objects.get_or_create(user=user, defaults={"team": team})
        system, release = self.draw.choice(["Linux", "Windows"]), self.draw.choice([16, 20])
        computer = Computer(key_of(user), ncpus=4, os_name=system, platform=LINUX if system == "Linux" else WINDOWS)
        machine = Machine(computer, user.pk, team.pk, system, 70_000 + release * 100)
        return machine

    def submit(self) -> None:
        """Jobs of an app: for all, for a target, for a version, or both."""
        app = self.draw.choice(list(self.apps.values()))
        machine = self.draw.choice(self.machines)
        target = self.draw.choice(
            [
                {},
                {},
                {"target_host": machine.computer.hostid},
                {"target_user": machine.user_id},
                {"target_team": machine.team_id},
            ]
        )
        number = self.draw.choice([0, 0, 100, 101])
        ncopies = 1 if target.keys() & {"target_host", "target_user"} else self.draw.choice([1, 2])
        jobs = [{**target, "app_version_num": number, "min_quorum": ncopies}] * self.draw.randint(1, 4)
        batch, _ = submit(app, JOB, jobs, owner=None, now=timezone.now())
        self.targets.update(dict.fromkeys(batch.workunits.values_list("pk", flat=True), target))

    def ask(self, machine: Machine) -> None:
        """It reports some of what it has, well or badly, and asks for some."""
        computer, draw = machine.computer, self.draw
        done = [name for name in computer.jobs if draw.random() < 0.5]
        ends = "".join(
            result_xml(name) if draw.random() < 0.7 else result_xml(name, state=3, exit_status=1) for name in done
        )
        minor = machine.client // 100 % 100
        computer.ask(0, draw.randint(0, 4), results=ends, core_client_minor_version=minor)

    def check(self) -> None:
        """Every result that was ever sent is where it may be."""
        machines = {machine.computer.hostid: machine for machine in self.machines}
        classes: defaultdict[int, set[str]] = defaultdict(set)
        versions: defaultdict[int, set[int]] = defaultdict(set)
        seen: set[tuple[int, int]] = set()
        for result in Result.objects.filter(sent_at__isnull=False).select_related("workunit", "app", "app_version"):
            machine, workunit, version = machines[result.host_id or 0], result.workunit, result.app_version
            target = self.targets[workunit.pk]
            assert target.get("target_host", machine.computer.hostid) == machine.computer.hostid
            assert target.get("target_user", machine.user_id) == machine.user_id
            assert target.get("target_team", machine.team_id) == machine.team_id
            assert version is not None
            assert workunit.app_version_num in (0, version.version_num)
            assert machine.client >= version.min_client_version
            # One copy for each volunteer, unless nobody else may have those that replace it
            is_again = (workunit.pk, machine.user_id) in seen
            assert not is_again or is_for_one_person(workunit.lane, workunit.min_quorum)
            seen.add((workunit.pk, machine.user_id))
            if self._counts(result):
                classes[workunit.pk].add(machine.system)
                versions[workunit.pk].add(version.pk)
            waiting = workunit.results.filter(server_state=ServerState.UNSENT)
            assert set(waiting.values_list("lane", flat=True)) <= {workunit.lane}
        for workunit_id, app in Result.objects.values_list("workunit_id", "app__name").distinct():
            assert app not in ("classes", "both") or len(classes[workunit_id]) <= 1
            assert app not in ("versions", "both") or len(versions[workunit_id]) <= 1

    def _counts(self, result: Result) -> bool:
        """Whether others are compared with it."""
        return result.server_state == ServerState.IN_PROGRESS or result.outcome == 1


def run(seed: int, nsteps: int) -> World:
    world = World(seed)
    for step in range(nsteps):
        if step % 4 == 0:
            world.submit()
        if step % 3 == 0:
            transitioner.run(timezone.now())
            catalogue.forget()
        world.ask(world.draw.choice(world.machines))
    return world


@pytest.fixture(autouse=True)
def at_once(settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 0


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))])
def test_every_job_goes_only_to_whom_it_may(seed: int) -> None:
    world = run(seed, 60)
    world.check()
    assert Result.objects.filter(sent_at__isnull=False).count() > 20


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 26))])
def test_whoever_is_blocked_or_too_old_gets_nothing_and_everything_else_is_sent(seed: int) -> None:
    world = run(seed, 16)
    blocked = world.draw.choice(world.machines)
    WorkBlock.objects.create(host_id=blocked.computer.hostid, reason="It is broken.")
    catalogue.forget()
    had = Result.objects.filter(host=blocked.computer.hostid).count()
    for _ in range(6):
        for machine in world.machines:
            world.ask(machine)
        transitioner.run(timezone.now())
        catalogue.forget()
    world.check()
    assert Result.objects.filter(host=blocked.computer.hostid).count() == had
    AppVersion.objects.update(min_client_version=72_000)
    App.objects.update(homogeneous_redundancy="off", homogeneous_app_version=False, one_result_per_user=False)
    WorkBlock.objects.all().delete()
    catalogue.forget()
    # Nothing is left that any of the computers may have: who can run a version of 7.20 gets what is for it.
    for _ in range(8):
        for machine in world.machines:
            machine.computer.ask(0, 4, core_client_minor_version=machine.client // 100 % 100)
        catalogue.forget()
    able = {machine.computer.hostid: machine for machine in world.machines if machine.client >= 72_000}
    for result in Result.objects.filter(server_state=ServerState.UNSENT).select_related("workunit"):
        target = world.targets[result.workunit_id]
        assert not any(
            target.get("target_host", machine.computer.hostid) == machine.computer.hostid
            and target.get("target_user", machine.user_id) == machine.user_id
            and target.get("target_team", machine.team_id) == machine.team_id
            for machine in able.values()
        ), f"{result} waits for a computer that has asked for it"
