"""SQL of a scheduler RPC; the files say what they lock.

Locks are taken in this order, by every part of the project server: computer, workunits by id, results, (host, version)
records, sums of credit.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from credit.engine.states import AssimilateState, Outcome, ServerState, ValidateState
from credit.models.work import MAX_RESULTS_PER_WORKUNIT
from portal.clients.database.sql_files import read_sql, statement
from portal.clients.effects import Statement
from portal.computers.host_columns import HOST_COLUMNS
from scheduler.engine.lanes import FIRST_OF_SIZES, FIRST_OF_TEAMS, FIRST_TARGETED
from scheduler.engine.trickle_downs import MAX_PER_REPLY

WINDOW: Final = 200
"""How many waiting jobs of an app are examined: at the head of its queue, at that of each size class's queue and, if
that is not enough, from a random position. A request that nothing suits must not read the whole queue.
"""

LANE_WINDOW: Final = 50
"""The same for each lane that is for the computer."""

_STATES: Final = {
    "UNSENT": ServerState.UNSENT,
    "IN_PROGRESS": ServerState.IN_PROGRESS,
    "OVER": ServerState.OVER,
    "NO_REPLY": Outcome.NO_REPLY,
    "CLIENT_DETACHED": Outcome.CLIENT_DETACHED,
    "INIT": ValidateState.INIT,
    "NOT_ASSIMILATED": AssimilateState.INIT,
}

LOCK: Final = Statement("SELECT id FROM portal_host WHERE id = %(host_id)s::bigint FOR NO KEY UPDATE")


@cache
def read(*parts: str) -> Statement:
    """Read what a request needs, and these parts: "reported", "held_files", "trickle_downs"."""
    included = {part.upper(): part in parts for part in ("reported", "held_files", "trickle_downs")}
    return statement(__file__, "read", MOST_MESSAGES=5 * MAX_PER_REPLY, **included, **_STATES)


LOCK_WORKUNITS: Final = Statement("""
SELECT id FROM credit_workunit WHERE id = ANY (%(workunits)s::bigint[]) ORDER BY id FOR NO KEY UPDATE
""")
"""Used before a report claims results that a restored database has forgotten, so that it sees which ones others have
just got.
"""
REPORT: Final = statement(__file__, "report", **_STATES)

_WINDOWS: Final = {
    "WINDOW": WINDOW,
    "LANE_WINDOW": LANE_WINDOW,
    "FIRST_TARGETED": FIRST_TARGETED,
    "FIRST_OF_TEAMS": FIRST_OF_TEAMS,
}


@cache
def pick(*, of_one_app: bool, has_lanes: bool) -> Statement:
    """Pick jobs at the heads of queues; lanes require sorting, so the statement without them leaves it out."""
    parts = {"ONE": of_one_app, "ELSEWHERE": False, "LANES": has_lanes}
    return statement(__file__, "pick", **parts, **_WINDOWS, **_STATES)


@cache
def pick_elsewhere(*, has_lanes: bool) -> Statement:
    return statement(__file__, "pick_elsewhere", ELSEWHERE=True, LANES=has_lanes, **_WINDOWS, **_STATES)


DIAGNOSE: Final = statement(__file__, "diagnose", **_WINDOWS, **_STATES)

_FOR_ALL: Final = {"FIRST_OF_SIZES": FIRST_OF_SIZES, "FIRST_TARGETED": FIRST_TARGETED}
RESERVE: Final = statement(__file__, "reserve", **_FOR_ALL, **_STATES)
RESERVE_JOBS: Final = statement(__file__, "reserve_jobs", **_FOR_ALL, **_STATES)

_PARTS: Final = (
    "sent",
    "replicated",
    "bound",
    "begun",
    "judged",
    "added",
    "trickles",
    "extended",
    "told",
    "acknowledged",
    "first_record",
    "described",
)


@cache
def write(*parts: str) -> Statement:
    """Write these parts, for locked computers and jobs; the records and the computers always."""
    included = {part.upper(): part in parts for part in _PARTS}
    return statement(
        __file__, "write", HOST_COLUMNS=HOST_COLUMNS, MAX_RESULTS=MAX_RESULTS_PER_WORKUNIT, **_STATES, **included
    )


MOVE_REPORTED: Final = read_sql(__file__, "move_reported", **_STATES)

KEEP_PREFERENCES: Final = """
INSERT INTO scheduler_userpreferences AS p (user_id, mod_time, text)
SELECT id, %(mod_time)s, %(text)s FROM portal_user WHERE id = %(user_id)s
    ON CONFLICT (user_id) DO UPDATE SET mod_time = excluded.mod_time, text = excluded.text
 WHERE p.mod_time < excluded.mod_time
"""
"""Locks the row of the volunteer's preferences, and stores newer ones."""
