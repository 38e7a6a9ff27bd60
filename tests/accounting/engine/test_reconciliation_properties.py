"""What the reconciliation promises, over any sequence of reports, days and exports: missing, late, repeated, reset."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.engine.reconciliation import SETTLING_DAYS, DayStand, SettledCredit, stand

START = dt.date(2026, 1, 1)


@dataclass(frozen=True)
class Report:
    """A client's report is credited on the day on which it arrives."""

    amount: int


@dataclass(frozen=True)
class Export:
    """Statistics made ``age`` days ago, with the computer's total at the project."""

    total: int
    age: int = 0


@dataclass(frozen=True)
class Pass:
    """This many days pass."""

    days: int


Event = Report | Export | Pass


@dataclass
class Books:
    """What the site keeps of one computer at one project, as plainly as it can be said.

    ``is_whole``: the project made its record of the computer after its exports were first read.
    """

    is_whole: bool
    today: dt.date = START
    estimates: Counter[dt.date] = field(default_factory=Counter)
    grants: Counter[dt.date] = field(default_factory=Counter)
    seen_on: dt.date | None = None
    read_on: dt.date | None = None
    last_total: int = 0

    def take(self, event: Event) -> None:
        match event:
            case Pass(days):
                self.today += dt.timedelta(days=days)
            case Report(amount):
                self.estimates[self.today] += amount
            case Export(total, age):
                self._read(total, self.today - dt.timedelta(days=age))

    def _read(self, total: int, made_on: dt.date) -> None:
        if self.read_on is not None and made_on < self.read_on:
            return
        if self.seen_on is None:
            self.seen_on = self.today
            self.grants[made_on] += total if self.is_whole else 0
        else:
            self.grants[made_on] += max(0, total - self.last_total)
        self.read_on, self.last_total = made_on, total

    @property
    def seen(self) -> SettledCredit | None:
        if self.seen_on is None or self.read_on is None:
            return None
        estimated = sum(amount for day, amount in self.estimates.items() if day <= self.seen_on)
        return SettledCredit(self.seen_on, self.read_on, estimated, self.grants.total(), self.is_whole)

    def stands(self) -> dict[dt.date, DayStand]:
        found = stand(self.seen, self.estimates, self.grants, self.today)
        return {day: each for day, each in found.items() if each != DayStand()}

    @property
    def total(self) -> int:
        return self.estimates.total() if self.seen is None else self.seen.settled

    @property
    def provisional(self) -> int:
        return sum(each.provisional for each in self.stands().values())


def books_after(events: Iterable[Event], is_whole: bool) -> Books:
    books = Books(is_whole)
    for event in events:
        books.take(event)
    return books


amounts = st.one_of(st.just(0), st.integers(0, 1_000), st.sampled_from([1, 10**18]))
reports = st.builds(Report, amounts)
exports = st.builds(Export, amounts, st.one_of(st.just(0), st.integers(0, 40)))
passes = st.builds(Pass, st.one_of(st.just(1), st.integers(1, 35), st.just(500)))
histories = st.lists(st.one_of(reports, exports, passes), max_size=25)


@settings(max_examples=40)
@given(histories, st.booleans())
def test_the_total_never_goes_down(events: list[Event], is_whole: bool) -> None:
    books, last = Books(is_whole), 0
    for event in events:
        books.take(event)
        assert books.total >= last
        last = books.total


@settings(max_examples=40)
@given(histories, st.booleans())
def test_provisional_credit_is_never_negative_and_never_more_than_was_estimated(
    events: list[Event], is_whole: bool
) -> None:
    books = books_after(events, is_whole)
    for day, found in books.stands().items():
        assert 0 <= found.provisional <= books.estimates[day]
        assert found.estimated + found.provisional <= books.estimates[day]
    assert books.total + books.provisional <= books.estimates.total() + books.grants.total()


