"""What a volunteer's keywords mean for apps: a no excludes an app's jobs, a yes prefers them. Pure.

Source: BOINC's sched/sched_keyword. There each job has keywords; here they belong to the app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.engine.facts import AppFacts
from scheduler.engine.request import SchedulerRequest


def score(app: AppFacts, request: SchedulerRequest) -> int | None:
    """Return how many of the app's keywords the volunteer said yes to; None if they said no to one, without a yes."""
    if app.keywords & (request.keywords_no - request.keywords_yes):
        return None
    return len(app.keywords & request.keywords_yes)


def most_liked(apps: Sequence[AppFacts], scores: Mapping[int, int]) -> list[AppFacts]:
    """Return the apps with the highest score among those that have jobs; all if no app has any."""
    waiting = [scores.get(app.id, 0) for app in apps if not app.is_paused and app.typical_fpops is not None]
    return [app for app in apps if scores.get(app.id, 0) == max(waiting)] if waiting else list(apps)
