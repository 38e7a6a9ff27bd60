"""States in BOINC's words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credit.engine.states import Outcome, ServerState, ValidateState, WorkunitError

_ERRORS: Final = {
    WorkunitError.COULD_NOT_SEND: "couldnt_send_result",
    WorkunitError.TOO_MANY_ERROR_RESULTS: "too_many_error_results",
    WorkunitError.TOO_MANY_SUCCESS_RESULTS: "too_many_success_results",
    WorkunitError.TOO_MANY_TOTAL_RESULTS: "too_many_total_results",
    WorkunitError.CANCELLED: "cancelled",
}
_SUCCESS: Final = {
    ValidateState.INIT: "Completed, waiting for validation",
    ValidateState.VALID: "Completed and validated",
    ValidateState.INVALID: "Completed, marked as invalid",
    ValidateState.NO_CHECK: "Completed, can't validate",
    ValidateState.INCONCLUSIVE: "Completed, validation inconclusive",
    ValidateState.TOO_LATE: "Completed, too late to validate",
}
_OUTCOMES: Final = {
    Outcome.COULD_NOT_SEND: "Couldn't send",
    Outcome.NO_REPLY: "Timed out - no response",
    Outcome.DIDNT_NEED: "Didn't need",
    Outcome.VALIDATE_ERROR: "Validate error",
    Outcome.CLIENT_DETACHED: "Abandoned",
}
_CANCELLED: Final = (-221, 202)
_NOT_STARTED: Final = (-233, 200)
_CLIENT_STATES: Final = {
    1: "Error while downloading",
    2: "Error while computing",
    3: "Error while computing",
    4: "Error while uploading",
    6: "Aborted",
    7: "Upload failed",
}
"""By the state that the client reports for a failed job."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job. ``canonical_id``: 0 without a canonical result; ``is_kept``: its outputs can be fetched, if it has any."""

    id: int
    name: str
    canonical_id: int
    error_mask: int
    is_kept: bool
    is_out: bool
    was_sent: bool
    exit_statuses: list[int] | None
    cpu_secs: float | None

    @property
    def is_failed(self) -> bool:
        return bool(self.error_mask) and not self.canonical_id


def short_status(job: JobFacts) -> str:
    """Return a job's state as in query_batch2. Programs fetch the outputs at DONE, so it implies that they are
    there.
    """
    if job.canonical_id and job.is_kept:
        return "DONE"
    if job.is_failed:
        return "ERROR"
    return "IN_PROGRESS" if job.was_sent else "UNSENT"


def long_status(job: JobFacts) -> str:
    """Return a job's state as in query_batch."""
    if job.canonical_id and job.is_kept:
        return "done"
    if job.is_failed:
        return "error"
    return "in_progress" if job.is_out or job.canonical_id else "queued"


def error_names(error_mask: int) -> list[str]:
    return [name for flag, name in _ERRORS.items() if error_mask & flag]


def instance_state(
    server_state: int, outcome: int, validate_state: int, client_state: int | None, exit_status: int | None
) -> str:
    """Return the state of a result in the words of BOINC's pages."""
    if server_state == ServerState.UNSENT:
        return "Unsent"
    if server_state == ServerState.IN_PROGRESS:
        return "In progress"
    if outcome == Outcome.SUCCESS:
        return _SUCCESS[ValidateState(validate_state)]
    if outcome == Outcome.CLIENT_ERROR:
        if exit_status in _CANCELLED:
            return "Cancelled by server"
        if exit_status in _NOT_STARTED:
            return "Not started by deadline - canceled"
        return _CLIENT_STATES.get(client_state or 0, "Error")
    return _OUTCOMES.get(Outcome(outcome), "Error")
