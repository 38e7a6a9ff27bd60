"""Replays of runs up to one of their decisions: request one, and make it.

They are requested work, as one may take as long as the run.

At most REPLAYS_MAX of a run are stored: anyone who may see the run sees them.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from emulator.engine.policies.registry import SIMULATING
from emulator.models import Replay, Run
from emulator.runs.experiments import ExperimentRefusedError
from emulator.runs.packed_timeline import Packed, unpack
from emulator.runs.worker import order_for, run_process
from portal.models import RequestedWork, User
from portal.requested_work import queue

REPLAY: Final = "emulator replay"
"""The kind of requested work."""
REPLAYS_MAX: Final = 100
WAITING_MAX: Final = 10
"""The most waiting replays of one person."""


def simulates(policy: str) -> bool:
    """Whether the policy uses the round-robin simulation."""
    return policy in SIMULATING


@transaction.atomic
def ask(run: Run, decision: int, user: User, now: dt.datetime) -> Replay:
    """Return the replay of a decision; it is queued if it is new, or was given up. Safe to repeat.

    Locks the user's row, then the run's. Raises ExperimentRefusedError if too many of theirs wait.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
    Run.objects.select_for_update(no_key=True).only("pk").get(pk=run.pk)
    work = RequestedWork.objects.filter(kind=REPLAY)
    replay = Replay.objects.filter(run=run, decision=decision).first()
    if replay is not None:
        work.filter(subject=replay.pk, is_given_up=True).delete()
        if replay.moment is not None or replay.fault or work.filter(subject=replay.pk, finished_at=None).exists():
            return replay
    if work.filter(user=user, finished_at=None).count() >= WAITING_MAX:
        raise ExperimentRefusedError(
            gettext("%(number)s of your requests for simulations are waiting, which is the limit. Try again later.")
            % {"number": WAITING_MAX}
        )
    if replay is None:
        replay = Replay.objects.create(run=run, decision=decision, asked_at=now)
    numbers = Replay.objects.filter(run=run).order_by("-pk").values_list("pk", flat=True)
    dropped = list(numbers[REPLAYS_MAX:])
    queue.withdraw(REPLAY, dropped)
    Replay.objects.filter(pk__in=dropped).delete()
    work.filter(subject=replay.pk).delete()
    queue.ask(user.pk, REPLAY, [replay.pk])
    return replay


def make(replay_id: int) -> None:
    """Make it, unless it is made already or gone."""
    replay = Replay.objects.select_related("run__experiment", "run__timeline").filter(pk=replay_id).first()
    if replay is None or replay.moment is not None or replay.fault:
        return
    key = key_of(unpack(bytes(replay.run.timeline.data)), replay.decision)
    order = {"do": "replay", **order_for(replay.run), "decision": key}
    answer = run_process(order, b"", settings.EMULATOR_RUN_SECS_MAX, lambda progress: None)
    Replay.objects.filter(pk=replay_id).update(moment=answer.ok, fault=answer.fault)


def key_of(packed: Packed, decision: int) -> dict[str, float | int]:
    """Return a decision as its replay looks for it (emulator.engine.replay.DecisionKey)."""
    stored = {name: int(packed[f"decisions.{name}"][decision]) for name in ("kind", "reason", "project", "job")}
    return {"number": decision, "at_secs": float(packed["decisions.at_secs"][decision]), **stored}
