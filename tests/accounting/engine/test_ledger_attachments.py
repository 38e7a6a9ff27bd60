"""Where a project's totals start to count, and what falling totals mean (accounting rules, rules 3 and 4).

One CPU earns 0.01 credits a second, the GPU of ``WITH_GPU`` 10 credits a second.
"""

from __future__ import annotations

import pytest

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.ledger import offer
from accounting.engine.machine import Machine
from accounting.engine.states import DayFlag, HostState, ProjectState, Report
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

# Rule 3: new attachments

BEFORE = totals(cpu_secs=1_000, done=4)
NOW = totals(cpu_secs=2_500, done=6)


@pytest.mark.parametrize(
    ("row", "same", "honours", "delta"),
    [
        pytest.param(None, True, True, NO_WORK, id="never seen"),
        pytest.param(ProjectState(1, listed=True), True, True, NO_WORK, id="listed before without totals"),
        pytest.param(
            ProjectState(1, handed=NO_WORK, listed=True),
            True,
            False,
            NO_WORK,
            id="offered, but listed before without totals",
        ),
        pytest.param(ProjectState(1, handed=NO_WORK), True, False, NOW, id="offered for the first time"),
        pytest.param(
            ProjectState(1, BEFORE, credited=BEFORE, handed=BEFORE),
            True,
            True,
            totals(cpu_secs=1_500, done=2),
            id="handed back and honoured",
        ),
        pytest.param(
            ProjectState(1, BEFORE, credited=BEFORE, handed=BEFORE),
            True,
            False,
            totals(cpu_secs=1_500, done=2),
            id="handed back to a client that starts from zero, and more than was known",
        ),
        pytest.param(
            ProjectState(1, totals(cpu_secs=9_000, done=99), handed=BEFORE),
            True,
            False,
            NOW,
            id="handed back to a client that starts from zero, and less than half of what was known",
        ),
        pytest.param(
            ProjectState(1, BEFORE, handed=totals(cpu_secs=1_000, done=7)),
            True,
            True,
            totals(cpu_secs=1_500, done=2),
            id="one amount below what was handed back",
        ),
        pytest.param(ProjectState(1, BEFORE), True, True, NO_WORK, id="back by hand after an absence"),
        pytest.param(
            ProjectState(1, BEFORE, handed=NO_WORK, listed=True), False, False, NO_WORK, id="another client's totals"
        ),
        pytest.param(ProjectState(1, BEFORE, listed=True), True, True, totals(cpu_secs=1_500, done=2), id="not new"),
    ],
)
def test_a_new_attachment_counts_from_what_the_client_had_before_we_could_know(
    row: ProjectState | None, same: bool, honours: bool, delta: Totals
) -> None:
    books = Books(honours_handed=honours)
    books.host = HostState(START_US)
    if row is not None:
        books.rows[1] = row
    books.rpc(DAY, {1: NOW}, same=same)
    after = books.row(1)
    before = row.credited if row is not None else NO_WORK
    assert tuple(c - b for c, b in zip(after.credited, before, strict=True)) == delta
    assert (after.reported, after.handed, after.listed) == (NOW, None, True)


def test_a_baseline_is_noted_with_its_credit_unless_it_is_nothing() -> None:
    books = Books(WITH_GPU)
    settlement = books.rpc(0, {1: totals(cpu_secs=100, gpu_secs=10), 2: totals()})
    # 1 credit of the CPU and 100 of the GPU
    assert [(note.kind.value, note.project_id, note.amount) for note in books.notes] == [("baseline", 1, 101 * MICRO)]
    assert settlement.flags == {1: DayFlag.BASELINE}


def test_a_new_attachment_of_the_same_client_keeps_the_mark_of_an_old_reset() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, {1: totals()})
    assert books.row(1).earlier == (totals(cpu_secs=36_000),)
    books.rpc(12 * HOUR)
    assert not books.row(1).listed
    books.rpc(13 * HOUR, {1: totals(cpu_secs=60)})
    assert (books.row(1).earlier, books.row(1).restart) == ((totals(cpu_secs=36_000),), totals(cpu_secs=60))
    books.rpc(14 * HOUR, {1: totals(cpu_secs=50)}, same=False)
    assert (books.row(1).earlier, books.row(1).restart) == ((), None)


