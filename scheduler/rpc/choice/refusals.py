"""Finds out why a computer is sent no jobs, and explains it in sentences that its client shows."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from django.conf import settings

from scheduler.engine.choice.client_versions import number_of, refused, site_reason
from scheduler.engine.choice.selection import Selection
from scheduler.engine.reasons import OF_PLAN_CLASSES, Reason, sentence
from scheduler.engine.request import SchedulerRequest
from scheduler.programs.catalogue import Catalogue
from scheduler.rpc.choice.computer import client_limits
from scheduler.rpc.rows import WaitingCounts
from scheduler.rpc.store import Account


class Refusal(NamedTuple):
    """Why a request gets no jobs, whatever waits; ``text``: its sentence, if it has details of this computer."""

    reason: Reason
    text: str = ""


def refusal(request: SchedulerRequest, account: Account, catalogue: Catalogue, now: dt.datetime) -> Refusal | None:
    """Return why this request gets no jobs, whatever waits; None if it asks for none, or may get some."""
    if request.sends_no_work:
        return Refusal(Reason.NOT_WANTED)
    if not request.wants_work:
        return None
    block = _block(account, catalogue)
    limits = client_limits()
    reason = Reason.BLOCKED if block else site_reason(number_of(request.client_version), limits, now)
    if reason is not None:
        return Refusal(reason, refused(reason, request.client_version, limits, block))
    return Refusal(Reason.TOO_SOON) if asks_too_soon(request, account, now) else None


def _block(account: Account, catalogue: Catalogue) -> str:
    """Return why operators block this computer, in their words; empty if they do not."""
    of_host = catalogue.blocked_hosts.get(account.host.id, "") if account.host is not None else ""
    return of_host or catalogue.blocked_users.get(account.user_id, "")


def asks_too_soon(request: SchedulerRequest, account: Account, now: dt.datetime) -> bool:
    """Whether the computer asks for jobs, and last did so less than MIN_SENDWORK_INTERVAL_SECS ago."""
    if account.host is None or not request.asks_for_jobs:
        return False
    return 0 <= now.timestamp() - account.host.work_asked_at < settings.MIN_SENDWORK_INTERVAL_SECS


def is_urgent(selection: Selection) -> bool:
    """Whether the owner has to know why nothing is sent."""
    return not selection.reasons.isdisjoint((Reason.BLOCKED, Reason.CLIENT_TOO_OLD, Reason.CLIENT_TOO_NEW))


def messages(selection: Selection, waiting: WaitingCounts | None) -> list[str]:
    """Say why nothing was sent, the most useful reason first. ``waiting``: counts of jobs in the searched queues."""
    if Reason.NOT_WANTED in selection.reasons:
        return []
    if waiting is not None:
        _add_reasons_of(waiting, selection)
    reasons = set(selection.reasons)
    if selection.choices:
        # Some version was usable, so it does not matter what others lack.
        reasons -= {Reason.NO_APP, Reason.NO_TYPE, Reason.OTHER_CLIENT, Reason.UNKNOWN_CLASS, *OF_PLAN_CLASSES}
    usable = {Reason.MEMORY: selection.computer.ram_bytes, Reason.DISK: selection.disk_bytes}
    return [
        selection.explained.get(reason)
        or sentence(reason, selection.missing.get(reason, 0.0), usable.get(reason) or 0.0)
        for reason in Reason
        if reason in reasons
    ]


def _add_reasons_of(waiting: WaitingCounts, selection: Selection) -> None:
    if not waiting.njobs:
        selection.reasons.add(Reason.NO_JOBS)
        return
    reasons = {Reason.DEADLINE} if waiting.deadline else set()
    for reason, nbytes in ((Reason.MEMORY, waiting.memory_nbytes), (Reason.DISK, waiting.disk_nbytes)):
        if nbytes is not None:
            reasons.add(selection.lacks(reason, nbytes))
    selection.reasons |= reasons or {Reason.ONE_PER_USER}
