"""The fonts of PDF files and pictures: Noto Sans for Latin, Greek and Cyrillic, Noto Sans CJK for East Asian scripts.

Both come in wheels, so nothing depends on what is installed on a machine. Scripts that need shaping (Arabic, Hebrew,
those of India and others) are in neither: text in them is refused by `unwritable`, and pages in a browser show it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import fontpkg_noto_sans
import noto_cjk_sans_otc
from PIL import ImageFont
from PIL.ImageFont import FreeTypeFont

SANS: Final = Path(fontpkg_noto_sans.ROOT) / "files" / "NotoSans[wdth,wght].ttf"
CJK: Final = Path(str(noto_cjk_sans_otc.FONT_PATH))
_JAPANESE, _KOREAN, _CHINESE = 0, 1, 2
"""Faces of the collection: they differ in how the same Chinese characters look."""


@cache
def _sans_points() -> frozenset[int]:
    # Not imported above, here and below: importing it takes a tenth of a second at each start of a process.
    from fontTools.ttLib import TTFont

    with TTFont(SANS, lazy=True) as font:
        return frozenset(font.getBestCmap())


@cache
def _cjk_points() -> frozenset[int]:
    from fontTools.ttLib import TTCollection

    with TTCollection(CJK, lazy=True) as collection:
        return frozenset(collection.fonts[_CHINESE].getBestCmap())


def needs_cjk(text: str) -> bool:
    """Whether Noto Sans lacks a character of it."""
    return any(ord(char) not in _sans_points() for char in text)


def plain_blanks(text: str) -> str:
    """The text with narrow blanks in its numbers made wide where Noto Sans CJK writes it, which lacks them."""
    return text.replace("\u202f", "\u00a0") if needs_cjk(text) else text


def unwritable(text: str) -> str:
    """The characters that the font for this text lacks, each once; empty if all can be written.

    Devanagari is in Noto Sans, and refused too: without shaping its vowels stand in wrong places.
    """
    has = _cjk_points() if needs_cjk(text) else _sans_points()
    return "".join(char for char in dict.fromkeys(text) if ord(char) not in has or _needs_shaping(char))


def _needs_shaping(char: str) -> bool:
    return "\u0590" <= char <= "\u109f" or "\ua880" <= char <= "\uabff"


def cjk_face(text: str) -> int:
    """The face for a text: Japanese if it has kana, Korean if it has Hangul, else Chinese."""
    if any("\u3040" <= char <= "\u30ff" for char in text):
        return _JAPANESE
    if any("\uac00" <= char <= "\ud7a3" or "\u1100" <= char <= "\u11ff" for char in text):
        return _KOREAN
    return _CHINESE


def picture_font(text: str, size: int, weight: int = 400) -> FreeTypeFont:
    """The font for a line of a picture, ``size`` pixels high; ``weight`` 100 to 900, which East Asian text ignores."""
    return _cjk_font(size, cjk_face(text)) if needs_cjk(text) else _sans_font(size, weight)


# Opening a font takes longer than writing a line with it.
@lru_cache(maxsize=32)
def _cjk_font(size: int, face: int) -> FreeTypeFont:
    return ImageFont.truetype(str(CJK), size, index=face)


@lru_cache(maxsize=32)
def _sans_font(size: int, weight: int) -> FreeTypeFont:
    font = ImageFont.truetype(str(SANS), size)
    font.set_variation_by_axes([weight, 100])
    return font
