"""The policy of the 6.6 client: debts per kind of processor, who collects them, and who is asked for what."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, WorkRequest
from emulator.engine.policies.long_term_debt import LongTermDebt, SingleDebt
from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.engine.scenario import DAY_SECS, Scenario
from emulator.engine.timeline.reasons import Reason
from emulator.files.presets import preset
from tests.support.emulated_client import HOUR_SECS, client_of, cpu_app, give, gpu_app, project, scenario

BUFFER_SECS = 0.6 * DAY_SECS
CPU_AND_GPU = scenario(project("A", 50, cpu_app(), gpu_app()), project("B", 50, cpu_app(), gpu_app()), gpu=True)
ONE_CPU = scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app()))


def begun(what: Scenario, *, eligibility_rule: bool = True) -> tuple[Client, LongTermDebt]:
    """A client and its policy at the start."""
    client = client_of(what)
    policy = LongTermDebt(what, eligibility_rule=eligibility_rule)
    policy.begin(client)
    return client, policy


def request_of(policy: LongTermDebt, now: float = 0.0) -> WorkRequest:
    """The request that the policy wants to make."""
    request = policy.fetch(now).request
    assert request is not None
    return request


def standings(client: Client, policy: LongTermDebt) -> list[float]:
    """Overall debts in CPU-seconds."""
    return [policy.standing(known, 0.0) for known in client.projects]


# Debts.


def debts_after(
    shares: list[float], used_parts: list[float], secs: float, eligible: list[bool], start: list[float], cpus: int = 1
) -> list[float]:
    """The debts after a time in which each project's jobs used this part of a CPU."""
    rows = zip(shares, start, strict=True)
    what = scenario(
        *(project(f"P{n}", share, cpu_app(), ltd_secs=debt) for n, (share, debt) in enumerate(rows)), cpus=cpus
    )
    client, policy = begun(what)
    for known, part, is_eligible in zip(client.projects, used_parts, eligible, strict=True):
        known.busy[0], known.no_new_tasks = part, not is_eligible
    policy.accrue(secs)
    return standings(client, policy)


@pytest.mark.parametrize(
    ("shares", "used_parts", "eligible", "start", "expected"),
    [
        # 100 s at shares 1 : 1 : 2 are 25, 25 and 50; A got all 100: -75, +25, +50, in sum 0. The largest becomes 0.
        ([1, 1, 2], [1.0, 0, 0], [True] * 3, [0.0] * 3, [-125, -25, 0]),
        # A used 40 of 100: -15, +25, +50 is +60 in sum, so 20 less each: -35, 5, 30. The largest becomes 0.
        ([1, 1, 2], [0.4, 0, 0], [True] * 3, [0.0] * 3, [-65, -25, 0]),
        # A -50 and B +50 of 100 s that A used; C keeps its -10 until the largest, B's 50, is taken off all.
        ([1, 1, 5], [1.0, 0, 0], [True, True, False], [0.0, 0.0, -10.0], [-100, 0, -60]),
        # A claims 1.5 of the one CPU and B 0.5: they got 75 s and 25 s of the 100 of which each is owed 50.
        ([1, 1], [1.5, 0.5], [True] * 2, [0.0] * 2, [-50, 0]),
        # The only eligible project pays nothing.
        ([1, 1], [0, 1.0], [False, True], [0.0, 0.0], [0, 0]),
    ],
)
def test_each_is_owed_its_share_and_pays_what_it_got(
    shares: list[float], used_parts: list[float], eligible: list[bool], start: list[float], expected: list[float]
) -> None:
    assert debts_after(shares, used_parts, 100.0, eligible, start) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1), st.booleans()), min_size=1, max_size=20),
    st.floats(0, 1e5),
)
def test_the_net_change_is_zero_and_the_maximum_is_zero(rows: list[tuple[float, float, bool]], secs: float) -> None:
    shares, used, eligible = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    after = debts_after(shares, used, secs, eligible, [0.0] * len(rows), cpus=20)
    assert max(after) == 0
    others = [debt for debt, is_eligible in zip(after, eligible, strict=True) if not is_eligible]
    if others:  # they moved by the second offset alone
        assert others == pytest.approx([others[0]] * len(others))
        changes = [debt - others[0] for debt, is_eligible in zip(after, eligible, strict=True) if is_eligible]
        assert sum(changes) == pytest.approx(0, abs=1e-6)


def test_a_project_that_is_backed_off_collects_no_debt() -> None:
    for rule, expected in ((True, [0, 0]), (False, [0, -1000])):
        client, policy = begun(ONE_CPU, eligibility_rule=rule)
        a, b = client.projects
        a.backoff_until_secs[0], a.backoff_interval_secs[0] = 5000.0, 600.0
        b.busy[0] = 1.0
        policy.accrue(1000.0)
        # B got 1000 s. By the rule it alone was owed them; without it, A too was owed 500: +500 and -500.
        assert standings(client, policy) == pytest.approx(expected)


