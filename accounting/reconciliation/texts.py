"""Explain in words why this site's own project granted a different amount than was estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_noop as _

from credit.statistics.exports import CLIENTS_COUNT_OF_GPU, CreditDifferences

# By the length of time of one bar.
STEPS: Final = {"day": _("Day"), "week": _("Week"), "month": _("Month")}
UTC_STEPS: Final = {"day": _("Day (UTC)"), "week": _("Week (UTC)"), "month": _("Month (UTC)")}
CREDITS_PER: Final = {"day": _("credits per day"), "week": _("credits per week"), "month": _("credits per month")}


@dataclass(frozen=True, slots=True)
class CreditStep:
    """A step from the estimated to the granted credit, in credits."""

    label: str
    credit: float
    sentence: str


def steps_of(differences: CreditDifferences) -> list[CreditStep]:
    """Return the steps that change anything, from the estimated to the granted credit; empty without jobs."""
    if not differences.jobs:
        return []
    between = [
        CreditStep(gettext("Not validated yet"), -differences.unchecked, _unchecked(differences.unchecked_jobs)),
        CreditStep(gettext("Failed"), -differences.failed, _failed(differences.failed_jobs)),
        CreditStep(
            gettext("GPUs counted in full"),
            differences.gpu,
            gettext(
                "Clients count a GPU at %(percent)s %% of its peak speed. The project starts from the full peak speed."
            )
            % {"percent": round(100 * CLIENTS_COUNT_OF_GPU)},
        ),
        CreditStep(
            gettext("App version scale"),
            differences.version,
            gettext("Makes all versions of an app grant the same credit for the same work."),
        ),
        CreditStep(
            gettext("Computer scale"),
            differences.host,
            gettext("Makes all computers get the same credit for the same work."),
        ),
        CreditStep(
            gettext("Limits and defaults"),
            differences.rest,
            gettext("Claims beyond a task’s limits are replaced by its usual credit."),
        ),
        CreditStep(
            gettext("Agreed with others"),
            differences.agreed,
            gettext("All computers that worked on the same workunit get the same: the average of their claims."),
        ),
    ]
    return [
        CreditStep(gettext("Estimated"), differences.estimated, _estimated(differences.jobs)),
        *(step for step in between if abs(step.credit) >= 0.0005),
        CreditStep(gettext("Granted"), differences.granted, gettext("What the project granted for these tasks.")),
    ]


def _estimated(number: int) -> str:
    text = ngettext(
        "%(number)s task: run time × speed of the processors.",
        "%(number)s tasks: run time × speed of the processors.",
        number,
    )
    return text % {"number": number}


def _unchecked(number: int) -> str:
    text = ngettext(
        "%(number)s task has yet to be compared with others.",
        "%(number)s tasks have yet to be compared with others.",
        number,
    )
    return text % {"number": number}


def _failed(number: int) -> str:
    text = ngettext(
        "%(number)s task ended without a valid result, so nothing is granted.",
        "%(number)s tasks ended without a valid result, so nothing is granted.",
        number,
    )
    return text % {"number": number}
