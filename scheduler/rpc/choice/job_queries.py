"""Builds the searches for jobs: how many of each app, and what they may need."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from django.conf import settings

from scheduler.engine.choice import keywords
from scheduler.engine.choice.selection import jobs_by_app_weight, jobs_wanted
from scheduler.engine.choice.ties import Separation
from scheduler.engine.facts import AppFacts, JobQuery
from scheduler.engine.lanes import has_targeted
from scheduler.programs.catalogue import BEFORE_ALL
from scheduler.rpc.choice.dispatch import Dispatch

NO_LIMIT: Final = 1e300


def job_queries(dispatch: Dispatch, draw: random.Random) -> list[JobQuery]:
    """Build the queries for the heads of the queues: for each processor type, those of the apps that can use it."""
    selection = dispatch.selection
    apps = [dispatch.app(app_id) for app_id in selection.choices]
    njobs_by_type = jobs_wanted(selection, apps)
    if apps and not any(njobs_by_type.values()):
        selection.reasons.add(selection.full)
    most: Counter[int] = Counter()
    for type_, njobs in njobs_by_type.items():
        rooms = {app.id: selection.room_of_app(app, type_) for app in apps if type_ in selection.choices[app.id]}
        if not all(rooms.values()):
            selection.reasons.add(selection.full)
        with_room = [app for app in apps if rooms.get(app.id)]
        # Jobs that wait for this computer, its owner or their team go first, whatever else the volunteer likes.
        targeted = [app for app in with_room if has_targeted(dispatch.lanes.get(app.id, ()))]
        liked = targeted or keywords.most_liked(with_room, dispatch.chooser.scores)
        drawn = jobs_by_app_weight(liked, njobs, draw)
        most.update({app_id: min(count, rooms[app_id]) for app_id, count in drawn.items()})
    return [_query(dispatch, app_id, njobs) for app_id, njobs in most.items()]


def queries_of_other_apps(dispatch: Dispatch, drawn: Iterable[JobQuery], most: int) -> list[JobQuery]:
    """Build the queries for the heads of the other apps' queues, because the drawn apps have too few jobs."""
    of_drawn = {query.app_id for query in drawn}
    selection = dispatch.selection
    others = [dispatch.catalogue.apps[app_id] for app_id in selection.choices if app_id not in of_drawn]
    rooms = {app.id: max(selection.room_of_app(app, type_) for type_ in selection.choices[app.id]) for app in others}
    return [_query(dispatch, app.id, min(most, rooms[app.id])) for app in others if rooms[app.id]]


def _query(dispatch: Dispatch, app_id: int, most: int) -> JobQuery:
    selection, computer = dispatch.selection, dispatch.computer
    rank, begin = dispatch.catalogue.heads.get(app_id, BEFORE_ALL)
    return JobQuery(
        app_id=app_id,
        most=most,
        flops=dispatch.speed(app_id),
        delay_secs=min(need.begins_after_secs for need in selection.needs.by_type.values() if need.is_open),
        memory_bytes=NO_LIMIT if computer.ram_bytes is None else computer.ram_bytes,
        disk_bytes=NO_LIMIT if selection.disk_bytes is None else selection.disk_bytes,
        one_per_user=dispatch.catalogue.apps[app_id].one_result_per_user,
        rank=rank,
        begin=begin,
        ties=dispatch.ties,
        avoids_ties=settings.SEPARATE_REPLICAS != Separation.OFF,
        is_strict=settings.SEPARATE_REPLICAS == Separation.STRICT,
        lanes=dispatch.lanes.get(app_id, []),
        held_files=dispatch.held_files,
        sizes=dispatch.sizes.get(app_id, []),
    )


def from_random_place(query: JobQuery, left: int, app: AppFacts, draw: random.Random) -> JobQuery:
    """Build the query for the jobs still missing, starting at a random position in the app's queue."""
    rank, begin = _place(app, query.rank if app.first_rank is None else max(query.rank, app.first_rank), draw)
    return msgspec.structs.replace(query, most=left, rank=rank, begin=begin)


def _place(app: AppFacts, rank: int, draw: random.Random) -> tuple[int, int]:
    """Draw a position in the queue (`ready_queue.Place`).

    Half of the time it is among the most urgent jobs, else behind them, because the urgent ones may suit no computer
    like this one.
    """
    if app.last_rank is not None and app.last_rank > rank and draw.random() < 0.5:
        # Their positions may all be lower than those of the urgent ones.
        return draw.randint(rank + 1, app.last_rank), draw.choice((0, draw.randint(0, app.last_place)))
    return rank, draw.randint(app.first_place, app.last_place) if app.first_place < app.last_place else app.first_place
