"""What a volunteer's keywords mean for apps: a no keeps an app's jobs away, a yes brings them first. Pure.

Source: BOINC's sched/sched_keyword. There a job has keywords; here all jobs of an app have the app's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.engine.facts import AppFacts
from scheduler.engine.request import SchedulerRequest


def score(app: AppFacts, request: SchedulerRequest) -> int | None:
    """How many of the app's keywords the volunteer said yes to; None: they said no to one, and yes not as well."""
    if app.keywords & (request.keywords_no - request.keywords_yes):
        return None
    return len(app.keywords & request.keywords_yes)


def most_liked(apps: Sequence[AppFacts], scores: Mapping[int, int]) -> list[AppFacts]:
    """The apps with the highest score of those that have jobs; all if no app has any."""
    waiting = [scores.get(app.id, 0) for app in apps if not app.is_paused and app.typical_fpops is not None]
    return [app for app in apps if scores.get(app.id, 0) == max(waiting)] if waiting else list(apps)
