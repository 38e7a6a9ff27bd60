"""How much work a request still wants, by processor type (work fetch document, "Scheduler changes").

A type is wanted while either seconds or instances of it are: a client that has work enough for its queue may still
have idle processors, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.engine.facts import Choice, Computer, Job
from scheduler.engine.request import WorkRequest


@dataclass(slots=True)
class Need:
    """The work that is still wanted of a type.

    ``delay_secs``: for how long the jobs that the computer had before keep it busy. ``added_secs``: for how long those
    that were added since do; a job that goes to an idle instance does not wait for these.
    """

    secs: float
    instances: float
    delay_secs: float
    added_secs: float = 0.0

    @property
    def begins_after_secs(self) -> float:
        """After how long a further job could start."""
        return self.delay_secs if self.instances > 0 else self.delay_secs + self.added_secs

    @property
    def is_open(self) -> bool:
        return self.secs > 0 or self.instances > 0


class Needs:
    """The work that a request wants, reduced by each job that is added to the reply."""

    def __init__(self, work_requests: Mapping[str, WorkRequest], computer: Computer) -> None:
        self.computer = computer
        self.by_type = {
            type_: Need(wanted.secs, wanted.instances, wanted.delay_secs) for type_, wanted in work_requests.items()
        }

    def wanted(self) -> list[str]:
        return [type_ for type_, need in self.by_type.items() if need.is_open]

    def wants(self, processor_type: str) -> bool:
        need = self.by_type.get(processor_type)
        return need is not None and need.is_open

    def run_secs(self, job: Job, choice: Choice) -> float:
        """How long the job will take on this computer, including the time in which the computer may not compute."""
        return job.fpops_est / choice.flops / self.computer.availability(choice.processor_type)

    def done_after_secs(self, job: Job, choice: Choice) -> float:
        """The time from now until the job can be finished: the wait for a free instance, and its own run time."""
        need = self.by_type.get(choice.processor_type)
        return (need.begins_after_secs if need else 0.0) + self.run_secs(job, choice)

    def take(self, job: Job, choice: Choice) -> None:
        """A job was added: less is wanted of its type, and a further one would begin later if no instance is idle."""
        need = self.by_type.setdefault(choice.processor_type, Need(0.0, 0.0, 0.0))
        secs = self.run_secs(job, choice)
        need.secs -= secs * choice.instances
        need.instances -= choice.instances
        instances = max(1, self.computer.instances(choice.processor_type))
        need.added_secs += secs * choice.instances / instances

    def jobs_for(self, fpops: float, choice: Choice) -> float:
        """About how many jobs of this size the type wants; 0 if it wants none."""
        need = self.by_type.get(choice.processor_type)
        if need is None or not need.is_open:
            return 0.0
        secs = fpops / choice.flops / self.computer.availability(choice.processor_type) * max(choice.instances, 1e-3)
        return max(need.secs / secs, need.instances / max(choice.instances, 1e-3), 1.0)
