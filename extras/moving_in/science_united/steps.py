"""All steps of the import of a Science United site, in their order: each finds what it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extras.moving_in.boinc import others, teams
from extras.moving_in.machinery.steps import Step
from extras.moving_in.science_united.computers import COMPUTERS, COMPUTERS_AT_PROJECTS, OPT_OUTS
from extras.moving_in.science_united.days import DAYS_OF_PEOPLE, DAYS_OF_PROJECTS, MONTHS, RECORDS, SUMS
from extras.moving_in.science_united.people import CHOICES, PEOPLE
from extras.moving_in.science_united.projects import PROJECTS, SIGNING_KEY

SOURCE: Final = "science_united"


_SEQUENCES: Final = others.sequences(
    {**others.NUMBERED, "portal_host": ("SELECT max(former_number) FROM portal_host", 1_000_000)}
)


def steps() -> Sequence[Step]:
    return [
        *(SIGNING_KEY, PROJECTS, PEOPLE, CHOICES, teams.TEAMS, teams.MEMBERS, teams.TEAM_SUMS),
        *(COMPUTERS, COMPUTERS_AT_PROJECTS, OPT_OUTS, _SEQUENCES),
        *(MONTHS, RECORDS, DAYS_OF_PEOPLE, DAYS_OF_PROJECTS, SUMS),
    ]


def steps_of_lists() -> Sequence[Step]:
    """Of lists, which have no teams, no opt-outs, and no days of projects."""
    return [
        *(SIGNING_KEY, PROJECTS, PEOPLE, CHOICES, COMPUTERS, COMPUTERS_AT_PROJECTS, _SEQUENCES),
        *(MONTHS, RECORDS, DAYS_OF_PEOPLE, SUMS),
    ]
