"""Carries out a requested preview: both runs over the logged passes, and the figures of the page."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

import structlog
from django.conf import settings
from django.utils import timezone

from credit.models import App, AppVersion, Preview
from credit.models.versions import PROCESSOR_TYPES
from credit.previews.facts import replay_of
from credit.previews.figures import figures
from credit.previews.replay import Replay, ReplayedResult
from credit.previews.texts import NO_GPU, OTHER_GPU
from credit.statistics import pass_log
from portal.languages.messages import VERBATIM, Message
from portal.models import Host

REPORT_SECS: Final = 1.0
"""How often the progress is stored."""
_REPLAYED: Final = 0.9
"""The replay's share of the progress; the rest is for the figures."""

log = structlog.get_logger(__name__)


class _GoneError(Exception):
    """The preview is no longer there."""


def carry_out(preview_id: int) -> None:
    """Replay the app's last workunits for this preview, and store the figures. Safe to call twice.

    A failure is shown on the page and raised: the queue retries a limited number of times.
    """
    preview = Preview.objects.select_related("app").filter(pk=preview_id, finished_at=None).first()
    if preview is None:
        return
    _store(preview, progress=0.0, failure=None)
    try:
        outcome = _measured(preview)
    except _GoneError:
        return
    except Exception as error:
        # Whatever it is, the operator who requested the preview is told.
        log.exception("preview_failed", preview=preview_id)
        _store(preview, failure=Message(VERBATIM, text=f"{type(error).__name__}: {error}"))
        raise
    if outcome is None:
        _store(preview, failure=Message("preview_nothing_kept"), finished_at=timezone.now())
    else:
        _store(preview, result=outcome, progress=1.0, finished_at=timezone.now())


def _store(preview: Preview, **columns: Any) -> None:
    if not Preview.objects.filter(pk=preview.pk).update(**columns):
        raise _GoneError


def _measured(preview: Preview) -> dict[str, Any] | None:
    app = preview.app
    window = pass_log.window(app.pk, settings.PREVIEW_WORKUNITS)
    if window is None:
        return None
    first, last, nworkunits = window
    replay = replay_of(app, preview.changes, first, last)
    outcomes = _replayed(preview, app, replay, first, last, nworkunits)
    return figures(outcomes, replay.guesses, _version_names(app), _classes({o.host for o in outcomes}))


def _replayed(
    preview: Preview, app: App, replay: Replay, first: int, last: int, nworkunits: int
) -> list[ReplayedResult]:
    outcomes: list[ReplayedResult] = []
    ndone = 0
    reported_at = time.monotonic()
    for logged in pass_log.read(app.pk, first, last):
        outcomes += replay.step(logged)
        ndone += len(logged.workunits)
        if time.monotonic() - reported_at >= REPORT_SECS:
            _store(preview, progress=min(1.0, ndone / nworkunits) * _REPLAYED)
            reported_at = time.monotonic()
    return outcomes


def _version_names(app: App) -> dict[int, str]:
    versions = AppVersion.objects.filter(app=app).select_related("platform")
    return {version.pk: f"{version.number_label}, {version.platform}" for version in versions}


def _classes(hosts: Iterable[int]) -> dict[int, str]:
    """Return the kinds of GPU of each computer."""
    words = {str(type_): str(words) for type_, words in PROCESSOR_TYPES.items()}
    words |= {"CUDA": "NVIDIA GPU", "CAL": "AMD GPU"}
    classes = {}
    for pk, coprocs in Host.objects.filter(pk__in=list(hosts)).values_list("pk", "coprocs"):
        kinds = sorted({words.get(str(gpu.get("type")), OTHER_GPU) for gpu in coprocs or ()})
        classes[pk] = " + ".join(kinds) or NO_GPU
    return classes
