"""RPCs of the emulated client: when it reports finished jobs, which servers answer, and the back-offs that follow.

Emulator document, sections 4 to 6 and 8. A project is contacted to report its finished jobs when the oldest has
waited two hours (docs/explanation/emulator.md says why not one), when a deadline is near, or when many wait; a work
request is added if the policy has one. Otherwise the policy's own requests are made.
"""

from __future__ import annotations

from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import WorkRequest
from emulator.engine.policy import Policy
from emulator.engine.random_numbers import random_stream
from emulator.engine.scenario import DAY_SECS
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind

POLL_SECS: Final = 5.0  # least time between two RPCs
REPORT_DELAY_SECS: Final = 2 * 3600.0
BOINC_REPORT_DELAY_SECS: Final = 3600.0
MAX_READY: Final = 64
BACKOFF_FIRST_SECS: Final = 600.0
BACKOFF_MAX_SECS: Final = DAY_SECS
FAILURE_FIRST_SECS: Final = 60.0
FAILURE_MAX_SECS: Final = 4 * 3600.0
MASTER_FETCH_FAILURES: Final = 10
MASTER_FETCHES: Final = 3


class Contact:
    """Makes the RPCs of one run."""

    def __init__(self, client: Client, policy: Policy) -> None:
        self._client = client
        self.policy = policy
        self.waits = random_stream(client.seed, "waits")
        self.report_delay_secs = BOINC_REPORT_DELAY_SECS if client.quirks.reports_after_an_hour else REPORT_DELAY_SECS
        self.rpcs = 0
        self.sent = 0
        self.free_secs = 0.0  # no RPC before that
        self.report_at_secs = NEVER  # when the next report is due
        self.asked: tuple[ProjectState, WorkRequest | None] | None = None  # whose reply is still pending

    def finished(self, job: Job, now: float) -> None:
        """Registers a finished job, which waits to be reported."""
        project = job.project
        project.ready.append(job)
        client = self._client
        due = now + self.report_delay_secs
        ahead_secs = client.buffer_min_secs if client.buffer_min_secs > DAY_SECS else DAY_SECS
        before_deadline = job.deadline_secs - ahead_secs
        if before_deadline < due:
            due = max(now, before_deadline)
        if client.report_at_once or len(project.ready) >= MAX_READY:
            due = now
        if due < project.report_at_secs:
            project.report_at_secs = due
            self.report_at_secs = min(self.report_at_secs, max(due, project.rpc_allowed_secs))

    def asked_for(self, project: ProjectState, at_secs: float) -> None:
        """Registers that the project's server wants to be contacted at that time, even with nothing to report."""
        project.report_at_secs = min(project.report_at_secs, at_secs)
        self._plan()

    def failed(self, job: Job, now: float) -> None:
        """After a failed job, leaves its project alone for a while, whatever its back-offs per kind are (6.6 document,
        "Per-resource-type backoff": the overall back-off).
        """
        project = job.project
        wait = 0.0
        if project.project.error_delay_secs:
            wait = self._overall_wait(project, project.project.error_delay_secs)
            project.rpc_allowed_secs = max(project.rpc_allowed_secs, now + wait)
        self._client.log.add(now, DecisionKind.END, Reason.JOB_FAILED, project.index, job.id, job.kind, wait)

    def _overall_wait(self, project: ProjectState, first_secs: float) -> float:
        """Counts one more failure; returns how long to leave the project alone: doubled each time up to 4 hours, times
        0.5 to 1 at random (section 4).
        """
        project.failures += 1
        wait = min(first_secs * 2.0 ** min(project.failures, 20), max(FAILURE_MAX_SECS, first_secs))
        return wait * (0.5 + 0.5 * self.waits.random())

    def _plan(self) -> None:
        """Finds when the next report is due."""
        soonest = NEVER
        for project in self._client.projects:
            if project.report_at_secs < soonest:
                soonest = min(soonest, max(project.report_at_secs, project.rpc_allowed_secs))
        self.report_at_secs = soonest

    def dropped(self) -> None:
        """Handles the removal of projects or their jobs."""
        self._plan()

    def report(self, now: float) -> bool:
        """Makes one report that is due, if there is one; returns whether it contacted a server."""
        due = None
        for project in self._client.projects:
            if project.report_at_secs <= now and project.rpc_allowed_secs <= now:
                due = project
                break
        if due is None:
            self._plan()
            return False
        request = None
        if self._client.can_ask(due, now):
            request = self.policy.piggyback_request(due, now)
        reason = Reason.REPORT_HOUR
        if not due.ready:
            reason = Reason.CONTACT_ASKED
        elif self._client.report_at_once:
            reason = Reason.REPORT_AT_ONCE
        elif len(due.ready) >= MAX_READY:
            reason = Reason.REPORT_MANY
        elif now < due.ready[0].end_secs + self.report_delay_secs:
            reason = Reason.REPORT_DEADLINE
        self._client.log.add(now, DecisionKind.ASK, reason, due.index)
        self.rpc(due, request, now)
        self._plan()
        return True

    def rpc(self, project: ProjectState, request: WorkRequest | None, now: float) -> None:
        """Makes one RPC: reports, and requests work if there is a request. The reply comes at once, or when `reply` is
        called.
        """
        client = self._client
        self.free_secs = now + POLL_SECS
        if request is not None and client.limited:
            request = self._within_limits(request, now)
            if request is None and not project.ready:
                return
        if request is not None:
            kind = request.kind
            client.log.add(now, DecisionKind.ASK, request.reason, project.index, -1, kind, request.secs[kind])
        if not self._answers(project, now):
            self._failed(project, request, now)
            return
        delay_secs = project.project.reply_delay_secs
        if delay_secs:
            self.asked = project, request
            # The client makes one RPC at a time.
            self.free_secs = now + max(POLL_SECS, delay_secs)
            return
        self._answered(project, request, now)

    def reply(self, now: float) -> bool:
        """Takes the pending reply; returns whether there was one. `free_secs` is when it comes."""
        if self.asked is None:
            return False
        project, request = self.asked
        self.asked = None
        self._answered(project, request, now)
        self._plan()
        return True

    def left(self, project: ProjectState) -> None:
        """Forgets the pending reply of a project that was left."""
        if self.asked is not None and self.asked[0] is project:
            self.asked = None
        self._plan()

    def _answered(self, project: ProjectState, request: WorkRequest | None, now: float) -> None:
        """Handles an answer: the server took the reports, and sent what it has for the request."""
        client = self._client
        project.failures = 0
        project.rpcs += 1
        self.rpcs += 1
        project.rpc_allowed_secs = now + project.project.request_delay_secs
        reported = self._take_reports(project, now)
        jobs: list[Job] = []
        if request is not None:
            jobs, refused = client.server.send(project, request, now, client.jobs)
            self._receive(project, request, jobs, refused, now)
        if client.recorder is not None:
            asked = sum(request.secs) if request is not None else 0.0
            client.recorder.rpc(now, project.index, asked, len(jobs), reported, True)

    def _within_limits(self, request: WorkRequest, now: float) -> WorkRequest | None:
        """Reduces a request to the jobs that a project with a limit of concurrent jobs can do within the buffer: more
        would not shorten the shortfall. None, and it is not tried again for a while, if nothing is left of the
        request's subject: its kind or, under a policy without back-offs per kind, any.
        """
        client, project = self._client, request.project
        asked = _kinds_of(request)
        for kind in range(len(asked)):
            usable_secs = max(0.0, client.usable_secs(project, kind, now))
            request.secs[kind] = min(request.secs[kind], usable_secs)
            request.instances[kind] = min(request.instances[kind], project.most_used[kind] if usable_secs else 0.0)
        left = _kinds_of(request)
        is_about_its_kind = self.policy.uses_backoffs and asked[request.kind]
        if left[request.kind] if is_about_its_kind else any(left):
            return request
        again = now + BACKOFF_FIRST_SECS
        if not self.policy.uses_backoffs:
            project.rpc_allowed_secs = max(project.rpc_allowed_secs, again)
        for kind, was_asked in enumerate(asked):
            if was_asked and not left[kind]:
                project.backoff_until_secs[kind] = max(project.backoff_until_secs[kind], again)
        return None

    def _take_reports(self, project: ProjectState, now: float) -> int:
        """Hands the finished jobs to the project's server; returns how many."""
        reported = len(project.ready)
        client = self._client
        for job in project.ready:
            if job.end_secs <= 0.0 or job.left_at_error:
                continue  # it was finished before the start, or failed: neither met nor late
            if job.end_secs > job.deadline_secs and not client.quirks.wasted_when_reported:
                continue  # late since it finished
            if now > job.deadline_secs:
                client.judge_late(job, now, Reason.JOB_REPORTED_LATE)
            else:
                project.met += 1
        project.ready.clear()
        project.report_at_secs = NEVER
        return reported

    def _receive(
        self, project: ProjectState, request: WorkRequest, jobs: list[Job], refused: set[int], now: float
    ) -> None:
        """Adds the jobs, and sets the back-offs of kinds that got none (section 5, reply handling)."""
        client = self._client
        got = [0] * len(client.kinds)
        for job in jobs:
            client.arrive(job)
            got[job.kind] += 1
        project.sent += len(jobs)
        self.sent += len(jobs)
        for kind in refused:
            client.log.add(now, DecisionKind.SERVER, Reason.SERVER_DEADLINE, project.index, -1, kind)
        if self.policy.uses_backoffs:
            for kind, number in enumerate(got):
                if number:
                    project.backoff_interval_secs[kind] = project.backoff_until_secs[kind] = 0.0
                elif (request.secs[kind] > 0 or request.instances[kind] > 0) and not client.backed_off(
                    project, kind, now
                ):
                    self._back_off(project, kind, now)
        elif not jobs:
            self._delay(project, now)
            client.log.add(
                now, DecisionKind.SERVER, Reason.SERVER_DRY, project.index, -1, 0, project.rpc_allowed_secs - now
            )
        else:
            project.backoff_interval_secs[0] = 0.0

    def _back_off(self, project: ProjectState, kind: int, now: float) -> None:
        """Sets the back-off after an unsuccessful request for that kind: 10 minutes, doubled each time up to a day,
        times 0.5 to 1.5 at random.
        """
        interval = project.backoff_interval_secs[kind]
        interval = min(interval * 2, BACKOFF_MAX_SECS) if interval else BACKOFF_FIRST_SECS
        project.backoff_interval_secs[kind] = interval
        wait = (0.5 + self.waits.random()) * interval
        project.backoff_until_secs[kind] = now + wait
        self._client.log.add(now, DecisionKind.SERVER, Reason.SERVER_DRY, project.index, -1, kind, wait)

    def _delay(self, project: ProjectState, now: float) -> None:
        """Sets the RPC delay after an unsuccessful request under a policy without back-offs per kind; it doubles
        likewise.
        """
        interval = project.backoff_interval_secs[0]
        interval = min(interval * 2, BACKOFF_MAX_SECS) if interval else BACKOFF_FIRST_SECS
        project.backoff_interval_secs[0] = interval
        project.rpc_allowed_secs = now + (0.5 + self.waits.random()) * interval

    def _answers(self, project: ProjectState, now: float) -> bool:
        if project.forced_down or any(downtime.covers(now) for downtime in project.project.downtimes):
            return False
        if self._client.quirks.one_day_retry:
            return project.server.sample_once(now)
        return project.server.advance(now)

    def _failed(self, project: ProjectState, request: WorkRequest | None, now: float) -> None:
        """Handles a server that is down."""
        client = self._client
        wait = self._overall_wait(project, FAILURE_FIRST_SECS)
        if client.quirks.one_day_retry:
            if project.failures >= MASTER_FETCH_FAILURES:
                project.master_fetches += 1
                project.failures = 0
            if project.master_fetches >= MASTER_FETCHES:
                wait = DAY_SECS
        project.rpc_allowed_secs = now + wait
        client.log.add(now, DecisionKind.SERVER, Reason.SERVER_DOWN, project.index, -1, 0, wait)
        if client.recorder is not None:
            asked = sum(request.secs) if request is not None else 0.0
            client.recorder.rpc(now, project.index, asked, 0, 0, False)


def _kinds_of(request: WorkRequest) -> list[bool]:
    """Whether the request asks for each kind."""
    return [secs > 0 or number > 0 for secs, number in zip(request.secs, request.instances, strict=True)]
