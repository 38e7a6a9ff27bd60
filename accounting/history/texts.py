"""The words of the history pages that depend on their content, and on what could not be done as asked."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.history.choices import Scale
from accounting.history.periods import MAX_YEARS, Period, Problem, ProblemKind, Step
from accounting.history.reads import By, Show
from portal.templatetags.display import day

PRESETS: Final = {
    "7": _("7 days"), "30": _("30 days"), "90": _("90 days"), "year": _("This year"), "all": _("All"),
}  # fmt: skip
STEPS: Final = {Step.DAY: _("Day"), Step.WEEK: _("Week"), Step.MONTH: _("Month")}
STEP_CHOICES: Final = {Step.DAY: _("day"), Step.WEEK: _("week"), Step.MONTH: _("month")}
UTC_STEPS: Final = {Step.DAY: _("Day (UTC)"), Step.WEEK: _("Week (UTC)"), Step.MONTH: _("Month (UTC)")}
SHOWN: Final = {Show.CREDIT: _("Credit"), Show.TIME: _("Run time"), Show.JOBS: _("Tasks")}
UNITS: Final = {Show.CREDIT: _("credits"), Show.TIME: _("hours"), Show.JOBS: _("tasks")}
_UNITS_PER: Final = {
    (Show.CREDIT, Step.DAY): _("credits per day"),
    (Show.CREDIT, Step.WEEK): _("credits per week"),
    (Show.CREDIT, Step.MONTH): _("credits per month"),
    (Show.TIME, Step.DAY): _("hours per day"),
    (Show.TIME, Step.WEEK): _("hours per week"),
    (Show.TIME, Step.MONTH): _("hours per month"),
    (Show.JOBS, Step.DAY): _("tasks per day"),
    (Show.JOBS, Step.WEEK): _("tasks per week"),
    (Show.JOBS, Step.MONTH): _("tasks per month"),
}
_TITLES: Final = {
    (Show.CREDIT, Step.DAY): _("Estimated credit per day"),
    (Show.CREDIT, Step.WEEK): _("Estimated credit per week"),
    (Show.CREDIT, Step.MONTH): _("Estimated credit per month"),
    (Show.TIME, Step.DAY): _("Run time per day"),
    (Show.TIME, Step.WEEK): _("Run time per week"),
    (Show.TIME, Step.MONTH): _("Run time per month"),
    (Show.JOBS, Step.DAY): _("Tasks per day"),
    (Show.JOBS, Step.WEEK): _("Tasks per week"),
    (Show.JOBS, Step.MONTH): _("Tasks per month"),
}
_GRANTED_TITLES: Final = {
    Step.DAY: _("Granted credit per day"),
    Step.WEEK: _("Granted credit per week"),
    Step.MONTH: _("Granted credit per month"),
}
_RUNNING_TITLES: Final = {
    Show.CREDIT: _("Estimated credit, running total"),
    Show.TIME: _("Run time, running total"),
    Show.JOBS: _("Tasks, running total"),
}
SETTLED_TITLES: Final = {
    Step.DAY: _("Granted and estimated credit per day"),
    Step.WEEK: _("Granted and estimated credit per week"),
    Step.MONTH: _("Granted and estimated credit per month"),
}
BEFORE: Final = {Step.DAY: _("the days before"), Step.WEEK: _("the weeks before"), Step.MONTH: _("the months before")}
EACH: Final = {Step.DAY: _("each day"), Step.WEEK: _("each week"), Step.MONTH: _("each month")}
_BEST: Final = {Step.DAY: _("best day"), Step.WEEK: _("best week"), Step.MONTH: _("best month")}
_EARLIER: Final = {Step.DAY: _("Earlier days"), Step.WEEK: _("Earlier weeks"), Step.MONTH: _("Earlier months")}
_LEADS_TO: Final = {
    Step.DAY: _("Each day leads to its computers, projects and notes."),
    Step.WEEK: _("Each week leads to its days."),
    Step.MONTH: _("Each month leads to its days."),
}
# The words of the table of groups: its column, its title, its name for screen readers, and "more".
_GROUPS: Final = {
    By.PROJECT: (_("Project"), _("Projects on these days"), _("Table of projects"), _("More projects")),
    By.COMPUTER: (_("Computer"), _("Computers on these days"), _("Table of computers"), _("More computers")),
}
_NO_GROUP: Final = ("", "", "", "")
_TOO_FINE: Final = {
    Step.WEEK: _("This range is too long to show by day, so it is shown by week."),
    Step.MONTH: _("This range is too long to show at this step, so it is shown by month."),
}


def words(period: Period, by: By) -> dict[str, str]:
    """Return the page's words for its step and its breakdown."""
    step = period.step
    group, each_group, groups_table, more_groups = _GROUPS.get(by, _NO_GROUP)
    texts = {
        "step": STEPS[step],
        "best": _BEST[step],
        "earlier": _EARLIER[step],
        "leads_to": _LEADS_TO[step],
        "group": group,
        "each_group": each_group,
        "groups_table": groups_table,
        "more_groups": more_groups,
    }
    return {name: gettext(text) if text else "" for name, text in texts.items()}


