"""What an export grants: each total counts once, and never less than nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.granted import ReportedCredit, StoredCredit, apply

DAY = 86_400
MADE = 5 * DAY


def read(
    *said: ReportedCredit, read_since: int | None = 0, known_since: int = 0
) -> tuple[StoredCredit | None, list[int]]:
    """What is kept after these exports, and what each granted."""
    kept: StoredCredit | None = None
    grants = []
    for each in said:
        kept, grant = apply(kept, each, read_since=read_since, known_since=known_since)
        grants.append(grant)
    return kept, grants


def said(total: int, day: int, made_at: int = MADE) -> ReportedCredit:
    return ReportedCredit(total, made_at, day * DAY)


def test_what_was_granted_before_the_first_export_is_no_days() -> None:
    assert read(said(100, 10), said(130, 11), read_since=None)[1] == [0, 30]
    # The project made the record before we read its exports, or before the computer was ours.
    assert read(said(100, 10), read_since=MADE + 1)[1] == [0]
    assert read(said(100, 10), known_since=MADE + 1)[1] == [0]


def test_all_of_a_record_that_is_younger_than_our_reading_was_granted_since() -> None:
    kept, grants = read(said(100, 10), said(130, 11), read_since=MADE, known_since=MADE)
    assert grants == [100, 30] and kept == StoredCredit(130, 130, 130, MADE, 11 * DAY)


def test_what_was_taken_back_grants_nothing_until_it_is_there_again() -> None:
    kept, grants = read(said(100, 10), said(60, 11), said(90, 12), said(110, 13), read_since=None)
    assert grants == [0, 0, 0, 10]
    assert kept is not None and (kept.total, kept.highest) == (110, 110)


def test_an_export_that_is_not_newer_changes_nothing() -> None:
    once = read(said(100, 10), said(130, 11), read_since=None)
    again = read(said(100, 10), said(130, 11), said(130, 11), said(500, 10), read_since=None)
    assert again == (once[0], [0, 30, 0, 0])


def test_missing_exports_are_made_up_for_by_the_next() -> None:
    assert read(said(100, 10), said(130, 20), read_since=None)[1] == [0, 30]


def test_a_record_whose_beginning_is_not_always_said_counts_once() -> None:
    """The same record: its beginning is left out, or said to be earlier, now and then."""
    for other in (0, MADE - DAY):
        _, grants = read(said(100, 10), said(101, 11, made_at=other), said(103, 12), read_since=MADE, known_since=MADE)
        assert grants == [100, 1, 2]
        _, grants = read(said(100, 10, made_at=0), said(103, 11), read_since=MADE, known_since=MADE)
        assert grants == [0, 3]


def test_a_project_that_began_anew_counts_from_nothing() -> None:
    """The same number, of another record: its 40 were granted since, and 30 before."""
    kept, grants = read(said(100, 10), said(130, 11), said(40, 21, made_at=20 * DAY), read_since=6 * DAY)
    assert grants == [0, 30, 40]
    assert kept is not None and (kept.highest, kept.counted) == (40, 70)


exports = st.lists(st.builds(said, st.integers(0, 1000), st.integers(6, 40)), max_size=12)


@given(exports, st.none() | st.just(0))
def test_grants_add_up_to_what_the_total_grew_and_repeating_adds_nothing(
    told: list[ReportedCredit], since: int | None
) -> None:
    kept, grants = read(*told, read_since=since)
    assert all(grant >= 0 for grant in grants)
    if kept is not None:
        assert kept.counted == sum(grants) <= kept.highest
        assert kept.highest - kept.counted == (told[0].total if since is None else 0)
        assert apply(kept, said(kept.total, kept.as_of // DAY), read_since=since, known_since=0) == (kept, 0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=10), st.data())
def test_of_totals_that_only_grow_it_does_not_matter_which_exports_were_missed(
    steps: list[int], data: st.DataObject
) -> None:
    totals = [sum(steps[: number + 1]) for number in range(len(steps))]
    all_of_them = [said(total, 10 + day) for day, total in enumerate(totals)]
    some = [each for each in all_of_them[1:-1] if data.draw(st.booleans())]
    ends = [all_of_them[0], *some, all_of_them[-1]]
    assert read(*ends)[0] == read(*all_of_them)[0]
