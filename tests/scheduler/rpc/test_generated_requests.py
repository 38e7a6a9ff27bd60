"""Generated computers, jobs and requests, checked against a model, made from the documents, of who may have each job.

No job is sent twice, or to anybody it is not for; nobody gets more than their limits; nothing that is needed is
deleted; and every reply can be read.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import pytest
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion, HostAppVersion, Membership, Result, ServerState, Team, Workunit
from portal.models import User
from scheduler.engine.lanes import Lane, is_for_one_person, is_of_size
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
    size_class: int


LIMITS = [2e9, 4e9]
"""Where the size classes of the apps begin."""
QUOTA = 3
"""Jobs a day for each of a computer's four processors."""
IN_PROGRESS = 2
"""Jobs in progress for each of these processors."""
APPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "classes": {"homogeneous_redundancy": "coarse"},
    "versions": {"homogeneous_app_version": True},
    "both": {"homogeneous_redundancy": "fine", "homogeneous_app_version": True},
    "sizes": {"n_size_classes": 3, "size_limits": LIMITS},
    "sizes_in_classes": {"n_size_classes": 3, "size_limits": LIMITS, "homogeneous_redundancy": "coarse"},
}
MAPS = ["1", "2", "3"]


def sticky(number: str) -> dict[str, Any]:
    """An input that computers keep."""
    url = f"https://data.example.org/map_{number}"
    return {"open_name": "map", "url": url, "nbytes": 4, "md5": number * 32, "sticky": True}


class World:
    """Three people in two teams, eight computers, and apps that bind workunits to a class, a version, both or neither,
    or have jobs of several sizes.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        teams = [Team.objects.create(name=f"Team {number}") for number in range(2)]
        self.apps = {name: make_app(name=name, max_jobs_per_day_init=QUOTA, **fields) for name, fields in APPS.items()}
        for app in self.apps.values():
            for platform in (LINUX, WINDOWS):
                make_version(app, 100, platform)
                make_version(app, 101, platform, min_client_version=72_000)
        self.targets: dict[int, dict[str, int]] = {}
        self.blocked: set[int] = set()
        self.kept: defaultdict[int, set[str]] = defaultdict(set)
        self.received: Counter[str] = Counter()
        self.nrequests = 0
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
        platform, size_class = LINUX if system == "Linux" else WINDOWS, self.draw.randrange(3)
        # What is assumed of a version is half of the benchmark: 1, 3 or 5 GFLOPS.
        flops = (2e9, 6e9, 1e10)[size_class]
        computer = Computer(key_of(user), ncpus=4, p_fpops=flops, os_name=system, platform=platform)
        return Machine(computer, user.pk, team.pk, system, 70_000 + release * 100, size_class)

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
        fields: dict[str, Any] = {
            **target,
            "app_version_num": number,
            "min_quorum": ncopies,
            "priority": self.draw.choice([0, 0, 5]),
        }
        if self.draw.random() < 0.3:
            fields["input_files"] = [sticky(self.draw.choice(MAPS))]
        jobs = [fields] * self.draw.randint(1, 4)
        self._submit(app, jobs, target)

    def submit_sizes(self) -> None:
        """Submit jobs of several sizes, and some that are for all computers."""
        app = self.draw.choice([self.apps["sizes"], self.apps["sizes"], self.apps["sizes_in_classes"]])
        common = {"min_quorum": self.draw.choice([1, 2]), "priority": self.draw.choice([0, 0, 5])}
        jobs = [{**common, "size_class": self.draw.choice([None, 0, 1, 2])} for _ in range(self.draw.randint(4, 12))]
        self._submit(app, jobs, {})

    def _submit(self, app: App, jobs: list[dict[str, Any]], target: dict[str, int]) -> None:
        batch, _ = submit(app, JOB, jobs, owner=None, now=timezone.now())
        self.targets.update(dict.fromkeys(batch.workunits.values_list("pk", flat=True), target))
        catalogue.forget()

    def block(self) -> None:
        """Block a computer, or end a block."""
        machine = self.draw.choice(self.machines)
        id_ = machine.computer.hostid
        if id_ in self.blocked:
            WorkBlock.objects.filter(host=id_).delete()
        else:
            WorkBlock.objects.create(host_id=id_, reason="It is broken.")
        self.blocked ^= {id_}
        catalogue.forget()

    def ask(self, machine: Machine) -> None:
        """It reports some of what it has, well or badly, and asks for some."""
        computer, draw = machine.computer, self.draw
        done = [name for name in computer.jobs if draw.random() < 0.5]
        ends = "".join(
            result_xml(name) if draw.random() < 0.7 else result_xml(name, state=3, exit_status=1) for name in done
        )
        minor = machine.client // 100 % 100
        had, kept = set(computer.jobs), self.kept[computer.hostid]
        better = self._of_its_size(machine)
        files = "".join(
            f"<file_info><name>{name}</name><nbytes>4</nbytes><status>1</status><sticky/></file_info>" for name in kept
        )
        reply = computer.ask(0, draw.randint(0, 4), results=ends, extra=files, core_client_minor_version=minor)
        self.nrequests += 1
        check_readable(reply)
        new = set(computer.jobs) - had
        self.received.update(new)
        assert not (new and computer.hostid in self.blocked)
        self._check_sizes(machine, new, better)
        self._check_deleted(computer.hostid, reply)
        kept |= set(re.findall(r"<name>(remote_\w+)</name>", reply))

    def _of_its_size(self, machine: Machine) -> dict[int, set[int]]:
        """The workunits of each app with results of this computer's size that wait and that it may have."""
        lane = Lane(size_class=machine.size_class).number
        waiting = Result.objects.filter(lane=lane, server_state=ServerState.UNSENT, priority__gte=0)
        may_have = waiting.exclude(workunit__results__user=machine.user_id)
        found: defaultdict[int, set[int]] = defaultdict(set)
        for app_id, workunit in may_have.values_list("app_id", "workunit_id"):
            found[app_id].add(workunit)
        return found

    def _check_sizes(self, machine: Machine, new: set[str], better: dict[int, set[int]]) -> None:
        """A computer that got a job of another size had none of its own left, or the job was more urgent."""
        results = list(Result.objects.filter(name__in=new).select_related("workunit", "app"))
        sent = {result.workunit_id for result in results}
        for result in results:
            size = result.workunit.size_class
            if size is None or size == machine.size_class or result.app.homogeneous_redundancy != "off":
                continue
            left = better.get(result.app_id, set()) - sent
            # A replacement that was sent before is more urgent than the copy that waits.
            waiting = Result.objects.filter(workunit__in=left, server_state=ServerState.UNSENT)
            urgent = set(waiting.filter(priority__gte=result.priority).values_list("workunit", flat=True))
            assert not urgent, f"{machine} got {result} although {urgent} of its size wait"

    def _check_deleted(self, host_id: int, reply: str) -> None:
        """Nothing that an open job of any batch needs is deleted."""
        deleted = set(re.findall("<delete_file_info>([^<]*)</delete_file_info>", reply))
        is_open = Workunit.objects.filter(canonical_result=None, error_mask=0)
        needed = {file["name"] for files in is_open.values_list("input_files", flat=True) for file in files}
        assert not deleted & needed
        self.kept[host_id] -= deleted

    def check(self) -> None:
        """Every result that was ever sent is where it may be."""
        machines = {machine.computer.hostid: machine for machine in self.machines}
        classes: defaultdict[int, set[str]] = defaultdict(set)
        versions: defaultdict[int, set[int]] = defaultdict(set)
        seen: set[tuple[int, int]] = set()
        assert set(self.received.values()) <= {1}
        today: Counter[tuple[int | None, int | None]] = Counter()
        here: Counter[int | None] = Counter()
        for result in Result.objects.filter(sent_at__isnull=False).select_related("workunit", "app", "app_version"):
            machine, workunit, version = machines[result.host_id or 0], result.workunit, result.app_version
            target = self.targets[workunit.pk]
            today[result.host_id, result.app_version_id] += 1
            here[result.host_id] += result.server_state == ServerState.IN_PROGRESS
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
            is_sized = workunit.size_class is not None and not workunit.hr_class
            assert is_of_size(workunit.lane) == is_sized
        # A test that runs over midnight has two days.
        assert max(today.values(), default=0) <= QUOTA * 4 * (1 + (timezone.now().hour == 0))
        assert max(here.values(), default=0) <= IN_PROGRESS * 4
        for workunit_id, app in Result.objects.values_list("workunit_id", "app__name").distinct():
            assert app not in ("classes", "both", "sizes_in_classes") or len(classes[workunit_id]) <= 1
            assert app not in ("versions", "both") or len(versions[workunit_id]) <= 1

    def _counts(self, result: Result) -> bool:
        """Whether others are compared with it."""
        return result.server_state == ServerState.IN_PROGRESS or result.outcome == 1


