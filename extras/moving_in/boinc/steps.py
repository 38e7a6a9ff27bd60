"""All steps of a BOINC project's import, in their order: each finds what it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extras.moving_in.boinc.people import PEOPLE
from extras.moving_in.machinery.steps import Step

SOURCE: Final = "boinc"


def steps() -> Sequence[Step]:
    return [PEOPLE]
