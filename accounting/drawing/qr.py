"""QR codes of addresses, as squares that HTML, PDF and pictures draw in their own way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from qrcode.constants import ERROR_CORRECT_M
from qrcode.main import QRCode

QUIET: Final = 4
"""Modules of white around the code, as the standard asks for."""


def modules(text: str) -> list[list[bool]]:
    """The dark modules by row, with the white around them."""
    code: QRCode = QRCode(error_correction=ERROR_CORRECT_M, border=QUIET)
    code.add_data(text)
    code.make(fit=True)
    return [[bool(dark) for dark in row] for row in code.get_matrix()]


def runs(text: str) -> tuple[int, list[tuple[int, int, int]]]:
    """The side of the code in modules, and its dark runs: left end, row, length."""
    rows = modules(text)
    return len(rows), [run for y, row in enumerate(rows) for run in _runs_of(row, y)]


def _runs_of(row: list[bool], y: int) -> Iterator[tuple[int, int, int]]:
    x = 0
    while x < len(row):
        end = x
        while end < len(row) and row[end]:
            end += 1
        if end > x:
            yield x, y, end - x
        x = end + 1


def svg_path(text: str) -> tuple[int, str]:
    """The side in modules, and the path of an SVG drawing."""
    side, found = runs(text)
    return side, "".join(f"M{x} {y}h{length}v1h-{length}z" for x, y, length in found)
