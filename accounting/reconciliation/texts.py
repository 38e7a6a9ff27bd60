"""In words: why what this site's own project granted is not what was estimated."""

from __future__ import annotations

from dataclasses import dataclass

from credit.statistics.exports import CLIENTS_COUNT_OF_GPU, CreditDifferences


@dataclass(frozen=True, slots=True)
class Step:
    """A step from the estimated to the granted credit, in credits."""

    label: str
    credit: float
    sentence: str


def steps_of(found: CreditDifferences) -> list[Step]:
    """The steps that change anything, from what was estimated to what was granted; empty without jobs."""
    if not found.jobs:
        return []
    between = [
        Step("Not validated yet", -found.unchecked, f"{_jobs(found.unchecked_jobs)} still to be compared with others."),
        Step("Failed", -found.failed, f"{_jobs(found.failed_jobs)} ended without a valid result: nothing is granted."),
        Step(
            "GPUs counted in full",
            found.gpu,
            f"Clients count a GPU at {CLIENTS_COUNT_OF_GPU:.0%} of its peak speed. The project begins with all of it.",
        ),
        Step("Version’s factor", found.version, "It makes the versions of an app grant the same for the same work."),
        Step("Computer’s factor", found.host, "It makes computers be granted the same for the same work."),
        Step("Limits and defaults", found.rest, "Claims beyond a job’s limits get the credit that is usual for it."),
        Step(
            "Agreed with others", found.agreed, "All computers that did a job get the same: the mean of their claims."
        ),
    ]
    return [
        Step("Estimated", found.estimated, f"{_jobs(found.jobs)}: run time × the processors’ speed."),
        *(step for step in between if abs(step.credit) >= 0.0005),
        Step("Granted", found.granted, "What the project granted for these jobs."),
    ]


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"
