"""The feeder's scales: the document's X, and what happens where it is not defined."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.averages import Average
from credit.engine.facts import VersionFacts
from credit.engine.normalisation import normalise
from credit.engine.rules import Rules
from tests.support.credit_engine_facts import about, version

RULES = Rules.published()
LETTER = Rules.letter()
DEPLOYED = Rules.deployed()


def cpu(id: int, n: int, avg: float | None, **fields: Any) -> VersionFacts:
    return version(n, avg, id=id, **fields)


def gpu(id: int, n: int, avg: float | None, **fields: Any) -> VersionFacts:
    return version(n, avg, id=id, processor_type="NVIDIA", **fields)


def test_x_of_cpu_versions_is_their_mean_weighted_by_samples() -> None:
    normalised = normalise([cpu(1, 100, 2.0), cpu(2, 300, 4.0)], RULES)
    # (100 × 2 + 300 × 4) / 400 = 3.5; scales 3.5 / 2 and 3.5 / 4
    assert normalised.min_avg_pfc == 3.5
    assert normalised.scales == {1: 1.75, 2: 0.875}


def test_x_of_gpu_versions_is_their_mean_too() -> None:
    assert normalise([gpu(1, 100, 10.0), gpu(2, 100, 30.0)], RULES).min_avg_pfc == 20


def test_a_new_cpu_version_does_not_change_gpu_versions_with_a_factor_from_outside() -> None:
    alone = normalise([gpu(1, 1000, 20.0, cross_project_scale=0.1)], RULES)
    beside = normalise([gpu(1, 1000, 20.0, cross_project_scale=0.1, is_counted=True), cpu(2, 0, None)], RULES)
    # 0.1 × 20 = 2
    assert alone.min_avg_pfc == beside.min_avg_pfc == 2.0
    assert alone.scales[1] == beside.scales[1] == 0.1


@pytest.mark.parametrize(("gpu_avg", "expected"), [(20.0, 3.0), (1.5, 1.5)])
def test_x_of_both_kinds_is_the_smaller_mean(gpu_avg: float, expected: float) -> None:
    normalised = normalise([cpu(1, 100, 2.0), cpu(2, 100, 4.0), gpu(3, 100, gpu_avg)], RULES)
    assert normalised.min_avg_pfc == expected
    assert normalised.scales[3] == about(expected / gpu_avg)


@pytest.mark.parametrize(("n", "is_counted"), [(99, False), (100, True), (101, True)])
def test_a_version_counts_from_a_hundred_samples_on(n: int, is_counted: bool) -> None:
    for rules in (RULES, LETTER):
        normalised = normalise([cpu(1, n, 2.0), cpu(2, 1000, 4.0)], rules)
        assert (normalised.scales.get(1) is not None) is is_counted
        assert (normalised.min_avg_pfc != 4.0) is is_counted


def test_a_single_version_has_scale_one_and_its_average_is_the_least() -> None:
    versions = [cpu(1, 500, 2.5), cpu(2, 50, 9.0)]
    found = normalise(versions, LETTER)
    assert (found.min_avg_pfc, found.scales) == (2.5, {1: 1.0, 2: None})
    found = normalise(versions, RULES)
    assert (found.min_avg_pfc, found.scales) == (2.5, {1: 1.0})


def test_to_the_letter_versions_above_threshold_have_scale_one_where_x_is_not_defined() -> None:
    # The only GPU version is below the threshold: X waits for it. (200 × 2 + 100 × 5) / 300 = 3
    versions = [cpu(1, 200, 2.0), cpu(2, 100, 5.0), gpu(3, 99, 20.0)]
    found = normalise(versions, LETTER)
    assert found.min_avg_pfc == 3
    assert found.scales == {1: 1.0, 2: 1.0, 3: None}
    # As published they keep what they had without it: 3 / 2 and 3 / 5.
    found = normalise(versions, RULES)
    assert found.min_avg_pfc == 3
    assert found.scales == {1: 1.5, 2: 0.6}


@pytest.mark.parametrize(("rules", "scales"), [(RULES, {2: 1.25, 3: 5 / 6}), (LETTER, {1: None, 2: 1.25, 3: 5 / 6})])
def test_a_deprecated_version_counts_no_more_and_to_the_letter_loses_its_scale(
    rules: Rules, scales: dict[int, float | None]
) -> None:
    found = normalise([cpu(1, 1000, 2.0, is_deprecated=True), cpu(2, 100, 4.0), cpu(3, 100, 6.0)], rules)
    assert (found.min_avg_pfc, found.scales) == (5.0, scales)
    found = normalise([cpu(1, 1000, 2.0), gpu(2, 1000, 9.0, is_deprecated=True)], rules)
    assert (found.min_avg_pfc, found.scales[1]) == (2.0, 1.0)


def test_without_any_samples_the_app_keeps_what_it_has() -> None:
    for rules in (RULES, LETTER):
        assert normalise([], rules).min_avg_pfc is None
        found = normalise([cpu(1, 0, None), cpu(2, 500, 0.0)], rules)
        assert (found.min_avg_pfc, found.scales) == (None, {} if rules is RULES else {1: None, 2: None})


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


# --- versions that come and go ------------------------------------------------------------------------


def feed(versions: list[VersionFacts]) -> float | None:
    """Keeps the outcome as the feeder does; returns the least average."""
    found = normalise(versions, RULES)
    for each in versions:
        each.pfc_scale = found.scales.get(each.id, each.pfc_scale)
        if found.counted:
            each.is_counted = each.id in found.counted
    return found.min_avg_pfc


def mean(versions: list[VersionFacts]) -> float:
    return sum((each.pfc.avg or 0.0) * each.pfc.n for each in versions) / sum(each.pfc.n for each in versions)


def scales(versions: list[VersionFacts]) -> list[float | None]:
    return [each.pfc_scale for each in versions]


def test_a_withdrawn_version_keeps_its_scale_and_the_last_of_its_kind_goes_on_counting() -> None:
    versions = [cpu(1, 1000, 2.0), gpu(2, 1000, 20.0)]
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1])
    versions[0].is_deprecated = True
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1])
    versions[1].is_deprecated = True
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1])


def test_what_was_withdrawn_before_does_not_come_back_with_the_last_of_its_kind() -> None:
    versions = [cpu(1, 10_000, 1.0), cpu(2, 100, 4.0, platform_id=7), gpu(3, 100, 20.0)]
    feed(versions)
    versions[0].is_deprecated = True
    assert (feed(versions), scales(versions)[1:]) == (4.0, [1.0, 0.2])
    versions[1].is_deprecated = True
    assert (feed(versions), scales(versions)[1:]) == (4.0, [1.0, 0.2])


def test_a_new_version_starts_with_the_scale_of_its_predecessor_until_it_has_samples() -> None:
    versions = [cpu(1, 1000, 2.0), gpu(2, 1000, 20.0, version_num=100)]
    feed(versions)
    versions[1].is_deprecated = True
    # Two releases follow each other before any has samples; another plan class has no predecessor.
    versions += [gpu(3, 0, None, version_num=102), gpu(4, 0, None, version_num=101)]
    versions += [gpu(5, 0, None, version_num=103, plan_class="opencl")]
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1, 0.1, 0.1, None])
    versions[2].is_deprecated = True
    versions[3].pfc.n, versions[3].pfc.avg = 99, 40.0
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1, 0.1, 0.1, None])
    versions[3].pfc.n = 100
    assert (feed(versions), scales(versions)) == (2.0, [1.0, 0.1, 0.1, 0.05, None])


def test_a_withdrawn_version_with_a_cross_project_factor_goes_on_counting_too() -> None:
    versions = [gpu(1, 100, 20.0, cross_project_scale=0.1), gpu(2, 100, 8.0)]
    assert (feed(versions), scales(versions)) == (2.0, [0.1, 0.25])
    versions[0].is_deprecated = True
    assert (feed(versions), scales(versions)) == (2.0, [0.1, 0.25])


populations = st.lists(
    st.tuples(st.booleans(), st.integers(0, 2), st.sampled_from([0, 99, 100, 101, 5000]), st.floats(0.01, 100)),
    min_size=1,
    max_size=8,
)


@given(populations, st.data())
def test_withdrawing_a_version_moves_claims_only_by_the_mean_of_those_that_remain(
    rows: list[tuple[bool, int, int, float]], data: st.DataObject
) -> None:
    versions = [
        (gpu if is_gpu else cpu)(id, n, avg if n else None, plan_class=str(is_gpu), platform_id=place, version_num=id)
        for id, (is_gpu, place, n, avg) in enumerate(rows)
    ]
    least = feed(versions)
    for gone in data.draw(st.permutations(versions)):
        before = scales(versions)
        others = [each for each in versions if each.is_counted and each is not gone]
        was_counted = gone.is_counted
        gone.is_deprecated = True
        now = feed(versions)
        kinds = [[other for other in others if other.is_gpu is is_gpu] for is_gpu in (False, True)]
        if was_counted and any(not version.is_deprecated for version in kinds[gone.is_gpu]) and len(others) > 1:
            # Others of its kind remain: X is the document's, of those that counted and are left.
            assert now == about(min(mean(group) for group in kinds if group))
        else:
            assert now == (None if least is None else about(least))
            assert scales(versions) == [None if scale is None else about(scale) for scale in before]
        assert gone.pfc_scale == before[versions.index(gone)]
        least = now


@given(populations, st.booleans(), st.integers(0, 2))
def test_releasing_a_version_moves_no_others_claims(
    rows: list[tuple[bool, int, int, float]], is_gpu: bool, place: int
) -> None:
    versions = [(gpu if g else cpu)(id, n, avg if n else None, platform_id=p) for id, (g, p, n, avg) in enumerate(rows)]
    least = feed(versions)
    before = scales(versions)
    versions.append((gpu if is_gpu else cpu)(99, 0, None, platform_id=place, version_num=99))
    assert feed(versions) == least
    assert scales(versions)[:-1] == before


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


# --- factors from other projects ----------------------------------------------------------------------


def take(versions: list[VersionFacts], rules: Rules = RULES) -> list[float | None]:
    """As the feeder takes a run's outcome over; the scales then."""
    found = normalise(versions, rules)
    for each in versions:
        each.pfc_scale = found.scales.get(each.id, each.pfc_scale)
        each.is_counted = each.id in found.counted if found.counted else each.is_counted
        each.is_scale_received = each.id in found.received
    return [each.pfc_scale for each in versions]


