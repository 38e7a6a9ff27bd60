"""Size classes: where the census divides computers by speed, and in which order they get jobs of the classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.choice.sizes import class_of, in_order, take_census
from scheduler.engine.lanes import Lane


@pytest.mark.parametrize(
    ("speeds", "nclasses", "limits", "nhosts"),
    [
        # Of n speeds in order, the i-th of N classes begins at number n·i/N, rounded down, as in BOINC's census.
        ([], 2, [], [0, 0]),
        ([7.0], 2, [], [1, 0]),
        ([1.0, 2.0], 2, [2.0], [1, 1]),
        ([3.0, 1.0, 2.0], 2, [2.0], [1, 2]),
        ([1.0, 2.0, 3.0, 4.0], 2, [3.0], [2, 2]),
        ([6.0, 5.0, 4.0, 3.0, 2.0, 1.0], 3, [3.0, 5.0], [2, 2, 2]),
        # 10·1/3 = 3, 10·2/3 = 6
        ([float(n) for n in range(10)], 3, [3.0, 6.0], [3, 3, 4]),
        ([float(n) for n in range(100)], 4, [25.0, 50.0, 75.0], [25] * 4),
        # Equally fast computers are all in the last class
        ([5.0] * 4, 4, [5.0, 5.0, 5.0], [0, 0, 0, 4]),
    ],
)
def test_the_census_parts_computers_where_equal_numbers_are_slower(
    speeds: list[float], nclasses: int, limits: list[float], nhosts: list[int]
) -> None:
    assert take_census(speeds, nclasses) == (limits, nhosts)


@given(st.lists(st.integers(1, 10**15), unique=True, max_size=60), st.integers(2, 10))
def test_classes_have_as_many_computers_each_as_can_be(speeds: list[int], nclasses: int) -> None:
    limits, sizes = take_census([float(speed) for speed in speeds], nclasses)
    assert sizes == [sum(class_of(float(speed), limits) == n for speed in speeds) for n in range(nclasses)]
    assert sum(sizes) == len(speeds)
    if limits:
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("speed", "size_class"), [(0.0, 0), (2.9, 0), (3.0, 1), (4.9, 1), (5.0, 2), (1e30, 2)])
def test_a_computers_class_is_that_of_its_speed(speed: float, size_class: int) -> None:
    assert class_of(speed, (3.0, 5.0)) == size_class


def test_before_the_first_census_all_computers_are_of_the_first_class() -> None:
    assert class_of(1e15, ()) == 0


@pytest.mark.parametrize(
    ("own", "waiting", "order"),
    [
        (1, [0, 1, 2, 3], [1, 0, 2, 3]),
        (3, [0, 1, 2], [3, 2, 1, 0]),
        (0, [2, 1], [0, 1, 2]),
        # There were more classes once: their jobs still go out.
        (0, [9], [0, 9]),
        (3, [1, 3, 7, 9], [9, 7, 3, 1]),
        (2, [1, 9], [2, 1, 9]),
    ],
)
def test_a_computer_gets_its_own_class_first_then_smaller_jobs_then_larger_ones(
    own: int, waiting: list[int], order: list[int]
) -> None:
    lanes = [Lane(size_class=size).number for size in waiting]
    assert [Lane.of(lane).size_class for lane in in_order(own, lanes, [1e9, 2e9, 3e9])] == order
