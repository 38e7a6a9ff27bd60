"""The words of pages for tasks: what a computer does with them, and what became of them."""

from __future__ import annotations

from typing import Final

from accounting.engine.client_tasks import Standing, TaskState

STATES: Final = {
    TaskState.RUNNING: "running",
    TaskState.PAUSED: "paused",
    TaskState.READY: "waits to start",
    TaskState.DOWNLOADING: "downloading",
    TaskState.UPLOADING: "uploading",
    TaskState.FINISHED: "finished, to be reported",
    TaskState.FAILED: "failed",
    TaskState.ABORTED: "aborted",
}
ORDER: Final = {state: place for place, state in enumerate(STATES)}
"""In which order pages show them."""

STANDINGS: Final = {
    Standing.OPEN: "not reported yet",
    Standing.PENDING: "waits for the project’s decision",
    Standing.REFUSED: "refused by the project",
    Standing.FAILED: "failed",
    Standing.UNKNOWN: "not known to the project",
}
BY_STATISTICS: Final = "counts with the project’s statistics"
"""Of a project that does not say what became of single tasks."""
