"""Read the tasks of a `client_state.xml`: their state and progress. Pure: sections in, dataclasses out.

A task's `<result>` has its state and its times; if it has run, an `<active_task>` has its last checkpoint. Later
progress is lost in any case when the client ends, and is not counted.
"""

from dataclasses import dataclass
from typing import Final

from emulator.engine.random_numbers import expm1
from emulator.engine.scenario import MAX_RAM_BYTES, MAX_SECS, StartState
from emulator.files.sections import Section

# States of a result, and of an active task's process (BOINC client, lib/common_defs.h).
FILES_DOWNLOADED: Final = 2
COMPUTE_ERROR: Final = 3  # this and above: computed, failed or aborted
FILES_UPLOADING: Final = 4
PROCESS_EXECUTING: Final = 1


@dataclass(frozen=True, slots=True)
class ActiveTask:
    """A task that has run, at its last checkpoint. `elapsed_secs` is its run time, `fraction` its reported progress,
    and `fraction_secs` the run time of that report.
    """

    url: str
    result: str
    is_running: bool
    elapsed_secs: float
    fraction: float
    fraction_secs: float
    working_set_bytes: float = 0.0


@dataclass(slots=True)
class StateJob:
    """A task, with its workunit's size. Times are Unix times; 0 if the file does not have them."""

    section: Section
    name: str
    app: str
    version_num: int
    platform: str
    plan_class: str
    estimate_flop: float
    state: StartState
    received_at: float
    deadline_at: float
    completed_at: float
    transfers: str  # "download" or "upload" if one is pending
    active: ActiveTask | None = None

    @property
    def latency_secs(self) -> float:
        """Its whole time limit; 0 or less if the file has none."""
        return self.deadline_at - self.received_at

    def add_progress(self, task: ActiveTask) -> None:
        """Set its progress, as it has run."""
        self.active = task
        if self.state is StartState.NEW:
            self.state = StartState.RUNNING if task.is_running else StartState.BEGUN

    def whole_secs(self, expected_secs: float) -> float:
        """The run time of the whole task, as the client estimates it, given the initial estimate.

        It lies between that and the extrapolation from run time and fraction done, in proportion to the fraction done;
        the latter alone when it runs longer than expected. The estimate for an application that reports no fraction
        approaches its end asymptotically.
        """
        task = self.active
        if task is None or task.elapsed_secs <= 0:
            return expected_secs
        if task.fraction >= 1:
            return task.elapsed_secs
        if task.fraction <= 0:
            grown = expm1(min(task.elapsed_secs / expected_secs, 50.0))
            return task.elapsed_secs * (1 + grown) / grown  # elapsed / (1 - e^(-elapsed/expected))
        by_fraction = max(task.fraction_secs / task.fraction, task.elapsed_secs)
        if task.elapsed_secs > expected_secs:
            return by_fraction
        return task.fraction * by_fraction + (1 - task.fraction) * expected_secs


def read_task(section: Section, app: str, estimate_flop: float) -> StateJob | None:
    """Read the task of a `<result>`; None if the server already knows that it is finished."""
    if section.flag("got_server_ack"):
        return None
    result_state = section.integer("state", 0, 0, 100)
    is_ready, is_suspended = section.flag("ready_to_report"), section.flag("suspended_via_gui")
    state = StartState.NEW
    if result_state >= COMPUTE_ERROR or is_ready:
        state = StartState.FINISHED
    elif is_suspended:
        state = StartState.SUSPENDED
    transfers = "download" if result_state < FILES_DOWNLOADED and state is not StartState.FINISHED else ""
    return StateJob(
        section=section,
        name=section.text("name"),
        app=app,
        version_num=section.integer("version_num", 0, 0, 10**9),
        platform=section.text("platform"),
        plan_class=section.text("plan_class"),
        estimate_flop=estimate_flop,
        state=state,
        received_at=section.number("received_time", 0, 0, MAX_SECS),
        deadline_at=section.number("report_deadline", 0, 0, MAX_SECS),
        completed_at=section.number("completed_time", 0, 0, MAX_SECS),
        transfers="upload" if result_state == FILES_UPLOADING else transfers,
    )


def read_active_task(section: Section) -> ActiveTask:
    """Read the progress of a task. Raises ScenarioFileError."""
    elapsed_secs = section.number("checkpoint_elapsed_time", 0, 0, MAX_SECS)
    # A client before 6.12.26 wrote `fraction_done`, as does one that reports to its manager.
    fraction = section.number("fraction_done", 0, -1e9, 1e9) or section.number("checkpoint_fraction_done", 0, -1e9, 1e9)
    return ActiveTask(
        url=section.text("project_master_url"),
        result=section.text("result_name"),
        is_running=section.integer("active_task_state", 0, 0, 100) == PROCESS_EXECUTING,
        elapsed_secs=elapsed_secs,
        fraction=fraction if 0 <= fraction <= 1 else 0.0,  # an application may report nonsense
        fraction_secs=section.number("checkpoint_fraction_done_elapsed_time", elapsed_secs, 0, MAX_SECS),
        working_set_bytes=section.number("working_set_size_smoothed", 0, 0, MAX_RAM_BYTES),
    )
