"""Behaviour of BOINC's own emulator beyond or against the documents. Each is a separate switch, off by default.

docs/explanation/emulator.md describes each. `BOINC` is all of them together, for comparison with its figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Quirks:
    """True: behave like BOINC's emulator."""

    estimate_sampled: bool = False  # the estimate is drawn from the sizes' distribution, the size is the estimate's
    doubled_elapsed: bool = False  # elapsed time counts twice, so the duration correction factor goes to 2
    gpu_count_squared: bool = False  # n GPUs of a kind weigh n*n in all accounts
    computes_while_off: bool = False  # CPU jobs go on while the computer is off or inactive
    last_project_first: bool = False  # the round-robin simulation takes the projects in a fixed order, last first
    one_day_retry: bool = False  # a server that failed 30 times in a row is tried once a day for ever
    buffer_before_deadline: bool = False  # deadlines count as earlier by the least buffer
    no_edf_simulation: bool = False  # busy times: missed jobs in the order of their ends; whole instances only
    runnable_shares: bool = False  # shares are normalised over projects that have work, or may be asked
    hour_of_day_bump: bool = False  # a chosen job raises REC by 1/24 of all REC, whatever the period
    overcounted_misses: bool = False  # as many earliest jobs as a project has misses, not the missed jobs
    jobs_kept_by_deadline: bool = False  # jobs once run for their deadline stay so while the project has misses
    share_of_instances: bool = False  # asks for at least the project's share of the instances
    one_backup_job: bool = False  # asks a project of share 0 for one job, however many instances are idle
    reports_after_an_hour: bool = False  # reports finished jobs after one hour instead of two
    request_not_counted: bool = False  # ranks projects for fetch as RecLetter: by REC as it is
    wasted_when_reported: bool = False  # late work counts only when it is reported


BOINC: Final = Quirks(**dict.fromkeys(Quirks.__slots__, True))