@settings(max_examples=40)
@given(histories, st.booleans())
def test_provisional_credit_grows_by_reports_only(events: list[Event], is_whole: bool) -> None:
    books = Books(is_whole)
    for event in events:
        before = books.provisional
        books.take(event)
        grown = books.provisional - before
        assert grown <= (event.amount if isinstance(event, Report) else 0)


@settings(max_examples=40)
@given(histories, amounts, st.booleans())
def test_nothing_is_provisional_once_everything_is_settled(events: list[Event], total: int, is_whole: bool) -> None:
    books = books_after(events, is_whole)
    books.take(Pass(SETTLING_DAYS))
    books.take(Export(total))
    assert books.provisional == 0


@settings(max_examples=40)
@given(histories, amounts, st.booleans())
def test_an_export_that_is_read_again_changes_nothing(events: list[Event], total: int, is_whole: bool) -> None:
    books = books_after([*events, Export(total)], is_whole)
    before = books.stands()
    books.take(Export(total))
    assert books.stands() == before


@settings(max_examples=40)
@given(histories, amounts, st.integers(1, 40), amounts, st.booleans())
def test_an_export_older_than_the_last_one_changes_nothing(
    events: list[Event], total: int, age: int, older: int, is_whole: bool
) -> None:
    books = books_after([*events, Export(total)], is_whole)
    before = books.stands()
    books.take(Export(older, age))
    assert books.stands() == before


@settings(max_examples=40)
@given(st.data(), st.booleans())
def test_reports_and_exports_of_a_day_may_come_in_any_order(data: st.DataObject, is_whole: bool) -> None:
    one, other = Books(is_whole), Books(is_whole)
    for length in data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6)):
        of_reports: list[Event] = list(data.draw(st.lists(reports, max_size=4)))
        # Exports are asked for one after another, so their order is that of their making.
        of_exports: list[Event] = list(data.draw(st.lists(st.builds(Export, amounts), max_size=2)))
        for event in [*of_reports, *of_exports, Pass(length)]:
            one.take(event)
        mixed = data.draw(st.permutations([0] * len(of_reports) + [1] * len(of_exports)))
        shuffled = iter(data.draw(st.permutations(of_reports)))
        in_turn = iter(of_exports)
        for which in mixed:
            other.take(next(in_turn) if which else next(shuffled))
        other.take(Pass(length))
    assert one.stands() == other.stands()


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 1_000), st.booleans()), min_size=1, max_size=20), st.lists(reports), st.booleans()
)
def test_exports_that_were_missed_change_no_total_in_the_end(
    steps: list[tuple[int, bool]], reported: list[Report], is_whole: bool
) -> None:
    all_read, some_read = Books(is_whole), Books(is_whole)
    total = 100
    for books in (all_read, some_read):
        books.take(Export(total))
    for place, (granted, is_missed) in enumerate(steps):
        total += granted
        for books in (all_read, some_read):
            books.take(Pass(1))
            if place < len(reported):
                books.take(reported[place])
            if books is all_read or not is_missed:
                books.take(Export(total))
    for books in (all_read, some_read):
        books.take(Pass(1))
        books.take(Export(total))
    assert all_read.total == some_read.total


@settings(max_examples=40)
@given(histories)
def test_the_days_add_up_to_the_total(events: list[Event]) -> None:
    books = books_after(events, is_whole=False)
    assert sum(each.granted + each.estimated for each in books.stands().values()) == books.total


@settings(max_examples=40)
@given(histories, st.integers(0, 99), st.integers(0, 100), st.booleans())
def test_a_reset_of_the_projects_totals_takes_nothing_away(
    events: list[Event], low: int, new: int, is_whole: bool
) -> None:
    books = books_after([*events, Export(1_000)], is_whole)
    before, granted = books.total, books.grants.total()
    books.take(Pass(1))
    books.take(Export(low))
    assert (books.total, books.grants.total()) == (before, granted)
    books.take(Pass(1))
    books.take(Export(low + new))
    assert books.total >= before
    assert books.grants.total() == granted + new
