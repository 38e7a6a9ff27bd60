"""Which computers are reliable: they get replacements of failed results first, so that workunits end soon. Pure.

Source: BOINC's sched/sched_send (get_reliability_version).
"""

from __future__ import annotations

from typing import Final

from credit.engine.facts import HostVersionFacts
from scheduler.engine.facts import AppFacts

MIN_SAMPLES: Final = 10
MIN_VALID_IN_A_ROW: Final = 10
WAIT_SECS: Final = 3600
"""Replacements that no reliable computer took within this time go to any."""


def is_reliable(record: HostVersionFacts | None, app: AppFacts, most_a_day: int) -> bool:
    """Whether a computer promptly returns correct results with a version: more than ten jobs, the last ten valid, the
    full daily quota (``most_a_day``) and, on average, within the app's time.
    """
    if record is None or app.reliable_turnaround_secs is None:
        return False
    turnaround = record.turnaround
    return (
        turnaround.n > MIN_SAMPLES
        and turnaround.avg is not None
        and turnaround.avg <= app.reliable_turnaround_secs
        and record.consecutive_valid >= MIN_VALID_IN_A_ROW
        and record.max_jobs_per_day >= most_a_day
    )
