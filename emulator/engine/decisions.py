"""The decisions of a policy: the jobs to run, and the work to request.

Kinds of processor are indexes into `Client.kinds`; 0 is the CPU. Times are seconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from emulator.engine.state import Job, ProjectState
from emulator.engine.timeline.reasons import Reason


@dataclass(slots=True)
class Choice:
    """The jobs to run from now on, all of them: a running job that is not listed is preempted.

    Together they must fit: per GPU kind at most its instances; CPU jobs may overcommit the CPUs and are then
    slowed. `reasons[i]` says why `jobs[i]`. If nothing else happens, `choose` is called again at
    `recheck_secs` (the end of a time slice or period; infinity for never). `jobs` may be `client.running` itself:
    then nothing changes.
    """

    jobs: Sequence[Job]
    reasons: Sequence[Reason]
    recheck_secs: float


@dataclass(slots=True)
class WorkRequest:
    """A request for work: per kind, instance-seconds and instances to fill. Both 0: not requested. `kind` is the one
    that `reason` is about; others may be requested along with it.

    `delays_secs` per kind: the certain wait of new jobs before they can start. The server adds it to a job's run time
    when it checks the deadline. Only the modern policy sends it (its busy time).
    """

    project: ProjectState
    secs: list[float]
    instances: list[float]
    reason: Reason
    delays_secs: list[float] | None = None
    kind: int = 0


@dataclass(slots=True)
class Fetch:
    """The work request to make now, if any; else when to check again if nothing happens until then."""

    request: WorkRequest | None
    recheck_secs: float
