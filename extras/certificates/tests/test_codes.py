"""Codes of certificates, as people type them."""

from __future__ import annotations

import pytest

from extras.certificates.codes import grouped_code, read_code


@pytest.mark.parametrize(
    "typed",
    [
        "0123-4567-89AB-CDEF",
        " o123 4567 89ab cdef ",
        "OI23456789ABCDEF",
        "0l23–4567–89AB–CDEF",
        "0123 — 4567\u00a089AB\u2212CDEF\t",
        "https://example.org/certificates/0123456789ABCDEF/",
        "example.org/certificates/0123-4567-89ab-cdef\n",
    ],
)
def test_a_code_is_read_however_it_is_typed(typed: str) -> None:
    assert read_code(typed) == "0123456789ABCDEF"


@pytest.mark.parametrize(
    "typed", ["", "0123456789ABCDE", "0123456789ABCDEFG", "U123456789ABCDEF", "ß" * 16, "0" * 10_000]
)
def test_what_is_no_code_is_none(typed: str) -> None:
    assert read_code(typed) is None


def test_a_printed_code_is_read_back() -> None:
    assert read_code(grouped_code("0123456789ABCDEF")) == "0123456789ABCDEF"
