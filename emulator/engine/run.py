"""Run a scenario: time jumps from event to event.

An event is a job's end, the end of a time slice, a moment at which the policy wants to check its work buffer, a report
that is due, a change of what the computer can do, or an event of the scenario. Between two events only amounts that
grow linearly change (and REC, which follows a known curve), so the jump loses nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from emulator.engine.availability import UpDown
from emulator.engine.client import Client
from emulator.engine.entitlements import Entitlements
from emulator.engine.events.contact import Contact
from emulator.engine.events.hardware import change_processor
from emulator.engine.events.preference_change import change_preferences
from emulator.engine.events.present import PresentState
from emulator.engine.figures import RunTotals, figures_of_merit
from emulator.engine.kernel import rec
from emulator.engine.kernel.exchange import Exchange
from emulator.engine.kernel.loop import Pause
from emulator.engine.limits import Limits
from emulator.engine.policies.in_arrays import ArrayPolicy
from emulator.engine.policy import Policy
from emulator.engine.quirks import Quirks
from emulator.engine.random_numbers import random_stream
from emulator.engine.scenario import (
    DAY_SECS,
    MAX_SECS,
    Attach,
    ChangeBuffer,
    ChangePreferences,
    ChangeProcessor,
    ChangeShare,
    Detach,
    Event,
    HasWork,
    HostEvent,
    NewApp,
    NoNewTasks,
    Scenario,
    ScenarioError,
    ServerUp,
    Suspend,
)
from emulator.engine.state import NEVER
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import DecisionLog, Recorder
from emulator.engine.timeline.results import HostState, Result

NO_QUIRKS: Final = Quirks()
_LIMITED: Final = {
    Reason.OUTSIDE_HOURS: HostState.OUTSIDE_HOURS,
    Reason.IN_USE: HostState.IN_USE,
    Reason.ON_BATTERIES: HostState.ON_BATTERIES,
    Reason.EXCLUSIVE_APP: HostState.EXCLUSIVE_APP,
}
OBJECTS_PER_COLLECTION: Final = 10_000
MIN_RECHECK_SECS: Final = 1.0  # a policy that wants to check again sooner is called after this


def run(
    scenario: Scenario,
    policy: Policy,
    days: float,
    seed: int = 1,
    quirks: Quirks = NO_QUIRKS,
    *,
    timeline: bool = True,
    explain_secs: tuple[float, float] = (0.0, NEVER),
) -> Result:
    """Runs a scenario for this many days under a policy made for this run.

    `timeline`: whether to record it. `explain_secs`: the part of the run whose decisions are recorded. Raises
    ScenarioError for an impossible number of days.
    """
    return Emulation(scenario, policy, days, seed, quirks, timeline=timeline, explain_secs=explain_secs).result()


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Makes Python look for reference cycles less often: a run makes thousands of jobs and no cycles, and looking at
    them for every 700 new objects takes up to a tenth of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS_PER_COLLECTION), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Emulation:
    """One run; see `run`."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy,
        days: float,
        seed: int = 1,
        quirks: Quirks = NO_QUIRKS,
        *,
        timeline: bool = True,
        explain_secs: tuple[float, float] = (0.0, NEVER),
    ) -> None:
        if not 0 < days * DAY_SECS <= MAX_SECS:
            raise ScenarioError("days", "not_above_zero", value=days, most=MAX_SECS // DAY_SECS)
        self._policy = policy
        self._seed = seed
        self._duration_secs = duration_secs = days * DAY_SECS
        processors = scenario.all_processors()
        self._recorder = (
            Recorder(
                duration_secs,
                tuple(processor.kind for processor in processors),
                scenario.most_usable(),
                tuple(project.name for project in scenario.projects),
            )
            if timeline
            else None
        )
        self._client = client = Client(scenario, seed, quirks, self._recorder, DecisionLog(*explain_secs))
        self._contact = Contact(client, policy)
        self._events = sorted(scenario.events, key=lambda event: event.at_secs, reverse=True)
        host = scenario.host
        self._on, self._connected, self._active, self._gpu_active = (
            UpDown(process, random_stream(seed, "host", name))
            for name, process in (
                ("on", host.on),
                ("connected", host.connected),
                ("active", host.active),
                ("gpu_active", host.gpu_active),
            )
        )
        self._limits = Limits(scenario, seed)
        self.events = 0  # instants at which something happened
        self._state = HostState.COMPUTING
        self._reachable = True
        self._may_compute = [True] * len(processors)  # per kind, according to availability and the owner's limits
        self._able_since = 0.0
        for kind in range(len(processors)):
            self._record_usable(0.0, kind)
        self._present = PresentState(client, self._contact, scenario)
        self._entitlements = Entitlements(client)
        # None: the run uses objects, as under an external policy.
        self._exchange: Exchange | None = None
        if isinstance(policy, ArrayPolicy):
            self._exchange = Exchange(client, self._contact, policy)
            policy.use(self._exchange)
        self._watch: tuple[float, Callable[[Client], Policy]] | None = None

    @property
    def quirks(self) -> Quirks:
        """The quirks of this run."""
        return self._client.quirks

    @property
    def slice_steps(self) -> int:
        """The steps of all its simulations in time slices."""
        return self._client.slice_steps

    def watch(self, at_secs: float, watched: Callable[[Client], Policy]) -> None:
        """Lets another policy decide from that time on, on objects; it is created from their state at that time."""
        self._watch = at_secs, watched

    @property
    def done_fraction(self) -> float:
        """The fraction of the run that is done, 0 to 1; may be read from another thread."""
        now = self._client.now if self._exchange is None else float(self._exchange.table.run[0]["now"])
        return now / self._duration_secs

    def result(self) -> Result:
        """Runs it to its end."""
        self._policy.begin(self._client)
        self._entitlements.open(0.0)
        self._set_state(0.0)
        self._present.resume()
        with _rare_collections():
            if self._exchange is not None:
                self._loop_in_arrays(self._exchange)
            else:
                self._loop(0.0, 0.0)
        end = self._duration_secs
        for job in self._client.running:
            self._client.settle(job, end)
        self._client.judge_rest(end)
        self._close_stretch(end)
        figures, projects = figures_of_merit(
            RunTotals(self._client, self._entitlements, end, self._contact.rpcs, self._contact.sent)
        )
        return Result(
            self._policy.name,
            self._seed,
            end / DAY_SECS,
            figures,
            projects,
            self._client.log.decisions(),
            self._recorder.timeline() if self._recorder is not None else None,
            self._entitlements.stretches,
            tuple(
                (job.project.index, job.id, end - job.deadline_secs)
                for job in self._client.jobs()
                if job.deadline_secs < end
            ),
            self._present.names,
        )

    def _loop(self, choose_at: float, fetch_at: float) -> None:
        client, contact = self._client, self._contact
        accrue = self._policy.accrue
        duration = self._duration_secs
        now = client.now
        state_at = self._next_state()
        event_at = self._events[-1].at_secs if self._events else NEVER
        rpc_at = self._rpc_at(fetch_at)
        sample_at = 0.0 if self._recorder is not None else NEVER
        while True:
            next_at = end_at = client.next_end()
            if choose_at < next_at:
                next_at = choose_at
            if state_at < next_at:
                next_at = state_at
            if event_at < next_at:
                next_at = event_at
            if rpc_at < next_at:
                next_at = rpc_at
            if next_at > now:
                now = next_at
            if now >= duration:
                return
            client.now = now
            self.events += 1
            accrue(now)
            changed = end_at <= now
            if changed:
                self._end_jobs(now)
            if event_at <= now:
                event_at = self._apply_due_events(now)
                changed = True
                state_at = now  # preferences may have new hours
            if state_at <= now:
                state_at = self._set_state(now)
                changed = True
            if changed or choose_at <= now:
                choose_at = self._choose(now)
            if changed:
                fetch_at = now
                rpc_at = contact.free_secs if self._reachable else NEVER
            if rpc_at <= now:
                version = client.version
                if contact.reply(now) or (contact.report_at_secs <= now and contact.report(now)):
                    fetch_at = now
                elif fetch_at <= now:
                    fetch_at = self._fetch(now)
                if client.version != version:
                    choose_at = self._choose(now)
                rpc_at = self._rpc_at(fetch_at)
            if sample_at <= now:
                sample_at = self._sample(now)

    def _loop_in_arrays(self, exchange: Exchange) -> None:
        """The same as `_loop`, by the compiled loop."""
        run = exchange.table.run[0]
        exchange.load()
        watch_at = self._watch[0] if self._watch is not None else NEVER
        run["duration_secs"] = min(self._duration_secs, watch_at)
        run["state_at"], run["rpc_at"] = self._next_state(), self._rpc_at(0.0)
        run["event_at"] = self._events[-1].at_secs if self._events else NEVER
        run["sample_at"] = 0.0 if self._recorder is not None else NEVER
        run["reachable"] = self._reachable
        pause = Pause.FULL
        while pause is not Pause.DONE:
            if pause is Pause.FULL:
                exchange.make_room()
            elif pause is Pause.EVENT:
                exchange.store()
                run["event_at"] = self._apply_due_events(float(run["now"]))
                exchange.load()
                run["changed"], run["state_at"] = True, run["now"]
            elif pause is Pause.STATE:
                self._follow_host(float(run["now"]))
                exchange.load_state(self._reachable, self._stop_reasons())
                run["state_at"] = self._next_state()
            else:
                run["sample_at"] = self._record_levels(float(run["now"]), exchange.buffered(float(run["now"])))
            pause = exchange.advance()
        if run["pending"]:
            rec.resolve(exchange.table)
        exchange.store()
        self.events = int(run["events"])
        if self._watch is not None:
            self._policy = self._watch[1](self._client)
            self._contact.policy = self._policy
            self._loop(float(run["choose_at"]), float(run["fetch_at"]))

    def _rpc_at(self, fetch_at: float) -> float:
        """When a server is next contacted, or the policy asked whom to contact."""
        if not self._reachable:
            return NEVER
        contact = self._contact
        at = fetch_at if fetch_at < contact.report_at_secs else contact.report_at_secs
        return at if at > contact.free_secs else contact.free_secs

    def _end_jobs(self, now: float) -> None:
        """Finishes the jobs that end now."""
        client = self._client
        for job in sorted(client.running, key=lambda job: (job.end_secs, job.id)):
            if job.end_secs > now:
                return
            client.finish(job, now)
            job.end_secs = now
            if job.left_at_error:
                self._contact.failed(job, now)
            self._contact.finished(job, now)
            self._policy.job_ended(job, now)

    def _choose(self, now: float) -> float:
        """Asks the policy which jobs run and applies its choice; returns when to ask again."""
        choice = self._policy.choose(now)
        client = self._client
        if choice.jobs is not client.running:
            client.apply(choice, now)
        again = choice.recheck_secs
        soonest = now + MIN_RECHECK_SECS
        return again if again > soonest else soonest

    def _fetch(self, now: float) -> float:
        """Asks the policy for a work request and makes it; returns when to check again."""
        fetch = self._policy.fetch(now)
        if fetch.request is None:
            again = fetch.recheck_secs
            soonest = now + MIN_RECHECK_SECS
            return again if again > soonest else soonest
        project = fetch.request.project
        self._contact.rpc(project, fetch.request, now)
        self._contact.dropped()
        return now

    # The computer's availability.

    def _next_state(self) -> float:
        soonest = min(process.until_secs for process in (self._on, self._connected, self._active, self._gpu_active))
        return min(soonest, self._limits.next_change())

    def _set_state(self, now: float) -> float:
        """Updates what the computer can do, and stops jobs; returns when that next changes."""
        self._follow_host(now)
        self._stop_inactive(now)
        return self._next_state()

    def _follow_host(self, now: float) -> None:
        """Advances the availability processes and the limits."""
        self._book_able(now)
        client, limits = self._client, self._limits
        limits.advance(now)
        on = self._on.advance(now)
        connected, allowed = self._connected.advance(now), limits.lets_connect(now)
        self._reachable = connected and allowed and on
        active = self._active.advance(now) and on
        gpu_active = self._gpu_active.advance(now)
        if client.quirks.computes_while_off:
            # Its CPU jobs continue; no job is chosen and no project asked.
            active = True
        self._may_compute = [active and not limits.reason]
        self._may_compute += [active and gpu_active and not limits.gpu_reason] * (len(client.kinds) - 1)
        client.ram_bytes = limits.ram_bytes(now)
        self._note_state(on, active, now)
        client.kind_active = [may and there for may, there in zip(self._may_compute, client.present, strict=True)]

    def _stop_reasons(self) -> list[Reason]:
        """Per kind, why its jobs stop if it is not active."""
        limits = self._limits
        is_up = self._state not in (HostState.OFF, HostState.INACTIVE)
        why = [limits.reason, limits.gpu_reason] if is_up else [Reason.NONE, Reason.NONE]
        return [why[min(kind, 1)] or Reason.UNAVAILABLE for kind in range(len(self._client.kinds))]

    def _stop_inactive(self, now: float) -> None:
        """Stops the jobs of kinds that may not compute, or do not exist."""
        client, reasons = self._client, self._stop_reasons()
        # A kind that was full or empty may no longer be, so no earlier choice counts.
        client.moves += 1
        for job in client.running:
            if not client.kind_active[job.kind]:
                client.stop(job, now, reasons[job.kind])
        client.running = [job for job in client.running if job.running]
        client.set_cpu_rate(now)

    def _note_state(self, on: bool, active: bool, now: float) -> None:
        """Records the computer's state if it has changed."""
        able = self._may_compute
        state = HostState.COMPUTING
        if not active:
            state = HostState.INACTIVE if on else HostState.OFF
        elif not able[0]:
            state = _LIMITED[self._limits.reason]
        elif not all(able):
            state = HostState.NO_GPU
        if state != self._state or now == 0.0:
            self._state = state
            if self._recorder is not None:
                self._recorder.state(now, state)

    def _book_able(self, now: float) -> None:
        for kind, active in enumerate(self._client.kind_active):
            if active:
                # Throttled CPUs are able to compute only for that part of the time.
                part = 1.0 if kind else self._client.cpu_limit
                self._entitlements.able(kind, (now - self._able_since) * part)
        self._able_since = now

    def _close_stretch(self, now: float) -> None:
        self._book_able(now)
        self._entitlements.close(now)

    # Events of the scenario.

    def _apply_due_events(self, now: float) -> float:
        """Applies the events that are due; returns when the next one is."""
        events = self._events
        self._close_stretch(now)
        while events and events[-1].at_secs <= now:
            self._apply_event(events.pop(), now)
        self._entitlements.open(now)
        self._client.version += 1
        self._client.moves += 1  # forces a new choice
        self._policy.projects_changed(now)
        return events[-1].at_secs if events else NEVER

    def _apply_event(self, event: Event, now: float) -> None:
        client = self._client
        if isinstance(event, ChangeProcessor | ChangeBuffer | ChangePreferences):
            self._apply_host_event(event, now)
            return
        project = next(state for state in client.all_projects if state.name == event.project)
        if isinstance(event, Attach):
            project.attached = True
        elif isinstance(event, Detach):
            for job in client.drop(project, now, Reason.DETACHED):
                self._policy.job_ended(job, now)
            project.ready.clear()
            project.report_at_secs = NEVER
            project.held = 0
            project.attached = False
            self._contact.left(project)
        elif isinstance(event, NewApp):
            client.add_app(project, event.app)
        elif isinstance(event, HasWork):
            project.has_work = event.has_work
        elif isinstance(event, ServerUp):
            project.forced_down = not event.up
        elif isinstance(event, ChangeShare):
            project.share = event.share
        elif isinstance(event, Suspend):
            project.suspended = event.suspended
        elif isinstance(event, NoNewTasks):
            project.no_new_tasks = event.no_new_tasks
        client.projects = [state for state in client.all_projects if state.attached]
        client.any_suspended = any(state.suspended for state in client.projects)
        self._contact.dropped()

    def _apply_host_event(self, event: HostEvent, now: float) -> None:
        client = self._client
        if isinstance(event, ChangeBuffer):
            changes: dict[str, Any] = {
                "work_buf_min_days": event.work_buf_min_days,
                "work_buf_additional_days": event.work_buf_additional_days,
            }
            client.set_preferences(replace(client.preferences, **changes))
        elif isinstance(event, ChangePreferences):
            change_preferences(client, event, now)
            self._limits.follow(client.preferences, now)
            self._record_usable(now, 0)
        else:
            for job in change_processor(client, event, now):
                self._policy.job_ended(job, now)
            self._record_usable(now, client.kinds.index(event.kind))
            self._contact.dropped()

    def _record_usable(self, now: float, kind: int) -> None:
        client = self._client
        if self._recorder is not None:
            self._recorder.present(now, kind, int(client.instances[kind]) if client.present[kind] else 0)

    def _sample(self, now: float) -> float:
        """Records the buffer and the projects' standings; returns when to do it next."""
        client = self._client
        buffered = [0.0] * len(client.kinds)
        for project in client.projects:
            for kind, secs in enumerate(project.waiting_secs):
                buffered[kind] += secs
                for job in project.begun[kind]:
                    buffered[kind] += job.left_secs(now) * job.usage
        return self._record_levels(now, buffered)

    def _record_levels(self, now: float, buffered: list[float]) -> float:
        client, recorder = self._client, self._recorder
        assert recorder is not None
        standing = [self._policy.standing(project, now) if project.attached else 0.0 for project in client.all_projects]
        recorder.levels(now, buffered, standing)
        step = recorder.sample_secs
        return (int(now / step) + 1) * step
