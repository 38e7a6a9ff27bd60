"""The font of signature images: Noto Sans, for Latin, Greek and Cyrillic letters.

It comes in a wheel, so nothing depends on what is installed on a machine. Text in other scripts is refused by
`unwritable`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import fontpkg_noto_sans
from PIL import ImageFont
from PIL.ImageFont import FreeTypeFont

SANS: Final = Path(fontpkg_noto_sans.ROOT) / "files" / "NotoSans[wdth,wght].ttf"


@cache
def _points() -> frozenset[int]:
    # Not imported above: importing it takes a tenth of a second at each start of a process.
    from fontTools.ttLib import TTFont

    with TTFont(SANS, lazy=True) as font:
        return frozenset(font.getBestCmap())


def unwritable(text: str) -> str:
    """Return the characters that the font lacks, each once; empty if all can be written.

    Devanagari is in Noto Sans, but refused too: without shaping, its vowels end up in wrong positions.
    """
    return "".join(char for char in dict.fromkeys(text) if ord(char) not in _points() or _needs_shaping(char))


def _needs_shaping(char: str) -> bool:
    return "\u0590" <= char <= "\u109f" or "\ua880" <= char <= "\uabff"


# Opening a font takes longer than writing a line with it.
@lru_cache(maxsize=32)
def picture_font(size: int, weight: int = 400) -> FreeTypeFont:
    """Return the font for a line of a picture, ``size`` pixels high; ``weight`` 100 to 900."""
    font = ImageFont.truetype(str(SANS), size)
    font.set_variation_by_axes([weight, 100])
    return font
