"""Convert the present state in a state file to parts of a scenario: tasks at the start, and back-offs.

Unix times become seconds from the moment at which the client wrote the file. Without any time in the file, tasks have
their whole time limit ahead, and there are no back-offs, as in BOINC's own emulator. Pure.
"""

from dataclasses import dataclass
from typing import Final

from emulator.engine.scenario import MAX_FLOP, MIN_JOB_FLOP, Backoffs, StartJob, StartState
from emulator.files.client_state import DEFAULT_LATENCY_SECS, Contacts
from emulator.files.present_tasks import StateJob

SOON_SECS: Final = 1.0  # for an overdue contact: 0 would mean none


@dataclass(frozen=True, slots=True)
class Sizing:
    """How the tasks of an application are sized: the speed of a task's version in FLOPS, the client's estimates per
    server's estimate (its duration correction factor), and the real work per server's estimate.
    """

    flops: float
    estimate_factor: float
    size_factor: float


def start_job(job: StateJob, project: str, version: int, sizing: Sizing, now: float) -> StartJob:
    """Return the task's state when the emulation begins; `now` is the Unix time of that, 0 if unknown."""
    size_secs = job.estimate_flop * sizing.size_factor / sizing.flops
    estimate_secs = job.estimate_flop * sizing.estimate_factor / sizing.flops
    done_fraction = 0.0
    if job.active is not None and job.state is not StartState.FINISHED:
        elapsed_secs = job.active.elapsed_secs
        size_secs, estimate_secs = job.whole_secs(size_secs), job.whole_secs(estimate_secs)
        done_fraction = min(1.0, elapsed_secs / size_secs)
        if done_fraction < 1:
            # So that the estimate leaves what the client says is left.
            estimate_secs = max(0.0, estimate_secs - elapsed_secs) / (1 - done_fraction)
    latency_secs = job.latency_secs if job.latency_secs >= 1 else DEFAULT_LATENCY_SECS
    return StartJob(
        project=project,
        app=job.app,
        size_flop=_flop(size_secs * sizing.flops),
        estimate_flop=_flop(estimate_secs * sizing.flops),
        deadline_secs=job.received_at + latency_secs - now if now else latency_secs,
        version=version,
        state=job.state,
        done_fraction=1.0 if job.state is StartState.FINISHED else done_fraction,
        received_secs=min(0.0, job.received_at - now) if now else 0.0,
        finished_secs=min(0.0, job.completed_at - now) if now and job.completed_at else 0.0,
        name=job.name,
    )


def _flop(value: float) -> float:
    return min(max(value, MIN_JOB_FLOP), MAX_FLOP)


def backoffs(contacts: Contacts, now: float) -> Backoffs:
    """Return a project's delays and pending contacts, counted from the moment of the file."""
    if not now:
        return Backoffs()

    def left(at: float) -> float:
        return max(0.0, at - now)

    return Backoffs(
        allowed_secs=left(contacts.allowed_at),
        next_rpc_secs=max(SOON_SECS, left(contacts.next_rpc_at)) if contacts.next_rpc_at else 0.0,
        failures=contacts.failures,
        kinds=tuple((kind, left(until), interval) for kind, (until, interval) in contacts.backoffs.items()),
    )
