"""Credit per host-hour over three projects: a factor from the other two makes the one for GPUs only grant like them."""

from __future__ import annotations

from extras.laboratory.trials.neutrality import WITH_BOTH, measure_neutrality
from tests.support.credit_engine_facts import about


def test_factors_from_other_projects_bring_credit_per_host_hour_together() -> None:
    neutrality = measure_neutrality(1, njobs=1500)
    assert neutrality.others.keys() == WITH_BOTH.keys()
    # Without a counterpart for CPUs GPU time is paid by its peak alone, several times as much as elsewhere.
    assert neutrality.ratio(neutrality.before) > 3
    assert neutrality.ratio(neutrality.after) == about(1, rel=0.1)


def test_the_factors_are_those_of_the_projects_efficiencies() -> None:
    factors = {factor.plan_class: factor.scale for factor in measure_neutrality(2, njobs=1500).factors}
    # cuda: 0.11 / 0.5 = 0.22 at one project, at the other at least 0.12 / 0.4 = 0.3 (it has threads, too, at 0.3)
    assert 0.22 < factors["cuda"] < 0.4
    # opencl_ati: 0.07 / 0.5 = 0.14, and at least 0.05 / 0.4 = 0.125
    assert 0.125 < factors["opencl_ati"] < 0.17
