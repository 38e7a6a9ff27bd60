"""Lanes: whom a job is for, what its workunit is bound to, and the classes of computers."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.engine.choice.client_versions import ClientLimits, is_warned, may_run, number_of, site_reason, text_of
from scheduler.engine.hr_classes import Redundancy, class_name, class_of
from scheduler.engine.lanes import (
    FIRST_TARGETED,
    Binding,
    Lane,
    LaneIndex,
    LaneKind,
    Requirement,
    bind,
    free_lane,
)
from scheduler.engine.reasons import Reason

KINDS = st.sampled_from([LaneKind.COMPUTER, LaneKind.PERSON, LaneKind.TEAM])
TARGETS = st.tuples(KINDS, st.integers(1, FIRST_TARGETED - 1)).map(lambda values: Lane(*values))
REQUIREMENTS = st.one_of(
    st.integers(0, 10**8).map(Requirement), st.integers(1, 2**32).map(lambda id_: Requirement(0, id_))
)
SHARED = st.tuples(st.integers(0, 32_767), REQUIREMENTS).map(lambda values: Lane(LaneKind.SHARED, 0, *values))
SIZES = st.integers(0, 9).map(lambda size: Lane(size_class=size))


@given(st.one_of(TARGETS, SHARED, SIZES))
def test_a_lane_is_known_by_its_number_which_postgresql_can_keep(lane: Lane) -> None:
    assert Lane.of(lane.number) == lane
    assert 0 <= lane.number < 2**63
    assert (lane.number >= FIRST_TARGETED) == (lane.kind != LaneKind.SHARED)


def test_the_lane_of_what_is_for_all_is_0() -> None:
    assert Lane().number == 0


MY_COMPUTER = Lane(LaneKind.COMPUTER, 7).number
ASKS_FOR_105 = Lane(requirement=Requirement(105)).number


@pytest.mark.parametrize(
    ("lane", "version_num", "hr_class", "version_id", "bound"),
    [
        (0, 0, 1043, 0, Lane(hr_class=1043)),
        (0, 0, 0, 9, Lane(requirement=Requirement(0, 9))),
        (0, 0, 1043, 9, Lane(hr_class=1043, requirement=Requirement(0, 9))),
        # Bound to a class it still asks for its version; bound to a version it has one of that number.
        (ASKS_FOR_105, 105, 1043, 0, Lane(hr_class=1043, requirement=Requirement(105))),
        (ASKS_FOR_105, 105, 1043, 9, Lane(hr_class=1043, requirement=Requirement(0, 9))),
        # A target stays one.
        (MY_COMPUTER, 0, 1043, 9, Lane.of(MY_COMPUTER)),
    ],
)
def test_a_workunit_is_bound_and_freed_again(
    lane: int, version_num: int, hr_class: int, version_id: int, bound: Lane
) -> None:
    binding = bind(lane, version_num, hr_class, version_id)
    assert binding == Binding(hr_class, version_id, bound.number)
    assert free_lane(binding.lane, version_num, None) == lane


def test_a_workunit_with_a_size_is_bound_and_freed_again() -> None:
    lane = Lane(size_class=2).number
    binding = bind(lane, 0, 1043, 0)
    assert binding.lane == Lane(hr_class=1043).number
    assert free_lane(binding.lane, 0, 2) == lane


def test_a_computer_looks_where_jobs_for_it_wait() -> None:
    numbers = [MY_COMPUTER, Lane(LaneKind.PERSON, 3).number, ASKS_FOR_105, *(Lane(hr_class=n).number for n in (10, 20))]
    index = LaneIndex.of(numbers)
    targets = {LaneKind.COMPUTER: 7, LaneKind.PERSON: 4, LaneKind.TEAM: 0}
    assert index.of_target(targets) == [MY_COMPUTER]
    assert [lane.number for lane in index.of_class(20)] == [ASKS_FOR_105, Lane(hr_class=20).number]
    assert len(index.of_class(None)) == 3
    # If there are too many to be listed, it looks into its own, whatever is there.
    many = LaneIndex.of(numbers, has_more_targeted=True)
    assert many.of_target(targets) == [MY_COMPUTER, Lane(LaneKind.PERSON, 4).number]


INTEL = ("GenuineIntel", "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz [Family 6 Model 158 Stepping 10]")
AMD = ("AuthenticAMD", "AMD Ryzen 7 5800X [Family 25 Model 33 Stepping 0]")
AVX2 = frozenset({"fpu", "sse2", "avx", "avx2"})


@pytest.mark.parametrize(
    ("redundancy", "os_name", "processor", "features", "name"),
    [
        ("fine", "Linux Debian", INTEL, AVX2, "Linux, Intel, AVX2"),
        ("fine", "Microsoft Windows 11", AMD, AVX2 | {"avx512f"}, "Windows, AMD, AVX-512"),
        ("fine", "Darwin", ("Apple", "Apple M1"), frozenset(), "Darwin, Apple"),
        ("fine", "Android", ("ARM", "AArch64 Processor [Impl 0x41 Arch 8]"), frozenset({"asimd"}), "Android, ARM"),
        ("fine", "FreeBSD", ("CentaurHauls", "VIA Nano"), frozenset({"sse2"}), "FreeBSD, x86, SSE2"),
        ("coarse", "Linux Debian", INTEL, AVX2, "Linux, x86"),
        ("coarse", "Linux Mint", AMD, frozenset(), "Linux, x86"),
        ("coarse", "Darwin", ("Apple", "Apple M1"), frozenset(), "Darwin, ARM"),
        ("coarse", "Darwin", ("Power Macintosh", "PowerBook6,8"), frozenset(), "Darwin, PowerPC"),
    ],
)
def test_the_class_of_a_computer(
    redundancy: str, os_name: str, processor: tuple[str, str], features: frozenset[str], name: str
) -> None:
    number = class_of(redundancy, os_name, *processor, features)
    assert 0 < number < 32_768
    assert class_name(number) == name


@pytest.mark.parametrize(
    ("redundancy", "os_name", "vendor"),
    [(Redundancy.OFF, "Linux", "GenuineIntel"), ("fine", "Haiku", "GenuineIntel"), ("coarse", "Linux", "")],
)
def test_what_is_not_known_has_no_class(redundancy: str, os_name: str, vendor: str) -> None:
    assert class_of(redundancy, os_name, vendor, "", frozenset()) == 0


NOON = dt.datetime(2027, 1, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("client", "limits", "reason", "warned"),
    [
        ("7.20.5", ClientLimits(), None, False),
        ("7.20.5", ClientLimits(72_005, 72_005), None, False),
        ("7.16.20", ClientLimits(72_000), Reason.CLIENT_TOO_OLD, False),
        ("8.2.8", ClientLimits(0, 80_000), Reason.CLIENT_TOO_NEW, False),
        ("7.16.20", ClientLimits(72_000, 0, NOON + dt.timedelta(days=1)), None, True),
        ("7.16.20", ClientLimits(72_000, 0, NOON), Reason.CLIENT_TOO_OLD, False),
        # Nothing is known of it, and nothing held against it.
        ("", ClientLimits(72_000, 80_000), None, False),
    ],
)
def test_which_clients_get_work(client: str, limits: ClientLimits, reason: Reason | None, warned: bool) -> None:
    assert site_reason(number_of(client), limits, NOON) == reason
    assert is_warned(number_of(client), limits, NOON) == warned


def test_versions_of_clients_are_read_and_written() -> None:
    assert [number_of(text) for text in ("7.20.5", "6.10", "", "x")] == [72_005, 61_000, 0, 0]
    assert (text_of(72_005), text_of(0)) == ("7.20.5", "")
    assert may_run(72_005, 0, 0)
