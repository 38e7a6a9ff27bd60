"""Simulated computers that report to the real ledger, on a clock that is passed in; for demo data and tests."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from accounting.engine.choice.facts import CPU
from accounting.rpc import answer as rpc_answer
from accounting.rpc import catalogue
from accounting.wire.requests import parse_request
from portal.clients import sync_driver
from tools.simulation.client import Attachment, Device, SimulatedComputer, Task

HOUR_SECS: Final = 3600.0
MAX_TASKS: Final = 8
RUNNING_PART: Final = 0.7
CALLS_EVERY: Final = dt.timedelta(hours=6)
JOB_SECS: Final = (3 * HOUR_SECS, HOUR_SECS / 2)
"""The length of a job on a CPU and on a GPU."""
FIRST_CALLS: Final = (dt.timedelta(0), dt.timedelta(minutes=2), dt.timedelta(minutes=4))


@dataclass(frozen=True, slots=True)
class ProjectWork:
    """A computer's work for one project between two contacts; ``failed`` of its CPU and GPU jobs failed."""

    since: dt.datetime
    until: dt.datetime
    cpu_secs: float
    gpu_secs: float
    cpu_jobs: int
    gpu_jobs: int
    failed: int


@dataclass(frozen=True, slots=True)
class UsagePattern:
    """How a computer is used: its hours (UTC), whether at weekends, the fraction of its processors in use."""

    first_hour: int = 0
    last_hour: int = 24
    weekends: bool = True
    usage: float = 0.9
    # Chance of a whole day without it.
    absent: float = 0.03
    # Days after the fleet's start when it joins, and after which it is never seen again.
    joins_day: int = 0
    leaves_day: int | None = None
    gpu_usage: float = 0.6
    failing: float = 0.02


HARDWARE: Final = (
    (SimulatedComputer("studio", "", ncpus=16, p_fpops=5_200_000_000, p_model="AMD Ryzen 9 5950X 16-Core Processor",
                       devices=(Device("NVIDIA", "NVIDIA GeForce RTX 3070", 1, 20_310_000_000_000),),
                       ram_bytes=32 << 30, version="8.0.2"), UsagePattern(7, 23, True, 0.8)),
    (SimulatedComputer("attic-pc", "", ncpus=4, p_fpops=3_100_000_000, p_model="Intel(R) Core(TM) i5-6500 CPU",
                       ram_bytes=8 << 30), UsagePattern(usage=0.95, leaves_day=81)),
    (SimulatedComputer("laptop", "", ncpus=8, p_fpops=4_400_000_000, p_model="11th Gen Intel(R) Core(TM) i7-1165G7",
                       os_name="Microsoft Windows 11", os_version="Professional x64 Edition, (10.00.22631.00)",
                       devices=(Device("intel_gpu", "Intel(R) Iris(R) Xe Graphics", 1, 1_690_000_000_000, 3 << 30),)),
     UsagePattern(8, 18, False, 0.5, absent=0.1, gpu_usage=0.2)),
    (SimulatedComputer("nas", "", ncpus=4, p_fpops=1_900_000_000, p_model="Intel(R) Celeron(R) J4125 CPU @ 2.00GHz",
                       ram_bytes=4 << 30, version="8.2.4"), UsagePattern(usage=0.6, joins_day=40, absent=0.0)),
)  # fmt: skip


