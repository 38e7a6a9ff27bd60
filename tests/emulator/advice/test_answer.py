"""What a run's answer says, as a table of facts: what is found, and what is advised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.advice.findings import Cause, Findings, ShortProject, find
from emulator.advice.trials import TRIALS_MAX, Measures, Setting, SettingChange, Trial, advise, trial_days, try_all
from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    App,
    Availability,
    HasWork,
    Host,
    Hours,
    NewApp,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    StartJob,
    StartState,
    Version,
)
from emulator.engine.timeline.results import Result

GFLOPS = 1e9
HOUR = 3600.0
DAYS = 10.0


def app(hours: float = 1, days: float = 10, kind: str = CPU, **more: Any) -> App:
    size = Normal(hours * HOUR * GFLOPS)
    version = Version(GFLOPS) if kind == CPU else Version(GFLOPS, cpus=0.1, gpu=kind, gpus=1)
    return App(f"{kind} {hours} {days}", (version,), size, size, days * 86400, **more)


USUAL = app()
A, B = Project("A", 100, (USUAL,)), Project("B", 100, (USUAL,))
ONE_CPU = Host((Processor(CPU, 1, GFLOPS),))
FOUR_CPUS = Host((Processor(CPU, 4, GFLOPS),))
WITH_GPU = Host((Processor(CPU, 1, GFLOPS), Processor("NVIDIA", 1, GFLOPS)))


def ran(scenario: Scenario, days: float = DAYS) -> Result:
    return run(scenario, Rec(), days)


def found(*projects: Project, host: Host = ONE_CPU, preferences: Preferences | None = None) -> Findings:
    scenario = Scenario(host, projects, preferences or Preferences())
    return find(scenario, ran(scenario))


def has_nothing_to_say(findings: Findings) -> bool:
    return (findings.nlate, findings.short, findings.idle) == (0, (), ())


def test_a_run_without_trouble_has_no_findings() -> None:
    assert has_nothing_to_say(found(A, B))


@pytest.mark.parametrize(
    ("second", "cause"),
    [
        (replace(B, no_new_tasks=True), Cause.NO_NEW_TASKS),
        (replace(B, has_work=False), Cause.NEVER_WORK),
        (replace(B, apps=(replace(USUAL, weight=0),)), Cause.NEVER_WORK),
        (replace(B, available=Availability(0)), Cause.SERVER_DOWN),
        (replace(B, apps=(app(hours=30, days=1),)), Cause.DEADLINES),  # 30 h of work within a day
        (replace(B, apps=(replace(USUAL, working_set_bytes=7.5e9),)), Cause.MEMORY),  # 90 % of 8 GB are 7.2 GB
    ],
)
def test_why_a_project_gets_too_little(second: Project, cause: Cause) -> None:
    short = found(A, second, host=replace(ONE_CPU, ram_bytes=8e9)).short
    assert short == (ShortProject("B", CPU, 0.5, 0.0, cause),)


FAST_GPU = replace(WITH_GPU, processors=(WITH_GPU.processors[0], Processor("NVIDIA", 1, 10 * GFLOPS)))
BOTH = Project("Both", 100, (USUAL, app(kind="NVIDIA")))


def test_a_project_that_has_all_of_the_processor_it_can_use_gets_enough() -> None:
    # A has the whole CPU, which does 1 / 11 of all work: no setting gives it half of the work.
    assert found(A, BOTH, host=FAST_GPU).short == ()


def test_shares_are_those_of_a_kind_of_processor_among_the_projects_that_can_use_it() -> None:
    third = replace(A, name="Third", no_new_tasks=True)
    (short,) = found(A, third, replace(BOTH, apps=(app(kind="NVIDIA"),)), host=FAST_GPU).short
    # Of all work each is to get a third; of the CPU's, which only two of them can use, half.
    assert short == ShortProject("Third", CPU, 0.5, 0.0, Cause.NO_NEW_TASKS)


def test_what_a_project_gets_on_one_processor_makes_up_for_another() -> None:
    gpu = replace(BOTH, name="GPU", apps=(app(kind="NVIDIA"),))
    # Both gets the whole CPU and, of equal speed, none of the GPU: half of the work, as its share is.
    assert found(gpu, BOTH, host=WITH_GPU).short == ()


def test_a_limit_on_jobs_at_once_is_why_a_project_gets_too_little() -> None:
    (short,) = found(A, replace(B, max_concurrent=1), host=FOUR_CPUS).short
    assert (short.project, short.cause) == ("B", Cause.MAX_CONCURRENT)
    assert short.got == pytest.approx(0.25, abs=0.08)  # one of four CPUs, and a little idles


@pytest.mark.parametrize(
    ("project", "host", "preferences", "kind", "fraction", "cause"),
    [
        (A, WITH_GPU, Preferences(), "NVIDIA", 1.0, Cause.NO_PROGRAM),
        (replace(A, max_concurrent=1), FOUR_CPUS, Preferences(), CPU, 0.75, Cause.MAX_CONCURRENT),
        (
            replace(A, apps=(replace(USUAL, working_set_bytes=3e9),)),
            replace(FOUR_CPUS, ram_bytes=8e9),
            Preferences(ram_idle_fraction=0.8),  # two of 3 GB fit into 6.4 GB
            CPU,
            0.5,
            Cause.MEMORY,
        ),
        # It may ask from 0:00 to 1:00 for at most 0.2 days of work.
        (A, ONE_CPU, Preferences(0.1, 0.1, network_hours=Hours(0, 1)), CPU, 0.8, Cause.OFFLINE),
        (replace(A, has_work=False), ONE_CPU, Preferences(), CPU, 1.0, Cause.NEVER_WORK),
    ],
)
def test_what_idles_and_why(
    project: Project, host: Host, preferences: Preferences, kind: str, fraction: float, cause: Cause
) -> None:
    (idle,) = found(project, host=host, preferences=preferences).idle
    assert (idle.kind, idle.cause) == (kind, cause)
    assert idle.fraction == pytest.approx(fraction, abs=0.05)


def test_a_project_often_has_no_work_only_if_it_sometimes_has() -> None:
    scenario = Scenario(ONE_CPU, (A, replace(B, has_work=False)), events=(HasWork(8 * 86400.0, "B", True),))
    assert [each.cause for each in find(scenario, ran(scenario)).short] == [Cause.NO_WORK]
    # What comes after the end of the run does not count.
    assert [each.cause for each in find(scenario, ran(scenario, 8)).short] == [Cause.NEVER_WORK]
    # An app without weight brings no work, but a later one with some does.
    without = replace(B, apps=(replace(USUAL, weight=0),))
    scenario = Scenario(ONE_CPU, (A, without), events=(NewApp(8 * 86400.0, "B", replace(USUAL, name="later")),))
    assert [each.cause for each in find(scenario, ran(scenario)).short] != [Cause.NEVER_WORK]
    assert [each.cause for each in find(scenario, ran(scenario, 8)).short] == [Cause.NEVER_WORK]
    # Both that could use the CPU have nothing for it: one never has new tasks, the other is not asked.
    scenario = Scenario(ONE_CPU, (replace(A, no_new_tasks=True), replace(B, has_work=False)))
    (idle,) = find(scenario, ran(scenario)).idle
    assert idle.cause == Cause.NEVER_WORK


def test_a_suspended_task_is_why_its_project_is_not_asked() -> None:
    job = StartJob("B", USUAL.name, HOUR * GFLOPS, HOUR * GFLOPS, 10 * 86400.0, state=StartState.SUSPENDED)
    scenario = Scenario(ONE_CPU, (A, B), jobs=(job,))
    (short,) = find(scenario, ran(scenario)).short
    assert (short.project, short.cause) == ("B", Cause.HELD)
    scenario = replace(scenario, projects=(replace(A, no_new_tasks=True), B))
    (idle,) = find(scenario, ran(scenario)).idle
    assert (idle.fraction, idle.cause) == (1.0, Cause.HELD)


def test_time_that_preferences_take_is_not_idle() -> None:
    limits = Preferences(compute_hours=Hours(0, 6), cpu_usage_percent=50, max_cpus_percent=50)
    assert has_nothing_to_say(found(A, host=FOUR_CPUS, preferences=limits))


def test_late_jobs_are_named_and_the_latest_come_first() -> None:
    """Three jobs of 5 hours on one CPU, all due after 6: one ends after 10 hours, another after 15."""
    flop = 5 * HOUR * GFLOPS
    jobs = tuple(StartJob("A", USUAL.name, flop, flop, 6 * HOUR, name=name) for name in ("wu_1", "wu_2", "wu_3"))
    scenario = Scenario(ONE_CPU, (replace(A, has_work=False),), Preferences(), jobs)
    late = find(scenario, ran(scenario)).late
    assert [(round(each.late_secs / HOUR, 6), each.is_finished) for each in late] == [(9, True), (4, True)]
    assert {each.name for each in late} < {"wu_1", "wu_2", "wu_3"}
    short_run = find(scenario, ran(scenario, 12 / 24))
    assert [(round(each.late_secs / HOUR, 6), each.is_finished) for each in short_run.late] == [(6, False), (4, True)]
    assert (short_run.nlate, short_run.njobs) == (2, 3)


# Advice -----------------------------------------------------------------------------------------------------------

BEFORE = Measures(idle=0.2, late=0.1, short=0.1, rpcs_per_job=0.5)
BUFFER = SettingChange(Setting.BUFFER, (0.1, 0.5), (1.0, 1.0))


@pytest.mark.parametrize(
    ("after", "figures"),
    [
        ({"idle": 0.05}, ["idle"]),
        ({"idle": 0.19}, []),  # not a fifth of what it was
        ({"idle": 0.0, "late": 0.11}, []),  # it makes more jobs late
        ({"idle": 0.0, "late": 0.104}, ["idle"]),  # within the tolerance
        ({"idle": 0.0, "late": 0.0}, ["late", "idle"]),
        ({"short": 0.05, "rpcs_per_job": 0.8}, []),  # many more contacts
        ({}, []),
    ],
)
def test_only_what_improves_a_figure_and_spoils_none_is_advised(after: dict[str, float], figures: list[str]) -> None:
    trial = Trial(BUFFER, replace(BEFORE, **after))
    assert [each.figure for each in advise(BEFORE, [trial], ["late", "short", "idle"])] == figures


def test_the_best_of_the_good_trials_is_advised() -> None:
    fair, best, spoils = (
        Trial(BUFFER, replace(BEFORE, **after))
        for after in ({"idle": 0.1}, {"idle": 0.05}, {"idle": 0.0, "short": 0.2})
    )
    assert [each.trial for each in advise(BEFORE, [fair, best, spoils], ["idle"])] == [best]


def test_a_trial_is_no_longer_than_the_run_and_has_about_so_many_events() -> None:
    assert trial_days(10, 1000) == 10
    assert trial_days(100, 1000) == 30
    assert trial_days(100, 300_000) == pytest.approx(10)


def test_a_larger_buffer_is_advised_where_the_network_is_there_for_an_hour_a_day() -> None:
    scenario = Scenario(ONE_CPU, (A, B), Preferences(0.1, 0.1, network_hours=Hours(0, 1)))
    result = ran(scenario)
    outcome = try_all(scenario, find(scenario, result), result, DAYS, ran)
    (advice,) = outcome.advice
    assert advice.figure == "idle"
    assert advice.trial.change.setting is Setting.BUFFER and sum(advice.trial.change.after) >= 1
    assert outcome.before.idle > 0.7 and advice.trial.measures.idle < 0.05


def test_a_smaller_buffer_is_advised_where_deadlines_are_missed() -> None:
    """B's jobs take twice what their server believes, so those in a buffer of two days miss their deadline of 3."""
    slow = replace(app(4, 3), size=Normal(8 * HOUR * GFLOPS))
    scenario = Scenario(ONE_CPU, (Project("B", 100, (slow,)),), Preferences(1.0, 1.5))
    result = ran(scenario, 30)
    findings = find(scenario, result)
    assert findings.nlate > 0
    outcome = try_all(scenario, findings, result, 30, ran)
    late = next(each for each in outcome.advice if each.figure == "late")
    assert sum(late.trial.change.after) < 2.5 and late.trial.measures.late < outcome.before.late / 2


def test_a_limit_that_lets_cpus_idle_is_found() -> None:
    scenario = Scenario(FOUR_CPUS, (replace(A, max_concurrent=1),), Preferences())
    result = ran(scenario)
    outcome = try_all(scenario, find(scenario, result), result, DAYS, ran)
    assert [(each.figure, each.trial.change) for each in outcome.advice] == [
        ("idle", SettingChange(Setting.MAX_CONCURRENT, (1,), (0,), "A"))
    ]
    assert len(outcome.trials) <= TRIALS_MAX


def test_nothing_is_tried_where_nothing_is_wrong() -> None:
    scenario = Scenario(ONE_CPU, (A, B))
    result = ran(scenario)
    outcome = try_all(scenario, find(scenario, result), result, DAYS, ran)
    assert (outcome.trials, outcome.advice) == ((), ())


def test_what_no_setting_mends_gets_no_advice() -> None:
    scenario = Scenario(FOUR_CPUS, (A, replace(B, has_work=False)))
    result = ran(scenario)
    outcome = try_all(scenario, find(scenario, result), result, DAYS, ran)
    assert outcome.trials and not outcome.advice
