"""All steps of a BOINC project's import, in their order: each finds what it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extras.moving_in.boinc import others, teams
from extras.moving_in.boinc.badges import BADGES
from extras.moving_in.boinc.batches import BATCHES, TRICKLES
from extras.moving_in.boinc.computers import COMPUTERS, ZOMBIES
from extras.moving_in.boinc.files import FILES
from extras.moving_in.boinc.people import PEOPLE
from extras.moving_in.boinc.programs import PROGRAMS
from extras.moving_in.boinc.records import RECORDS
from extras.moving_in.boinc.results import RESULTS
from extras.moving_in.boinc.setup import BEFORE_PROGRAMS, TEMPLATES
from extras.moving_in.boinc.workunits import WORKUNITS
from extras.moving_in.machinery.steps import Step

SOURCE: Final = "boinc"


def steps() -> Sequence[Step]:
    return [
        *BEFORE_PROGRAMS,
        *PROGRAMS,
        TEMPLATES,
        PEOPLE,
        teams.TEAMS,
        teams.MEMBERS,
        teams.TEAM_SUMS,
        COMPUTERS,
        ZOMBIES,
        others.MERGES,
        others.BY_APP,
        BADGES,
        others.CONSENTS,
        others.GONE_PEOPLE,
        others.GONE_COMPUTERS,
        BATCHES,
        WORKUNITS,
        RESULTS,
        RECORDS,
        TRICKLES,
        *FILES,
        others.SEQUENCES,
        others.UNSUPPORTED,
    ]