def test_an_offer_hands_out_what_was_credited_until_it_is_built_upon() -> None:
    credited = totals(cpu_secs=50)
    first = offer(ProjectState(1, BEFORE, credited=credited), 1)
    assert first == ProjectState(1, BEFORE, credited=credited, handed=credited)
    # A reply was lost; meanwhile some more was credited, from what had waited.
    first.credited = totals(cpu_secs=60)
    assert offer(first, 1).handed == credited
    assert offer(None, 7) == ProjectState(7, handed=NO_WORK)


def test_a_project_without_totals_is_only_marked_as_listed() -> None:
    books = books_after_ten_hours()
    before = books.row(1)
    books.rpc(11 * HOUR, {1: None, 2: None})
    assert books.row(1) == before
    assert books.row(2) == ProjectState(2, listed=True)
    books.rpc(12 * HOUR, {1: totals(cpu_secs=37_000)})
    assert books.credited == totals(cpu_secs=37_000)


def test_a_project_of_another_client_without_totals_starts_anew_and_keeps_its_credit() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, {1: None}, same=False)
    assert books.row(1) == ProjectState(1, credited=totals(cpu_secs=36_000), listed=True)
    books.rpc(12 * HOUR, {1: totals(cpu_secs=90_000)})
    assert books.credited == totals(cpu_secs=36_000)


def test_another_client_without_a_project_is_not_held_to_the_totals_of_the_first() -> None:
    books = books_after_ten_hours()
    books.rpc(20 * HOUR, same=False, offers=[1])
    assert books.row(1) == ProjectState(
        1, credited=totals(cpu_secs=36_000), handed=totals(cpu_secs=36_000), listed=False
    )
    # It starts from zero, and never had 36,000 s: nothing can come back.
    books.rpc(31 * HOUR, {1: totals(cpu_secs=39_600)})
    assert books.credited == totals(cpu_secs=75_600)
    assert books.notes == []


def test_a_project_that_is_not_listed_keeps_its_totals() -> None:
    books = books_after_ten_hours()
    settlement = books.rpc(11 * HOUR)
    assert [row.project_id for row in settlement.changed] == [1]
    assert (books.row(1).listed, books.row(1).reported) == (False, totals(cpu_secs=36_000))
    assert books.rpc(12 * HOUR).changed == []


def test_a_fault_is_noted_and_moves_nothing() -> None:
    books = books_after_ten_hours()
    before = books.row(1)
    settlement = books.rpc(11 * HOUR, [Report(1, None, "cpu_time is negative")])
    assert settlement.changed == []
    assert books.row(1) == before
    assert [(note.kind.value, note.detail) for note in settlement.notes] == [("invalid", "cpu_time is negative")]


def test_a_fault_in_the_first_report_of_a_new_attachment_moves_nothing_either() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, offers=[1])
    before = books.row(1)
    books.rpc(12 * HOUR, [Report(1, None, "cpu_time is nan")])
    assert books.row(1) == before
    # It started from zero, 3,600 s ago and then 3,600 s more. It was a reset that counted nothing.
    books.rpc(13 * HOUR, {1: totals(cpu_secs=3_700)})
    assert books.credited == totals(cpu_secs=36_000 + 3_700)
    assert books.kinds_noted() == ["invalid"]


# Rule 4: resets and returns


