"""The sums and counts that the client keeps, to avoid going through its projects' lists, agree with the lists."""

from __future__ import annotations

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.kernel.bounds import may_miss_deadlines
from emulator.engine.scenario import DAY_SECS, Preferences
from emulator.engine.timeline.reasons import Reason
from tests.support.emulated_client import HOUR_SECS, client_of, cpu_app, give, gpu_app, project, ranked_by, scenario


def agrees(client: Client) -> bool:
    return all(p.unfinished == sum(map(len, (*p.begun, *p.waiting))) for p in client.projects)


def test_unfinished_jobs_are_counted_as_they_come_start_end_and_are_dropped() -> None:
    client = client_of(scenario(project("A", 1, cpu_app(), gpu_app()), project("B", 1, cpu_app()), cpus=2, gpu=True))
    policy = ranked_by(client, {0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0})
    assert agrees(client)
    second = give(client, 1, 2.0)
    first, later, on_gpu = give(client, 0, 1.0), give(client, 0, 3.0), give(client, 0, 1.0, app=1)
    assert agrees(client)
    assert policy.table().run[0]["contested"]  # the CPUs are
    client.apply(Choice([later, on_gpu], [Reason.CPU_PRIORITY] * 2, 0.0), 0.0)  # not the one that came first
    assert agrees(client)
    client.apply(Choice([later, on_gpu, second], [Reason.CPU_PRIORITY] * 3, 0.0), 0.0)
    assert client.running == [later, on_gpu, second]
    assert client.next_end() == HOUR_SECS
    client.finish(second, 2 * HOUR_SECS)
    assert not policy.table().run[0]["contested"]
    assert agrees(client)
    client.drop(client.all_projects[0], 2 * HOUR_SECS, Reason.DETACHED)
    assert first.done
    assert not client.jobs()
    assert agrees(client)


def test_safety_is_remembered_until_a_job_comes_or_the_buffer_changes() -> None:
    client = client_of(scenario(project("A", 1, cpu_app())))
    policy = ranked_by(client, {0: 0.0}, {0: 0.0})

    def may_miss(now: float) -> bool:
        t = policy.table()
        may = may_miss_deadlines(t, now)
        client.safe_until_secs = float(t.run[0]["safe_until_secs"])
        return may

    give(client, 0, 24.0)
    assert not may_miss(0.0)
    # Due in 10 days, less a minute. On one CPU 24 hours of work are done after 24 hours (the longest job) and a
    # second at most; another second is kept off for rounding, and three tenths of 24 hours for doubt.
    assert client.safe_until_secs == pytest.approx(10 * DAY_SECS - 55.2 * HOUR_SECS - 62.0)
    assert not may_miss(client.safe_until_secs - 1.0)
    assert may_miss(client.safe_until_secs + 2.0)  # it has not run
    give(client, 0, 24.0 * 9)
    assert client.safe_until_secs == 0.0
    assert may_miss(0.0)
    client.safe_until_secs = 1.0
    client.set_preferences(Preferences(1.0, 1.0))
    assert client.safe_until_secs == 0.0
