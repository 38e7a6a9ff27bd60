"""How numbers, times and drawings look on the pages."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal

import pytest
from django.utils import timezone

from portal.templatetags.display import (
    ago,
    amount,
    amount_cell,
    credit,
    credit_parts,
    credit_text,
    credits,
    duration,
    duration_text,
    moment,
    nbytes,
    percent,
    plural,
    secs,
    significant,
    speed,
)
from portal.templatetags.drawings import bar, sparkline

THIN, NBSP = "\u202f", "\u00a0"


@pytest.mark.parametrize(
    ("micro", "text"),
    [
        (0, "0"),
        (1, f"<{THIN}0.001"),
        (42_500, "0.043"),
        (1_500_000, "1.5"),
        (3_141_592, "3.14"),
        (9_996_000, "10"),
        (41_240_000, "41.2"),
        (99_960_000, "100"),
        (812_400_000, "812"),
        (1_284_000_000, f"1{THIN}284"),
        (41_902_499_999, f"41{THIN}902"),
        (10**15, f"1{THIN}000{THIN}000{THIN}000"),
    ],
)
def test_credit_has_three_digits_or_whole_numbers(micro: int, text: str) -> None:
    assert credit_text(micro) == text


@pytest.mark.parametrize(
    ("total", "part", "shown"),
    [
        # Each rounded by itself would be 1 001 + 284 of 1 284.
        (1_284_400_000, 1_000_600_000, (f"1{THIN}001", "283")),
        (1_001_000_000, 500_500_000, ("500", "501")),
        (1_000_000_000, 300_000, ("0", f"1{THIN}000")),
        (99_940_000, 9_060_000, ("9.1", "90.8")),
        (12_340_000, 3_141_592, ("3.1", "9.2")),
        (1_000_000, 333_333, ("0.33", "0.67")),
        (9_994_900, 9_994_900, ("9.99", "0")),
        (42_500, 21_000, ("0.021", "0.022")),
        (10**15 + 600_000, 10**15 - 600_000, (f"999{THIN}999{THIN}999", "2")),
        (0, 0, ("0", "0")),
    ],
)
def test_parts_of_credit_add_up_to_the_total_that_is_shown(total: int, part: int, shown: tuple[str, str]) -> None:
    texts = [re.sub("<.*?>", "", text) for text in credit_parts(total, part)]
    assert tuple(texts) == shown
    assert sum(Decimal(text.replace(THIN, "")) for text in texts) == Decimal(credit_text(total).replace(THIN, ""))
    assert f"{(total - part) / 1e6:,.6f}".replace(",", THIN) in credit_parts(total, part)[1]


@pytest.mark.parametrize(
    ("secs", "text"),
    [(0, "0 s"), (45, "45 s"), (59.96, "60 s"), (90, "2 min"), (3569, "59 min"), (3600, "1 h"), (148_320, "41.2 h")],
)
def test_durations_have_the_unit_that_reads_best(secs: float, text: str) -> None:
    assert duration_text(secs * 1e6) == text.replace(" ", NBSP)


def test_exact_values_are_there_on_hover() -> None:
    assert credit(1_500_001) == '<span title="1.500001 credits">1.5</span>'
    assert 'title="259.347 s = 0.003 days of processor time"' in duration(259_346_744)


def test_what_is_missing_is_a_dash() -> None:
    assert {credit(None), duration(None), speed(None), nbytes(None), percent(None), moment(None)} == {"\u2013"}
    assert {speed(math.nan), speed(math.inf), nbytes(math.inf)} == {"\u2013"}
    assert ago(None) == "never"


def test_units_grow_with_the_number() -> None:
    assert speed(4.1e9) == f"4.1{NBSP}GFLOPS"
    assert speed(999.4e9) == f"999{NBSP}GFLOPS"
    assert speed(12.5e12) == f"12.5{NBSP}TFLOPS"
    assert nbytes(512 * 2**20) == f"512{NBSP}MiB"
    assert nbytes(16 * 2**30) == f"16{NBSP}GiB"
    assert nbytes(2 * 2**40) == f"2{NBSP}TiB"
    assert plural(1, "job,jobs") == f"1{NBSP}job"
    assert plural(1284, "job,jobs") == f"1{THIN}284{NBSP}jobs"
    assert percent(0.001) == f"<{THIN}1{THIN}%"
    assert percent(0.456) == f"46{THIN}%"


def test_a_quantity_has_its_unit() -> None:
    assert amount(1_284_000_000, "credit") == f"1{THIN}284{NBSP}credits"
    assert amount(7_200_000_000, "time") == f"2{NBSP}h"
    assert amount(1, "jobs") == f"1{NBSP}task"
    assert amount(2.25, "jobs") == f"2.25{NBSP}tasks"


def test_table_cells_carry_the_exact_amount() -> None:
    assert amount_cell(259_346_744, "time", "cpu_time") == (
        '<td class="num" data-micro="259346744" data-kind="cpu_time" title="259.346744 s">0.072</td>'
    )
    assert amount_cell(3, "jobs") == '<td class="num" data-count="3">3</td>'
    assert amount_cell(20_000, "credit") == '<td class="num" data-micro="20000">0.02</td>'


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (dt.timedelta(seconds=20), "just now"),
        (dt.timedelta(seconds=-20), "just now"),
        (dt.timedelta(minutes=12, seconds=30), f"12{NBSP}min ago"),
        (dt.timedelta(hours=5, minutes=1), f"5{NBSP}h ago"),
        (dt.timedelta(days=1, hours=2), f"1{NBSP}day ago"),
        (dt.timedelta(days=1200, hours=1), f"1{THIN}200{NBSP}days ago"),
    ],
)
def test_ago_reads_as_people_say_it(past: dt.timedelta, text: str) -> None:
    assert f">{text}</time>" in ago(timezone.now() - past)


def test_times_say_their_utc() -> None:
    noon_in_berlin = dt.datetime(2026, 3, 10, 12, 0, 5, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert moment(noon_in_berlin) == (
        '<time data-local datetime="2026-03-10T11:00:05+00:00" title="2026-03-10 11:00:05 UTC">'
        "10 Mar 2026, 11:00 UTC</time>"
    )


def test_bars_stay_in_their_space() -> None:
    assert 'width="46.0%"' in bar(0.46, 3) and 'class="bar data-3"' in bar(0.46, 3)
    assert 'width="100.0%"' in bar(1.7, 0)


def test_the_highest_day_fills_the_sparkline_and_a_little_is_seen() -> None:
    days = [(dt.date(2026, 3, day), amount) for day, amount in ((1, 0), (2, 1), (3, 10**9))]
    drawn = sparkline(days)
    # 64 high, two kept free: nothing has height 0, a little 1, the most 62.
    assert [f'height="{height}"' in drawn for height in ("0.0", "1.0", "62.0")] == [True] * 3
    assert "most on 3 Mar 2026 with 1\u202f000" in drawn
    assert "NaN" not in sparkline([(dt.date(2026, 3, 1), 0)])
    assert "<rect" not in sparkline([])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, 1e304, None])
def test_a_run_time_that_no_clock_has_measured_is_none(number: float | None) -> None:
    assert secs(number) == "\u2013"
    assert "1 min" not in secs(0) and "0" in secs(0)


@pytest.mark.parametrize(
    ("number", "text"), [(math.nan, "\u2013"), (math.inf, "\u2013"), (1e250, "1.000\u202f×\u202f10²⁵⁰")]
)
def test_a_claim_beyond_all_bounds_is_short_on_the_page(number: float, text: str) -> None:
    assert credits(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (0.85594, "0.8559"),
        (3031.4, "3031"),
        (9999.7, "10\u202f000"),
        (-23848.14, "-23\u202f848"),
        (6.2403e13, "6.240\u202f×\u202f10¹³"),
        (1e-6, "1.000\u202f×\u202f10⁻⁶"),
        (None, "\u2013"),
    ],
)
def test_a_factor_has_four_digits_and_a_count_its_own(number: float | None, text: str) -> None:
    assert significant(number) == text
