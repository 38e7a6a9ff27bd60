"""How much work a request still needs, by processor type (work fetch document, "Scheduler changes").

A type is needed while either seconds or instances of it are: a client with enough work for its queue may still have
idle processors, and vice versa.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.engine.facts import Choice, Computer, Job
from scheduler.engine.request import WorkRequest


@dataclass(slots=True)
class Need:
    """The work still needed for a type.

    ``delay_secs``: how long the computer's previous jobs keep it busy. ``added_secs``: how long the jobs added since
    do; a job that goes to an idle instance does not wait for these.
    """

    secs: float
    instances: float
    delay_secs: float
    added_secs: float = 0.0

    @property
    def begins_after_secs(self) -> float:
        """Return the time until a further job could start."""
        return self.delay_secs if self.instances > 0 else self.delay_secs + self.added_secs

    @property
    def is_open(self) -> bool:
        return self.secs > 0 or self.instances > 0


class Needs:
    """The work that a request needs, reduced by each job that is added to the reply."""

    def __init__(self, work_requests: Mapping[str, WorkRequest], computer: Computer) -> None:
        self.computer = computer
        self.by_type = {
            type_: Need(requested.secs, requested.instances, requested.delay_secs)
            for type_, requested in work_requests.items()
        }

    def wanted(self) -> list[str]:
        return [type_ for type_, need in self.by_type.items() if need.is_open]

    def wants(self, processor_type: str) -> bool:
        need = self.by_type.get(processor_type)
        return need is not None and need.is_open

    def run_secs(self, job: Job, choice: Choice) -> float:
        """Return how long the job will take on this computer, including times when it may not compute."""
        return job.fpops_est / choice.flops / self.computer.availability(choice.processor_type)

    def done_after_secs(self, job: Job, choice: Choice) -> float:
        """Return the time until the job can be finished: the wait for a free instance, and its own run time."""
        need = self.by_type.get(choice.processor_type)
        return (need.begins_after_secs if need else 0.0) + self.run_secs(job, choice)

    def take(self, job: Job, choice: Choice) -> None:
        """Count a job that was added: its type needs less, and a further job starts later if no instance is idle."""
        need = self.by_type.setdefault(choice.processor_type, Need(0.0, 0.0, 0.0))
        secs = self.run_secs(job, choice)
        need.secs -= secs * choice.instances
        need.instances -= choice.instances
        instances = max(1, self.computer.instances(choice.processor_type))
        need.added_secs += secs * choice.instances / instances

    def jobs_for(self, fpops: float, choice: Choice) -> float:
        """Return about how many jobs of this size the type needs; 0 if it needs none."""
        need = self.by_type.get(choice.processor_type)
        if need is None or not need.is_open:
            return 0.0
        secs = fpops / choice.flops / self.computer.availability(choice.processor_type) * max(choice.instances, 1e-3)
        return max(need.secs / secs, need.instances / max(choice.instances, 1e-3), 1.0)