@pytest.mark.parametrize("index", range(6))
def test_any_total_that_falls_is_a_reset_that_credits_nothing(index: int) -> None:
    books = Books(WITH_GPU)
    books.attach(1)
    first = totals(cpu_secs=3_600, gpu_secs=3_600, done=3, failed=3)
    books.rpc(HOUR, {1: first})
    second = list(totals(cpu_secs=7_200, gpu_secs=7_200, done=6, failed=6))
    second[index] = first[index] - 1
    settlement = books.rpc(2 * HOUR, {1: Totals(*second)})
    assert settlement.credits == {}
    assert settlement.flags == {1: DayFlag.RESET}
    assert [note.kind.value for note in settlement.notes] == ["reset"]
    assert books.row(1).earlier == (first,)
    assert books.row(1).reported == tuple(second)


def test_a_second_reset_keeps_the_totals_before_each() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, {1: totals(done=2)})
    books.rpc(12 * HOUR, {1: totals(cpu_secs=600, done=9)})
    books.rpc(13 * HOUR, {1: totals(cpu_secs=60)})
    assert books.row(1).earlier == (totals(cpu_secs=600, done=9), totals(cpu_secs=36_000))


@pytest.mark.parametrize(
    ("reported_secs", "done", "expected_secs", "returned"),
    [
        # An hour and 120 s after the reset: 3,720 s can have been done, and 3,720 jobs.
        pytest.param(3_720, 0, 3_720, False, id="what can have been done"),
        pytest.param(3_721, 0, 0, True, id="one second more"),
        pytest.param(100, 3_720, 100, False, id="jobs that can have been done"),
        pytest.param(100, 3_721, 0, True, id="one job more"),
        pytest.param(37_000, 0, 1_000, True, id="back above where they were"),
    ],
)
def test_after_a_reset_a_jump_counts_only_above_the_old_totals(
    reported_secs: int, done: int, expected_secs: int, returned: bool
) -> None:
    books = Books()
    books.attach(1)
    books.rpc(DAY, {1: totals(cpu_secs=36_000, done=9_000)})
    books.rpc(2 * DAY, {1: totals()})
    settlement = books.rpc(2 * DAY + HOUR, {1: totals(cpu_secs=reported_secs, done=done)})
    assert settlement.credits.get(1, NO_WORK)[2] == expected_secs * MICRO
    assert bool(settlement.flags.get(1, 0) & DayFlag.RETURNED) is returned
    assert ("returned" in books.kinds_noted()) is returned


def test_a_client_with_several_gpus_is_not_taken_for_a_return_of_old_totals() -> None:
    # It multiplies its rate by the number of GPUs: 4 x 40 credits a second for 40 it can do.
    books = Books(Machine(1, ONE_CPU.p_fpops, ((4, 21_600_000_000_000),)))
    books.attach(1)
    books.rpc(DAY, {1: totals(gpu_secs=4 * DAY, gpu_ec=160 * DAY)})
    books.rpc(DAY + 60, {1: totals()})
    # Half a day of the way of one day, no more.
    half = DAY // 2
    settlement = books.rpc(DAY + 60 + half, {1: totals(gpu_secs=4 * half, gpu_ec=160 * half)})
    # 4 x 43,200 s at 10 credits a second: rule 5 takes what is too much.
    assert settlement.credits[1][3] == 4 * 43_200 * MICRO
    assert settlement.credits[1][1] == pytest.approx(1_728_000 * MICRO, abs=100)
    assert "returned" not in books.kinds_noted()


def test_a_return_counts_no_part_of_what_was_reported_since_the_reset() -> None:
    books = books_after_ten_hours()
    books.rpc(11 * HOUR, {1: totals(cpu_secs=36_000, done=9_000)})
    # After a reset, 40 reports of 1,000 s without a job: the run time is above the old one, the jobs are not.
    for hour in range(12, 53):
        books.rpc(hour * HOUR, {1: totals(cpu_secs=(hour - 12) * 1_000)})
    before = books.credited
    books.rpc(53 * HOUR, {1: totals(cpu_secs=40_100, done=9_000)})
    # 9,000 jobs in an hour are too many: they are the old ones. The 100 s are new. It was 4,100 s, all that is
    # above the old totals.
    assert books.credited.minus(before) == totals(cpu_secs=100)
