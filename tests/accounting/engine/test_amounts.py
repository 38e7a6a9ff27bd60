"""Amounts of work: exact reading and printing, and every kind of number that is refused."""

from decimal import ROUND_DOWN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from accounting.engine.amounts import (
    FLOPS_PER_CREDIT,
    Totals,
    format_micro,
    parse_amount,
    parse_count,
)


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("259.346744", 259_346_744),
        ("0.000000", 0),
        ("-0.000000", 0),
        ("7", 7_000_000),
        ("7.", 7_000_000),
        (".5", 500_000),
        (" 1.5\n", 1_500_000),
        ("0.0000019", 1),
        ("1e3", 1_000_000_000),
        ("2.5E-6", 2),
        ("1e-9999", 0),
        ("0e9999", 0),
        ("999999999999999.999999", 999_999_999_999_999_999_999),
        ("999999999999999.99999999999999999999", 999_999_999_999_999_999_999),
        ("000000000000000000000001.000000", 1_000_000),
    ],
)
def test_an_amount_is_read_to_the_last_millionth(text: str, micro: int) -> None:
    assert parse_amount(text) == micro
    assert parse_amount(text.encode()) == micro


BAD_NUMBERS = [
    "", " ", "nan", "inf", "-inf", "infinity", "-1", "-0.000001", "text", "0x10", "1e400", "1e300", "1e15",
    "1000000000000000.000000", "1_000.000000", "1 2", "1,5", ".", "1.2.3", "1e", "e5", "+-1", "1.000000\0",
    "\uff11.000000", "1." + "0" * 500, "9" * 2000, "<x>", "1e99999",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_NUMBERS)
def test_what_is_no_amount_is_refused_with_the_limit(text: str) -> None:
    with pytest.raises(ValueError, match="not a finite decimal number from 0 to below 1e15"):
        parse_amount(text)
    with pytest.raises(ValueError, match="not a finite decimal number from 0 to below 1e15"):
        parse_amount(text.encode())


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("2147483647", 2**31 - 1), ("3.000000", 3), (" 5 ", 5), ("7.", 7)]
)
def test_a_count_may_be_printed_as_a_double(text: str, count: int) -> None:
    assert parse_count(text) == count
    assert parse_count(text.encode()) == count


@pytest.mark.parametrize("text", [*BAD_NUMBERS, "99999999999", "2147483648", "3.5", "1e3", "+1"])
def test_what_is_no_count_is_refused_with_the_limit(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer from 0 to below 2147483648"):
        parse_count(text)


@pytest.mark.parametrize(
    ("micro", "text"),
    [(259_346_744, "259.346744"), (0, "0.000000"), (1, "0.000001"), (-1_500_000, "-1.500000")],
)
def test_an_amount_is_printed_with_six_decimals(micro: int, text: str) -> None:
    assert format_micro(micro) == text


@given(st.integers(0, 10**21 - 1))
def test_what_is_printed_reads_back(micro: int) -> None:
    assert parse_amount(format_micro(micro)) == micro


@given(st.floats(0, 999_999_999_999_999.9))
@example(0.1)
def test_a_double_as_the_client_prints_it_is_read_exactly(number: float) -> None:
    printed = f"{number:f}"
    assert parse_amount(printed) == int(printed.replace(".", ""))


@given(st.decimals(0, 999_999_999_999_999, allow_nan=False, allow_infinity=False, places=9))
def test_further_digits_are_cut_off(number: Decimal) -> None:
    assert parse_amount(f"{number:f}") == int((number * 10**6).to_integral_value(ROUND_DOWN))


def test_a_day_at_one_gflops_is_two_hundred_credits() -> None:
    assert 200 * FLOPS_PER_CREDIT == 86_400 * 10**9
    # BOINC protocol, estimated credit: 259.346744 s at 1e9 FLOPS were reported as 0.600340 credits.
    assert round(259.346744 * 1e9 / FLOPS_PER_CREDIT, 6) == 0.600340


def test_totals_are_added_amount_by_amount() -> None:
    some, more = Totals(1, 2, 3, 4, 5, 6), Totals(10, 1, 30, 1, 50, 1)
    assert some.plus(more) == (11, 3, 33, 5, 55, 7)
    assert more.minus(some) == (9, -1, 27, -3, 45, -5)
    assert some.larger(more) == (10, 2, 30, 4, 50, 6)
    assert (some.credit, some.run_time, some.njobs) == (3, 7, 11)
    assert isinstance(some.plus(more), Totals)
