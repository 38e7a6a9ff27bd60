"""The words of pages for tasks: what a computer does with them, and what became of them."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

from accounting.engine.client_tasks import Standing, TaskState

STATES: Final = {
    TaskState.RUNNING: _("running"),
    TaskState.PAUSED: _("paused"),
    TaskState.READY: _("waiting to start"),
    TaskState.DOWNLOADING: _("downloading"),
    TaskState.UPLOADING: _("uploading"),
    TaskState.FINISHED: _("finished, not reported yet"),
    TaskState.FAILED: _("failed"),
    TaskState.ABORTED: _("aborted"),
}
ORDER: Final = {state: place for place, state in enumerate(STATES)}
"""In which order pages show them."""

STANDINGS: Final = {
    Standing.OPEN: _("not reported yet"),
    Standing.PENDING: _("pending"),
    Standing.REFUSED: _("refused by the project"),
    Standing.FAILED: _("failed"),
    Standing.UNKNOWN: _("not known to the project"),
}
BY_STATISTICS: Final = _("counts with the project’s statistics")
"""Of a project that does not say what became of single tasks."""
