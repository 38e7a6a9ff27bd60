"""The life of a computer in requests: sequences whose sums are worked out by hand (accounting rules).

Machines earn round numbers: one CPU 0.01 credits a second (864 a day), the GPU 10 credits a second.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.machine import Machine
from accounting.engine.states import NoteKind, Report
from tests.support.ledger_books import DAY, HOUR, MICRO, ONE_CPU, WITH_GPU, Books, totals

HALF_DAY = DAY // 2


def test_an_honest_host_that_reports_twelve_hourly_for_thirty_days_gets_every_second() -> None:
    books = Books()
    books.attach(1)
    for k in range(1, 61):
        books.rpc(k * HALF_DAY, {1: totals(cpu_secs=k * HALF_DAY, done=10 * k, failed=k)})
    # 60 reports of 43,200 s, 432 credits, 10 jobs done and 1 failed.
    assert books.credited == totals(cpu_secs=2_592_000, cpu_ec=25_920, done=600, failed=60)
    # Noon of the first day, midnight and noon of 29 days, midnight of the last.
    assert books.days[0] == totals(cpu_secs=43_200, cpu_ec=432, done=10, failed=1)
    full_day = totals(cpu_secs=86_400, cpu_ec=864, done=20, failed=2)
    assert {books.days[day] for day in range(1, 30)} == {full_day}
    assert books.days[30] == totals(cpu_secs=43_200, cpu_ec=432, done=10, failed=1)
    assert books.row(1).pending == NO_WORK
    assert books.notes == []


def test_an_honest_host_that_reports_every_thirty_seconds_for_a_day_gets_every_second() -> None:
    # 4 GFLOPS earn 1/108 credit a second, which no decimal number ends: 800 credits a day.
    books = Books(Machine(1, 4_000_000_000))
    books.attach(1)
    for k in range(1, 2_881):
        minutes = k // 2  # a client's totals move once a minute
        credit = Fraction(minutes * 60 * MICRO, 108)
        books.rpc(30 * k, {1: Totals(int(credit), 0, minutes * 60 * MICRO, 0, 0, 0)})
    assert books.credited == totals(cpu_secs=86_400, cpu_ec=800)
    assert books.row(1).pending == NO_WORK
    assert books.notes == []


def test_twenty_days_offline_and_then_steady_work_count_in_full() -> None:
    books = Books()
    books.attach(1)
    books.rpc(20 * DAY, {1: totals(cpu_secs=20 * DAY, done=400)})
    # All of it on the day on which it arrived.
    assert books.days == {20: totals(cpu_secs=1_728_000, cpu_ec=17_280, done=400)}
    for k in range(1, 11):
        books.rpc(20 * DAY + k * HALF_DAY, {1: totals(cpu_secs=20 * DAY + k * HALF_DAY, done=400)})
    # 25 days of 86,400 s and 864 credits
    assert books.credited == totals(cpu_secs=2_160_000, cpu_ec=21_600, done=400)
    assert books.notes == []


def test_forty_days_offline_count_for_thirty_and_one_more_day_waits() -> None:
    books = Books()
    books.attach(1)
    books.rpc(40 * DAY, {1: totals(cpu_secs=40 * DAY)})
    assert books.credited == totals(cpu_secs=30 * DAY)
    assert books.row(1).pending == totals(cpu_secs=DAY)
    # 40 - 30 - 1 = 9 days: 777,600 s and 7,776 credits
    assert books.row(1).dropped == totals(cpu_secs=777_600, cpu_ec=7_776)
    assert [(note.amount_kind, note.amount) for note in books.notes] == [
        ("cpu_ec", 7_776 * MICRO),
        ("cpu_time", 777_600 * MICRO),
    ]
    # An idle day's allowance pays what waits.
    books.rpc(41 * DAY, {1: totals(cpu_secs=40 * DAY)})
    assert books.credited == totals(cpu_secs=31 * DAY)
    assert books.row(1).pending == NO_WORK


def test_a_project_attached_later_counts_from_its_first_second_and_one_added_by_hand_from_now() -> None:
    books = Books()
    books.attach(1)
    for k in range(1, 11):
        books.rpc(k * HALF_DAY, {1: totals(cpu_secs=k * HALF_DAY / 2)}, offers=[1, 2] if k == 10 else [1])
    years = 100_000_000
    for k in range(1, 11):
        books.rpc(
            5 * DAY + k * HALF_DAY,
            {
                1: totals(cpu_secs=5 * HALF_DAY + k * 21_600),
                2: totals(cpu_secs=k * 18_000),
                3: totals(cpu_secs=years + k * 3_600, done=5_000),
            },
        )
    # 20 halves of half days; 10 x 18,000 s; 9 x 3,600 s, the first report of the third being its base
    assert books.row(1).credited == totals(cpu_secs=432_000)
    assert books.row(2).credited == totals(cpu_secs=180_000)
    assert books.row(3).credited == totals(cpu_secs=32_400)
    assert books.kinds_noted() == ["baseline"]
    assert books.notes[0].project_id == 3


def test_a_reset_in_the_middle_costs_nothing_but_what_came_with_it() -> None:
    books = Books()
    books.attach(1)
    books.rpc(10 * HOUR, {1: totals(cpu_secs=36_000, done=5)})
    books.rpc(20 * HOUR, {1: totals(cpu_secs=72_000, done=10)})
    books.rpc(30 * HOUR, {1: totals(cpu_secs=1_200)})
    assert books.row(1).earlier == (totals(cpu_secs=72_000, done=10),)
    # Asked to come back sooner, it reports after 5 h: 18,000 s are less than half of the 70,800 s that it lacks.
    books.rpc(35 * HOUR, {1: totals(cpu_secs=19_200, done=2)})
    books.rpc(40 * HOUR, {1: totals(cpu_secs=37_200, done=5)})
    books.rpc(50 * HOUR, {1: totals(cpu_secs=73_200, done=10)})
    # 72,000 before, nothing at the reset, 18,000 twice and 36,000 after
    assert books.credited == totals(cpu_secs=144_000, done=20)
    assert books.row(1).restart is None
    assert books.kinds_noted() == ["reset"]


def test_old_totals_that_come_back_count_only_above_where_they_were() -> None:
    books = Books()
    books.attach(1)
    books.rpc(20 * HOUR, {1: totals(cpu_secs=72_000, done=7)})
    books.rpc(21 * HOUR, {1: totals(cpu_secs=600)})
    books.rpc(22 * HOUR, {1: totals(cpu_secs=75_600, done=8)})
    # 75,000 s cannot be done in an hour: 75,600 - 72,000 = 3,600 s and 8 - 7 jobs
    assert books.credited == totals(cpu_secs=75_600, done=8)
    books.rpc(23 * HOUR, {1: totals(cpu_secs=79_200, done=8)})
    assert books.credited == totals(cpu_secs=79_200, done=8)
    assert books.kinds_noted() == ["reset", "returned"]


def test_old_totals_of_a_backup_that_come_back_count_nothing() -> None:
    books = Books()
    books.attach(1)
    books.rpc(20 * HOUR, {1: totals(cpu_secs=72_000)})
    books.rpc(21 * HOUR, {1: totals(cpu_secs=600)})
    books.rpc(22 * HOUR, {1: totals(cpu_secs=70_000)})
    assert books.credited == totals(cpu_secs=72_000)
    # The mark stays until it is reached: of the next 3,600 s, those above it count.
    assert books.row(1).earlier == (totals(cpu_secs=600), totals(cpu_secs=72_000))
    assert books.row(1).restart == totals(cpu_secs=70_000)
    books.rpc(23 * HOUR, {1: totals(cpu_secs=73_600)})
    assert books.credited == totals(cpu_secs=73_600)
    assert books.row(1).restart is None


@pytest.mark.parametrize(
    ("honours", "start_secs"),
    [
        pytest.param(True, 36_000, id="a client that goes on from the totals handed back"),
        pytest.param(False, 0, id="a client that starts from zero"),
    ],
)
def test_a_client_that_attaches_again_loses_and_gains_nothing(honours: bool, start_secs: int) -> None:
    books = Books(honours_handed=honours)
    books.attach(1)
    books.rpc(10 * HOUR, {1: totals(cpu_secs=36_000)})
    # It left without a word, and comes back without projects.
    books.rpc(11 * HOUR, offers=[1])
    assert books.row(1).handed == totals(cpu_secs=36_000)
    books.rpc(12 * HOUR, {1: totals(cpu_secs=start_secs + 1_800)})
    books.rpc(13 * HOUR, {1: totals(cpu_secs=start_secs + 5_400)})
    # 36,000 + 1,800 + 3,600
    assert books.credited == totals(cpu_secs=41_400)
    assert books.row(1).handed is None
    assert books.notes == []


def test_a_client_said_to_honour_our_totals_that_starts_from_zero_loses_nothing() -> None:
    books = Books(honours_handed=True)
    books.attach(1)
    books.rpc(10 * HOUR, {1: totals(cpu_secs=36_000)})
    books.rpc(11 * HOUR, offers=[1])
    books.rpc(12 * HOUR, {1: totals(cpu_secs=1_800)})
    assert books.credited == totals(cpu_secs=37_800)


def test_a_cheat_that_claims_tenfold_for_a_year_gets_one_machine_year() -> None:
    books = Books()
    books.attach(1)
    for k in range(1, 731):
        books.rpc(k * HALF_DAY, {1: totals(cpu_secs=k * 10 * HALF_DAY)})
    # 365 x 86,400 s, and 365 x 864 credits
    assert books.credited == totals(cpu_secs=31_536_000, cpu_ec=315_360)
    # One day waits, the other 9 x 365 - 1 days are dropped.
    assert books.row(1).pending == totals(cpu_secs=DAY)
    assert books.row(1).dropped == totals(cpu_secs=3_284 * DAY)
    assert {note.kind for note in books.notes} == {NoteKind.DROPPED}


def test_one_insane_total_costs_an_honest_project_beside_it_less_than_half_a_day() -> None:
    books = Books()
    books.attach(1, 2)
    for k in range(1, 10):
        books.rpc(k * HALF_DAY, {1: totals(), 2: totals(cpu_secs=k * HALF_DAY)})
    insane = totals(cpu_secs=100_000_000_000_000)
    books.rpc(10 * HALF_DAY, {1: insane, 2: totals(cpu_secs=10 * HALF_DAY)})
    # The allowance is 43,200 s; both ask for that much or more: half each.
    assert books.row(1).credited == totals(cpu_secs=21_600)
    assert books.row(2).credited == totals(cpu_secs=9 * 43_200 + 21_600)
    # The first's rest is cut to a day, 86,400 s; with the second's 21,600 s that is 108,000 s, 0.8 of which
    # may wait.
    assert books.row(1).pending == totals(cpu_secs=69_120)
    assert books.row(2).pending == totals(cpu_secs=17_280)
    assert books.row(2).dropped == totals(cpu_secs=4_320)
    for k in range(11, 21):
        books.rpc(k * HALF_DAY, {1: insane, 2: totals(cpu_secs=k * HALF_DAY)})
    assert books.row(2).credited == totals(cpu_secs=20 * 43_200 - 21_600)
    # An idle day pays what waits: 864,000 - 4,320 s in the end.
    books.rpc(22 * HALF_DAY, {1: insane, 2: totals(cpu_secs=20 * HALF_DAY)})
    assert books.row(2).credited == totals(cpu_secs=859_680)
    assert books.row(1).credited == totals(cpu_secs=21_600 + 69_120)


def test_a_gpu_added_or_removed_between_two_requests_is_credited() -> None:
    books = Books()
    books.attach(1)
    books.rpc(HALF_DAY, {1: totals(cpu_secs=43_200)})
    books.rpc(2 * HALF_DAY, {1: totals(cpu_secs=86_400, gpu_secs=40_000)}, new=WITH_GPU)
    assert books.credited == totals(cpu_secs=86_400, gpu_secs=40_000, gpu_ec=400_000)
    books.rpc(3 * HALF_DAY, {1: totals(cpu_secs=129_600, gpu_secs=60_000)}, new=ONE_CPU)
    # Out again, but the hardware before it counts for the time before.
    assert books.credited == totals(cpu_secs=129_600, gpu_secs=60_000, gpu_ec=600_000)
    books.rpc(4 * HALF_DAY, {1: totals(cpu_secs=129_600, gpu_secs=80_000)})
    # Now it has none: 20,000 s and 200,000 credits cannot be. (Its allowance of old is gone with it.)
    assert books.credited == totals(cpu_secs=129_600, gpu_secs=60_000)
    assert [(note.kind.value, note.amount_kind) for note in books.notes] == [
        ("ec_above_time", "gpu_ec"),
        ("dropped", "gpu_time"),
    ]


def test_nonsense_in_one_project_delays_that_project_only() -> None:
    books = Books()
    books.attach(1, 2)
    books.rpc(10 * HOUR, {1: totals(cpu_secs=18_000), 2: totals(cpu_secs=18_000)})
    nonsense = Report(1, None, "cpu_ec is not a number")
    books.rpc(20 * HOUR, [nonsense, Report(2, totals(cpu_secs=36_000))])
    assert books.row(1).credited == totals(cpu_secs=18_000)
    assert books.row(2).credited == totals(cpu_secs=36_000)
    books.rpc(30 * HOUR, {1: totals(cpu_secs=54_000), 2: totals(cpu_secs=54_000)})
    # 54,000 s each, 108,000 s of one CPU in 30 hours
    assert books.credited == totals(cpu_secs=108_000)
    assert [(note.kind.value, note.project_id, note.detail) for note in books.notes] == [
        ("invalid", 1, "cpu_ec is not a number")
    ]


def test_the_same_request_twice_at_once_counts_once() -> None:
    books = Books()
    books.attach(1)
    for _ in range(2):
        books.rpc(10 * HOUR, {1: totals(cpu_secs=36_000, done=3)}, client_now=1_000.0)
    assert books.credited == totals(cpu_secs=36_000, done=3)
    assert books.notes == []


def test_two_requests_at_once_count_as_the_newer_in_either_order() -> None:
    for order in ([36_000, 36_060], [36_060, 36_000]):
        books = Books()
        books.attach(1)
        for sent_at in order:
            books.rpc(36_060, {1: totals(cpu_secs=sent_at)}, client_now=float(sent_at))
        assert books.credited == totals(cpu_secs=36_060)
        assert books.row(1).reported == totals(cpu_secs=36_060)
        assert books.notes == []


def test_an_older_request_without_a_clock_of_its_own_counts_nothing_twice() -> None:
    books = Books()
    books.attach(1)
    books.rpc(11 * HOUR, {1: totals(cpu_secs=39_600)})
    books.rpc(11 * HOUR + 1, {1: totals(cpu_secs=36_000)})
    books.rpc(12 * HOUR, {1: totals(cpu_secs=43_200)})
    # 7,200 s in an hour: the old totals are back, and 43,200 - 39,600 s are new.
    assert books.credited == totals(cpu_secs=43_200)


def test_the_example_of_the_documentation_comes_out_as_written() -> None:
    books = Books()
    books.attach(1, 2)
    expected = [
        # hour, run time reported for A and B, credited to A and B
        (10, 18_000, 18_000, 18_000, 18_000),
        (20, 27_000, 45_000, 9_000, 27_000),
        (22, 37_800, 52_200, 3_600, 3_600),
        (23, 37_800, 0, 2_400, 1_200),
        (24, 37_800, 54_000, 1_200, 2_400),
    ]
    for hour, a_secs, b_secs, a_credited, b_credited in expected:
        settlement = books.rpc(hour * HOUR, {1: totals(cpu_secs=a_secs), 2: totals(cpu_secs=b_secs)})
        assert settlement.credits == {1: totals(cpu_secs=a_credited), 2: totals(cpu_secs=b_credited)}
        assert books.host.level[0] == 0
    assert [books.row(i).pending for i in (1, 2)] == [totals(cpu_secs=3_600), totals(cpu_secs=1_800)]
    assert books.kinds_noted() == ["reset", "returned"]


# What went wrong in the deployed system, as far as it is the ledger's arithmetic.


def test_a_new_host_with_old_totals_is_credited_neither_time_nor_jobs() -> None:
    books = Books()
    books.rpc(0, {1: totals(cpu_secs=10_000_000, done=4_999)})
    assert books.credited == NO_WORK
    books.rpc(HOUR, {1: totals(cpu_secs=10_003_600, done=5_000)})
    assert books.credited == totals(cpu_secs=3_600, done=1)


def test_three_projects_each_at_the_machines_maximum_get_one_machine() -> None:
    books = Books()
    books.attach(1, 2, 3)
    for k in range(1, 11):
        books.rpc(k * HALF_DAY, {i: totals(cpu_secs=k * HALF_DAY) for i in (1, 2, 3)})
    # 10 x 43,200 s, a third each
    assert [books.row(i).credited for i in (1, 2, 3)] == [totals(cpu_secs=144_000)] * 3


def test_work_that_shows_up_seconds_after_a_request_is_credited() -> None:
    books = Books()
    books.attach(1)
    books.rpc(15_000, {1: totals()})
    books.rpc(15_002, {1: totals(cpu_secs=15_000, done=50)})
    assert books.credited == totals(cpu_secs=15_000, done=50)


def test_the_greatest_total_there_is_neither_counts_nor_blocks_what_follows() -> None:
    books = Books()
    books.attach(1)
    most = Totals(10**21 - 1, 10**21 - 1, 10**21 - 1, 10**21 - 1, 2**31 - 1, 2**31 - 1)
    books.rpc(10 * HOUR, {1: most})
    # Ten hours of one CPU, and a job a second, shared by both kinds of job: 18,000 each
    assert books.credited == totals(cpu_secs=36_000, done=18_000, failed=18_000)
    books.rpc(10 * HOUR + 60, {1: totals(cpu_secs=0)})
    books.rpc(34 * HOUR + 60, {1: totals(cpu_secs=0)})
    # A day's allowance has paid what waited of it; from now on all is as ever.
    before = books.row(1).credited
    books.rpc(58 * HOUR + 60, {1: totals(cpu_secs=DAY, done=9)})
    after = books.row(1).credited
    assert tuple(b - a for a, b in zip(before, after, strict=True)) == totals(cpu_secs=DAY, done=9)


def test_a_project_listed_twice_counts_as_listed_first() -> None:
    books = Books()
    books.attach(1)
    books.rpc(10 * HOUR, [Report(1, totals(cpu_secs=3_600)), Report(1, totals(cpu_secs=7_200))])
    assert books.credited == totals(cpu_secs=3_600)
    assert books.row(1).reported == totals(cpu_secs=3_600)
