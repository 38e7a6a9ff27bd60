"""The round-robin simulation against the documents' words, carried out literally."""

from __future__ import annotations

from random import Random

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.kernel.bounds import DOUBT, MIN_MARGIN_SECS, least_saturated_secs
from emulator.engine.quirks import Quirks
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    ExcludedGpu,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import DecisionLog
from tests.support.emulated_client import RankedBy, forecast_of, late_jobs, ranked_by
from tests.support.literal_round_robin import Case, literally

GPUS = ("NVIDIA", "AMD")


def random_version(draw: Random, kinds: int) -> Version:
    if kinds and draw.random() < 0.4:
        return Version(1e9, draw.choice([0.1, 0.5, 1.0]), draw.choice(GPUS[:kinds]), draw.choice([0.25, 0.3, 1.0, 2.0]))
    return Version(1e9, draw.choice([1.0, 1.0, 1.0, 0.5, 2.0, 1.5]) if kinds else 1.0)


def random_app(name: str, draw: Random, kinds: int) -> App:
    flop = draw.choice([0.2, 0.5, 1.0, 2.0, 5.0, 12.0]) * draw.uniform(0.7, 1.3) * 3600e9
    size, estimate = Normal(flop, 0.3 * flop), Normal(flop, 0.2 * flop)
    limit = draw.choice([0, 0, 0, 1, 2]) if kinds else 0
    return App(name, (random_version(draw, kinds),), size, estimate, 100 * DAY_SECS, max_concurrent=limit)


def random_project(number: int, draw: Random, kinds: int) -> Project:
    apps = tuple(random_app(name, draw, kinds) for name in "ab"[: draw.randint(1, 2)])
    limit = draw.choice([0, 0, 0, 1, 3]) if kinds else 0
    suspended = draw.random() < 0.15
    excluded: tuple[ExcludedGpu, ...] = ()
    if kinds and draw.random() < 0.3:
        excluded = (ExcludedGpu(GPUS[0], draw.randint(0, 1), draw.choice(["", "a"])),)
    return Project(
        f"P{number}",
        draw.choice([10, 50, 100]),
        apps,
        suspended=suspended,
        max_concurrent=limit,
        excluded_gpus=excluded,
    )


def random_case(seed: int, *, latest_deadline_days: float = 100.0) -> Case:
    """Half of them with CPUs and jobs on one of them each alone, which the engine has a quick form for."""
    draw = Random(seed)
    kinds = draw.choice([0, 0, 1, 2])
    up = Availability(draw.choice([1.0, 1.0, 0.6]))
    processors = [Processor(CPU, draw.randint(1, 6), 1e9)]
    processors += [Processor(name, draw.randint(1, 3), 5e9, 0.2) for name in GPUS[:kinds]]
    host = Host(tuple(processors), up, active=Availability(draw.choice([1.0, 0.8])), gpu_active=up)
    projects = tuple(random_project(number, draw, kinds) for number in range(draw.randint(1, 4)))
    preferences = Preferences(0.1, draw.choice([0.1, 0.5, 1.0]), period_secs=draw.choice([1800.0, 3600.0]))
    client = Client(Scenario(host, projects, preferences), seed, Quirks(), None, DecisionLog(0.0, 0.0))
    offers = [offer for project in client.projects for app in project.apps for offer in app.offers]
    came = [offer for offer in offers for _ in range(draw.randint(0, 8))]
    draw.shuffle(came)
    for offer in came:
        size, estimate = (draw.uniform(0.5, 1.5) * offer.app.app.size.mean for _ in range(2))
        deadline_secs = draw.uniform(0.01, 1.0) * latest_deadline_days * DAY_SECS
        client.arrive(client.server.job(offer, size, estimate, 0.0, deadline_secs))
    started = [job for job in client.jobs() if not job.project.suspended and draw.random() < 0.15]
    client.apply(Choice(started, [Reason.CPU_PRIORITY] * len(started), 0.0), 0.0)
    now = 0.9 * min([job.end_secs for job in started], default=100.0)
    total = sum(project.share for project in projects)
    ranks = {p.index: draw.choice([1.0, 1e13]) * draw.random() for p in client.projects}
    units = {p.index: 0.01 * total / p.share for p in client.projects}
    return Case(client, now, ranks, units)


def policy_of(case: Case, *, by_letter: bool = False) -> RankedBy:
    """The policy that a case is compared with."""
    return ranked_by(case.client, case.ranks, case.units, by_letter=by_letter)


def test_random_computers_are_as_the_documents_say() -> None:
    for seed in range(300):
        case = random_case(seed)
        policy = policy_of(case)
        told = literally(case)
        its_idle, its_saturated, its_shortfall = forecast_of(policy, case.now)
        assert its_idle == pytest.approx(told.idle, abs=1e-9), seed
        horizon = case.client.buffer_total_secs
        up_to_the_horizon = [min(horizon, secs) for secs in its_saturated]
        assert up_to_the_horizon == pytest.approx(told.saturated, abs=1e-3), seed
        assert its_shortfall == pytest.approx(told.shortfall, abs=1e-2), seed
        for kind, secs in enumerate(told.saturated):
            assert min(horizon, least_saturated_secs(policy.table(), kind, case.now)) <= secs + 1e-3, seed


@pytest.mark.parametrize("doubt", [0.0, DOUBT])
def test_late_jobs_are_those_that_end_late_in_the_same_simulation(doubt: float) -> None:
    nlate = nin_time = 0
    for seed in range(300):
        # Some jobs end in time, some do not: a queue is an hour to three days long.
        case = random_case(seed, latest_deadline_days=2.0)
        policy = policy_of(case, by_letter=not doubt)
        ends, late = literally(case).ends, set()
        for job in case.client.jobs():
            if not job.project.suspended:
                left_secs = job.left_secs(case.now) / case.client.up_fraction[job.kind]
                due_secs = job.deadline_secs - case.now - MIN_MARGIN_SECS - doubt * left_secs
                assert abs(ends[job.id] - due_secs) > 1e-3, seed  # no tie that rounding decides
                if ends[job.id] > due_secs:
                    late.add(job.id)
        assert {number for of_kind in late_jobs(policy, case.now) for number in of_kind} == late, seed
        nlate += len(late)
        nin_time += len(ends) - len(late)
    assert min(nlate, nin_time) > 1000


def test_long_jobs_of_three_projects_take_turns_on_two_cpus() -> None:
    # Three jobs of 10 hours on 2 CPUs. One after the other, one CPU would be idle from 10 hours on. In turns of an hour
    # all three go on together and end after 30 / 2 = 15 hours; the two CPUs have 96 hours up to the horizon.
    app = App("x", (Version(1e9),), Normal(36000e9), Normal(36000e9), 100 * DAY_SECS)
    projects = tuple(Project(name, 1, (app,)) for name in "ABC")
    preferences = Preferences(1.0, 1.0)
    client = Client(
        Scenario(Host((Processor(CPU, 2, 1e9),)), projects, preferences), 1, Quirks(), None, DecisionLog(0.0, 0.0)
    )
    for project in client.projects:
        offer = project.apps[0].offers[0]
        client.arrive(client.server.job(offer, 36000e9, 36000e9, 0.0, 100 * DAY_SECS))
    policy = ranked_by(client, dict.fromkeys(range(3), 0.0), dict.fromkeys(range(3), 1.0))
    _, saturated, shortfall = forecast_of(policy, 0.0)
    assert saturated == pytest.approx([15 * 3600.0])
    assert shortfall == pytest.approx([(2 * 48 - 30) * 3600.0])
