"""The client's initial state: jobs that are running, preempted, suspended or finished, and back-offs.

The scenario specifies it (StartJob, Backoffs); here a new client and its contacts are brought to that state.
"""

from __future__ import annotations

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.events.contact import Contact
from emulator.engine.scenario import Scenario, StartJob, StartState
from emulator.engine.state import NEVER, Job, Offer, ProjectState
from emulator.engine.timeline.reasons import Reason


class PresentState:
    """Builds the initial state of one run's client. Jobs of a project that is not attached yet are left out."""

    def __init__(self, client: Client, contact: Contact, scenario: Scenario) -> None:
        self._client = client
        self._contact = contact
        self._running: list[Job] = []
        self.names: dict[int, str] = {}  # names of its jobs that have one, by their number
        self._projects = {state.name: state for state in client.all_projects}
        for state in client.projects:
            self._back_off(state)
        for job in scenario.jobs:
            project = self._projects[job.project]
            offer = _offer(client, project, job)
            if offer is not None and project.attached:
                self._place(job, offer)

    def _back_off(self, project: ProjectState) -> None:
        backoffs = project.project.backoffs
        project.rpc_allowed_secs = backoffs.allowed_secs
        project.failures = backoffs.failures
        if backoffs.next_rpc_secs:
            self._contact.asked_for(project, backoffs.next_rpc_secs)
        kinds = self._client.kinds
        for name, until_secs, interval_secs in backoffs.kinds:
            if name in kinds:
                kind = kinds.index(name)
                project.backoff_until_secs[kind] = until_secs
                project.backoff_interval_secs[kind] = interval_secs

    def _place(self, start: StartJob, offer: Offer) -> None:
        client = self._client
        if start.state is StartState.SUSPENDED:
            offer.project.held += 1
            return
        job = client.server.job(offer, start.size_flop, start.estimate_flop, start.received_secs, start.deadline_secs)
        if start.name:
            self.names[job.id] = start.name
        if start.state is StartState.FINISHED:
            job.done, job.left, job.end_secs = True, 0.0, start.finished_secs
            self._contact.finished(job, start.finished_secs)
        elif start.state is StartState.NEW and not start.done_fraction:
            client.arrive(job)
        else:
            client.arrive_begun(job, start.done_fraction)
            if start.state is StartState.RUNNING:
                self._running.append(job)

    def resume(self) -> None:
        """Resumes the jobs that were running in the scenario's state, each with a new time slice, as far as they fit.

        Call it when the client knows which processors may compute. Jobs that do not fit are preempted.
        """
        client = self._client
        free = [n if active else 0.0 for n, active in zip(client.instances, client.kind_active, strict=True)]
        chosen: list[Job] = []
        for job in self._running:
            cpus_left = free[0] > -1e-9 if job.kind else free[0] > 1e-9
            if cpus_left and job.usage <= free[job.kind] + (1e-9 if job.kind else NEVER) and not job.project.suspended:
                free[job.kind] -= job.usage
                if job.kind:
                    free[0] -= job.cpus
                job.slice_end_secs = client.period_secs
                chosen.append(job)
        if chosen:
            client.apply(Choice(chosen, [Reason.WAS_RUNNING] * len(chosen), 0.0), 0.0)


def _offer(client: Client, project: ProjectState, job: StartJob) -> Offer | None:
    """The version that it is for; None if this computer cannot run it."""
    for app in project.apps:
        if app.app.name == job.app:
            for offer in app.all_offers:
                if offer.number == job.version and client.can_run(offer):
                    return offer
    return None