def test_a_back_off_that_ends_within_the_time_counts_up_to_its_end() -> None:
    client, policy = begun(ONE_CPU)
    a, b = client.projects
    a.backoff_until_secs[0], a.backoff_interval_secs[0] = 400.0, 600.0
    b.busy[0] = 1.0
    policy.accrue(1000.0)
    assert standings(client, policy) == pytest.approx([0, -600])


def test_a_back_off_at_its_maximum_takes_the_debt_away_even_after_its_end() -> None:
    client, policy = begun(ONE_CPU)
    a, b = client.projects
    a.backoff_until_secs[0], a.backoff_interval_secs[0] = 10.0, DAY_SECS
    b.busy[0] = 1.0
    policy.accrue(1000.0)
    assert standings(client, policy) == pytest.approx([0, 0])


@pytest.mark.parametrize("setting", ["suspended", "no_new_tasks"])
def test_who_is_suspended_or_gets_no_new_tasks_collects_no_debt(setting: str) -> None:
    client, policy = begun(ONE_CPU, eligibility_rule=False)
    a, b = client.projects
    setattr(a, setting, True)
    b.busy[0] = 1.0
    policy.accrue(1000.0)
    assert standings(client, policy) == pytest.approx([0, 0])


def test_overall_debt_is_weighted_by_the_speed_of_the_kind() -> None:
    client, policy = begun(CPU_AND_GPU)
    a, b = client.projects
    a.busy[:], b.busy[:] = [0.0, 1.0], [1.0, 0.0]
    policy.accrue(1000.0)
    # CPU: A 0, B -1000 s of 1 GFLOPS. GPU: A -1000 s of 2 GFLOPS, B 0. In CPU-seconds:
    assert standings(client, policy) == pytest.approx([-2000, -1000])


def test_no_debt_arises_while_the_computer_cannot_compute() -> None:
    client, policy = begun(scenario(project("A", 80, cpu_app()), project("B", 20, cpu_app())))
    client.kind_active = [False]
    policy.accrue(1000.0)
    assert standings(client, policy) == [0, 0]


def test_a_project_of_which_others_are_owed_comes_free_of_debt() -> None:
    client, policy = begun(ONE_CPU)
    client.projects, client.all_projects[1].attached = client.all_projects[:1], False
    policy.projects_changed(0.0)
    client.projects[0].busy[0] = 1.0
    policy.accrue(1000.0)
    client.projects, client.all_projects[1].attached = client.all_projects[:], True
    policy.projects_changed(1000.0)
    assert standings(client, policy) == [0, 0]


# Work fetch. The buffer is 0.1 + 0.5 days: an instance idle within 2.4 hours is a major shortfall, within 14.4 a minor.


def test_a_major_shortfall_of_the_gpu_comes_first_and_asks_for_the_gpu_only() -> None:
    _, policy = begun(CPU_AND_GPU)
    request = request_of(policy)
    assert (request.project.name, request.reason) == ("A", Reason.FETCH_MAJOR)
    assert request.secs == [0, BUFFER_SECS]
    assert request.instances == [0, 1]
    assert request.delays_secs is None  # the server of 6.6 is told no more


def test_who_is_backed_off_for_the_kind_is_passed_over() -> None:
    client, policy = begun(CPU_AND_GPU)
    client.projects[0].backoff_until_secs[1] = 100.0
    assert request_of(policy).project.name == "B"
    client.projects[1].backoff_until_secs[1] = 100.0
    # No project for the GPU: then the CPU.
    request = request_of(policy)
    assert (request.project.name, request.secs) == ("A", [BUFFER_SECS, 0])


def test_a_major_shortfall_asks_the_project_owed_most_even_if_it_is_overworked() -> None:
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-9000.0), project("B", 50, cpu_app()))
    client, policy = begun(what)
    assert request_of(policy).project.name == "B"
    client.projects[1].backoff_until_secs[0] = 100.0
    assert request_of(policy).project.name == "A"


def test_a_minor_shortfall_asks_for_all_kinds_that_fall_short() -> None:
    client, policy = begun(CPU_AND_GPU)
    give(client, 0, hours=3.0)
    give(client, 0, hours=4.0, app=1)
    request = request_of(policy)
    assert (request.project.name, request.reason) == ("A", Reason.FETCH_MINOR)
    # The jobs of the GPU occupy a hundredth of a CPU too, which the simulation may or may not count as idle.
    assert request.secs == pytest.approx([BUFFER_SECS - 3 * HOUR_SECS, BUFFER_SECS - 4 * HOUR_SECS], abs=200)
    assert request.instances == pytest.approx([0, 0], abs=0.011)


