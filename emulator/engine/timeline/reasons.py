"""The reasons for a client's decisions: one number per reason, for the columns of decisions.

emulator.pages.texts.decision_texts has a sentence for each.
"""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Why a job started, or why a project was (or was not) asked."""

    NONE = 0
    # Job choice of the modern policy, and of the 6.6 one.
    GPU_DEADLINE = 1
    CPU_DEADLINE = 2
    GPU_PRIORITY = 3
    CPU_PRIORITY = 4
    SLICE = 5
    # Job choice of the policy of 2005.
    DEBT_KEPT = 10
    DEBT_RESUMED = 11
    DEBT_NEW = 12
    DEBT_MID_PERIOD = 13
    # Work requests.
    FETCH_SATURATION = 20
    FETCH_ALONG = 21
    FETCH_MAJOR = 22
    FETCH_MINOR = 23
    FETCH_STARVED = 24
    FETCH_CPU_SHORTFALL = 25
    FETCH_FEW_TASKS = 26
    FETCH_BUFFER = 27
    FETCH_PROJECT_SHORT = 28
    JOB_FAILED = 29
    FETCH_BESIDE_WIDE = 30
    # Why a job stopped or a request brought nothing.
    PREEMPTED = 40
    UNAVAILABLE = 41
    SERVER_DOWN = 42
    SERVER_DRY = 43
    SERVER_DEADLINE = 44
    DETACHED = 45
    REPORT_DEADLINE = 46
    REPORT_HOUR = 47
    REPORT_MANY = 48
    REPORT_AT_ONCE = 49
    JOB_MET = 50
    JOB_LATE = 51
    JOB_REPORTED_LATE = 54
    JOB_UNREPORTED = 55
    JOB_UNFINISHED = 56
    # Limits of the owner.
    OUTSIDE_HOURS = 70
    IN_USE = 71
    ON_BATTERIES = 72
    EXCLUSIVE_APP = 73
    NO_MEMORY = 74
    # What a client's own files said at the start.
    WAS_RUNNING = 80
    CONTACT_ASKED = 81
    # What the scenario does to the computer.
    HARDWARE = 86
    # Of policies from outside, which have no reasons of their own.
    OWN_CHOICE = 90
    OWN_REQUEST = 91
