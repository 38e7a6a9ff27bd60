"""Which totals that grow after a reset are new work, and which are old ones that came back (accounting rules, rule 4).

One CPU earns 0.01 credits a second. ``LARGE`` has 64: nearly all that a single job does is within its time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.machine import Machine
from accounting.engine.returns import EARLIER_KEPT
from tests.support.ledger_books import DAY, HOUR, MICRO, ONE_CPU, WITH_GPU, Books, totals

LARGE = Machine(64, ONE_CPU.p_fpops)


def run_time(secs: int) -> Totals:
    return totals(cpu_secs=secs)


def reports(*secs: int, jobs: bool = False) -> Books:
    """The large machine reports these run times, an hour apart; with ``jobs``, a job for each 100 s of it."""
    books = Books(LARGE)
    books.attach(1)
    for k, run_secs in enumerate(secs, 1):
        books.rpc(k * HOUR, {1: totals(cpu_secs=run_secs, done=run_secs // 100 if jobs else 0)})
    return books


def after_resets(ways: Sequence[int]) -> Books:
    """The large machine has done each of these run times, and has been reset to nothing after each."""
    return reports(*(secs for way in ways for secs in (way, 0)))


def earlier_secs(books: Books) -> list[int]:
    return [each.cpu_time // MICRO for each in books.row(1).earlier]


def test_an_old_total_that_comes_back_within_the_machines_time_is_booked_once() -> None:
    books = reports(2_000, 10, 2_000)
    # 2,000 s, then a reset, then 2,000 - 2,000 = 0 s. It was 2,000 + 1,990 s.
    assert books.credited == totals(cpu_secs=2_000)
    assert books.kinds_noted() == ["reset", "returned"]
    assert (books.row(1).earlier, books.row(1).restart) == ((totals(cpu_secs=10), totals(cpu_secs=2_000)), None)


def test_an_old_total_that_comes_back_higher_counts_above_where_it_was() -> None:
    # 2,000 s, nothing, 2,500 - 2,000 s, and 100 s more
    assert reports(2_000, 10, 2_500, 2_600).credited == totals(cpu_secs=2_600)


def test_two_copies_that_take_turns_are_never_booked_twice() -> None:
    books = reports(2_000, 10, 2_500, 200, 3_000, 500, 3_400, jobs=True)
    # Each fall counts nothing, each return what is above: 2,000 + 500 + 500 + 400 s.
    assert books.credited == totals(cpu_secs=3_400, done=34)
    assert books.kinds_noted() == ["reset", "returned"] * 3


def test_an_old_total_that_comes_back_after_a_little_new_work_is_booked_once() -> None:
    # 500 - 10 s are new. From 500 s it lacks 1,500 s, more than the 490 s it did: so 2,000 s is the old total.
    assert reports(2_000, 10, 500, 2_000).credited == totals(cpu_secs=2_490)


def test_a_client_that_works_on_after_a_reset_loses_nothing_when_it_passes_its_old_totals() -> None:
    books = reports(2_000, 10, 710, 1_410, 2_110, 3_210, jobs=True)
    # 2,000 s before and 3,210 - 10 s after; 20 jobs and 32. At 10 s it lacks 1,990 s: 700 s are less than half. At
    # 710 s it lacks 1,290 s: 700 s are more than half, but no more than it did. At 1,410 s it is past half of the way.
    assert books.credited == totals(cpu_secs=5_200, done=52)
    assert books.kinds_noted() == ["reset"]


@pytest.mark.parametrize(
    ("before_secs", "expected_secs"),
    [
        # Half of the way from 0 to 2,000 s is done at 1,000 s: 2,000 + 2,000 s in all.
        pytest.param(1_000, 4_000, id="half of the way"),
        # At 999 s it lacks 1,001 s: 2,000 + 999 s, and 0 s above the old totals.
        pytest.param(999, 2_999, id="a second less"),
        # More than half of the way in one step: 2,000 s. The next 999 s are a return again, as nothing was new.
        pytest.param(1_001, 2_000, id="a second more"),
    ],
)
def test_half_of_the_way_decides(before_secs: int, expected_secs: int) -> None:
    assert reports(2_000, 0, before_secs, 2_000).credited == totals(cpu_secs=expected_secs)


@pytest.mark.parametrize("short_secs", [1, 60, 989])
def test_an_old_total_a_little_below_the_last_one_is_booked_once(short_secs: int) -> None:
    books = reports(2_000, 10, 2_000 - short_secs)
    # It was 2,000 + 1,989 s for 1,999 s: nothing is above the old totals.
    assert books.credited == totals(cpu_secs=2_000)
    assert books.kinds_noted() == ["reset", "returned"]
    here = totals(cpu_secs=2_000 - short_secs)
    assert (books.row(1).earlier, books.row(1).restart) == ((totals(cpu_secs=10), totals(cpu_secs=2_000)), here)
    # From here the client works on, and what exceeds the old totals counts.
    books.rpc(4 * HOUR, {1: totals(cpu_secs=3_500)})
    assert books.credited == totals(cpu_secs=3_500)


def test_old_totals_in_several_long_steps_are_booked_once() -> None:
    # 10 to 1,500 s is more than half of the way, then so are 1,500 to 1,900 s and 1,900 to 2,000 s.
    assert reports(2_000, 10, 1_500, 1_900, 2_000, 2_100).credited == totals(cpu_secs=2_100)


def test_old_totals_that_are_too_much_for_the_time_are_no_work_since_the_reset() -> None:
    books = Books()
    books.attach(1)
    for k, secs in enumerate((36_000, 0, 20_000), 10):
        books.rpc(k * HOUR, {1: totals(cpu_secs=secs)})
    # 20,000 s cannot be done in an hour. So they are no half of the way for 36,000 s, five hours later.
    books.rpc(17 * HOUR, {1: totals(cpu_secs=36_000)})
    assert books.credited == totals(cpu_secs=36_000)


@pytest.mark.parametrize(
    ("secs", "lost_secs"),
    [
        # All again between two reports: the 2,000 s that it did again are taken for the old ones.
        pytest.param([5_000], 2_000, id="all of the way"),
        # More than half of the way between two reports, and then the rest of it.
        pytest.param([1_200, 2_400], 2_000, id="in two steps"),
        # From 1,200 s on the way is 800 s long; 300 s are less than half of it, and 400 s do not exceed half of 500 s.
        pytest.param([1_200, 1_500, 1_700, 2_400], 1_200, id="and shorter steps then"),
        # Less than half of the way, then more than that: from 500 s it lacks 1,500 s.
        pytest.param([500, 1_400, 2_400], 1_500, id="faster"),
    ],
)
def test_what_an_honest_client_loses_that_does_not_report_on_the_way(secs: list[int], lost_secs: int) -> None:
    books = reports(2_000, 0, *secs)
    assert books.credited == totals(cpu_secs=2_000 + secs[-1] - lost_secs)
    assert set(books.kinds_noted()) == {"reset", "returned"}


@pytest.mark.parametrize(
    ("secs", "lost_secs"),
    [
        # 400 s are less than half of 1,000 s, then each step is as long as all before, or past half of the way.
        pytest.param([400, 800, 1_600, 3_200, 6_400, 12_800], 0, id="reports on the way"),
        # Past half of the way to 1,000 s, not of that to 10,000 s.
        pytest.param([4_000], 1_000, id="past the shorter ones"),
        pytest.param([6_000], 6_000, id="past half of the way to the longer ones"),
    ],
)
def test_what_an_honest_client_loses_that_was_reset_twice(secs: list[int], lost_secs: int) -> None:
    books = reports(10_000, 0, 400, 800, 1_000, 0)
    before = books.credited
    for k, run_secs in enumerate(secs, 7):
        books.rpc(k * HOUR, {1: run_time(run_secs)})
    assert books.credited.minus(before) == run_time(secs[-1] - lost_secs)


def test_three_copies_that_take_turns_upwards_in_steps_of_half_of_the_way_count_at_each_turn() -> None:
    # The known limit: 200 s and then 200 s more look like new work. 400 s, and 400 s at each of five turns.
    assert reports(400, *(0, 200, 400) * 5).credited == run_time(400 + 5 * 400)


def test_jobs_alone_that_come_back_are_booked_once() -> None:
    books = Books(LARGE)
    books.attach(1)
    for k, done in enumerate((7, 2, 7), 1):
        books.rpc(k * HOUR, {1: totals(done=done)})
    assert books.credited == totals(done=7)


@pytest.mark.parametrize(
    ("secs", "expected_secs"),
    [
        # 4,000 s are less than half of the way to 10,000 s, so all of them may be new, but only once. It was 18,000 s.
        pytest.param([10_000, 0, 4_000, 0, 4_000], 14_000, id="at once"),
        pytest.param([10_000, 0, 4_000, 0, 4_500], 14_500, id="and did more work"),
        pytest.param([10_000, 0, 4_000, 0, 2_001], 14_000, id="nearly"),
        # 2,000 s are no more than half of the way to 4,000 s.
        pytest.param([10_000, 0, 4_000, 0, 2_000], 16_000, id="half of the way"),
        # 5,001 s are more than half of the way to 10,000 s: they count neither time.
        pytest.param([10_000, 0, 5_001, 0, 5_001], 10_000, id="past half of the way to the oldest"),
        # 4,000 s were passed on the way to 9,000 s (steps of at most what was done, or half of what was lacking).
        pytest.param([4_000, 0, 2_000, 4_000, 8_000, 9_000, 0, 4_000], 13_000, id="after it was passed"),
    ],
)
def test_totals_from_between_two_resets_that_come_back_count_once(secs: list[int], expected_secs: int) -> None:
    assert reports(*secs).credited == totals(cpu_secs=expected_secs)


def test_two_copies_that_take_turns_below_half_of_older_totals_are_booked_once() -> None:
    # 10,000 s, and 4,000 s of the one copy. Each turn counted 4,000 s: 10,000 + 21 x 4,000 = 94,000 s.
    assert reports(10_000, *(0, 4_000) * 21).credited == totals(cpu_secs=14_000)


def test_two_copies_that_take_turns_and_work_are_booked_as_the_higher_one() -> None:
    # One goes from 4,000 to 9,000 s, the other from 100 to 1,100 s: 20,000 + 4,000 + 5,000 s, and of the other nothing.
    turns = ((4_000 + 250 * turn, 100 + 50 * turn) for turn in range(21))
    books = reports(20_000, 0, *(secs for both in turns for secs in both))
    assert books.credited == totals(cpu_secs=29_000)
    assert len(books.row(1).earlier) == EARLIER_KEPT


def test_totals_from_which_a_client_jumped_to_older_ones_count_once_too() -> None:
    # 4,000 s, then a copy with 1,500 s, 4,000 s again, one with nothing. Neither is above 4,000 s. It was 5,500 s.
    assert reports(4_000, 1_500, 4_000, 0, 1_500).credited == totals(cpu_secs=4_000)


def test_only_what_exceeds_all_the_totals_that_came_back_counts() -> None:
    books = reports(20_000, 0, 2_500, 3_000, 0, 1_000, 2_000, 4_500, 5_000, 0, 6_000)
    # 6,000 s are more than half of the way to 3,000 and to 5,000 s, not to 20,000 s: 1,000 s of them are new. The steps
    # to 3,000 s and then to 5,000 s are all short enough to be new.
    assert books.credited == totals(cpu_secs=20_000 + 3_000 + 5_000 + 1_000)
    assert books.kinds_noted() == ["reset"] * 3 + ["returned"]


def test_of_many_earlier_totals_those_between_two_near_ones_are_forgotten_first() -> None:
    sixteen = [500 * k for k in range(1, 17)]
    assert earlier_secs(after_resets(sixteen)) == sixteen
    # One more: 1,500 s are more than twice 500 s, so 1,000 s stay. 2,000 s are twice 1,000 s: 1,500 s are forgotten.
    assert earlier_secs(after_resets([*sixteen, 9_000])) == [500, 1_000, *sixteen[3:], 9_000]


def test_of_many_earlier_totals_that_are_far_apart_the_shortest_is_forgotten() -> None:
    # Each is three times the one before: none is between two of which one is at most twice the other.
    seventeen = [3**k for k in range(17)]
    assert earlier_secs(after_resets(seventeen)) == seventeen[1:]


def test_forgotten_totals_of_another_kind_count_again_in_that_kind() -> None:
    books = Books(WITH_GPU)
    books.attach(1)
    # The GPU's 1,250 s lie between 1,000 and 1,500 s of the CPU, so they are the first to be forgotten.
    for k, amounts in enumerate([*(run_time(500 * k) for k in range(1, 17)), totals(gpu_secs=1_250)]):
        books.rpc(2 * k * DAY + HOUR, {1: amounts})
        books.rpc((2 * k + 1) * DAY, {1: NO_WORK})
    assert earlier_secs(books) == [500 * k for k in range(1, 17)]
    before = books.credited
    books.rpc(40 * DAY, {1: totals(cpu_secs=300, gpu_secs=1_250)})
    assert books.credited.minus(before) == totals(gpu_secs=1_250)


def test_of_each_kind_of_amount_no_more_than_the_most_of_all_earlier_totals_is_lost() -> None:
    books = Books(WITH_GPU)
    books.attach(1)
    for k, amounts in enumerate((run_time(2_000), NO_WORK, totals(gpu_secs=2_000), NO_WORK), 1):
        books.rpc(k * HOUR, {1: amounts})
    before = books.credited
    books.rpc(5 * HOUR, {1: totals(cpu_secs=2_500, gpu_secs=2_100)})
    # Both of 2,000 s are past half of the way, so 4,000 s are lost.
    assert books.credited.minus(before) == totals(cpu_secs=500, gpu_secs=100)


def test_jobs_that_are_longer_than_before_the_reset_are_no_sign_of_old_totals() -> None:
    books = Books(LARGE)
    books.attach(1)
    lines = ((2_000, 20), (0, 0), (700, 1), (1_400, 1), (2_100, 2), (7_000, 40))
    for k, (secs, done) in enumerate(lines, 1):
        books.rpc(k * HOUR, {1: totals(cpu_secs=secs, done=done)})
    # At 2,100 s it lacks no run time, but 18 jobs, and did 2. The next 38 jobs are new: 20 + 40. It was 20 + 2 + 20.
    assert books.credited == totals(cpu_secs=9_000, done=60)
    assert books.kinds_noted() == ["reset"]


def test_the_way_begins_at_the_newest_reset() -> None:
    books = reports(2_000, 0, 900, 100)
    assert (books.row(1).earlier, books.row(1).restart) == ((run_time(900), run_time(2_000)), run_time(100))
    books.rpc(5 * HOUR, {1: totals(cpu_secs=2_000)})
    assert books.credited == totals(cpu_secs=2_900)


# A client without the project, to which it is offered again (rule 3)


def without_the_project(*secs: int, honours: bool = False, credited_secs: int = 2_000) -> Books:
    """A client that has done 2,000 s reports without the project, and then these run times of it, an hour apart."""
    books = Books(LARGE, honours_handed=honours)
    books.attach(1)
    books.rpc(HOUR, {1: totals(cpu_secs=2_000)})
    books.rows[1].credited = totals(cpu_secs=credited_secs)
    books.rpc(2 * HOUR, offers=[1])
    for k, run_secs in enumerate(secs, 3):
        books.rpc(k * HOUR, {1: totals(cpu_secs=run_secs)})
    return books


@pytest.mark.parametrize(
    ("secs", "expected_secs"),
    [
        # 2,000 s, and what exceeds them. It was 2,000 s more.
        pytest.param([2_000], 2_000, id="at once"),
        pytest.param([2_300], 2_300, id="with more work"),
        pytest.param([0, 2_000], 2_000, id="after the older one was attached"),
        pytest.param([500, 2_000], 2_500, id="after the older one did some work"),
        pytest.param([1_999, 2_000], 2_000, id="and first an older one with the project"),
    ],
)
def test_a_folder_that_comes_back_after_one_without_the_project_is_booked_once(
    secs: list[int], expected_secs: int
) -> None:
    assert without_the_project(*secs).credited == totals(cpu_secs=expected_secs)


@pytest.mark.parametrize("credited_secs", [500, 3_000])
def test_a_folder_that_comes_back_is_booked_once_whatever_was_handed_back(credited_secs: int) -> None:
    """Less than it reported was credited, as the rest waited; or more, as another record was merged with this one."""
    books = without_the_project(2_000, honours=True, credited_secs=credited_secs)
    # The totals of 500 s that were handed back are a base below 2,000 s, and 3,000 s are above.
    assert books.credited == totals(cpu_secs=credited_secs)


def test_a_client_that_is_attached_again_and_starts_from_zero_loses_nothing() -> None:
    books = without_the_project(0, 700, 1_400, 2_100, 3_000)
    # As after a reset: 700 s are less than half of 2,000 s, then no more than was done.
    assert books.credited == totals(cpu_secs=5_000)
    assert books.notes == []


def test_a_client_that_goes_on_from_what_was_handed_back_has_no_old_totals() -> None:
    books = without_the_project(2_500, honours=True)
    assert books.credited == totals(cpu_secs=2_500)
    assert (books.row(1).earlier, books.row(1).restart, books.notes) == ((), None, [])


def test_totals_from_before_a_client_went_on_from_more_count_once_when_copies_take_turns() -> None:
    books = Books(LARGE, honours_handed=True)
    books.attach(1)
    for k, secs in enumerate((10_000, 0, 4_000), 1):
        books.rpc(k * HOUR, {1: run_time(secs)})
    for k in range(4, 20, 4):
        books.rpc(k * HOUR, offers=[1])
        # It goes on from all that was credited. Then come copies of its folder with nothing and with its 4,000 s.
        books.rpc((k + 1) * HOUR, {1: books.credited})
        for n, secs in enumerate((0, 4_000), k + 2):
            books.rpc(n * HOUR, {1: run_time(secs)})
    # It was 4,000 s more at each turn.
    assert books.credited == run_time(14_000)


def test_totals_that_were_handed_back_count_once_though_another_copy_reports_first() -> None:
    books = Books(LARGE, honours_handed=True)
    books.attach(1)
    for k, secs in enumerate((10_000, 0, 4_000), 1):
        books.rpc(k * HOUR, {1: run_time(secs)})
    for k in range(4, 19, 3):
        books.rpc(k * HOUR, offers=[1])
        handed_secs = books.credited.cpu_time // MICRO
        # A copy of an old folder has 100 s, and then the client comes that started from what was handed back.
        books.rpc((k + 1) * HOUR, {1: run_time(100)})
        books.rpc((k + 2) * HOUR, {1: run_time(handed_secs + 10)})
    # 14,000 s, 100 s of the copy, and 10 s in each of five turns. It was 34,550 s.
    assert books.credited == run_time(14_150)


# A client that logs in again, and another one (rules 2 and 3)


def test_work_before_a_new_login_counts_when_the_client_is_recognised() -> None:
    books = Books()
    books.attach(1)
    books.rpc(HOUR, {1: totals(cpu_secs=100)})
    books.rpc(2 * HOUR, {1: totals(cpu_secs=1_100)})
    # 100 s, and 1,000 s more. It was 100 s.
    assert books.credited == totals(cpu_secs=1_100)
    assert books.notes == []


def test_work_before_a_new_login_is_bounded_by_the_allowance() -> None:
    books = Books()
    books.attach(1)
    books.rpc(HOUR, {1: totals(cpu_secs=HOUR)})
    books.rpc(2 * HOUR, {1: totals(cpu_secs=100 * DAY)})
    # One CPU can have done 3,600 s in that hour. The rest waits, or is dropped with a note.
    assert books.credited == totals(cpu_secs=2 * HOUR)
    assert "dropped" in books.kinds_noted()


def test_work_that_another_client_brings_along_does_not_count() -> None:
    books = Books()
    books.attach(1)
    books.rpc(HOUR, {1: totals(cpu_secs=100)})
    books.rpc(2 * HOUR, {1: totals(cpu_secs=1_100)}, same=False)
    books.rpc(3 * HOUR, {1: totals(cpu_secs=1_200)})
    assert books.credited == totals(cpu_secs=200)
    assert books.kinds_noted() == ["baseline"]


def test_lower_totals_of_a_new_login_are_a_reset_whose_old_totals_count_once() -> None:
    books = Books(LARGE)
    books.attach(1)
    books.rpc(HOUR, {1: totals(cpu_secs=2_000)})
    books.rpc(2 * HOUR, {1: totals(cpu_secs=10)})
    books.rpc(3 * HOUR, {1: totals(cpu_secs=2_000)})
    assert books.credited == totals(cpu_secs=2_000)
    assert books.kinds_noted() == ["reset", "returned"]


# Whatever the numbers are

work = st.integers(1, 3_000)
older_totals = st.lists(work, min_size=1, max_size=6)
# Whether a client is without the project for a while and is then attached again, or is reset
attached_again = st.booleans()


def run(amounts: int) -> Totals:
    """A run time in seconds, with a job for each 50 s of it."""
    return totals(cpu_secs=amounts, done=amounts // 50)


def from_zero(older: Sequence[int], is_again: bool) -> Books:
    """The large machine has done so much between resets, and starts from zero: after a reset, or attached again."""
    books = Books(LARGE)
    books.attach(1)
    for k, old_secs in enumerate(older):
        books.rpc((2 * k + 1) * HOUR, {1: run(old_secs)})
        books.rpc((2 * k + 2) * HOUR, {} if is_again else {1: NO_WORK}, offers=[1])
    return books


@settings(deadline=None)
@given(old_secs=work, restart_secs=work, more_secs=st.integers(0, 3_000))
def test_a_single_return_never_counts_anything_twice(old_secs: int, restart_secs: int, more_secs: int) -> None:
    restart_secs = min(restart_secs, old_secs - 1)
    books = reports(old_secs, restart_secs, old_secs + more_secs, jobs=True)
    assert books.credited == totals(cpu_secs=old_secs + more_secs, done=(old_secs + more_secs) // 100)


@settings(deadline=None)
@given(secs=st.lists(work, min_size=2, max_size=EARLIER_KEPT), data=st.data())
def test_totals_from_before_any_reset_count_nothing_when_they_come_back(secs: list[int], data: st.DataObject) -> None:
    fell = [before for before, after in itertools.pairwise([*secs, 0]) if after < before]
    books = reports(*secs, 0)
    before = books.credited
    books.rpc(50 * HOUR, {1: run_time(data.draw(st.sampled_from(fell)))})
    assert books.credited == before


@settings(deadline=None)
@given(ways=st.lists(st.integers(0, 44).map(lambda k: int(1.3**k)), min_size=17, max_size=60), data=st.data())
def test_of_totals_that_were_forgotten_less_than_a_256th_of_the_longest_counts_again(
    ways: list[int], data: st.DataObject
) -> None:
    books = after_resets(ways)
    before = books.credited
    books.rpc(150 * HOUR, {1: run_time(data.draw(st.sampled_from(ways)))})
    assert 256 * books.credited.minus(before).cpu_time < max(ways) * MICRO or books.credited == before


@settings(deadline=None)
@given(old_secs=work, more_secs=st.integers(0, 3_000), has_reported=st.booleans())
def test_a_folder_that_comes_back_after_one_without_the_project_never_counts_twice(
    old_secs: int, more_secs: int, has_reported: bool
) -> None:
    books = from_zero([old_secs], is_again=True)
    if has_reported:
        books.rpc(3 * HOUR, {1: NO_WORK})
    books.rpc(4 * HOUR, {1: run(old_secs + more_secs)})
    assert books.credited == run(old_secs + more_secs)


@settings(deadline=None)
@given(older=older_totals, done_secs=st.integers(0, 3_000), back_secs=work, is_again=attached_again)
def test_a_return_counts_twice_at_most_what_was_done_since_or_half_of_what_was_lacking(
    older: list[int], done_secs: int, back_secs: int, is_again: bool
) -> None:
    books = from_zero(older, is_again)
    before = books.credited
    books.rpc(30 * HOUR, {1: totals(cpu_secs=done_secs)})
    books.rpc(31 * HOUR, {1: totals(cpu_secs=done_secs + back_secs)})
    counted = books.credited.minus(before).cpu_time
    for old_secs in older:
        # What a client can have done that started from zero, did this, and then got this old folder back
        really = done_secs + max(0, done_secs + back_secs - old_secs)
        twice = max(done_secs, (old_secs - done_secs) // 2)
        assert counted <= (really + twice) * MICRO


@settings(deadline=None)
@given(older=older_totals, steps=st.lists(work, min_size=2, max_size=12), is_again=attached_again)
def test_steps_of_at_most_half_of_the_way_or_the_work_since_the_reset_lose_nothing(
    older: list[int], steps: list[int], is_again: bool
) -> None:
    books = from_zero(older, is_again)
    before, noted = books.credited, len(books.notes)
    done = 0
    for k, step in enumerate(steps, 30):
        # Of all earlier totals that are farther than the client came
        ways = [old_secs - done for old_secs in older if old_secs - done > done]
        done += min(step, max(done, min(ways) // 2)) if ways else step
        books.rpc(k * HOUR, {1: run(done)})
    assert books.credited == before.plus(run(done))
    assert len(books.notes) == noted


@settings(deadline=None)
@given(older=older_totals, steps=st.lists(st.integers(0, 3_000), min_size=1, max_size=12), is_again=attached_again)
def test_whatever_comes_after_a_reset_at_most_the_old_totals_are_lost(
    older: list[int], steps: list[int], is_again: bool
) -> None:
    books = from_zero(older, is_again)
    before = books.credited
    done = 0
    for k, step in enumerate(steps, 30):
        done += step
        books.rpc(k * HOUR, {1: run(done)})
    lost = before.plus(run(done)).minus(books.credited)
    assert 0 <= lost.cpu_time <= max(older) * MICRO
    assert 0 <= lost.njobs <= run(max(older)).njobs
