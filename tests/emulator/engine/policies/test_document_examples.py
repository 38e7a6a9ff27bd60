"""The documents' own examples, run: where each policy reaches what the text wants, and where the text misses it.

The 6.6 document's "Examples", and the two-processor example of the 2005 text. All projects have equal shares unless
said; docs/explanation/emulator-policies.md discusses the outcomes.
"""

import pytest

from emulator.engine.policies.debt_2005 import Debt2005
from emulator.engine.policies.long_term_debt import LongTermDebt, SingleDebt
from emulator.engine.policies.rec import Rec, RecLetter
from emulator.engine.policy import Policy
from emulator.engine.run import run
from emulator.engine.scenario import DAY_SECS
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import Result
from emulator.files.presets import YEAR_DAYS, preset
from tests.support.timeline_occupation import Occupation

YEAR_SECS = YEAR_DAYS * DAY_SECS


def gpu_and_cpu(policy: Policy) -> Result:
    """The first example's 100 days."""
    return run(preset("document-gpu-and-cpu").scenario, policy, 100.0)


def late_gpu_app(policy: Policy) -> tuple[float, float]:
    """The third example: days from B's GPU application to its first GPU job; A's part of the GPU in the ten days
    from then on."""
    gpu = Occupation(run(preset("document-late-gpu-app").scenario, policy, YEAR_DAYS + 12), "NVIDIA")
    first = gpu.first_start(1)
    return (first - YEAR_SECS) / DAY_SECS, gpu.part(0, first, first + 10 * DAY_SECS)


def test_example_1_rec_gives_both_projects_the_same_total() -> None:
    result = gpu_and_cpu(Rec())
    # BOINC's own emulator: 49.97 and 50.03 %.
    assert [project.got_fraction for project in result.projects] == pytest.approx([0.5, 0.5], abs=0.02)
    assert Occupation(result, "NVIDIA").part(0, 0, 100 * DAY_SECS) == pytest.approx(0.75, abs=0.02)


def test_example_1_long_term_debt_by_its_own_rule_splits_the_gpu_in_halves() -> None:
    """A's back-off for the CPU is at its maximum, so B's use of the CPU costs it nothing: the text misses its aim."""
    scenario = preset("document-gpu-and-cpu").scenario
    result = gpu_and_cpu(LongTermDebt(scenario))
    gpu = Occupation(result, "NVIDIA")
    assert gpu.part(0, 0, 100 * DAY_SECS) == pytest.approx(0.5, abs=0.02)
    assert gpu.part(1, 0, 100 * DAY_SECS) == pytest.approx(0.5, abs=0.02)
    # A: 0.5 * 2 GFLOPS; B: 0.5 * 2 + 1; of 3 in all.
    assert [project.got_fraction for project in result.projects] == pytest.approx([1 / 3, 2 / 3], abs=0.02)


def test_example_1_long_term_debt_without_the_eligibility_rule_gives_equal_totals() -> None:
    scenario = preset("document-gpu-and-cpu").scenario
    result = gpu_and_cpu(LongTermDebt(scenario, eligibility_rule=False))
    gpu, cpu = Occupation(result, "NVIDIA"), Occupation(result, "CPU")
    assert gpu.part(0, 0, 100 * DAY_SECS) == pytest.approx(0.75, abs=0.02)
    assert gpu.part(1, 0, 100 * DAY_SECS) == pytest.approx(0.25, abs=0.02)
    assert cpu.part(1, 0, 100 * DAY_SECS) == pytest.approx(1, abs=0.02)
    assert [project.got_fraction for project in result.projects] == pytest.approx([0.5, 0.5], abs=0.02)


def test_example_1_the_one_debt_by_cpu_time_lets_a_have_the_whole_gpu() -> None:
    """ "LTD is computed solely on the basis of CPU time used": A uses none, so it is always owed more."""
    result = gpu_and_cpu(SingleDebt(preset("document-gpu-and-cpu").scenario))
    assert Occupation(result, "NVIDIA").part(0, 0, 100 * DAY_SECS) > 0.95
    assert [project.got_fraction for project in result.projects] == pytest.approx([2 / 3, 1 / 3], abs=0.02)


@pytest.fixture(scope="module")
def after_a_year() -> Occupation:
    """The second example under long-term debt: A's year, B's, and A again."""
    scenario = preset("document-year-long-job").scenario
    return Occupation(run(scenario, LongTermDebt(scenario), 2 * YEAR_DAYS + 3), "CPU")


def test_example_2_long_term_debt_gives_b_the_cpu_for_a_year_after_as_year(after_a_year: Occupation) -> None:
    end = after_a_year.end_of_first_job(0)
    # A job of B runs when it would miss its own deadline: 36 of an hour within A's year.
    assert end == pytest.approx(YEAR_SECS, rel=0.005)
    assert after_a_year.first_start(0, after_secs=end) - end == pytest.approx(YEAR_SECS, rel=0.05)


