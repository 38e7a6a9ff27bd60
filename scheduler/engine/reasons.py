"""Why a computer gets no job, in sentences that its owner can act upon."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Most telling first: the sentences of a reply are in this order."""

    NOT_WANTED = "the client asked for no new tasks"
    TOO_SOON = "this computer asked for jobs only some seconds ago; BOINC asks again by itself"
    REFUSED_TYPE = "your preferences do not let this project use the processors that work was asked for"
    NO_APP = "there is no application for this kind of computer"
    NO_CLIENT_VERSION = "none of the programs in your app_info.xml is of an application here"
    PLAN_CLASS = "the applications need other processors, drivers or more graphics memory"
    DOCKER = "the applications need Docker, which this computer does not have or BOINC may not use there"
    WSL = (
        "the applications need Linux below Windows (WSL), which this computer does not have or BOINC may not use there"
    )
    NO_TYPE = "no application here uses the kind of processor that work was asked for"
    KEYWORDS = "you said no to what the applications are about, on the page of subjects of your account manager"
    IN_PROGRESS = "this computer has as many jobs in progress as it may have at once"
    QUOTA = "this computer reached its number of jobs for today, which is lower after failed jobs and recovers"
    NO_JOBS = "no jobs are waiting at the moment"
    MEMORY = "the jobs need more memory than BOINC may use on this computer"
    DISK = "the jobs need more disk space than BOINC may use for this project"
    DEADLINE = "this computer would not finish the jobs before their deadline"
    ONE_PER_USER = "the jobs that wait are other copies of ones that you have, or are being given to others"


def sentence(reason: Reason) -> str:
    text = str(reason)
    return f"{text[0].upper()}{text[1:]}"