def received(versions: list[VersionFacts]) -> list[bool]:
    return [each.is_scale_received for each in versions]


@pytest.mark.parametrize("rules", [RULES, LETTER])
def test_what_came_from_other_projects_is_marked_also_what_is_in_proportion_to_it(rules: Rules) -> None:
    versions = [gpu(1, 100, 20.0, cross_project_scale=0.1), gpu(2, 100, 8.0), gpu(3, 0, None, plan_class="new")]
    assert (take(versions, rules), received(versions)) == ([0.1, 0.25, None], [True, True, False])


def test_a_release_inherits_that_its_factor_came_from_other_projects() -> None:
    versions = [gpu(1, 100, 20.0, cross_project_scale=0.1, version_num=1), gpu(2, 0, None, version_num=2)]
    assert (take(versions), received(versions)) == ([0.1, 0.1], [True, True])


def test_a_version_that_gains_a_counterpart_for_cpus_goes_back_to_its_own_factor_once_that_counts() -> None:
    versions = [gpu(1, 100, 20.0, cross_project_scale=0.5), cpu(2, 99, 2.0)]
    assert (take(versions), received(versions)) == ([0.5, None], [True, False])
    versions[1].pfc.n = 100
    # X is min(2, 20) = 2: 2 / 20 = 0.1 for GPUs, and 1 for CPUs
    assert (take(versions), received(versions)) == ([0.1, 1.0], [False, False])
    # To the letter a CPU version takes part from its release on: until both kinds have samples, scales are 1.
    versions = [gpu(1, 100, 20.0, cross_project_scale=0.5), cpu(2, 99, 2.0)]
    assert (take(versions, LETTER), received(versions)) == ([1.0, None], [False, False])


