"""All steps of the import of a Science United site, in their order: each finds what it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extras.moving_in.machinery.steps import Step
from extras.moving_in.science_united.computers import COMPUTERS, COMPUTERS_AT_PROJECTS, OPT_OUTS
from extras.moving_in.science_united.days import DAYS_OF_PEOPLE, DAYS_OF_PROJECTS, MONTHS, RECORDS, SUMS
from extras.moving_in.science_united.people import CHOICES, PEOPLE
from extras.moving_in.science_united.projects import PROJECTS, SIGNING_KEY

SOURCE: Final = "science_united"


def steps() -> Sequence[Step]:
    return [
        *(SIGNING_KEY, PROJECTS, PEOPLE, CHOICES, COMPUTERS, COMPUTERS_AT_PROJECTS, OPT_OUTS),
        *(MONTHS, RECORDS, DAYS_OF_PEOPLE, DAYS_OF_PROJECTS, SUMS),
    ]
