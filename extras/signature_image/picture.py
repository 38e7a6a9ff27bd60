"""Draw signature images."""

from __future__ import annotations

import io
from typing import Final

from django.conf import settings
from PIL import Image, ImageDraw
from PIL.ImageFont import FreeTypeFont

from extras.signature_image import fonts, texts
from extras.signature_image.reads import ImageFacts

WIDTH: Final = 480
_EDGE: Final = 14
_TITLE, _TEXT, _SMALL = 20, 15, 12
_LINE: Final = 22
_PAPER, _FRAME, _INK, _GREY, _ACCENT = (250, 249, 246), (214, 210, 202), (38, 36, 32), (95, 90, 82), (62, 112, 66)


def draw(facts: ImageFacts) -> bytes:
    """Draw the PNG. Its height depends on how many lines were chosen; text that is too long is cut off with "…"."""
    lines = texts.lines(facts)
    nrows = (len(lines) + 1) // 2
    height = 2 * _EDGE + _TITLE + 8 + nrows * _LINE + _SMALL + 4
    image = Image.new("RGB", (WIDTH, height), _PAPER)
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, WIDTH - 1, height - 1), outline=_FRAME)
    pen.rectangle((0, 0, 4, height - 1), fill=_ACCENT)
    _write(pen, (_EDGE + 4, _EDGE), texts.title(facts), _TITLE, _INK, WIDTH - 2 * _EDGE - 4, weight=600)
    column = (WIDTH - 2 * _EDGE - 4) // 2
    for number, line in enumerate(lines):
        place = (_EDGE + 4 + number % 2 * column, _EDGE + _TITLE + 10 + number // 2 * _LINE)
        _write(pen, place, line, _TEXT, _INK, column - 8)
    _write(pen, (_EDGE + 4, height - _EDGE - _SMALL), settings.SITE_NAME, _SMALL, _GREY, WIDTH - 2 * _EDGE - 4)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _write(
    pen: ImageDraw.ImageDraw,
    place: tuple[int, int],
    text: str,
    size: int,
    colour: tuple[int, int, int],
    width: int,
    weight: int = 400,
) -> None:
    lacks = fonts.unwritable(text)
    text = "".join("\N{REPLACEMENT CHARACTER}" if char in lacks else char for char in text) if lacks else text
    font = fonts.picture_font(size, weight)
    pen.text(place, _fitting(text, font, width), fill=colour, font=font, anchor="la")


def _fitting(text: str, font: FreeTypeFont, width: int) -> str:
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"