def chart_title(show: Show, step: Step, *, is_running: bool, is_granted: bool) -> str:
    """Return the chart's title; ``is_granted``: of an app, whose credit the project has granted."""
    if is_granted and show is Show.CREDIT:
        return gettext("Granted credit, running total") if is_running else gettext(_GRANTED_TITLES[step])
    return gettext(_RUNNING_TITLES[show] if is_running else _TITLES[show, step])


def axis_title(show: Show, step: Step, scale: Scale, *, is_running: bool) -> str:
    """Return what the chart's values are, and how they are drawn."""
    unit = gettext(UNITS[show] if is_running else _UNITS_PER[show, step])
    if scale is Scale.ROOT:
        return gettext("%(unit)s, square root") % {"unit": unit}
    return gettext("%(unit)s, logarithmic") % {"unit": unit} if scale is Scale.LOG else unit


def range_text(first: dt.date | None, last: dt.date | None) -> str:
    return gettext("%(first)s to %(last)s") % {"first": day(first), "last": day(last)}


def problem_text(problem: Problem) -> str:
    """Return a sentence on what of an address could not be done, and what is shown instead."""
    match problem.kind:
        case ProblemKind.UNKNOWN_RANGE | ProblemKind.FUTURE | ProblemKind.NO_DATE:
            return f"{refusal_text(problem)} {gettext('The last 30 days are shown.')}"
        case ProblemKind.EXCHANGED:
            return gettext("The first day was after the last one, so they were swapped.")
        case ProblemKind.TOO_LONG:
            text = gettext("A history covers %(years)s years at most, so it begins on %(day)s.")
            return text % {"years": MAX_YEARS, "day": day(dt.date.fromisoformat(problem.value))}
        case ProblemKind.TOO_FINE:
            return gettext(_TOO_FINE[Step(problem.value)])
        case ProblemKind.UNKNOWN_STEP:
            return gettext("A history can be shown by day, week or month.")


def refusal_text(problem: Problem) -> str:
    """Return a sentence on why a range of days is refused where there is no substitute, as for downloads."""
    match problem.kind:
        case ProblemKind.UNKNOWN_RANGE:
            return gettext("This range is not known.")
        case ProblemKind.FUTURE:
            return gettext("This range is in the future.")
        case ProblemKind.NO_DATE:
            text = gettext("“%(text)s” is not a date. Enter year-month-day, for example 2026-11-21.")
            return text % {"text": problem.value}
        case ProblemKind.EXCHANGED:
            return gettext("The first day is after the last one.")
        case ProblemKind.TOO_LONG:
            return gettext("A history covers %(years)s years at most.") % {"years": MAX_YEARS}
        case _:
            return problem_text(problem)