def test_a_minor_shortfall_asks_no_overworked_project() -> None:
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-3601.0), project("B", 50, cpu_app(), ltd_secs=0.0))
    client, policy = begun(what)
    give(client, 0, hours=3.0)
    client.projects[1].backoff_until_secs[0] = 100.0
    assert policy.fetch(0.0).request is None
    # An hour more than it was owed is not yet overworked.
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-3600.0), project("B", 50, cpu_app(), ltd_secs=0.0))
    client, policy = begun(what)
    give(client, 0, hours=3.0)
    client.projects[1].backoff_until_secs[0] = 100.0
    assert request_of(policy).project.name == "A"


def test_a_starved_project_is_asked_though_nothing_falls_short() -> None:
    client, policy = begun(ONE_CPU)
    give(client, 0, hours=20.0)
    request = request_of(policy)
    assert (request.project.name, request.reason, request.secs) == ("B", Reason.FETCH_STARVED, [1.0])


def test_a_starved_project_is_not_asked_while_it_is_overworked_or_backed_off() -> None:
    client, policy = begun(scenario(project("A", 50, cpu_app()), project("B", 50, cpu_app(), ltd_secs=-9000.0)))
    give(client, 0, hours=20.0)
    assert policy.fetch(0.0).request is None
    client, policy = begun(ONE_CPU)
    give(client, 0, hours=20.0)
    client.projects[1].backoff_until_secs[0] = 100.0
    fetch = policy.fetch(0.0)
    assert (fetch.request, fetch.recheck_secs) == (None, 100.0)


def test_a_kind_may_be_asked_for_along_with_another_though_backed_off() -> None:
    client, policy = begun(CPU_AND_GPU)
    give(client, 0, hours=3.0)
    give(client, 0, hours=4.0, app=1)
    client.projects[0].backoff_until_secs[0] = 100.0
    request = request_of(policy)
    assert request.project.name == "A"
    assert min(request.secs) > 0


def test_a_project_is_asked_along_with_its_report_only_if_it_is_the_one_to_ask() -> None:
    client, policy = begun(ONE_CPU)
    assert policy.piggyback_request(client.projects[1], 0.0) is None
    assert policy.piggyback_request(client.projects[0], 0.0) is not None


# Job choice, and whole runs.


def projects_of(choice: Choice) -> list[str]:
    """The names of the projects whose jobs are to run."""
    return [job.project.name for job in choice.jobs]


def test_the_project_owed_most_runs_first() -> None:
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-9000.0), project("B", 50, cpu_app()), cpus=2)
    client, policy = begun(what)
    for index in (0, 0, 1, 1):
        give(client, index, hours=1.0)
    # B's first job lowers its debt by an hour for the choice, to -3600: still above A's -9000.
    assert projects_of(policy.choose(0.0)) == ["B", "B"]


def test_each_chosen_job_lowers_its_projects_debt_for_the_rest_of_the_choice() -> None:
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-3000.0), project("B", 50, cpu_app()), cpus=2)
    client, policy = begun(what)
    for index in (0, 0, 1, 1):
        give(client, index, hours=1.0)
    # After its first job B counts as -3600, below A's -3000.
    assert projects_of(policy.choose(0.0)) == ["B", "A"]


@pytest.mark.parametrize("make", [LongTermDebt, SingleDebt])
def test_shares_are_honoured_over_a_month(make: type[LongTermDebt] | type[SingleDebt]) -> None:
    what = preset("s4_shares_60_30_10").scenario
    result = run(what, make(what), 30.0, timeline=False)
    assert [row.got_fraction for row in result.projects] == pytest.approx([0.6, 0.3, 0.1], abs=0.01)
    assert result.figures.idle < 0.001


def test_one_debt_fetches_nothing_for_an_idle_gpu_while_the_cpu_is_busy() -> None:
    """ "If there is no CPU shortfall, no work will be fetched even if GPUs are idle." """
    client = client_of(CPU_AND_GPU)
    policy = SingleDebt(CPU_AND_GPU)
    policy.begin(client)
    give(client, 0, hours=20.0)
    assert policy.fetch(0.0).request is None
    _, newer = begun(CPU_AND_GPU)
    assert request_of(newer).secs[1] > 0


def test_one_debt_asks_with_one_number_the_project_owed_most() -> None:
    what = scenario(project("A", 50, cpu_app(), ltd_secs=-10.0), project("B", 50, cpu_app()))
    client = client_of(what)
    policy = SingleDebt(what)
    policy.begin(client)
    give(client, 0, hours=3.0)
    request = policy.fetch(0.0).request
    assert request is not None
    assert (request.project.name, request.reason) == ("B", Reason.FETCH_CPU_SHORTFALL)
    assert (request.secs, request.instances) == ([BUFFER_SECS - 3 * HOUR_SECS], [0])


def test_back_offs_are_per_kind_in_the_newer_policies_only() -> None:
    assert (LongTermDebt.uses_backoffs, Rec.uses_backoffs, SingleDebt.uses_backoffs) == (True, True, False)
