"""The policy's decisions, dispatched by the policy of the run (`run.policy`)."""

from __future__ import annotations

from emulator.engine.kernel import choice, debt, ltd, rec
from emulator.engine.kernel.compiled import compiled
from emulator.engine.kernel.queues import DEBT, LTD, LTD_SINGLE
from emulator.engine.table import Table


@compiled
def accrue(t: Table, now: float) -> None:
    """Books the time until now."""
    policy = t.run[0].policy
    if policy == DEBT:
        debt.accrue(t, now)
    elif policy == LTD or policy == LTD_SINGLE:
        ltd.accrue(t, now)
    else:
        rec.accrue(t, now)


@compiled
def select(t: Table, now: float) -> bool:
    """Chooses the jobs to run from now on (`chosen`), and when to choose again (`choose_at`); returns False if the
    running ones should continue.
    """
    if t.run[0].policy == DEBT:
        debt.select(t, now)
        return True
    return choice.select(t, now)


@compiled
def fetch(t: Table, now: float) -> tuple[int, int, int]:
    """Decides whom to ask for work, for which reason and kind (`NOBODY`: nobody, and `fetch_at` is when to look
    again).
    """
    policy = t.run[0].policy
    if policy == DEBT:
        return debt.fetch(t, now)
    if policy == LTD or policy == LTD_SINGLE:
        return ltd.fetch(t, now)
    return rec.fetch(t, now)


@compiled
def piggyback_request(t: Table, p: int, now: float) -> tuple[int, int, int]:
    """Returns the request to a project that is being contacted anyway."""
    policy = t.run[0].policy
    if policy == DEBT:
        return debt.piggyback_request(t, p, now)
    if policy == LTD or policy == LTD_SINGLE:
        return ltd.piggyback_request(t, p, now)
    return rec.piggyback_request(t, p, now)


@compiled
def find_order(t: Table, now: float) -> int:
    """Puts the projects that may be asked into `order`, in the order of asking; returns how many."""
    policy = t.run[0].policy
    if policy == LTD or policy == LTD_SINGLE:
        return ltd.find_order(t, now)
    return rec.find_order(t, now)
