"""Filters, comparisons and other choices of the history page."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounting.history.compared import Compare, means, other_period
from accounting.history.periods import Period, Step
from accounting.ledger.months import close_months
from accounting.models import Project
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db

CREDIT = 1_000_000


def page(signed_in: Client, address: str) -> Page:
    return page_of(signed_in, f"/history/{address}")


def chart(history_page: Page) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(history_page.one("script", id="history-data").text)
    return data


@pytest.fixture
def attic(alice: User, studio: Host) -> Host:
    """Two computers at two projects: on 10 February 1 and 2 credits, on 10 March 4, 8 (GPU) and 16."""
    attic = make_host(alice, "attic")
    alpha, beta = make_project("Alpha"), make_project("Beta")
    credit(studio, alpha, "2026-02-10", (1 * CREDIT, 0, 1, 0, 1, 0))
    credit(attic, beta, "2026-02-10", (2 * CREDIT, 0, 1, 0, 1, 0))
    credit(studio, alpha, "2026-03-10", (4 * CREDIT, 8 * CREDIT, 1, 0, 1, 0))
    credit(attic, alpha, "2026-03-10", (16 * CREDIT, 0, 1, 0, 1, 0))
    return attic


MARCH = "?from=2026-03-01&to=2026-03-10"


@pytest.mark.parametrize("step", ["day", "month"])
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_history_of_one_computer_project_or_type_of_processor(
    signed_in: Client, attic: Host, step: str, is_closed: bool
) -> None:
    if is_closed:
        close_months(timezone.now())
    query = f"?from=2026-02-01&to=2026-03-10&step={step}"
    alpha = Project.objects.get(name="Alpha").pk
    for filters, credits in (
        ("", 31), (f"&host={attic.pk}", 18), (f"&project={alpha}", 29), ("&processor=gpu", 8),
        (f"&processor=cpu&host={attic.pk}&project={alpha}", 16),
    ):  # fmt: skip
        assert sum(chart(page(signed_in, query + filters))["totals"]) == credits


def test_links_keep_a_filter_and_one_shows_everything_again(signed_in: Client, attic: Host) -> None:
    history_page = page(signed_in, f"{MARCH}&host={attic.pk}")
    assert "Showing only attic" in history_page.one("p", id="shown-part").text
    addresses = {
        link.attributes["href"] for link in history_page.all("a") if link.attributes["href"].startswith("?from")
    }
    everything = f"{MARCH}&step=day&show=credit&by=project".replace("?", "", 1)
    assert {address for address in addresses if f"host={attic.pk}" not in address} == {f"?{everything}"}
    assert all(
        f"host={attic.pk}" in link for link in chart(page(signed_in, f"{MARCH}&host={attic.pk}&step=week"))["addresses"]
    )


def test_notes_of_other_computers_are_not_among_those_of_one(signed_in: Client, attic: Host, studio: Host) -> None:
    make_note(studio, "reset", "2026-03-10")
    assert page(signed_in, MARCH).all("details", id="history-notes")
    assert not page(signed_in, f"{MARCH}&host={attic.pk}").all("details", id="history-notes")


def test_somebody_elses_computer_is_not_told_from_one_that_is_not_there(
    signed_in: Client, attic: Host, bob: User
) -> None:
    his = make_host(bob, "bobs")
    history_page = page(signed_in, f"{MARCH}&host={his.pk}")
    assert f"“{his.pk}” is not one of your computers" in history_page.words and "bobs" not in history_page.words
    assert sum(chart(history_page)["totals"]) == 28


def test_the_page_of_a_computer_leads_to_its_history(signed_in: Client, attic: Host) -> None:
    reply = signed_in.get(f"/computers/{attic.pk}/")
    assert f"/history/?host={attic.pk}" in reply.content.decode()


def test_a_history_beside_that_of_a_month_before(signed_in: Client, attic: Host) -> None:
    history_page = page(signed_in, "?from=2026-03-01&to=2026-03-31&step=month&compare=before")
    compared = history_page.one("p", id="compared").text.replace("\xa0", " ")
    assert "1 Feb 2026 to 28 Feb 2026: 3 credits. This range has 833 % more." in compared
    (other,) = chart(history_page)["lines"]
    assert (other["name"], other["values"], other["dashed"]) == ("1 Feb 2026 to 28 Feb 2026", [3], True)
    assert "1 Feb 2026 to 28 Feb 2026" in history_page.one("table", id="history-table").text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        # A leap year has a day more than the year that is shown.
        ("?from=2025-01-01&to=2025-12-31&step=day&compare=year", "1 Jan 2024 to 31 Dec 2024: 40 credits."),
        # Ten days from a Monday are two weeks; the ten days before them begin on a Friday, so they are three.
        ("?from=2024-12-30&to=2025-01-08&step=week&compare=before", "20 Dec 2024 to 29 Dec 2024: 30 credits."),
    ],
)
def test_the_other_range_counts_to_its_last_day(signed_in: Client, studio: Host, query: str, words: str) -> None:
    alpha = make_project("Alpha")
    credit(studio, alpha, "2024-12-29", (30 * CREDIT, 0, 1, 0, 1, 0))
    credit(studio, alpha, "2024-12-31", (10 * CREDIT, 0, 1, 0, 1, 0))
    credit(studio, alpha, "2025-01-08", (10 * CREDIT, 0, 1, 0, 1, 0))
    history_page = page(signed_in, query)
    assert words in history_page.one("p", id="compared").text.replace("\xa0", " ")
    (other,) = chart(history_page)["lines"]
    assert len(other["values"]) == len(chart(history_page)["totals"])


def test_much_more_is_told_in_times(signed_in: Client, attic: Host) -> None:
    query = "?from=2026-02-10&to=2026-03-10&step=month&compare=before"
    credit(attic, make_project(), "2026-01-01", (CREDIT // 10, 0, 0, 0, 0, 0))
    credit(attic, make_project(), "2025-12-15", (CREDIT // 10, 0, 0, 0, 0, 0))
    assert "This range has 155 times as much." in page(signed_in, query).one("p", id="compared").text


def test_running_totals_and_means(signed_in: Client, attic: Host) -> None:
    running = chart(page(signed_in, "?from=2026-02-09&to=2026-03-10&curve=total"))
    assert running["running"] and running["totals"][:3] == [0, 3, 3] and running["totals"][-1] == 31
    # 28 credits on the last of seven days; before the range, 3 credits count for its first six days.
    (mean,) = chart(page(signed_in, "?from=2026-02-12&to=2026-03-10&curve=mean"))["lines"]
    assert mean["values"][:6] == [pytest.approx(3 / 7, abs=1e-6)] * 5 + [0]
    assert mean["values"][-1] == 4


def test_every_choice_can_be_drawn(signed_in: Client, attic: Host) -> None:
    for step in ("day", "week", "month"):
        for compare in Compare:
            history_page = page(
                signed_in, f"?from=2026-01-31&to=2026-03-10&step={step}&compare={compare}&curve=total&scale=root"
            )
            assert chart(history_page)["scale"] == "root"


def test_means_are_of_seven_days() -> None:
    assert means([1, 2, 3, 4, 5, 6], [7, 14]) == [4, 5]


@pytest.mark.parametrize(
    ("first", "last", "step", "compare", "expected"),
    [
        ("2026-03-01", "2026-03-10", "day", Compare.BEFORE, ("2026-02-19", "2026-02-28")),
        ("2026-03-01", "2026-03-10", "day", Compare.YEAR, ("2025-03-01", "2025-03-10")),
        ("2024-02-29", "2024-02-29", "day", Compare.YEAR, ("2023-02-28", "2023-02-28")),
        ("2026-01-01", "2026-02-28", "month", Compare.BEFORE, ("2025-11-01", "2025-12-31")),
        ("2026-03-01", "2026-03-31", "month", Compare.BEFORE, ("2026-02-01", "2026-02-28")),
        ("2025-02-01", "2025-02-28", "month", Compare.YEAR, ("2024-02-01", "2024-02-29")),
    ],
)
def test_the_other_range(first: str, last: str, step: str, compare: Compare, expected: tuple[str, str]) -> None:
    period = Period(dt.date.fromisoformat(first), dt.date.fromisoformat(last), "", Step(step))
    other = other_period(period, compare)
    assert (other.first.isoformat(), other.last.isoformat()) == expected
