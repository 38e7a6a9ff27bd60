"""The page of a decision: the round-robin simulation as the policy saw it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from emulator.engine.replay import is_of_the_policy
from emulator.models import Replay, Run
from emulator.pages import reads
from emulator.pages.access import readable_run
from emulator.pages.examples import example_of
from emulator.pages.moment import shown_moment
from emulator.pages.texts import row_texts, variant_texts
from emulator.runs import replays
from emulator.runs.experiments import ExperimentRefusedError
from emulator.runs.packed_timeline import Packed
from portal.languages.sentences import sentence
from portal.models import User
from portal.people.access import signed_in
from portal.requested_work import queue


@require_http_methods(["GET", "HEAD", "POST"])
def decision(request: HttpRequest, key: str, number: int, decision: int) -> HttpResponse:
    """What the policy knew when it made a decision; POST requests it."""
    _found, run = readable_run(request, key, number)
    packed = reads.timeline_of(run)
    if packed is None or decision >= len(packed["decisions.at_secs"]):
        raise Http404("no such decision")
    why_not = _why_not(run, packed, decision)
    refusal = ""
    if request.method == "POST" and not why_not:
        if not request.user.is_authenticated:
            return redirect_to_login(request.path)
        try:
            replays.ask(run, decision, signed_in(request), timezone.now())
        except ExperimentRefusedError as error:
            refusal = str(error)
        else:
            return redirect("emulator_decision", key, number, decision)
    context = {
        "run": run,
        "key": key,
        "variant": variant_texts.label_of(run.variant),
        "row": row_texts.decision(packed, decision),
        "why_not": why_not,
        "refusal": refusal,
        "may_ask": isinstance(request.user, User),
        **({} if why_not else _made(run, packed, decision)),
    }
    return render(request, "emulator/decision.html", context, status=429 if refusal else 200)


def _why_not(run: Run, packed: Packed, decision: int) -> str:
    """Return which sentence of the page says that there is no simulation; empty if there is one."""
    if not replays.simulates(run.policy):
        return "none"
    if example_of(run.experiment):
        return "example"
    kind, reason = (int(packed[f"decisions.{name}"][decision]) for name in ("kind", "reason"))
    return "" if is_of_the_policy(kind, reason) else "not decided"


def _made(run: Run, packed: Packed, decision: int) -> dict[str, Any]:
    """Return the replay's state: the moment, why there is none, or its position in the queue."""
    replay = Replay.objects.filter(run=run, decision=decision).first()
    if replay is None:
        return {"is_asked": False}
    standing = None
    if replay.moment is None and not replay.fault:
        standing = queue.standings(replays.REPLAY, [replay.pk], timezone.now()).get(replay.pk)
        # It may have been made since it was read, and have left the queue.
        replay.refresh_from_db()
    palette = reads.colours(packed.texts["projects"])
    return {
        "is_asked": bool(replay.moment or replay.fault or standing),
        "was_given_up": not (replay.moment or replay.fault or standing),
        "standing": standing,
        "fault": sentence(replay.fault),
        "moment": shown_moment(replay.moment, packed, palette) if replay.moment else None,
    }
