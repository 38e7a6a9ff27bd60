"""Why a computer gets no job, in sentences that its owner can act upon."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from math import ceil, floor
from typing import Final


class Reason(StrEnum):
    """The reasons, most informative first: the sentences of a reply are in this order."""

    NOT_WANTED = "the client asked for no new tasks"
    TOO_SOON = "this computer asked for tasks only a few seconds ago; BOINC will ask again automatically"
    BLOCKED = "the operators of this project send this computer no new tasks"
    CLIENT_TOO_OLD = "BOINC on this computer is too old for this project"
    CLIENT_TOO_NEW = "BOINC on this computer is newer than this project supports so far"
    REFUSED_TYPE = "your preferences do not allow this project to use the requested processors"
    PAUSED = "the applications for this kind of computer are paused at the moment"
    NO_APP = "this project has no application for this kind of computer"
    NO_CLIENT_VERSION = "none of the programs in your app_info.xml belongs to an application of this project"
    OTHER_CLIENT = "the applications need another version of BOINC"
    UNKNOWN_CLASS = (
        "the applications compare only computers of one kind, and BOINC does not tell of what kind this one is"
    )
    PLAN_CLASS = "the applications need other processors or drivers, or more graphics memory"
    DOCKER = "the applications need Docker, which this computer does not have or BOINC is not allowed to use"
    WSL = (
        "the applications need Windows Subsystem for Linux (WSL), which this computer does not have or BOINC is not "
        "allowed to use"
    )
    VIRTUALBOX = "the applications need VirtualBox, which is not installed on this computer"
    VIRTUALBOX_UNUSABLE = "the applications need VirtualBox, which BOINC cannot use while Docker or Podman is here"
    VIRTUALBOX_VERSION = "the applications need another version of VirtualBox than the one on this computer"
    ACCELERATION = (
        "the applications need the processor's help for virtual machines (VT-x or AMD-V), which this computer lacks or "
        "which is switched off in its firmware (BIOS)"
    )
    CLIENT = "the applications need a newer or older version of BOINC"
    NO_TYPE = "this project has no application for the requested kind of processor"
    VARIANT = "the waiting tasks run in containers that are not made for this kind of processor"
    NOT_CHOSEN = "your preferences for this project leave out the applications that your computer could run"
    FEW_CPUS = "your preferences for this project allow fewer processors than its tasks need"
    KEYWORDS = "you excluded the subjects of the applications in your account manager"
    IN_PROGRESS = "this computer has reached its limit of tasks in progress"
    OWN_LIMIT = "this computer has as many tasks as your preferences for this project allow"
    QUOTA = (
        "this computer has reached its daily limit of tasks; failed tasks lower this limit, successful ones raise it"
    )
    NO_JOBS = "no tasks are available at the moment"
    MEMORY = "the tasks need {missing} more memory than BOINC may use on this computer ({usable})"
    DISK = "the tasks need {missing} more disk space than BOINC may still use for this project ({usable})"
    DEADLINE = "this computer would not finish the tasks before their deadline"
    OTHER_VERSION = "the available tasks are for other versions of the applications than this computer can run"
    ONE_PER_USER = "the available tasks are copies of tasks that you already have, or are being sent to others"


OF_PLAN_CLASSES: Final = frozenset(
    {
        *(Reason.PLAN_CLASS, Reason.DOCKER, Reason.WSL, Reason.CLIENT),
        *(Reason.VIRTUALBOX, Reason.VIRTUALBOX_UNUSABLE, Reason.VIRTUALBOX_VERSION, Reason.ACCELERATION),
    }
)
"""What versions may lack on a computer."""
MIB: Final = 2**20
GIB: Final = 2**30


def sentence(reason: Reason, missing_nbytes: float = 0.0, usable_nbytes: float = 0.0) -> str:
    """Return the sentence, with how much memory or disk space the smallest of the jobs lacks, and how much there is."""
    text = str(reason).format(missing=_amount(missing_nbytes, ceil), usable=_amount(usable_nbytes, floor))
    return f"{text[0].upper()}{text[1:]}"


def _amount(nbytes: float, rounded: Callable[[float], int]) -> str:
    """Format an amount in the units of BOINC's Manager."""
    return f"{rounded(10 * nbytes / GIB) / 10:g} GB" if nbytes >= GIB else f"{rounded(nbytes / MIB)} MB"
