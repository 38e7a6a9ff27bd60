"""The reasons for a client's decisions: one number per reason for the columns of decisions, one sentence for people.

A sentence may use {job}, {project}, {kind}, {amount} and {time}; results.Decisions fills them in.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


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


SENTENCES: Final[dict[Reason, str]] = {
    Reason.NONE: "",
    Reason.GPU_DEADLINE: "{job} runs: earliest deadline of {project}, which has a job on the {kind} that would be late",
    Reason.CPU_DEADLINE: "{job} runs: earliest deadline of {project}, which has a job on the CPU that would be late",
    Reason.GPU_PRIORITY: "{job} runs: {project} has the highest priority of those with work for the {kind}",
    Reason.CPU_PRIORITY: "{job} runs: {project} has the highest priority of those with work for the CPU",
    Reason.SLICE: "{job} keeps running: its time slice is not over",
    Reason.DEBT_KEPT: "{job} keeps running: {project} has the largest expected future debt",
    Reason.DEBT_RESUMED: "{job} goes on: {project} has the largest expected future debt and this job was preempted",
    Reason.DEBT_NEW: "{job} starts: {project} has the largest expected future debt and nothing begun",
    Reason.DEBT_MID_PERIOD: "{job} runs: a CPU became free within the period and {project} is owed the most",
    Reason.FETCH_SATURATION: "{project} is asked: the {kind} is not kept busy up to the least buffer",
    Reason.FETCH_ALONG: "{project} is asked along with the report: it comes first and the buffer is not full",
    Reason.FETCH_MAJOR: "{project} is asked: the {kind} has an idle instance before the connect interval ends",
    Reason.FETCH_MINOR: "{project} is asked: the {kind} has an idle instance before the additional work ends",
    Reason.FETCH_STARVED: "{project} is asked: it has no runnable job and is not overworked",
    Reason.FETCH_CPU_SHORTFALL: "{project} is asked: the CPU falls short, and it has the largest long-term debt",
    Reason.FETCH_FEW_TASKS: "{project} is asked: fewer CPUs are busy than there are",
    Reason.FETCH_BUFFER: "{project} is asked: there is less work than the least buffer",
    Reason.FETCH_PROJECT_SHORT: "{project} is asked: it has less work than its share of the buffer",
    Reason.PREEMPTED: "{job} is preempted",
    Reason.UNAVAILABLE: "{job} stops: the computer is off or in use",
    Reason.SERVER_DOWN: "{project} does not answer; next attempt in {time}",
    Reason.SERVER_DRY: "{project} has no jobs for the {kind}; asked again in {time}",
    Reason.SERVER_DEADLINE: "{project} sends no more: a job for the {kind} would not be done by its deadline",
    Reason.DETACHED: "{job} is dropped: {project} is left",
    Reason.REPORT_DEADLINE: "{project} is contacted: a finished job's deadline is near",
    Reason.REPORT_HOUR: "{project} is contacted: a job has been finished for some time",
    Reason.REPORT_MANY: "{project} is contacted: many finished jobs wait",
    Reason.REPORT_AT_ONCE: "{project} is contacted: finished jobs are reported at once",
    Reason.JOB_MET: "{job} is finished in time",
    Reason.JOB_LATE: "{job} is finished {time} after its deadline",
}
