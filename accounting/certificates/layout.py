"""Where everything stands on the sheet of a certificate: one A4 page, for PDF and pictures alike.

Places and widths are in millimetres from the upper left corner, sizes of text in points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.translation import gettext

from accounting.certificates.texts import CertificateText
from accounting.drawing.fonts import picture_font

WIDTH: Final = 210.0
HEIGHT: Final = 297.0
MARGIN: Final = 25.0
QR_SIDE: Final = 38.0
POINT: Final = 25.4 / 72
"""Millimetres of a point."""
BLACK, GREY = 32, 96
"""Shades of text, from 0 (black) to 255."""
_LINE: Final = 1.35
_VALUES: Final = 75.0
"""How far from the margin values begin."""
_LOWER: Final = HEIGHT - MARGIN - QR_SIDE
_MEASURED: Final = 100


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; ``y``: its upper edge. ``address``: where a click leads."""

    x: float
    y: float
    size: float
    text: str
    shade: int = BLACK
    address: str = ""


def width_of(text: str, size: float) -> float:
    """How wide a line is, in millimetres."""
    return picture_font(text, _MEASURED).getlength(text) / _MEASURED * size * POINT


def texts(shown: CertificateText) -> list[Text]:
    """All lines of the sheet. What is too long for its place is written smaller."""
    return [*_upper(shown), *_lower(shown)]


def _upper(shown: CertificateText) -> Iterator[Text]:
    y = MARGIN
    yield Text(MARGIN, y, 12, settings.SITE_NAME, GREY)
    y += 18
    for text, each, below in ((shown.title, 26, 7.5), (shown.name, 20, 4.5), (shown.sentence, 12, 8)):
        for line in _block(text, MARGIN, y, each):
            yield line
            y = line.y + _height(each)
        y += below if text else 0
    size = _fitting(shown, y)
    for label, value in shown.lines:
        yield Text(MARGIN, y, size, label, GREY)
        for line in _block(value, MARGIN + _VALUES, y, size):
            yield line
            y = line.y + _height(size)
        y += size * POINT * 0.4
    y += 6
    for note in shown.notes:
        for line in _block(note, MARGIN, y, size * 0.65, GREY):
            yield line
            y = line.y + _height(size * 0.65)
        y += 1


def _fitting(shown: CertificateText, y: float) -> float:
    """The size of the lines with which they and the notes end above the code."""
    size = 14.0
    while size > 5 and y + _needed(shown, size) > _LOWER - 8:
        size -= 0.5
    return size


def _needed(shown: CertificateText, size: float) -> float:
    values = sum(
        len(wrapped(value, size, WIDTH - 2 * MARGIN - _VALUES)) * _height(size) + size * POINT * 0.4
        for _, value in shown.lines
    )
    small = size * 0.65
    return values + 6 + sum(len(wrapped(note, small, WIDTH - 2 * MARGIN)) * _height(small) + 1 for note in shown.notes)


def _lower(shown: CertificateText) -> Iterator[Text]:
    width = WIDTH - 2 * MARGIN - QR_SIDE - 6
    y = _LOWER + 2
    for number, (text, size, shade) in enumerate(
        (
            (gettext("Check this certificate at"), 9.0, GREY),
            (shown.address, 9.0, BLACK),
            (gettext("Code: %(code)s") % {"code": shown.grouped}, 12.0, BLACK),
            (shown.made, 8.0, GREY),
        )
    ):
        for line in _block(text, MARGIN, y, size, shade, width):
            yield Text(line.x, line.y, size, line.text, shade, shown.address if number == 1 else "")
            y = line.y + _height(size)
        y += 1.5


def _block(
    text: str, x: float, y: float, size: float, shade: int = BLACK, width: float | None = None
) -> Iterator[Text]:
    for number, line in enumerate(wrapped(text, size, width or WIDTH - MARGIN - x)):
        yield Text(x, y + number * _height(size), size, line, shade)


def _height(size: float) -> float:
    return size * POINT * _LINE


def wrapped(text: str, size: float, width: float) -> list[str]:
    """The text in lines that fit the width: cut between words, and inside a word that is longer than a line."""
    lines, line = [], ""
    # Only at plain blanks: the narrow ones inside numbers stay.
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if width_of(longer, size) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        line = word
        while width_of(line, size) > width:
            fits = next(n for n in range(len(line) - 1, 0, -1) if n == 1 or width_of(line[:n], size) <= width)
            lines.append(line[:fits])
            line = line[fits:]
    return [*lines, line] if line else lines
