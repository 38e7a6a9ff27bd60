"""The policy of 2005: its arithmetic to the number, its three conditions to fetch, its order of choice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.kernel.debt import Need, _find_need
from emulator.engine.policies.debt_2005 import Debt2005
from emulator.engine.policies.registry import NO_GPUS, policy_notes
from emulator.engine.run import run
from emulator.engine.scenario import DAY_SECS, Attach, Detach, Project, Scenario, Version
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind, Result
from emulator.files.presets import preset
from tests.support.emulated_client import HOUR_SECS, client_of, cpu_app, give, project, scenario, with_jobs

MINUTE_SECS = 60.0


def starts(result: Result) -> list[tuple[float, int, Reason]]:
    """(time, project, reason) of each start of a job."""
    decisions = result.decisions
    return [
        (at, of, Reason(reason))
        for at, of, kind, reason in zip(
            decisions.at_secs, decisions.project, decisions.kind, decisions.reason, strict=True
        )
        if kind == DecisionKind.RUN
    ]


def debts_after(debts: list[float], shares: list[float], work_secs: list[float]) -> list[float]:
    """The debts after a period in which this was done."""
    what = scenario(
        *(
            project(f"P{n}", share, cpu_app(), debt_secs=debt)
            for n, (share, debt) in enumerate(zip(shares, debts, strict=True))
        )
    )
    policy = Debt2005(what)
    client = client_of(what)
    policy.begin(client)
    policy._done_secs = work_secs
    policy._times["initial_secs"] = 0.0
    policy.choose(0.0)
    return [policy.standing(known, 0.0) for known in client.projects]


def test_the_texts_example_of_25_and_15_minutes_to_the_number() -> None:
    # A accrues 0.75 * 40 = 30 and pays 25 ("20 minutes" in the text is a slip); B accrues 10 and pays 15.
    debts = debts_after([0.0, 0.0], [75.0, 25.0], [25 * MINUTE_SECS, 15 * MINUTE_SECS])
    assert debts == [5 * MINUTE_SECS, -5 * MINUTE_SECS]


def test_debts_are_never_forgotten_and_a_period_without_work_leaves_them_alone() -> None:
    # 1000 + 300 - 600, and -1000 + 300.
    assert debts_after([1000.0, -1000.0], [50.0, 50.0], [600.0, 0.0]) == [700.0, -700.0]
    assert debts_after([7.0, -7.0], [50.0, 50.0], [0.0, 0.0]) == [7.0, -7.0]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 100), st.floats(-1e6, 1e6)), min_size=1, max_size=20),
)
def test_the_sum_of_debts_stays_as_it_was(rows: list[tuple[float, float, float]]) -> None:
    work_secs, shares, debts = ([row[column] for row in rows] for column in range(3))
    assert sum(debts_after(debts, shares, work_secs)) == pytest.approx(sum(debts), abs=1e-5)


# need_to_get_work. The least buffer is 1000 s on 2 CPUs, so 2000 s of work are needed, 1000 of each of two projects.


def need_of(results: list[tuple[int, float]], shares: list[float], cpus: int, min_buffer_secs: float) -> Need:
    """What is found for results of (project, seconds left)."""
    what = scenario(*(project(f"P{n}", share, cpu_app()) for n, share in enumerate(shares)), cpus=cpus)
    client = client_of(what)
    for index, secs in results:
        give(client, index, hours=secs / HOUR_SECS)
    client.buffer_min_secs = min_buffer_secs
    policy = Debt2005(what)
    policy.begin(client)
    return _find_need(policy.table(), np.empty(len(shares)), 0.0)


HALVES = [50.0, 50.0]


@pytest.mark.parametrize(
    ("results", "shares", "reason", "busy_cpus"),
    [
        ([(0, 1000), (1, 1000)], HALVES, Reason.NONE, 2),
        ([(0, 950), (1, 950)], HALVES, Reason.FETCH_BUFFER, 1),  # 1900 < 2000
        # 3000 + 500 s are enough and fill two CPUs; with A counted for 1000 s at most, 1500 are not.
        ([(0, 1000), (0, 1000), (0, 1000), (1, 500)], HALVES, Reason.FETCH_PROJECT_SHORT, 2),
        ([(0, 10000)], [100.0], Reason.FETCH_FEW_TASKS, 1),
        # 600 + 500 fill one CPU, 500 + 400 + 100 the second; without the 100 it has 900.
        ([(0, 100), (0, 400), (0, 500), (0, 500), (0, 600)], [100.0], Reason.NONE, 2),
        ([(0, 400), (0, 500), (0, 500), (0, 600)], [100.0], Reason.FETCH_FEW_TASKS, 1),
    ],
)
def test_more_is_needed_by_three_conditions(
    results: list[tuple[int, float]], shares: list[float], reason: Reason, busy_cpus: int
) -> None:
    need = need_of(results, shares, 2, 1000.0)
    assert (need.reason, need.busy_cpus) == (reason, busy_cpus)


def test_a_job_of_months_counts_for_its_projects_share_at_most() -> None:
    assert need_of([(0, 1e7)], HALVES, 1, 1000.0).reason == Reason.FETCH_PROJECT_SHORT


def text_says(results: list[tuple[int, float]], shares: dict[int, float], cpus: int, min_secs: float) -> bool:
    """The pseudocode of need_to_get_work(), word by word, with the slip in its last line mended."""
    num_cpus_busy, work_secs_for_one_cpu, total_work_secs = 0, 0.0, 0.0
    avail_work_secs = dict.fromkeys(shares, 0.0)
    for index, result_work_secs in sorted(results, key=lambda result: -result[1]):
        work_secs_for_one_cpu += result_work_secs
        avail_work_secs[index] += result_work_secs
        if work_secs_for_one_cpu >= min_secs:
            work_secs_for_one_cpu = 0.0
            num_cpus_busy += 1
    for index, share in shares.items():
        total_work_secs += min(avail_work_secs[index], share * min_secs * cpus)
    return num_cpus_busy < cpus or total_work_secs < min_secs * cpus


@settings(max_examples=100, deadline=None)
@given(
    # Whole numbers and shares of a power of two: the text's sums and ours are then exact.
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 400).map(float)), max_size=12),
    st.integers(1, 4),
)
def test_more_is_needed_exactly_when_the_text_says_so(results: list[tuple[int, float]], cpus: int) -> None:
    shares = {0: 0.5, 1: 0.25, 2: 0.25}
    needed = need_of(results, [50.0, 25.0, 25.0], cpus, 128.0).reason != Reason.NONE
    assert needed == text_says(results, shares, cpus, 128.0)


# Whom to ask, and for how much.


def test_the_project_that_is_shortest_of_its_cap_is_asked_up_to_its_share_of_the_whole_buffer() -> None:
    what = scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app(), debt_secs=-10.0))
    client = client_of(what)
    policy = Debt2005(what)
    policy.begin(client)
    give(client, 0, hours=1.0)
    request = policy.fetch(0.0).request
    assert request is not None
    # Neither has its 0.5 * 0.1 days = 1.2 h; A has 1 h of it and B nothing, so B is asked though it is owed less.
    assert (request.project.name, request.reason) == ("B", Reason.FETCH_BUFFER)
    assert request.secs == [0.5 * 0.6 * DAY_SECS]
    assert request.delays_secs is None


def test_of_two_equally_short_projects_the_one_owed_most_is_asked() -> None:
    what = scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app(), debt_secs=1.0))
    policy = Debt2005(what)
    policy.begin(client_of(what))
    request = policy.fetch(0.0).request
    assert request is not None
    assert request.project.name == "B"


def test_a_project_that_may_not_be_contacted_yet_is_not_asked() -> None:
    what = scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app()))
    client = client_of(what)
    policy = Debt2005(what)
    policy.begin(client)
    for known in client.projects:
        known.rpc_allowed_secs = 500.0 + 100.0 * known.index
    fetch = policy.fetch(0.0)
    assert (fetch.request, fetch.recheck_secs) == (None, 500.0)


def test_a_full_buffer_asks_for_nothing() -> None:
    what = scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app()))
    client = client_of(what)
    policy = Debt2005(what)
    policy.begin(client)
    for index in (0, 1):
        give(client, index, hours=8.0)
    assert policy.fetch(0.0).request is None


def test_results_that_claim_more_cpus_than_there_are_pay_for_those_that_exist() -> None:
    # Two results of two CPUs each on three: in 100 s each gets 150 CPU-seconds.
    what = scenario(project("A", 50, replace(cpu_app(), versions=(Version(2e9, 2.0),))), cpus=3)
    client, policy = client_of(what), Debt2005(what)
    policy.begin(client)
    for _ in range(2):
        give(client, 0, hours=8.0)
    client.apply(policy.choose(0.0), 0.0)
    policy.accrue(100.0)
    assert [task.work_secs for task in policy._tasks] == pytest.approx([150.0, 150.0])


# Which results run.


def test_a_cpu_that_is_free_within_a_period_goes_by_what_was_really_done() -> None:
    """ "Minus the amount of work that has already been done this time period"."""
    a, b = project("A", 50, cpu_app(0.25), debt_secs=0.6 * HOUR_SECS), project("B", 50, cpu_app(4.0))
    what = with_jobs(scenario(a, b), A=(0.25,) * 6, B=(4.0,))
    begun = starts(run(what, Debt2005(what), 1.0))
    quarter = 0.25 * HOUR_SECS
    # A is owed 0.6 h. Expected to take the whole hour it would be at -0.4 and B next; really it is at 0.35, 0.1 and
    # then -0.15 h, so B's turn comes after three quarters.
    assert begun[:4] == [
        (0.0, 0, Reason.DEBT_NEW),
        (quarter, 0, Reason.DEBT_MID_PERIOD),
        (2 * quarter, 0, Reason.DEBT_MID_PERIOD),
        (3 * quarter, 1, Reason.DEBT_MID_PERIOD),
    ]


def test_at_the_beginning_of_a_period_each_chosen_result_lowers_its_projects_expected_debt() -> None:
    # A is owed 1.5 h: one CPU's hour leaves 0.5, still more than B's 0; the second -0.5, so B has the third.
    a, b = project("A", 50, cpu_app(9.0), debt_secs=1.5 * HOUR_SECS), project("B", 50, cpu_app(9.0))
    what = with_jobs(scenario(a, b, cpus=3), A=(9.0,) * 3, B=(9.0,) * 3)
    assert [of for at, of, _ in starts(run(what, Debt2005(what), 0.01)) if at < 1] == [0, 0, 1]


def test_a_preempted_result_goes_on_before_a_new_one_starts() -> None:
    result = run(preset("document-two-processors").scenario, Debt2005(preset("document-two-processors").scenario), 5.0)
    reasons = [reason for _, of, reason in starts(result) if of == 0]
    # A's second result is preempted for B and resumed: about once in each two hours of five days.
    assert reasons.count(Reason.DEBT_RESUMED) > 20


def test_gpu_jobs_are_neither_asked_for_nor_run() -> None:
    what = preset("document-gpu-and-cpu").scenario
    a, b = run(what, Debt2005(what), 5.0).projects
    assert (a.jobs, a.rpcs) == (0, 0)
    assert b.instance_secs[0] == pytest.approx(5 * DAY_SECS, rel=0.001)
    assert b.instance_secs[1] == 0


def test_who_comes_later_is_owed_nothing_and_who_left_is_forgotten() -> None:
    a, b = project("A", 50, cpu_app()), project("B", 50, cpu_app(), debt_secs=5.0)
    c = Project("C", 50, (cpu_app(),), attached=False)
    events = (Attach(1 * DAY_SECS, "C"), Detach(1 * DAY_SECS, "B"))
    what = Scenario(scenario(a, b).host, (a, b, c), events=events)
    policy = Debt2005(what)
    result = run(what, policy, 3.0)
    # From the second day on A and C share the CPU: A 0.5 + 1 days, B 0.5, C 1; an hour's period either way.
    used_days = [row.instance_secs[0] / DAY_SECS for row in result.projects]
    assert used_days == pytest.approx([1.5, 0.5, 1.0], abs=2 / 24)


def test_the_first_period_begins_with_a_whole_period_of_work_to_share_out() -> None:
    """ "We'll initialize total_work_done_this_period to num_cpus * period_length."""
    a, b = project("A", 25, cpu_app(9.0), debt_secs=1000.0), project("B", 75, cpu_app(9.0))
    what = with_jobs(scenario(a, b, cpus=2), A=(9.0,) * 2, B=(9.0,) * 2)
    begun = starts(run(what, Debt2005(what), 0.01))
    # A 1000 + 0.25 * 2 * 3600 = 2800, B 0.75 * 7200 = 5400: B is first; then its 5400 - 3600 = 1800 is less than A's.
    assert [of for _, of, _ in begun] == [1, 0]
    client = client_of(what)
    policy = Debt2005(what)
    policy.begin(client)
    policy.choose(0.0)
    assert [policy.standing(known, 0.0) for known in client.projects] == [2800.0, 5400.0]
    # Only once: a second period without work leaves debts alone.
    policy.choose(3600.0)
    assert [policy.standing(known, 0.0) for known in client.projects] == [2800.0, 5400.0]


def test_what_the_policy_does_not_know_is_said() -> None:
    with_gpu, without = preset("document-gpu-and-cpu").scenario, preset("s1_two_equal_cpu").scenario
    assert policy_notes("debt", with_gpu) == (NO_GPUS,)
    assert policy_notes("debt", without) == policy_notes("rec", with_gpu) == ()


def test_a_run_keeps_the_sum_of_debts() -> None:
    what = preset("s4_shares_60_30_10").scenario
    policy = Debt2005(what)
    result = run(what, policy, 20.0)
    assert result.timeline is not None
    # Shares are honoured: no debt is larger than some periods' work of 4 CPUs.
    last = [levels[-1] for levels in result.timeline.levels.standing]
    # The whole period that was shared out at the beginning stays: 4 CPUs for an hour.
    assert sum(last) == pytest.approx(4 * HOUR_SECS, abs=1e-3)
    assert max(abs(debt) for debt in last) < 4 * 4 * HOUR_SECS
