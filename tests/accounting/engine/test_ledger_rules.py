"""The ledger's rules one by one, but for attachments and resets, with the arithmetic of what is expected.

One CPU earns 0.01 credits a second, the GPU of ``WITH_GPU`` 10 credits a second.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from accounting.engine.machine import (
    Allowance,
    Capacity,
    Ceilings,
    Machine,
    allowance,
    capacity,
    most_cpu_credit,
    most_gpu_credit,
)
from accounting.engine.states import DayFlag, HostState
from tests.support.ledger_books import (
    DAY,
    HOUR,
    MICRO,
    ONE_CPU,
    START_US,
    WITH_GPU,
    Books,
    books_after_ten_hours,
    totals,
)

CEILINGS = Ceilings()


# Rule 1: stale and repeated messages


@pytest.mark.parametrize(
    ("client_now", "after_secs", "is_stale"),
    [
        pytest.param(999.0, 60, True, id="older, a minute later"),
        pytest.param(999.0, 3_599, True, id="older, just within the hour"),
        pytest.param(999.0, 3_600, False, id="older, after an hour: the client's clock was set back"),
        pytest.param(999.0, -3_599, True, id="older, and our clock went back a little"),
        pytest.param(999.0, -3_600, False, id="older, and our clock went back an hour: nobody is locked out"),
        pytest.param(1_000.0, 60, False, id="the newest again"),
        pytest.param(1_001.0, 60, False, id="newer"),
        pytest.param(None, 60, False, id="no clock"),
        pytest.param(math.nan, 60, False, id="not a number"),
        pytest.param(-math.inf, 60, False, id="not finite"),
    ],
)
def test_an_older_message_within_an_hour_changes_nothing(
    client_now: float | None, after_secs: int, is_stale: bool
) -> None:
    books = books_after_ten_hours()
    before = books.host
    settlement = books.rpc(10 * HOUR + after_secs, {1: totals(cpu_secs=36_010), 2: totals()}, client_now=client_now)
    assert settlement.stale is is_stale
    if is_stale:
        assert settlement.host == before
        assert (settlement.changed, settlement.credits) == ([], {})
        assert (settlement.flags, settlement.notes) == ({}, [])


@pytest.mark.parametrize("client_now", [None, math.nan, math.inf])
def test_a_message_without_a_sane_clock_keeps_the_last_one(client_now: float | None) -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, {}, client_now=client_now)
    assert books.host.client_now == 1_000.0


# Rule 2: allowance


def test_the_capacity_of_a_machine_adds_up_its_processors() -> None:
    machine = Machine(8, 5_000_000_000, ((2, 10_000_000_000_000), (1, 3_000_000_000_000)))
    assert capacity(machine, CEILINGS) == Capacity(
        cpu_instances=9,  # 8, and 1 for the CPU part of GPU jobs
        gpu_instances=3,
        cpu_flops=45_000_000_000,
        gpu_flops=23_000_000_000_000,
        job_slots=11,  # 8 CPUs and 3 GPUs
        one_cpu_flops=5_000_000_000,
        one_gpu_flops=10_000_000_000_000,
    )
    # In a day: 9 x 86,400 s; 3 x 86,400 s; 45 x 200 credits; 0.2 x 23,000 x 200 credits; 11 x 86,400 jobs
    assert allowance(capacity(machine, CEILINGS), DAY * MICRO) == (
        777_600 * MICRO,
        259_200 * MICRO,
        9_000 * MICRO,
        920_000 * MICRO,
        950_400 * MICRO,
    )


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        pytest.param(None, (0, 0, 0, 0, 0), id="unknown"),
        pytest.param(Machine(0, 0), (0, 0, 0, 0, 0), id="nothing"),
        pytest.param(Machine(-4, -1, ((-2, -5),)), (0, 0, 0, 0, 0), id="negative"),
        # 1,024 CPUs of 200 GFLOPS
        pytest.param(Machine(10**9, 10**18), (1_024, 0, 204_800 * 10**9, 0, 1_024), id="too many CPUs"),
        # 1 + 1 CPUs; 60 GPUs of 1 TFLOPS, and 4 more of the next, at 500 TFLOPS: 2,060 TFLOPS
        pytest.param(
            Machine(1, 10**9, ((60, 10**12), (50, 10**18))),
            (2, 64, 2 * 10**9, 2_060 * 10**12, 65),
            id="too many GPUs",
        ),
    ],
)
def test_what_a_host_claims_to_be_is_clamped(machine: Machine | None, expected: tuple[int, ...]) -> None:
    assert capacity(machine, CEILINGS)[:5] == expected


@pytest.mark.parametrize("parts", [1, 7, 1_000, 2_880])
def test_a_day_in_parts_allows_as_much_as_a_day(parts: int) -> None:
    machine = capacity(Machine(3, 1_234_567_891, ((1, 9_876_543_210_987),)), CEILINGS)
    ends = [START_US + DAY * MICRO * k // parts for k in range(parts + 1)]
    sums = [0] * 5
    for since, until in pairwise(ends):
        sums = [a + b for a, b in zip(sums, allowance(machine, until, since), strict=True)]
    assert tuple(sums) == allowance(machine, ends[-1], START_US)


def test_unused_allowance_carries_over_for_thirty_days() -> None:
    books = Books(WITH_GPU)
    books.attach(1)
    assert books.host.level == (0, 0, 0, 0, 0)
    books.rpc(DAY)
    # 2 CPU instances, 1 GPU; 2 x 864 and 864,000 credits; 2 jobs a second
    day = [amount * MICRO for amount in (172_800, 86_400, 1_728, 864_000, 172_800)]
    assert list(books.host.level) == day
    books.rpc(29 * DAY)
    assert list(books.host.level) == [29 * amount for amount in day]
    books.rpc(35 * DAY)
    assert list(books.host.level) == [30 * amount for amount in day]


def test_a_clock_set_back_adds_no_allowance_and_takes_none() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR)
    level = books.host.level
    books.rpc(2 * HOUR)
    assert books.host.level == level
    assert books.host.last_at_us == START_US + 2 * HOUR * MICRO
    books.rpc(3 * HOUR)
    assert books.host.level[0] == level[0] + HOUR * MICRO


def test_another_client_of_a_host_has_no_allowance_of_its_own() -> None:
    books, expected = books_after_ten_hours(), books_after_ten_hours()
    for each, is_same in ((books, False), (expected, True)):
        each.rpc(5 * DAY)
        each.rpc(10 * DAY, same=is_same)
    assert books.host == expected.host
    assert books.host.level[0] == (10 * DAY - 10 * HOUR) * MICRO


def test_a_smaller_machine_loses_what_it_can_no_longer_use() -> None:
    books = Books(WITH_GPU)
    books.attach()
    books.rpc(DAY)
    books.rpc(DAY, new=ONE_CPU)  # the larger of both still counts
    assert books.host.level[3] == 864_000 * MICRO
    books.rpc(DAY)
    assert books.host.level[3] == 0


# Rule 5: credit and time


@pytest.mark.parametrize(
    ("flops", "secs", "credits"),
    [
        # The measured example of the protocol: 259.346744 s at 1 GFLOPS are 0.600340 credits.
        (1_000_000_000, 259.346744, 0.600340),
        (4_320_000_000, 100, 1),
        (200_000_000_000, DAY, 40_000),
    ],
)
def test_cpu_credit_is_at_most_time_times_speed(flops: int, secs: float, credits: float) -> None:
    most = most_cpu_credit(capacity(Machine(1, flops), CEILINGS), round(secs * MICRO))
    # The last digits are left open: 2 of rounding, 1 of cutting, 1 of a FLOPS, 1 of a micro-second
    assert 0 <= most - credits * MICRO <= 5


def test_gpu_credit_is_at_most_time_times_a_fifth_of_the_fastest_peak() -> None:
    machine = capacity(Machine(1, 10**9, ((2, 10**12), (1, 5 * 10**11))), CEILINGS)
    # The measured example of the protocol: 40.062850 s, for which two GPUs' credit, 37.095231, is claimed. One's is
    # 40.062850 x 0.2 x 1e12 / 432e9 = 18.547616.
    assert 0 <= most_gpu_credit(machine, 40_062_850) - 18_547_616 <= 4


@pytest.mark.parametrize("machine", [None, Machine(4, 0)])
def test_a_processor_of_unknown_speed_earns_no_credit(machine: Machine | None) -> None:
    assert most_cpu_credit(capacity(machine, CEILINGS), 10**12) == 0
    assert most_gpu_credit(capacity(machine, CEILINGS), 10**12) == 0


def test_credit_beyond_the_run_time_is_dropped_with_a_note() -> None:
    books = Books()
    books.attach(1)
    settlement = books.rpc(10 * HOUR, {1: totals(cpu_secs=100, cpu_ec=51)})
    # 100 s are worth 1 credit.
    assert settlement.credits[1][2] == 100 * MICRO
    dropped = books.row(1).dropped[0]
    assert settlement.credits[1][0] + dropped == 51 * MICRO
    assert 0 <= 50 * MICRO - dropped <= 5
    assert [(note.kind.value, note.project_id, note.amount_kind, note.amount) for note in books.notes] == [
        ("ec_above_time", 1, "cpu_ec", dropped)
    ]
    assert settlement.flags == {1: DayFlag.CAPPED}


# Rules 6 and 7: sharing


@pytest.mark.parametrize(
    ("claims", "credited", "pending", "dropped"),
    [
        # A day's allowance, 86,400 s, and as much may wait.
        pytest.param([30_000, 40_000], [30_000, 40_000], [0, 0], [0, 0], id="all covered"),
        pytest.param([43_200, 43_200], [43_200, 43_200], [0, 0], [0, 0], id="just covered"),
        # 0.8 of each
        pytest.param([36_000, 72_000], [28_800, 57_600], [7_200, 14_400], [0, 0], id="a fifth too much"),
        # The first counts as 86,400 s: half each. Waiting: 86,400 of it and 43,200 s, of which two thirds may.
        pytest.param(
            [10**9, 86_400],
            [43_200, 43_200],
            [57_600, 28_800],
            [10**9 - 43_200 - 57_600, 14_400],
            id="one insane claim",
        ),
    ],
)
def test_projects_share_the_allowance_in_proportion(
    claims: list[int], credited: list[int], pending: list[int], dropped: list[int]
) -> None:
    books = Books()
    books.attach(1, 2)
    books.rpc(DAY, {i: totals(cpu_secs=secs) for i, secs in enumerate(claims, 1)})
    for row, c, q, d in zip(books.rows.values(), credited, pending, dropped, strict=True):
        assert row.credited == totals(cpu_secs=c)
        assert row.pending == totals(cpu_secs=q)
        assert row.dropped[2] == d * MICRO
        assert row.dropped[0] == d * MICRO // 100


def test_what_waits_is_paid_from_what_is_left_even_if_its_project_is_gone() -> None:
    books = Books()
    books.attach(1, 2)
    books.rpc(DAY, {1: totals(cpu_secs=DAY), 2: totals(cpu_secs=DAY)})
    assert [books.row(i).pending[2] for i in (1, 2)] == [43_200 * MICRO] * 2
    # An hour later the first has done 1,200 s more; 3,600 - 1,200 s are left for both alike.
    settlement = books.rpc(25 * HOUR, {1: totals(cpu_secs=DAY + 1_200)})
    assert settlement.credits == {1: totals(cpu_secs=2_400), 2: totals(cpu_secs=1_200)}
    assert settlement.flags == {1: DayFlag.PENDING_PAID, 2: DayFlag.PENDING_PAID}
    assert [books.row(i).pending for i in (1, 2)] == [totals(cpu_secs=42_000)] * 2
    assert settlement.notes == []


def test_what_waits_longer_than_a_day_of_work_is_dropped_with_one_note_a_kind() -> None:
    books = Books()
    books.attach(1, 2)
    settlement = books.rpc(DAY, {i: totals(cpu_secs=3 * DAY) for i in (1, 2)})
    # 3 + 3 days claimed, 1 credited, 1 waits, 4 dropped
    assert [(note.kind.value, note.project_id, note.amount_kind, note.amount) for note in books.notes] == [
        ("dropped", None, "cpu_ec", 4 * 864 * MICRO),
        ("dropped", None, "cpu_time", 4 * DAY * MICRO),
    ]
    assert settlement.flags == {1: DayFlag.CAPPED, 2: DayFlag.CAPPED}


def test_a_machine_that_shrinks_keeps_only_a_day_of_its_own_waiting() -> None:
    books = Books(Machine(4, ONE_CPU.p_fpops))
    books.attach(1)
    books.rpc(0, {1: totals(cpu_secs=4 * DAY)})
    assert books.row(1).pending == totals(cpu_secs=4 * DAY)
    books.rpc(0, {1: totals(cpu_secs=4 * DAY)}, new=ONE_CPU)
    books.rpc(0, {1: totals(cpu_secs=4 * DAY)})
    assert books.row(1).pending == totals(cpu_secs=DAY)
    assert books.row(1).dropped == totals(cpu_secs=3 * DAY)


def test_jobs_of_both_kinds_share_one_allowance_and_never_wait() -> None:
    books = Books()
    books.attach(1, 2)
    books.rpc(30, {1: totals(done=20, failed=10), 2: totals(failed=30)})
    # 30 jobs in 30 s: 15 each, the first's as 2 to 1
    assert books.row(1).credited == totals(done=10, failed=5)
    assert books.row(2).credited == totals(failed=15)
    assert books.row(1).dropped == totals(done=10, failed=5)
    assert books.row(2).dropped == totals(failed=15)
    assert [(note.amount_kind, note.amount) for note in books.notes] == [
        ("njobs_success", 10),
        ("njobs_error", 20),
    ]
    assert books.host.level[4] == 0


# Rule 8: what the day's row is told


def test_the_day_of_a_host_without_a_benchmark_is_marked() -> None:
    books = Books(Machine(1, 1_000_000_000))
    books.attach(1, 2)
    settlement = books.rpc(HOUR, {1: totals(cpu_secs=432, cpu_ec=1), 2: totals()})
    assert settlement.credits == {1: totals(cpu_secs=432, cpu_ec=1)}
    assert settlement.flags == {1: DayFlag.SPEED_UNKNOWN}
    assert settlement.notes == []


def test_a_request_that_says_nothing_new_changes_no_row() -> None:
    books = books_after_ten_hours()
    settlement = books.rpc(11 * HOUR, {1: totals(cpu_secs=36_000)}, client_now=5_000.0)
    assert (settlement.changed, settlement.credits, settlement.flags, settlement.notes) == ([], {}, {}, [])
    assert settlement.host == HostState(
        START_US + 11 * HOUR * MICRO, 5_000.0, Allowance(3_600 * MICRO, 0, 36 * MICRO, 0, 39_600 * MICRO)
    )


def test_thirty_days_of_the_largest_machine_that_settings_allow_fit_a_bigint() -> None:
    ceilings = Ceilings(100_000, 10**13, 1000, 5 * 10**15)
    largest = capacity(Machine(100_000, 10**13, ((1000, 5 * 10**15),)), ceilings)
    # CPU: 100,001 x 1e13 x 200/86400e9 x 1e6 x 2,592,000 s = 6.0e18; GPU: 1000 x 0.2 x 5e15 likewise = 6.0e18
    assert max(allowance(largest, 30 * DAY * MICRO)) < 2**63