def test_example_2_long_term_debt_lets_nobody_else_in_within_bs_year(after_a_year: Occupation) -> None:
    end = after_a_year.end_of_first_job(0)
    assert after_a_year.part(1, end, end + 0.95 * YEAR_SECS) == pytest.approx(1, abs=1e-6)


def test_example_2_recs_letter_forgets_as_year_within_weeks() -> None:
    """BOINC's own emulator: 9.0 days. With a half-life of 10 days two RECs meet after about that, whatever the debt."""
    cpu = Occupation(run(preset("document-year-long-job").scenario, RecLetter(), YEAR_DAYS + 12), "CPU")
    end = cpu.end_of_first_job(0)
    assert (cpu.first_start(0, after_secs=end) - end) / DAY_SECS == pytest.approx(9.0, abs=0.5)


def test_example_2_rec_gives_b_the_cpu_for_months_after_as_year() -> None:
    """It forgets little in twenty years. 198 days; then they take turns, a year each."""
    cpu = Occupation(run(preset("document-year-long-job").scenario, Rec(), 1.7 * YEAR_DAYS), "CPU")
    end = cpu.end_of_first_job(0)
    assert cpu.first_start(0, after_secs=end) - end == pytest.approx(198 * DAY_SECS, rel=0.05)


def test_example_2_variation_a_new_project_shares_the_cpu_with_b_at_once() -> None:
    scenario = preset("document-year-long-job-new-project").scenario
    cpu = Occupation(run(scenario, LongTermDebt(scenario), YEAR_DAYS + 12), "CPU")
    end = cpu.end_of_first_job(0)
    assert end < YEAR_SECS + 2 * DAY_SECS  # about when C comes
    assert [cpu.part(project, end, end + 10 * DAY_SECS) for project in (1, 2)] == pytest.approx([0.5, 0.5], abs=0.05)


def test_example_3_long_term_debt_shares_the_gpu_at_once() -> None:
    waited_days, part_of_a = late_gpu_app(LongTermDebt(preset("document-late-gpu-app").scenario))
    # The back-off is at most a day times 1.5; then the next shortfall is waited for.
    assert waited_days <= 1.75
    assert part_of_a == pytest.approx(0.5, abs=0.05)


@pytest.mark.long
def test_example_3_without_the_eligibility_rule_b_has_the_gpu_alone() -> None:
    """Why the rule is there: B was owed half of the GPU for a year in which it had no jobs for it."""
    scenario = preset("document-late-gpu-app").scenario
    _, part_of_a = late_gpu_app(LongTermDebt(scenario, eligibility_rule=False))
    assert part_of_a < 0.1


def test_example_3_rec_lets_b_catch_up_first() -> None:
    """BOINC's own emulator: B alone for two days; A 8.9 % of all FLOP after 5 days, 29.6 after 10, 39.9 after 20."""
    gpu = Occupation(run(preset("document-late-gpu-app").scenario, Rec(), YEAR_DAYS + 20), "NVIDIA")
    # Two thirds of all FLOP are the GPU's, and A has nothing else.
    parts = {days: gpu.part(0, YEAR_SECS, YEAR_SECS + days * DAY_SECS) * 2 / 3 for days in (2, 5, 10, 20)}
    assert parts == pytest.approx({2: 0, 5: 0.089, 10: 0.296, 20: 0.399}, abs=0.02)


def test_two_processors_share_75_to_25_with_two_results_of_a_begun() -> None:
    """ "One processor will run a result computation for A, while the other will switch [...] between A and B. Thus,
    A will have two active result computations." """
    scenario = preset("document-two-processors").scenario
    result = run(scenario, Debt2005(scenario), 20.0)
    # A period is an hour, so after 480 of them 1/480 of the work is what may be missing.
    assert [project.got_fraction for project in result.projects] == pytest.approx([0.75, 0.25], abs=1 / 480)
    cpu = Occupation(result, "CPU")
    assert cpu.most_begun(0) == 2
    assert cpu.most_begun(1) == 1


def test_jobs_of_months_do_not_keep_the_other_project_from_its_half() -> None:
    """ "When work_buf_min is on the order of days, the client will never think it is out of work": the cap."""
    scenario = preset("document-months-long-job").scenario
    result = run(scenario, Debt2005(scenario), 60.0)
    assert [project.got_fraction for project in result.projects] == pytest.approx([0.5, 0.5], abs=0.01)
    assert Reason.FETCH_PROJECT_SHORT in list(result.decisions.reason)