def run(seed: int, nsteps: int) -> World:
    world = World(seed)
    for step in range(nsteps):
        if step % 4 == 0:
            world.submit()
        if step % 6 == 0:
            world.submit_sizes()
        if step % 11 == 10:
            world.block()
        if step % 3 == 0:
            transitioner.run(timezone.now())
            catalogue.forget()
        world.ask(world.draw.choice(world.machines))
    return world


def check_readable(reply: str) -> None:
    """Check that the reply is XML, and that whatever a job refers to is in it."""
    root = ElementTree.fromstring(reply)
    names = {kind: {each.findtext("name") for each in root.iter(kind)} for kind in ("workunit", "file_info", "app")}
    for result in root.iter("result"):
        if result.find("report_deadline") is not None and result.find("wu_name") is not None:
            assert result.findtext("wu_name") in names["workunit"]
    for each in (*root.iter("workunit"), *root.iter("app_version")):
        assert each.findtext("app_name") in names["app"]
    for ref in root.iter("file_ref"):
        assert (ref.findtext("file_name") or "") in names["file_info"]


@pytest.fixture(autouse=True)
def at_once(settings: Settings) -> None:
    settings.MIN_SENDWORK_INTERVAL_SECS = 0
    settings.MAX_JOBS_IN_PROGRESS = IN_PROGRESS
    settings.REMOTE_INPUT_HOSTS = ["data.example.org"]
    # Otherwise a job of a computer's size may be kept for others, as all keys are new.
    settings.SEPARATE_REPLICAS = "off"


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 80))])
def test_every_job_goes_only_to_whom_it_may(seed: int) -> None:
    world = run(seed, 60)
    world.check()
    assert world.nrequests == 60
    assert Result.objects.filter(sent_at__isnull=False).count() > 20


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 26))])
def test_whoever_is_blocked_or_too_old_gets_nothing_and_everything_else_is_sent(seed: int, settings: Settings) -> None:
    world = run(seed, 16)
    blocked = world.draw.choice(world.machines)
    WorkBlock.objects.get_or_create(host_id=blocked.computer.hostid, defaults={"reason": "It is broken."})
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
    # The limits for a day and for jobs in progress hold nothing back either.
    settings.MAX_JOBS_IN_PROGRESS = 1000
    App.objects.update(max_jobs_per_day_init=1000)
    HostAppVersion.objects.update(max_jobs_per_day=1000)
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
