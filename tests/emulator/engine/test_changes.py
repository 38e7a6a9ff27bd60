"""Hardware and preferences that change during a run, servers that are slow or down by plan, jobs that fail."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.rec import Rec
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    ChangeBuffer,
    ChangePreferences,
    ChangeProcessor,
    Downtime,
    Event,
    Host,
    Hours,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    StartJob,
    Use,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import Result

HOUR_SECS = 3600.0
HOUR_FLOP = 3600e9
HOUR = Normal(HOUR_FLOP)
APP = App("x", (Version(1e9),), HOUR, HOUR, 10 * DAY_SECS)
GPU_HOUR = Normal(2 * HOUR_FLOP)
GPU_APP = App("g", (Version(2e9, cpus=0.1, gpu="NVIDIA", gpus=1.0),), GPU_HOUR, GPU_HOUR, DAY_SECS)
A = Project("A", 100, (APP,))
CPU_2 = Processor(CPU, 2, 1e9)
GPU = Processor("NVIDIA", 1, 10e9, 0.2)
HOST = Host((CPU_2,))


def happen(*events: Event, host: Host = HOST, project: Project = A, days: float = 10.0) -> Result:
    return run(Scenario(host, (project,), Preferences(0.1, 0.1), events=events), Rec(), days)


def instance_days(result: Result, first_day: float, last_day: float, kind: int = 0) -> tuple[float, float]:
    """Instance-days that were used, and that could not be, between two days."""
    assert result.timeline is not None
    bins = result.timeline.bins
    part = slice(*(round(day * DAY_SECS / bins.width_secs) for day in (first_day, last_day)))
    return float(bins.busy[kind, :, part].sum()) / DAY_SECS, float(bins.off[kind, part].sum()) / DAY_SECS


def test_more_cpus_are_used_from_then_on() -> None:
    # 2 CPUs for 5 days, then 4: 10 + 20 = 30 CPU-days of 1e9 FLOPS, all of them used.
    result = happen(ChangeProcessor(5 * DAY_SECS, CPU, instances=4))
    assert result.projects[0].used_flop == pytest.approx(30 * DAY_SECS * 1e9, rel=1e-3)
    assert result.figures.idle == pytest.approx(0, abs=1e-3)
    assert instance_days(result, 0, 5) == pytest.approx((10, 10), rel=1e-3)  # two are not there yet
    assert instance_days(result, 5, 10) == pytest.approx((20, 0), rel=1e-3)


def test_fewer_cpus_keep_the_jobs_that_have_room() -> None:
    # 4 jobs run when two CPUs go, at 4.5 hours: 2 wait and end later. None is lost.
    result = happen(ChangeProcessor(4.5 * HOUR_SECS, CPU, instances=2), host=Host((Processor(CPU, 4, 1e9),)), days=2.0)
    # 4.5 hours of 4 CPUs and 43.5 of 2: 18 + 87 = 105 CPU-hours; no job is lost, so as many are done but for the last.
    assert 103 <= list(result.decisions.reason).count(Reason.JOB_MET) <= 105
    assert result.projects[0].used_flop == pytest.approx(105 * HOUR_FLOP)
    assert result.figures.idle == pytest.approx(0, abs=1e-3)
    assert Reason.HARDWARE in result.decisions.reason


def test_a_faster_cpu_also_ends_the_job_that_runs_sooner() -> None:
    # One job of an hour. At half an hour the CPU becomes three times as fast: the other half hour takes ten minutes.
    one = Scenario(
        Host((Processor(CPU, 1, 1e9),)),
        (replace(A, no_new_tasks=True),),
        jobs=(StartJob("A", "x", HOUR_FLOP, HOUR_FLOP, DAY_SECS),),
        events=(ChangeProcessor(1800.0, CPU, peak_flops=3e9),),
    )
    result = run(one, Rec(), 1.0)
    assert result.timeline is not None
    assert list(result.timeline.blocks.end_secs) == [1800.0, 2400.0]
    # It is the same work as before: 3600 s * 1e9, of 1800 s * 1e9 + 84,600 s * 3e9 = 2.556e14 that there was.
    assert result.projects[0].used_flop == pytest.approx(HOUR_FLOP)
    assert result.figures.idle == pytest.approx(1 - 3.6e12 / 2.556e14)


def test_late_work_is_counted_at_the_speed_at_which_it_was_done() -> None:
    # As above, due after 2000 s, so it is late: the waste is all that was spent on it.
    late = Scenario(
        Host((Processor(CPU, 1, 1e9), GPU)),
        (replace(A, apps=(GPU_APP,), no_new_tasks=True),),
        jobs=(StartJob("A", "g", 2 * HOUR_FLOP, 2 * HOUR_FLOP, 2000.0),),
        events=(ChangeProcessor(1800.0, "NVIDIA", peak_flops=30e9),),
    )
    row = run(late, Rec(), 1.0).projects[0]
    # GPU 1800 s * 2e9 + 600 s * 6e9 = 7.2e12, and a tenth of a CPU for 2400 s * 1e9 = 2.4e11.
    assert row.late == 1
    assert row.wasted_flop == pytest.approx(row.used_flop) == pytest.approx(7.2e12 + 2.4e11)


def test_a_gpu_comes_and_goes() -> None:
    project = replace(A, apps=(APP, GPU_APP))
    result = happen(
        ChangeProcessor(2 * DAY_SECS, "NVIDIA", instances=1, peak_flops=10e9),
        ChangeProcessor(6 * DAY_SECS, "NVIDIA", instances=0),
        ChangeProcessor(8 * DAY_SECS, "NVIDIA", instances=1),
        project=project,
    )
    assert result.timeline is not None
    assert result.timeline.kinds == (CPU, "NVIDIA")
    for first, last, there in ((0, 2, False), (2, 6, True), (6, 8, False), (8, 10, True)):
        used, off = instance_days(result, first, last, kind=1)
        assert (used, off) == pytest.approx((last - first, 0) if there else (0, last - first), abs=0.01)
    # 20 CPU-days of 1e9 and 6 GPU-days of 2e9 were there, and all were used.
    assert result.figures.idle == pytest.approx(0, abs=2e-3)
    # Jobs of the GPU that went are neither met nor late.
    assert result.projects[0].late == 0
    assert result.projects[0].jobs < result.projects[0].sent


@pytest.mark.parametrize("policy", list(PolicyName))
def test_every_policy_follows_the_hardware(policy: PolicyName) -> None:
    scenario = Scenario(
        Host((CPU_2, GPU)),
        (replace(A, apps=(APP, GPU_APP)), Project("B", 50, (replace(APP, latency_bound_secs=2 * HOUR_SECS),))),
        events=(
            ChangeProcessor(0.0, CPU, instances=1),
            ChangeProcessor(DAY_SECS, "NVIDIA", instances=0, peak_flops=20e9),
            ChangeProcessor(1.5 * DAY_SECS, CPU, instances=6, peak_flops=5e9),
            ChangeProcessor(2 * DAY_SECS, "NVIDIA", instances=2),
            ChangeProcessor(3 * DAY_SECS, CPU, instances=1, peak_flops=1e9),
        ),
    )
    result = run(scenario, make_policy(policy, scenario, {}), 4.0)
    # CPU-days: 1.5 of 1e9, 1.5 * 6 of 5e9, 1 of 1e9; GPU-days at a fifth of the peak: 1 of 2e9, 2 * 2 of 4e9.
    total = DAY_SECS * (1.5e9 + 45e9 + 1e9 + (0 if policy is PolicyName.DEBT else 18e9))
    used = sum(row.used_flop for row in result.projects)
    assert 0.9 * total < used <= total * 1.001
    assert result.timeline is not None
    bins = result.timeline.bins
    assert (bins.busy.sum(axis=1) + bins.off <= bins.instances[:, None] * bins.width_secs * (1 + 1e-9)).all()


def test_preferences_change_one_by_one() -> None:
    result = happen(ChangePreferences(5 * DAY_SECS, max_cpus_percent=50.0))
    # 2 CPUs for 5 days, then 1 of the 2; what may not be used is not idle.
    assert instance_days(result, 0, 5)[0] == pytest.approx(10, rel=1e-3)
    assert instance_days(result, 5, 10)[0] == pytest.approx(5, rel=1e-2)
    assert result.figures.idle == pytest.approx(0, abs=1e-3)


def test_the_timeline_has_the_most_cpus_that_may_be_used_at_a_time() -> None:
    events = (ChangePreferences(DAY_SECS, max_cpus_percent=75.0), ChangeProcessor(2 * DAY_SECS, CPU, instances=2))
    host, half = Host((Processor(CPU, 4, 1e9),)), Preferences(0.1, 0.1, max_cpus_percent=50.0)
    result = run(Scenario(host, (A,), half, events=events), Rec(), 3.0)
    assert result.timeline is not None
    # 50 % of 4 CPUs, 75 % of 4, 75 % of 2 (rounded down): 2, 3 and 1; the others of these 3 count as off.
    assert list(result.timeline.bins.instances) == [3]
    assert instance_days(result, 0, 1) == pytest.approx((2, 1), rel=1e-2)
    assert instance_days(result, 1, 2) == pytest.approx((3, 0), rel=1e-2, abs=1e-9)
    assert instance_days(result, 2, 3) == pytest.approx((1, 2), rel=1e-2)
    assert result.projects[0].used_flop == pytest.approx(6 * DAY_SECS * 1e9, rel=1e-3)
    assert result.figures.idle == pytest.approx(0, abs=1e-3)


def test_preferences_that_are_not_named_stay() -> None:
    larger = happen(ChangePreferences(DAY_SECS, work_buf_additional_days=2.0))
    # The event of the buffer names both, the other only the one that changes.
    assert larger.figures == happen(ChangeBuffer(DAY_SECS, 0.1, 2.0)).figures
    assert larger.figures != happen().figures


NIGHTS = Hours(20, 8)
IN_USE = Use(0.5, HOUR_SECS)
# Every preference, with a value that matters to `BUSY`.
CHANGED: dict[str, Any] = {
    "work_buf_min_days": 2.0,
    "work_buf_additional_days": 2.0,
    "period_secs": 600.0,
    "max_cpus_percent": 50.0,
    "report_at_once": True,
    "max_ncpus": 1,
    "cpu_usage_percent": 50.0,
    "compute_hours": NIGHTS,
    "network_hours": NIGHTS,
    "run_if_user_active": False,
    "run_gpu_if_user_active": False,
    "run_on_batteries": False,
    "ram_busy_fraction": 0.2,
    "ram_idle_fraction": 0.2,
}
LARGE = replace(APP, working_set_bytes=3e9)
BUSY = Scenario(
    Host((CPU_2, GPU), ram_bytes=8e9, in_use=IN_USE, on_batteries=IN_USE),
    (Project("A", 100, (LARGE, GPU_APP)), Project("B", 50, (LARGE,))),
    Preferences(0.1, 0.1),
)


@cache
def busy(days: float) -> Result:
    """Without any change."""
    return run(BUSY, Rec(), days)


def test_every_preference_can_change() -> None:
    names = {field.name for field in fields(ChangePreferences)} - {"at_secs"}
    assert names == {field.name for field in fields(Preferences)} == set(CHANGED)


@pytest.mark.parametrize("name", CHANGED)
def test_a_preference_that_changes_at_once_is_as_if_it_had_always_been_so(name: str) -> None:
    change = {name: CHANGED[name]}
    always = run(replace(BUSY, preferences=replace(BUSY.preferences, **change)), Rec(), 6.0)
    changed = run(replace(BUSY, events=(ChangePreferences(0.0, **change),)), Rec(), 6.0)
    assert (changed.figures, changed.projects) == (always.figures, always.projects)
    assert always.figures != busy(6.0).figures


@pytest.mark.parametrize("name", CHANGED)
def test_a_preference_that_changes_and_changes_back_holds_for_that_time_only(name: str) -> None:
    before = getattr(BUSY.preferences, name)
    events = (ChangePreferences(DAY_SECS, **{name: CHANGED[name]}), ChangePreferences(2 * DAY_SECS, **{name: before}))
    changed = run(replace(BUSY, events=events), Rec(), 40.0)
    # A day of 40 at most is lost or gained.
    for row, other in zip(changed.projects, busy(40.0).projects, strict=True):
        assert row.used_flop == pytest.approx(other.used_flop, rel=0.08)


@pytest.mark.parametrize(("fraction", "is_sent"), [(0.375, True), (0.374, False)])
def test_a_job_may_need_all_the_ram_that_preferences_allow(fraction: float, is_sent: bool) -> None:
    # 3 of 8 GB are 0.375 of them.
    change: dict[str, Any] = {"ram_busy_fraction": fraction, "ram_idle_fraction": fraction}
    at_once = run(replace(BUSY, events=(ChangePreferences(0.0, **change),)), Rec(), 1.0)
    always = run(replace(BUSY, preferences=replace(BUSY.preferences, **change)), Rec(), 1.0)
    for result in (at_once, always):
        assert (result.projects[1].used_flop > 0) is is_sent


def test_the_cpu_limit_slows_the_tasks_that_run() -> None:
    result = happen(ChangePreferences(4.5 * HOUR_SECS, cpu_usage_percent=25.0), days=2.0)
    # 2 CPUs for 4.5 hours, then a quarter of them for 43.5: 9 + 21.75 = 30.75 CPU-hours
    assert result.projects[0].used_flop == pytest.approx(30.75 * HOUR_FLOP, rel=1e-3)


def test_hours_of_the_day_hold_from_their_day_on() -> None:
    result = happen(ChangePreferences(5 * DAY_SECS, compute_hours=NIGHTS))
    # 2 CPUs: 5 days, then 12 hours of each of 5 days
    assert instance_days(result, 0, 5)[0] == pytest.approx(10, rel=1e-3)
    assert instance_days(result, 5, 10)[0] == pytest.approx(5, rel=1e-2)
    back = happen(ChangePreferences(0.0, compute_hours=NIGHTS), ChangePreferences(5 * DAY_SECS, compute_hours=Hours()))
    assert instance_days(back, 5, 10)[0] == pytest.approx(10, rel=1e-3)


def test_hours_of_an_event_have_limits() -> None:
    with pytest.raises(ScenarioError, match=r"event\.compute_hours\.start_hour"):
        happen(ChangePreferences(0.0, compute_hours=Hours(25, 8)))


def test_a_planned_downtime_stops_all_replies() -> None:
    weekly = Downtime(2 * DAY_SECS, DAY_SECS / 2, 3 * DAY_SECS)
    result = happen(project=replace(A, downtimes=(weekly,)))
    assert result.timeline is not None
    rpcs = result.timeline.rpcs
    for at, answered in zip(rpcs.at_secs, rpcs.answered, strict=True):
        # Down from day 2 to 2.5, from 5 to 5.5, from 8 to 8.5.
        assert answered == (not (at >= 2 * DAY_SECS and (at / DAY_SECS - 2) % 3 < 0.5))
    assert sum(not answered for answered in rpcs.answered) > 3


def test_a_downtime_ends_at_its_end() -> None:
    once, again = Downtime(100, 10), Downtime(100, 10, 50)
    assert [once.covers(at) for at in (99, 100, 109, 110, 155)] == [False, True, True, False, False]
    assert [again.covers(at) for at in (99, 100, 109, 110, 149, 150, 159, 160)] == [
        *(False, True, True, False),
        *(False, True, True, False),
    ]


def test_jobs_come_when_the_reply_does() -> None:
    # The first request is made at once, its reply takes 1000 s: until then both CPUs are idle, 2000 of 172,800 s.
    result = happen(project=replace(A, reply_delay_secs=1000.0), days=1.0)
    assert result.timeline is not None
    assert min(result.timeline.blocks.start_secs) == 1000.0
    assert result.timeline.rpcs.at_secs[0] == 1000.0
    assert result.figures.idle == pytest.approx(2000 / 172_800)


def test_a_reply_that_is_waited_for_outlasts_the_connection() -> None:
    host = Host((CPU_2,), connected=Availability(0.5, 1800.0))
    result = happen(host=host, project=replace(A, reply_delay_secs=7200.0), days=20.0)
    assert result.projects[0].jobs > 500


def test_failed_jobs_are_waste_and_neither_met_nor_late() -> None:
    result = happen(project=replace(A, apps=(replace(APP, error_rate=0.25),)), days=100.0)
    row = result.projects[0]
    # A job fails after half its hour on average. With p = 1/4 failed and 3/4 good ones of a whole hour, 4800 CPU-hours
    # hold n jobs with n * (0.75 + 0.125) = 4800: n = 5486, of which 1371 fail. The deviation of that is about 32.
    assert row.jobs + row.failed == pytest.approx(5486, rel=0.02)
    assert row.failed == pytest.approx(1371, abs=130)
    assert row.late == 0
    # Wasted is 0.125 / 0.875 of all work.
    assert result.figures.wasted == pytest.approx(1 / 7, rel=0.1)
    assert row.wasted_flop == pytest.approx(row.failed * HOUR_FLOP / 2, rel=0.1)
    assert list(result.decisions.reason).count(Reason.JOB_FAILED) > 0


def test_a_job_that_always_fails_is_always_waste() -> None:
    always = replace(A, apps=(replace(APP, error_rate=1.0),), error_delay_secs=0.0)
    result = happen(project=always, days=2.0)
    assert result.projects[0].jobs == 0
    assert result.figures.idle == pytest.approx(0, abs=1e-6)
    # All but what runs at the end.
    assert result.figures.wasted > 0.95


def test_errors_change_no_other_random_number() -> None:
    spread = replace(APP, size=Normal(HOUR_FLOP, HOUR_FLOP / 5))
    never = happen(project=replace(A, apps=(spread,)))
    hardly = happen(project=replace(A, apps=(replace(spread, error_rate=1e-12),)))
    assert never.projects[0].failed == hardly.projects[0].failed == 0
    assert never.figures == hardly.figures


@pytest.mark.parametrize(
    ("field", "event"),
    [
        ("event.kind", ChangeProcessor(0.0, "NVIDIA", instances=1)),
        ("event.kind", ChangeProcessor(0.0, "NVIDIA", peak_flops=1e9)),
        ("event.instances", ChangeProcessor(0.0, CPU, instances=0)),
        ("event.instances", ChangeProcessor(0.0, CPU, instances=5000)),
        ("event.peak_flops", ChangeProcessor(0.0, CPU, peak_flops=float("nan"))),
        ("event.peak_flops", ChangeProcessor(0.0, CPU, peak_flops=1e17)),
        ("event", ChangeProcessor(0.0, CPU)),
        ("event", ChangePreferences(0.0)),
        ("event.max_cpus_percent", ChangePreferences(0.0, max_cpus_percent=0.0)),
        ("event.at_secs", ChangePreferences(-1.0, report_at_once=True)),
    ],
)
def test_an_impossible_event_is_refused_by_name(field: str, event: Event) -> None:
    with pytest.raises(ScenarioError) as refused:
        Scenario(Host((CPU_2,)), (A,), events=(event,))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("A.downtime.every_secs", {"downtimes": (Downtime(0, 100, 100),)}),
        ("A.downtime.length_secs", {"downtimes": (Downtime(0, -1),)}),
        ("A.downtimes", {"downtimes": (Downtime(0, 1),) * 1001}),
        ("A.reply_delay_secs", {"reply_delay_secs": float("inf")}),
        ("A.x.error_rate", {"apps": (replace(APP, error_rate=1.1),)}),
        ("A.x\0.name", {"apps": (replace(APP, name="x\0"),)}),
    ],
)
def test_an_impossible_project_is_refused_by_name(field: str, change: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError) as refused:
        Scenario(Host((CPU_2,)), (replace(A, **change),))
    assert refused.value.field == field
