"""The eight data colours can be told apart by everybody, and stand out from the page."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from django.conf import settings

Colour = tuple[float, float, float]

# How colours look to the three kinds of colour blindness: Machado, Oliveira and Fernandes 2009, severity 1.0,
# as matrices on linear RGB.
SIGHTS = {
    "common": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# Of var(--surface), as relative luminance: oklch(99.2% …) and oklch(23.5% …), cubed.
SURFACES = {"light": 0.976, "dark": 0.013}


def data_colours(scheme: str) -> list[Colour]:
    css = (Path(settings.BASE_DIR) / "static" / "portal" / "tokens.css").read_text()
    pairs = re.findall(r"--data-\d: light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", css)
    assert len(pairs) == 8
    return [linear(pair[scheme == "dark"]) for pair in pairs]


def linear(colour: str) -> Colour:
    def channel(at: int) -> float:
        value = int(colour[at : at + 2], 16) / 255
        return value / 12.92 if value <= 0.04045 else math.pow((value + 0.055) / 1.055, 2.4)

    return channel(1), channel(3), channel(5)


def times(matrix: Sequence[Colour], colour: Sequence[float]) -> Colour:
    x, y, z = (sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)
    return x, y, z


def oklab(colour: Colour) -> Colour:
    """Ottosson's OKLab, in which equal distances look about equal."""
    lms = times(
        (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        ),
        [max(0.0, channel) for channel in colour],
    )
    return times(
        (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        ),
        [math.cbrt(part) for part in lms],
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_data_colours_have_a_contrast_of_three_to_the_surface(scheme: str) -> None:
    for red, green, blue in data_colours(scheme):
        levels = sorted([0.2126 * red + 0.7152 * green + 0.0722 * blue, SURFACES[scheme]])
        assert (levels[1] + 0.05) / (levels[0] + 0.05) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_no_two_data_colours_look_alike(scheme: str, sight: str) -> None:
    seen = [oklab(times(SIGHTS[sight], colour)) for colour in data_colours(scheme)]
    # About three times what one can just tell apart side by side (0.02).
    assert min(math.dist(a, b) for a, b in itertools.combinations(seen, 2)) > 0.06
