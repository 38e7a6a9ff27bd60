"""A project's server: which jobs it sends for a request (emulator document, section 5).

It always has jobs of all applications, unless it ran dry, and refuses a version whose job would not be done by its
deadline: by the simple check (the client's busy time, plus what was just sent, plus the job), or by a simulation of all
the client's jobs in order of their deadlines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapreplace
from typing import Final

from emulator.engine.decisions import WorkRequest
from emulator.engine.quirks import Quirks
from emulator.engine.random_numbers import standard_normal
from emulator.engine.scenario import MIN_JOB_FLOP
from emulator.engine.state import Job, Offer, ProjectState

MAX_JOBS_PER_RPC: Final = 20_000


class Server:
    """Makes jobs for requests. One serves all projects; each project draws from its own stream."""

    def __init__(self, quirks: Quirks, instances: list[float], up_fraction: list[float]) -> None:
        self._quirks = quirks
        self._instances = instances
        self._up_fraction = up_fraction  # per kind: fraction of the time in which it computes, as the client reports it
        self.next_id = 0

    def job(self, offer: Offer, size_flop: float, estimate_flop: float, now: float, deadline_secs: float) -> Job:
        """A job of that version, arriving now."""
        factor = 2.0 if self._quirks.doubled_elapsed and offer.project.project.uses_dcf else 1.0
        job = Job(self.next_id, offer, size_flop / offer.flops, factor * estimate_flop / offer.flops)
        self.next_id += 1
        job.arrived_secs = now
        job.deadline_secs = deadline_secs
        error_rate = offer.app.app.error_rate
        if error_rate and offer.project.error_draws.random() < error_rate:
            job.left_at_error = job.size_secs * (1.0 - offer.project.error_draws.random())
        return job

    def send(
        self, project: ProjectState, request: WorkRequest, now: float, present: Callable[[], list[Job]]
    ) -> tuple[list[Job], set[int]]:
        """The jobs for a request, and the kinds of which a version was refused because of its deadline.

        `present()` returns the client's jobs, and is called only when the workload check needs them.
        """
        sent: list[Job] = []
        refused: set[Offer] = set()
        if not project.has_work:
            return sent, set()
        secs, instances = list(request.secs), list(request.instances)
        delays = list(request.delays_secs or [0.0] * len(secs))
        load = _Workload(present(), self._instances[0]) if project.project.workload_check else None
        needed: list[bool] = []
        able: list[tuple[float, Offer]] = []
        stale = True  # `able` must be found again
        up_fraction, all_instances = self._up_fraction, self._instances
        while len(sent) < MAX_JOBS_PER_RPC:
            if stale:
                needed = [s > 0 or n > 0 for s, n in zip(secs, instances, strict=True)]
                able = _able(project, needed, refused)
                if not able:
                    break
                stale = False
            offer = able[0][1] if len(able) == 1 else _any_by_weight(project, able)
            job = self._draw(offer, now)
            kind = offer.kind
            if load is not None:
                fits = load.add(job)
            else:
                fits = delays[kind] + job.estimate_secs <= offer.app.app.latency_bound_secs
            if not fits:
                refused.add(offer)
                stale = True
                self.next_id -= 1  # it was never sent
                continue
            sent.append(job)
            expected_secs = job.estimate_secs / up_fraction[kind]
            secs[kind] -= expected_secs * offer.usage
            instances[kind] -= offer.usage
            if secs[kind] <= 0 and needed[kind] and instances[kind] <= 0:
                stale = True
            if kind:
                secs[0] -= expected_secs * offer.cpus
                instances[0] -= offer.cpus
                if secs[0] <= 0 and needed[0] and instances[0] <= 0:
                    stale = True
            delays[kind] += expected_secs * offer.usage / all_instances[kind]
        return sent, {offer.kind for offer in refused}

    def _draw(self, offer: Offer, now: float) -> Job:
        app = offer.app.app
        size, estimate = (app.estimate, app.size) if self._quirks.estimate_sampled else (app.size, app.estimate)
        draws = offer.project.draws
        size_flop, estimate_flop = size.mean, estimate.mean
        if size.std_dev:
            size_flop = max(MIN_JOB_FLOP, size_flop + size.std_dev * standard_normal(draws))
        if estimate.std_dev:
            estimate_flop = max(MIN_JOB_FLOP, estimate_flop + estimate.std_dev * standard_normal(draws))
        return self.job(offer, size_flop, estimate_flop, now, now + app.latency_bound_secs)


def _able(project: ProjectState, needed: list[bool], refused: set[Offer]) -> list[tuple[float, Offer]]:
    """For each application with a needed version, the fastest such version; with the application's weight."""
    able = []
    for app in project.apps:
        best = None
        for offer in app.offers:
            if needed[offer.kind] and offer not in refused and (best is None or offer.flops > best.flops):
                best = offer
        if best is not None and app.app.weight > 0:
            able.append((app.app.weight, best))
    return able


def _any_by_weight(project: ProjectState, able: list[tuple[float, Offer]]) -> Offer:
    point = project.draws.random() * sum(weight for weight, _ in able)
    for weight, offer in able:
        point -= weight
        if point < 0:
            return offer
    return able[-1][1]


class _Workload:
    """The client's jobs in order of deadline, on its CPUs (GPU jobs as if they were CPU jobs; section 5)."""

    def __init__(self, jobs: Iterable[Job], cpus: float) -> None:
        self._cpus = max(1, int(cpus))
        self._jobs = [(job.deadline_secs, job.id, job.left * job.bias) for job in jobs]
        self._late: dict[int, float] | None = None

    def add(self, job: Job) -> bool:
        """Adds it if it would be done in time, without making others late, or later than they are."""
        if self._late is None:
            self._late = self._lateness(self._jobs, job.arrived_secs)
        jobs = [*self._jobs, (job.deadline_secs, job.id, job.estimate_secs)]
        late = self._lateness(jobs, job.arrived_secs)
        if any(secs > self._late.get(number, 0.0) + 1e-6 for number, secs in late.items()):
            return False
        self._jobs, self._late = jobs, late
        return True

    def _lateness(self, jobs: list[tuple[float, int, float]], now: float) -> dict[int, float]:
        free = [0.0] * self._cpus
        late = {}
        for deadline, number, secs in sorted(jobs):
            end = now + free[0] + secs
            heapreplace(free, free[0] + secs)
            if end > deadline:
                late[number] = end - deadline
        return late
