"""Finds jobs that may be sent: ready ones or, if these are too few, jobs from the queues."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from scheduler.engine.facts import Job, JobQuery
from scheduler.ready_jobs import job_cache
from scheduler.ready_jobs.job_cache import TakenJobs
from scheduler.rpc import queue, writes
from scheduler.rpc.choice.dispatch import Dispatch
from scheduler.rpc.choice.job_queries import from_random_place, queries_of_other_apps
from scheduler.rpc.rows import WaitingCounts


class FoundJobs(NamedTuple):
    """Jobs that may be sent. ``waiting`` counts the jobs in the queues, if these were searched."""

    jobs: list[Job]
    waiting: WaitingCounts | None


async def ready_jobs(
    queries: Sequence[JobQuery], taken: TakenJobs, user_id: int, *, is_locked: bool
) -> FoundJobs | None:
    """Take ready jobs; return None if an app has too few. With ``is_locked`` the jobs are locked, too."""
    if any(query.lanes for query in queries) or not taken.take(queries, user_id):
        return None
    jobs = taken.jobs
    if is_locked and jobs and not await writes.reserve([job.id for job in jobs]):
        # Other requests have some of them.
        taken.release()
        return None
    return FoundJobs(jobs, None)


async def pick(
    dispatch: Dispatch, queries: Sequence[JobQuery], user_id: int, now: dt.datetime, draw: random.Random
) -> FoundJobs:
    """Lock jobs from the heads of the queues and, if those have too few, from elsewhere, with counts of waiting jobs.

    Copies reserved for others come last: if nothing else suits, nobody has to go without.
    """
    catalogue = dispatch.catalogue
    jobs, heads = await queue.pick(user_id, queries)
    counts = Counter([job.app_id for job in jobs])
    short = [
        from_random_place(query, query.most - counts[query.app_id], catalogue.apps[query.app_id], draw)
        for query in queries
        if counts[query.app_id] < query.most
    ]
    waiting = None
    if short:
        others = queries_of_other_apps(dispatch, queries, sum(query.most for query in short))
        with_ties = [query.with_ties() for query in [*queries, *others] if query.avoids_ties]
        more, waiting = await queue.pick_elsewhere(user_id, short + others + with_ties, [*queries, *others], jobs, now)
        jobs += {job.id: job for job in more}.values()
        counts.update([job.app_id for job in more])
    for query in queries:
        catalogue.note_head(query.app_id, heads.get(query.app_id) if counts[query.app_id] >= query.most else None)
    job_cache.forget(jobs, dispatch.ties)
    return FoundJobs(jobs, waiting)
