"""A real client in a state of one's choice, to ask a policy what it would do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from emulator.engine.client import Client
from emulator.engine.kernel import simulations
from emulator.engine.policies.in_arrays import ArrayPolicy, missed_numbers
from emulator.engine.policies.rec import Rec
from emulator.engine.policy import Policy
from emulator.engine.quirks import Quirks
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Host,
    Normal,
    Processor,
    Project,
    Scenario,
    Standing,
    StartJob,
    Version,
)
from emulator.engine.state import Job
from emulator.engine.table import Table
from emulator.engine.timeline.recorder import DecisionLog

HOUR_SECS = 3600.0
GPU = "NVIDIA"


class OnObjects:
    """A policy of the project like one from outside: its run is made on objects."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)


def cpu_app(hours: float = 1.0) -> App:
    """Jobs of this many hours on one CPU of 1 GFLOPS, with ten days' time."""
    size = Normal(hours * HOUR_SECS * 1e9)
    return App("cpu", (Version(1e9),), size, size, 10 * DAY_SECS)


def gpu_app(hours: float = 1.0) -> App:
    """Jobs of this many hours on one GPU of 2 GFLOPS."""
    size = Normal(hours * HOUR_SECS * 2e9)
    return App("gpu", (Version(2e9, cpus=0.01, gpu=GPU, gpus=1.0),), size, size, 10 * DAY_SECS)


def project(name: str, share: float, *apps: App, debt_secs: float = 0.0, ltd_secs: float = 0.0) -> Project:
    """A project with a debt of 2005, or a long-term debt for the CPU, to begin with."""
    return Project(name, share, apps, standing=Standing(ltd_secs=((CPU, ltd_secs),), debt_secs=debt_secs))


def scenario(*projects: Project, cpus: int = 1, gpu: bool = False) -> Scenario:
    """Those projects on a computer of this many CPUs, perhaps with a GPU; the buffer is 0.1 + 0.5 days."""
    processors = [Processor(CPU, cpus, 1e9)]
    if gpu:
        processors.append(Processor(GPU, 1, 2e9))
    return Scenario(Host(tuple(processors)), projects)


def with_jobs(what: Scenario, **hours: tuple[float, ...]) -> Scenario:
    """The scenario with CPU jobs that are there at the start: by project, how many hours each takes."""
    jobs = tuple(
        StartJob(name, "cpu", length * HOUR_SECS * 1e9, length * HOUR_SECS * 1e9, 10 * DAY_SECS)
        for name, lengths in hours.items()
        for length in lengths
    )
    return replace(what, jobs=jobs)


def client_of(what: Scenario) -> Client:
    """The client at its start, without the scenario's jobs."""
    return Client(what, 1, Quirks(), None, DecisionLog(0.0, 0.0))


def give(client: Client, project: int, hours: float, app: int = 0) -> Job:
    """The project's server has sent a job that takes this long."""
    offer = client.all_projects[project].apps[app].offers[0]
    flop = hours * HOUR_SECS * offer.flops
    job = client.server.job(offer, flop, flop, 0.0, 10 * DAY_SECS)
    client.arrive(job)
    return job


class RankedBy(Rec):
    """The modern policy with ranks of projects, and by how much they grow per counted FLOP, as a test has them."""

    def __init__(self, ranks: Mapping[int, float], units: Mapping[int, float], *, by_letter: bool) -> None:
        super().__init__()
        self.ranks = ranks
        self.units = units
        self.by_letter = by_letter

    def load(self, t: Table) -> None:
        super().load(t)
        t.run[0]["growth"], t.run[0]["by_letter"] = 1.0, self.by_letter
        for index, unit in self.units.items():
            t.projects[index]["inverse"] = unit
            t.projects[index]["done_flop"] = self.ranks[index] / unit if unit else 0.0


def ranked_by(
    client: Client, ranks: Mapping[int, float], units: Mapping[int, float], *, by_letter: bool = False
) -> RankedBy:
    """That policy, for a client."""
    policy = RankedBy(ranks, units, by_letter=by_letter)
    policy.begin(client)
    return policy


def forecast_of(policy: ArrayPolicy, now: float, horizon_secs: float | None = None) -> tuple[list[float], ...]:
    """Per kind of processor: idle instances, saturated times and shortfalls; up to the end of the buffer or so far."""
    t = policy.table()
    if horizon_secs is not None:
        t.run[0]["buffer_total_secs"] = horizon_secs
    t.run[0]["sim_at"] = -1.0
    simulations.forecast(t, now)
    return tuple(t.kinds[name].tolist() for name in ("idle", "saturated_secs", "shortfall_secs"))


def late_jobs(policy: ArrayPolicy, now: float) -> list[list[int]]:
    """Per kind, the numbers of the jobs that would miss their deadlines, by deadline."""
    t = policy.table()
    simulations.judge(t, now)
    return missed_numbers(t)


def busy_secs(policy: ArrayPolicy, now: float) -> list[float]:
    """Per kind, how long all instances are busy with those."""
    t = policy.table()
    t.run[0]["by_letter"] = 1
    simulations.find_delays(t, 0, now)
    return list(t.kinds["delay_secs"].tolist())