def test_without_samples_of_its_own_it_keeps_the_received_factor_then() -> None:
    versions = [gpu(1, 99, 20.0, cross_project_scale=0.5), cpu(2, 99, 2.0)]
    take(versions)
    versions[1].pfc.n = 100
    assert (take(versions), received(versions)) == ([0.5, 1.0], [True, False])
    versions[0].pfc.n = 100
    assert (take(versions), received(versions)) == ([0.1, 1.0], [False, False])


@pytest.mark.parametrize(("n", "scale"), [(0, None), (99, None), (100, 1.0)])
def test_a_factor_that_is_taken_back_ends_also_before_there_are_samples(n: int, scale: float | None) -> None:
    versions = [gpu(1, n, 20.0 if n else None, cross_project_scale=0.1, version_num=2), gpu(2, 0, None, version_num=3)]
    assert take(versions) == [0.1, 0.1]
    versions[0].cross_project_scale = None
    # Alone above the threshold, its own average is X, and the release inherits that.
    assert (take(versions), received(versions)) == ([scale, scale], [False, False])


def test_a_withdrawn_version_keeps_the_received_factor_as_long_as_the_app_has_one() -> None:
    versions = [gpu(1, 0, None, cross_project_scale=0.1, version_num=1), gpu(2, 0, None, version_num=2)]
    take(versions)
    versions[1].is_deprecated = True
    assert take(versions) == [0.1, 0.1]
    versions[0].cross_project_scale = None
    assert take(versions) == [None, None]


def test_a_release_keeps_the_received_factor_of_one_that_was_withdrawn_before_it_had_samples() -> None:
    versions = [gpu(1, 99, 20.0, cross_project_scale=0.1, version_num=1), gpu(2, 0, None, version_num=2)]
    take(versions)
    versions[0].is_deprecated = True
    versions[1].pfc = Average(100, 20.0)
    # Its own factor would be 1: ten times the credit because of a release.
    assert (take(versions), received(versions)) == ([0.1, 0.1], [True, True])
    other = gpu(3, 100, 8.0, plan_class="other", version_num=1)
    assert take([*versions, other]) == [0.1, 0.1, 1.0]
    # A version for CPUs that counts ends it, as does taking it back.
    assert take([*versions, cpu(4, 100, 4.0)]) == [0.1, 0.2, 1.0]
    versions[0].cross_project_scale = None
    assert (take(versions), received(versions)) == ([None, 1.0], [False, False])


def test_the_deployed_rules_know_no_such_factor() -> None:
    versions = [gpu(1, 200, 20.0, cross_project_scale=0.5)]
    assert (take(versions, DEPLOYED), received(versions)) == ([0.1], [False])