@dataclass(slots=True)
class SimulatedHost:
    """One simulated computer in action: its hardware, its use, and its own random numbers."""

    computer: SimulatedComputer
    pattern: UsagePattern
    rng: random.Random
    last_at: dt.datetime | None = None
    stretches: dict[str, list[ProjectWork]] = field(default_factory=dict)

    def calls(self, start: dt.datetime, end: dt.datetime) -> Iterator[dt.datetime]:
        """Return when it contacts the manager: three times at the attach, then every six hours while it is on."""
        first = start + dt.timedelta(days=self.pattern.joins_day, hours=8, minutes=self.rng.randrange(60))
        last = end if self.pattern.leaves_day is None else start + dt.timedelta(days=self.pattern.leaves_day)
        for after in FIRST_CALLS:
            if first + after < min(end, last):
                yield first + after
        moment = first + CALLS_EVERY
        while moment < min(end, last):
            if self._is_on(moment):
                yield moment
            moment += CALLS_EVERY + dt.timedelta(seconds=self.rng.randrange(600))

    def _is_on(self, moment: dt.datetime) -> bool:
        day = moment.date().toordinal()
        # The same answer for all hours of a day, whoever asks first.
        absent = random.Random(f"{self.computer.name} {day}").random() < self.pattern.absent
        weekday = moment.weekday() < 5 or self.pattern.weekends
        return self.pattern.first_hour <= moment.hour < self.pattern.last_hour and weekday and not absent

    def work_until(self, now: dt.datetime) -> None:
        """Do the computer's work between two contacts: hours on, times the processors in use, by share."""
        if self.last_at is not None and self.computer.projects:
            on_secs = self._on_secs(self.last_at, now)
            load = 0.85 + 0.15 * math.sin(now.date().toordinal() / 4) + self.rng.uniform(-0.05, 0.05)
            cpu_secs = on_secs * self.computer.ncpus * min(1.0, self.pattern.usage * load)
            gpu_secs = on_secs * sum(d.count for d in self.computer.devices) * self.pattern.gpu_usage * load
            self._distribute(cpu_secs, gpu_secs, self.last_at, now)
            self._go_on_with_tasks(on_secs, now)
        self.last_at = now

    def _go_on_with_tasks(self, on_secs: float, now: dt.datetime) -> None:
        """Advance every running task; finished ones make room for the next of the projects."""
        # Separate random numbers: those of the work do not change.
        rng = random.Random(f"{self.computer.name} {now.timestamp()}")
        # Without this site's own project, whose tasks are real rows: it would not know these.
        projects = sorted(url for url in self.computer.projects if url != settings.PROJECT_URL)
        tasks_left = []
        for task in self.computer.tasks:
            whole = task.elapsed_secs + task.remaining_secs
            task.elapsed_secs += on_secs * rng.uniform(0.8, 1.0)
            task.remaining_secs = whole - task.elapsed_secs
            task.fraction_done = task.elapsed_secs / whole
            if task.remaining_secs > 0 and task.url in self.computer.projects:
                tasks_left.append(task)
        while projects and len(tasks_left) < min(MAX_TASKS, max(2, self.computer.ncpus // 2)):
            url = projects[rng.randrange(len(projects))]
            name = f"{url.split('/')[2].split('.')[0]}_{rng.randrange(10**6):06}_{rng.randrange(2)}"
            hours = rng.uniform(3, 40)
            begun = rng.uniform(0, 0.6)
            tasks_left.append(
                Task(
                    url,
                    name,
                    (now + dt.timedelta(days=rng.uniform(3, 12))).timestamp(),
                    process=(1, 2) if rng.random() < RUNNING_PART else (9, 1),
                    fraction_done=begun,
                    remaining_secs=hours * HOUR_SECS * (1 - begun),
                    elapsed_secs=hours * HOUR_SECS * begun,
                )
            )
        self.computer.tasks = tasks_left

    def _on_secs(self, since: dt.datetime, now: dt.datetime) -> float:
        secs, moment = 0.0, since
        while moment < now:
            following = min(now, moment.replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1))
            if self._is_on(moment):
                secs += (following - moment).total_seconds()
            moment = following
        return secs

    def _distribute(self, cpu_secs: float, gpu_secs: float, since: dt.datetime, until: dt.datetime) -> None:
        projects = list(self.computer.projects.values())
        weights = [project.share * self.rng.uniform(0.6, 1.4) for project in projects]
        on_cpu = _parts(projects, weights, (CPU,))
        on_gpu = _parts(projects, weights, [device.type for device in self.computer.devices])
        for project, cpu_part, gpu_part in zip(projects, on_cpu, on_gpu, strict=True):
            on_each = cpu_secs * cpu_part, gpu_secs * gpu_part
            cpu_jobs, gpu_jobs = (
                int(secs / job_secs + self.rng.random()) for secs, job_secs in zip(on_each, JOB_SECS, strict=True)
            )
            failed = sum(self.rng.random() < self.pattern.failing for _ in range(cpu_jobs + gpu_jobs))
            project.work(self.computer, *on_each, (cpu_jobs + gpu_jobs - failed, failed))
            self.stretches.setdefault(project.url, []).append(
                ProjectWork(since, until, *on_each, cpu_jobs, gpu_jobs, failed)
            )


def _parts(projects: Sequence[Attachment], weights: Sequence[float], types: Sequence[str]) -> list[float]:
    """Return each project's fraction of the time of these processors: by weight, among those with programs for them."""
    able = [weight * _has_programs(project.url, types) for project, weight in zip(projects, weights, strict=True)]
    return [weight / (sum(able) or 1) for weight in able]


def _has_programs(url: str, types: Sequence[str]) -> bool:
    project = catalogue.current().at(url)
    versions = project.facts.versions if project is not None else frozenset()
    return not versions or any(type_ in types for _, type_ in versions)


def assemble(
    email: str, password: str, seed: int, hardware: Sequence[tuple[SimulatedComputer, UsagePattern]] = HARDWARE
) -> list[SimulatedHost]:
    """Build the computers of one volunteer, each with its own name; the same seed makes the same fleet."""
    hosts = []
    names: Counter[str] = Counter()
    for number, (model, pattern) in enumerate(hardware):
        names[model.name] += 1
        copy = names[model.name]
        rng = random.Random(f"{seed} {email} {number}")
        computer = SimulatedComputer(
            name=model.name if copy == 1 else f"{model.name}-{copy}",
            cpid=f"{rng.getrandbits(128):032x}",
            email=email,
            password=password,
            ncpus=model.ncpus,
            p_fpops=model.p_fpops,
            p_model=model.p_model,
            os_name=model.os_name,
            os_version=model.os_version,
            devices=model.devices,
            ram_bytes=model.ram_bytes,
            version=model.version,
        )
        hosts.append(SimulatedHost(computer, pattern, rng))
    return hosts


Call = tuple[dt.datetime, int]
"""A contact: its moment, and the number of the host."""


def schedule(hosts: Sequence[SimulatedHost], start: dt.datetime, end: dt.datetime) -> list[Call]:
    """Return when each host contacts the manager, in order of time."""
    return sorted((moment, number) for number, host in enumerate(hosts) for moment in host.calls(start, end))


def play(
    hosts: Sequence[SimulatedHost], calls: Sequence[Call], progress: Callable[[int], None] = lambda _done: None
) -> None:
    """Let the hosts work, and report at these moments."""
    for done, (moment, number) in enumerate(calls):
        host = hosts[number]
        host.work_until(moment)
        request = parse_request(host.computer.request(moment.timestamp()))
        # One address each, as logins are limited by address.
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        host.computer.apply_reply(sync_driver.run(rpc_answer.answer(request, now=moment, address=address)))
        progress(done)


def run(
    hosts: Sequence[SimulatedHost],
    start: dt.datetime,
    end: dt.datetime,
    progress: Callable[[int], None] = lambda _done: None,
) -> int:
    """Let the hosts work and report from ``start`` to ``end``; return the number of RPCs."""
    calls = schedule(hosts, start, end)
    play(hosts, calls, progress)
    return len(calls)
