"""The feeder's scales: the document's X, and what happens where it is not defined."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.facts import VersionFacts
from credit.engine.normalisation import normalise
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import about, version

RULES = Rules.published()
DEPLOYED = Rules.deployed()


def cpu(id: int, n: int, avg: float | None, **fields: Any) -> VersionFacts:
    return version(n, avg, id=id, **fields)


def gpu(id: int, n: int, avg: float | None, **fields: Any) -> VersionFacts:
    return version(n, avg, id=id, processor_type="NVIDIA", **fields)


def test_x_of_cpu_versions_is_their_mean_weighted_by_samples() -> None:
    found = normalise([cpu(1, 100, 2.0), cpu(2, 300, 4.0)], RULES)
    # (100 × 2 + 300 × 4) / 400 = 3.5; scales 3.5 / 2 and 3.5 / 4
    assert found.min_avg_pfc == 3.5
    assert found.scales == {1: 1.75, 2: 0.875}


def test_x_of_gpu_versions_is_their_mean_too() -> None:
    assert normalise([gpu(1, 100, 10.0), gpu(2, 100, 30.0)], RULES).min_avg_pfc == 20


@pytest.mark.parametrize(("gpu_avg", "expected"), [(20.0, 3.0), (1.5, 1.5)])
def test_x_of_both_kinds_is_the_smaller_mean(gpu_avg: float, expected: float) -> None:
    found = normalise([cpu(1, 100, 2.0), cpu(2, 100, 4.0), gpu(3, 100, gpu_avg)], RULES)
    assert found.min_avg_pfc == expected
    assert found.scales[3] == about(expected / gpu_avg)


@pytest.mark.parametrize(("n", "is_counted"), [(99, False), (100, True), (101, True)])
def test_a_version_counts_from_a_hundred_samples_on(n: int, is_counted: bool) -> None:
    found = normalise([cpu(1, n, 2.0), cpu(2, 1000, 4.0)], RULES)
    assert (found.scales[1] is not None) is is_counted
    assert (found.min_avg_pfc != 4.0) is is_counted


def test_a_single_version_has_scale_one_and_its_average_is_the_least() -> None:
    found = normalise([cpu(1, 500, 2.5), cpu(2, 50, 9.0)], RULES)
    assert (found.min_avg_pfc, found.scales) == (2.5, {1: 1.0, 2: None})


def test_where_x_is_not_defined_the_versions_above_threshold_have_scale_one() -> None:
    # The only GPU version is below the threshold: X waits for it. (200 × 2 + 100 × 5) / 300 = 3
    found = normalise([cpu(1, 200, 2.0), cpu(2, 100, 5.0), gpu(3, 99, 20.0)], RULES)
    assert found.min_avg_pfc == 3
    assert found.scales == {1: 1.0, 2: 1.0, 3: None}


def test_a_deprecated_version_loses_its_scale_and_counts_no_more() -> None:
    found = normalise([cpu(1, 1000, 2.0, is_deprecated=True), cpu(2, 100, 4.0), cpu(3, 100, 6.0)], RULES)
    assert (found.min_avg_pfc, found.scales[1]) == (5.0, None)
    found = normalise([cpu(1, 1000, 2.0), gpu(2, 1000, 9.0, is_deprecated=True)], RULES)
    assert (found.min_avg_pfc, found.scales[1]) == (2.0, 1.0)


def test_without_any_samples_the_app_keeps_what_it_has() -> None:
    assert normalise([], RULES).min_avg_pfc is None
    found = normalise([cpu(1, 0, None), cpu(2, 500, 0.0)], RULES)
    assert (found.min_avg_pfc, found.scales) == (None, {1: None, 2: None})


def test_a_cross_project_factor_wins_in_an_app_with_gpu_versions_only() -> None:
    found = normalise([gpu(1, 100, 20.0, cross_project_scale=0.1), gpu(2, 300, 40.0, cross_project_scale=0.2)], RULES)
    # (100 × 0.1 × 20 + 300 × 0.2 × 40) / 400 = 6.5
    assert found.min_avg_pfc == about(6.5)
    assert found.scales == {1: 0.1, 2: 0.2}


def test_versions_without_such_a_factor_are_scaled_to_those_with_one() -> None:
    found = normalise([gpu(1, 100, 20.0, cross_project_scale=0.1), gpu(2, 100, 8.0)], RULES)
    assert found.min_avg_pfc == about(2)
    assert found.scales == {1: 0.1, 2: about(0.25)}


def test_a_cross_project_factor_holds_from_the_first_job_on() -> None:
    found = normalise([gpu(1, 0, None, cross_project_scale=0.1)], RULES)
    assert (found.min_avg_pfc, found.scales) == (None, {1: 0.1})


def test_a_cross_project_factor_does_not_count_beside_cpu_versions() -> None:
    found = normalise([cpu(1, 100, 2.0), gpu(2, 100, 20.0, cross_project_scale=0.5)], RULES)
    assert (found.min_avg_pfc, found.scales[2]) == (2.0, 0.1)


@pytest.mark.parametrize("processor_type", ["NVIDIA", "ATI", "intel_gpu", "apple_gpu"])
def test_the_processor_type_says_what_is_a_gpu_not_the_plan_class(processor_type: str) -> None:
    native = version(100, 2.0, id=1, plan_class="native_cuda")
    other = version(100, 8.0, id=2, processor_type=processor_type, plan_class="mt")
    assert normalise([native, other], RULES).min_avg_pfc == 2.0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.floats(0.01, 100)), max_size=8))
def test_scaled_averages_are_all_the_same(rows: list[tuple[bool, int, float]]) -> None:
    versions = [(gpu if is_gpu else cpu)(id, n, avg) for id, (is_gpu, n, avg) in enumerate(rows)]
    found = normalise(versions, RULES)
    above = [facts for facts in versions if facts.pfc.n >= 100]
    assert {id for id, scale in found.scales.items() if scale is not None} == {facts.id for facts in above}
    assert (found.min_avg_pfc is not None) == bool(above)
    scales = {facts.id: found.scales[facts.id] or 0.0 for facts in above}
    if set(scales.values()) != {1.0}:
        for facts in above:
            assert scales[facts.id] * (facts.pfc.avg or 0.0) == about(found.min_avg_pfc or 0.0)


# --- deployed ---------------------------------------------------------------------------------------


def test_deployed_one_gpu_version_is_enough_at_a_tenth() -> None:
    found = normalise([gpu(1, 101, 16.0)], DEPLOYED)
    assert found.min_avg_pfc == about(1.6)
    assert found.scales == {1: about(0.1)}


def test_deployed_a_single_cpu_version_never_gets_a_scale() -> None:
    found = normalise([cpu(1, 5000, 2.0)], DEPLOYED)
    assert (found.min_avg_pfc, found.scales) == (None, {})


def test_deployed_more_than_a_hundred_samples_count_and_a_hundred_get_a_scale() -> None:
    versions = [
        cpu(1, 101, 2.0, plan_class="a"),
        cpu(2, 101, 4.0, plan_class="b"),
        cpu(3, 100, 6.0, plan_class="c"),
        cpu(4, 99, 8.0, plan_class="d"),
    ]
    found = normalise(versions, DEPLOYED)
    assert (found.min_avg_pfc, found.scales) == (3.0, {1: 1.5, 2: 0.75, 3: 0.5})


def test_deployed_only_the_newest_version_of_a_kind_counts() -> None:
    versions = [
        cpu(1, 500, 1.0, version_num=100),
        cpu(2, 500, 2.0, version_num=200),
        cpu(3, 500, 9.0, version_num=300, is_deprecated=True),
        cpu(4, 500, 4.0, plan_class="avx"),
        cpu(5, 500, 6.0, platform_id=7),
    ]
    found = normalise(versions, DEPLOYED)
    assert (found.min_avg_pfc, set(found.scales)) == (4.0, {2, 4, 5})
