"""The modern policy: recent estimated credit (client scheduling document; emulator document, sections 7, 8 and 15).

"SP(P) = - REC(P)/resource_share(P) where REC(P) is the amount of processing done recently by P on this host."
What is kept here is the exponentially forgetting sum of the counted FLOP done for a project, in closed form between
events. REC is that sum times the rate of forgetting: a mean. As all projects forget alike, the sums are kept
multiplied with a growth factor common to all: then only the projects with running jobs change, and a new half-life
leaves the order of the projects as it is.

`Rec` ranks projects for work fetch by what their REC will be; `RecLetter` by the document's letter
(docs/explanation/emulator.md compares them).
"""

from __future__ import annotations

from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.forecast import Rank, SimulationResult
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.rr_simulation import RoundRobinSimulation
from emulator.engine.policies.run_list import RunList
from emulator.engine.policy import MAX_UNFINISHED
from emulator.engine.random_numbers import LN2, expm1
from emulator.engine.scenario import DAY_SECS
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason

HALF_LIFE_DAYS: Final = 10.0
HALF_LIFE_REQUESTS: Final = 10  # unless it is set, the half-life is at least this many requests of the rarest project
CREDIT_PER_FLOPS_DAY: Final = 200 / 1e9  # a Cobblestone per day is 5 MFLOPS
RESCALE: Final = 1e6
LONGEST_STEP: Final = 30.0  # of the decay's exponent
ZERO_SHARE_SECS: Final = 180.0
CHECK_SECS: Final = 60.0  # "every 60 seconds" the buffer is looked at
MARGIN_SECS: Final = 1.0


class Rec:
    """The policy; one object per run. `half_life_days` is that of REC; without it, 10 days or, where some project is
    asked more rarely, as long as it takes to remember several requests."""

    name = PolicyName.REC
    uses_backoffs = True
    follows_letter = False

    def __init__(self, half_life_days: float | None = None) -> None:
        self.adapts = half_life_days is None
        self.decay = LN2 / ((half_life_days or HALF_LIFE_DAYS) * DAY_SECS)

    def begin(self, client: Client) -> None:
        self._client = client
        self.by_letter = self.follows_letter or client.quirks.request_not_counted
        self.adapts = self.adapts and not self.by_letter
        self._busy_projects = client.busy_projects  # always the same list
        self.accrued_secs = 0.0
        self._checked_version = -1  # of the client, when the buffer was last looked at
        self.growth = 1.0
        self.done_flop = [
            state.project.standing.rec / CREDIT_PER_FLOPS_DAY / self.decay for state in client.all_projects
        ]  # times growth
        self._simulation = RoundRobinSimulation(client, self._rank, self._unit)
        self._run_list = RunList(client, self._simulation, self._rank, self._step_cost)
        self._set_shares()

    def projects_changed(self, now: float) -> None:
        self._set_shares()

    def _set_shares(self) -> None:
        self.adapted_at = -1  # arrivals of jobs when the half-life was adapted
        projects = self._client.all_projects
        total = sum(project.share for project in projects if project.attached)
        self.inverse = [total / project.share if project.share else 1.0 for project in projects]
        kinds = range(len(self._client.kinds))
        self._supplied = [kind for kind in kinds if any(p.can_supply[kind] for p in self._client.projects)]
        self._any_without_share = any(not project.share for project in projects)
        self.is_last = [not project.share for project in projects]

    def accrue(self, now: float) -> None:
        exponent = self.decay * (now - self.accrued_secs)
        self.accrued_secs = now
        growth = self.growth
        if 0.0 < exponent < 0.01 and growth < RESCALE:
            # The usual case: the same as the loop below, in one step.
            grown = growth * (exponent * (1.0 + exponent / 2 * (1.0 + exponent / 3 * (1.0 + exponent / 4))))
            grown_secs = grown / self.decay
            done = self.done_flop
            for project in self._busy_projects:
                done[project.index] += project.busy_flops * grown_secs
            self.growth = growth + grown
            return
        while exponent > 0.0:
            step = min(exponent, LONGEST_STEP)
            exponent -= step
            grown = self.growth * expm1(step)
            grown_secs = grown / self.decay
            done = self.done_flop
            for project in self._busy_projects:
                done[project.index] += project.busy_flops * grown_secs
            self.growth += grown
            if self.growth > RESCALE:
                self.done_flop = [value / self.growth for value in done]
                self.growth = 1.0

    def job_ended(self, job: Job, now: float) -> None:
        pass

    def standing(self, project: ProjectState, now: float) -> float:
        """REC in credit per day."""
        return self.done_flop[project.index] * self.decay / self.growth * CREDIT_PER_FLOPS_DAY

    # Priorities. Only their order matters, so they are normalised only where a queue is subtracted.

    def _rank(self, project: ProjectState) -> Rank:
        index = project.index
        return self.is_last[index], self.done_flop[index] * self.inverse[index]

    def _unit(self, project: ProjectState) -> float:
        """The amount that a FLOP adds to the rank."""
        return self.growth * self.inverse[project.index]

    def _step_cost(self, job: Job) -> float:
        """The amount that a job's choice adds to its project's rank: as if it had run for one scheduling period."""
        client = self._client
        inverse = self.inverse[job.project.index]
        if client.quirks.hour_of_day_bump:
            all_done = sum(self.done_flop) or 1.0  # before the first second too, projects take turns by their shares
            return all_done / 24 / client.host_flops * inverse * job.counted_flops
        return self.growth * inverse * job.counted_flops * client.period_secs

    def choose(self, now: float) -> Choice:
        return self._run_list.choose(now)

    # Work fetch.

    def fetch(self, now: float) -> Fetch:
        client = self._client
        kinds = self._supplied
        low_mark = client.buffer_min_secs
        again = NEVER
        min_saturated_secs = self._simulation.min_saturated_secs
        for kind in kinds:
            secs = min_saturated_secs(kind, now)
            if secs < low_mark:
                break
            falls_low = now + secs - low_mark
            if falls_low < again:
                again = falls_low
        else:
            return Fetch(None, self._next_check(again, now))
        simulated = self._simulate(now)
        saturated = simulated.saturated_secs
        low = [kind for kind in kinds if saturated[kind] < low_mark]
        again = min([now + saturated[kind] - low_mark for kind in kinds if kind not in low], default=NEVER)
        again = self._next_check(again, now)
        if not low:
            return Fetch(None, again)
        order = self._order(simulated, now)
        for place, project in enumerate(order):
            for kind in low:
                if self._able(project, kind, saturated[kind], now):
                    return Fetch(self._request(order, place, kind, simulated, now), now)
        for project in client.projects:
            for kind in low:
                if project.can_supply[kind] and not project.suspended and not project.no_new_tasks:
                    soonest = max(project.rpc_allowed_secs, project.backoff_until_secs[kind])
                    if soonest > now:
                        again = min(again, soonest)
                    elif not project.share and saturated[kind] > ZERO_SHARE_SECS:
                        again = min(again, now + max(CHECK_SECS, saturated[kind] - ZERO_SHARE_SECS))
        return Fetch(None, again)

    def _next_check(self, falls_low_secs: float, now: float) -> float:
        """Just after a queue falls below the mark; if none has at the second look, as rarely as the document looks."""
        client = self._client
        soonest = now + (CHECK_SECS if self._checked_version == client.version else MARGIN_SECS)
        self._checked_version = client.version
        return max(falls_low_secs + MARGIN_SECS, soonest)

    def _simulate(self, now: float) -> SimulationResult:
        return self._simulation.result(now, self._client.buffer_total_secs)

    def simulation(self) -> RoundRobinSimulation:
        """The one that its decisions start from."""
        return self._simulation

    def ranked(self, now: float) -> list[tuple[ProjectState, float]]:
        """The projects that may be asked for work, highest scheduling priority first, with that priority.

        It is as in the client scheduling document, with REC as `_ranked` takes it; minus infinity without a share.
        """
        ranked = self._ranked(self._simulate(now), now)
        if self.by_letter:
            return [(project, -NEVER if is_last else -rank) for is_last, rank, _, project in ranked]
        total = sum([rank / self.inverse[index] for is_last, rank, index, _ in ranked if not is_last]) or 1.0
        return [(project, -NEVER if is_last else -rank / total) for is_last, rank, _, project in ranked]

    def _order(self, simulated: SimulationResult, now: float) -> list[ProjectState]:
        """Projects that may be asked, highest priority first."""
        return [project for *_, project in self._ranked(simulated, now)]

    def _ranked(self, simulated: SimulationResult, now: float) -> list[tuple[bool, float, int, ProjectState]]:
        """The rank, smallest first, and the number of each project that may be asked.

        A project's REC is taken as it will be when all its queued jobs and half of the request are done: half, because
        that is the mean of before and after (docs/explanation/emulator.md).
        """
        client = self._client
        asked = [project for project in client.projects if client.can_ask(project, now)]
        if self.by_letter:
            return self._ranked_by_letter(asked, now)
        if self.adapts and self.adapted_at != client.arrivals:
            self.adapted_at = client.arrivals
            self._adapt_half_life()
        short = zip(simulated.shortfall_secs, client.instance_flops, strict=True)
        short_flop = sum([secs * flops for secs, flops in short])
        done, inverse, is_last, growth = self.done_flop, self.inverse, self.is_last, self.growth
        ranked = []
        for project in asked:
            index = project.index
            # Whatever the shortfall, no server sends less than a job.
            job_flop = project.job_flop
            ahead_flop = (job_flop if job_flop > short_flop else short_flop) / 2
            if project.unfinished:
                ahead_flop += self._queued_flop(project, now)
            # `_rank` and `_unit` times this, without calls.
            part = inverse[index]
            ranked.append((is_last[index], done[index] * part + growth * part * ahead_flop, index, project))
        ranked.sort()
        return ranked

    def _adapt_half_life(self) -> None:
        """Lets REC remember ten requests of every project, and ten of its jobs.

        A project of share s (of all), whose requests bring this many FLOP at a time, is asked once in FLOP / (s * FLOPS
        of the host). A half-life not much longer than that, or than a job runs, would forget before it compares.
        """
        client = self._client
        buffer_flop = client.buffer_total_secs * client.host_flops
        longest_secs = 0.0
        for project in client.projects:
            if project.share:
                request_flop = max(project.job_flop, buffer_flop / 2)
                between_secs = request_flop * self.inverse[project.index] / client.host_flops
                longest_secs = max(longest_secs, between_secs, project.job_secs)
        self.decay = LN2 / max(HALF_LIFE_DAYS * DAY_SECS, HALF_LIFE_REQUESTS * longest_secs)

    def _ranked_by_letter(self, asked: list[ProjectState], now: float) -> list[tuple[bool, float, int, ProjectState]]:
        """The same by the document's letter: REC as it is, "adjusted" by the queue as a part of the full buffer."""
        client = self._client
        over = asked if client.quirks.runnable_shares else client.projects
        done = self.done_flop
        total = sum([done[project.index] for project in over]) or 1.0
        shares = sum([project.share for project in over]) or 1.0
        capacity = client.buffer_total_secs * client.host_flops
        ranked = []
        for project in asked:
            index = project.index
            part = done[index] / total
            rank = part * shares / project.share if project.share else part
            if project.unfinished:
                rank += self._queued_flop(project, now) / capacity
            ranked.append((not project.share, rank, index, project))
        ranked.sort()
        return ranked

    def _queued_flop(self, project: ProjectState, now: float) -> float:
        flop = 0.0
        for kind, waiting in enumerate(project.waiting):
            if waiting:
                first = waiting[0]
                flop += project.waiting_secs[kind] * first.counted_flops / first.usage
            for job in project.begun[kind]:
                flop += job.left_secs(now) * job.counted_flops
        return flop

    def _able(self, project: ProjectState, kind: int, saturated_secs: float, now: float) -> bool:
        """Whether it could be asked for that kind now."""
        client = self._client
        if not project.can_supply[kind] or project.backoff_until_secs[kind] > now:
            return False
        if not project.share and saturated_secs >= min(client.buffer_min_secs, ZERO_SHARE_SECS):
            return False
        return project.unfinished <= MAX_UNFINISHED

    def _request(
        self, order: list[ProjectState], place: int, chosen: int, simulated: SimulationResult, now: float
    ) -> WorkRequest:
        """Asks for the kind it was chosen for, and for all others that are short and that no project before it could
        supply. The project's own back-off does not count for these."""
        project = order[place]
        request = self._empty(project, Reason.FETCH_SATURATION, chosen, now)
        for kind in range(len(self._client.kinds)):
            short = simulated.shortfall_secs[kind] > 0 and project.can_supply[kind]
            others = any(self._able(p, kind, simulated.saturated_secs[kind], now) for p in order[:place])
            if kind == chosen or (short and not others):
                self._ask(request, kind, simulated)
        return request

    def _empty(self, project: ProjectState, reason: Reason, kind: int, now: float) -> WorkRequest:
        kinds = len(self._client.kinds)
        if self.by_letter:
            busy_secs = self._simulation.busy_secs(now)
        else:
            missed = self._simulation.busy_secs(now)
            urgent = self._simulation.urgent_secs(project, now)
            busy_secs = [max(secs) for secs in zip(missed, urgent, strict=True)]
        return WorkRequest(project, [0.0] * kinds, [0.0] * kinds, reason, busy_secs, kind)

    def _ask(self, request: WorkRequest, kind: int, simulated: SimulationResult) -> None:
        """ "Request enough jobs to fill the number of idle instances, and to use at least shortfall seconds.\""""
        client = self._client
        project = request.project
        if not project.share:
            request.secs[kind] = 1.0
            return
        request.secs[kind] = simulated.shortfall_secs[kind]
        request.instances[kind] = simulated.idle[kind]
        if client.quirks.share_of_instances:
            shares = sum(p.share for p in client.projects if p.can_supply[kind]) or 1.0
            part = client.instances[kind] * project.share / shares
            used = sum(job.usage for jobs in (project.begun[kind], project.waiting[kind]) for job in jobs)
            request.instances[kind] = max(simulated.idle[kind], part - used)

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        simulated = self._simulate(now)
        request = None
        order = self._order(simulated, now)
        for kind, shortfall in enumerate(simulated.shortfall_secs):
            if shortfall <= 0:
                continue
            # It matters only for projects without a share.
            saturated_secs = simulated.saturated_secs[kind] if self._any_without_share else 0.0
            for first in order:
                if self._able(first, kind, saturated_secs, now):
                    if first is project:
                        if request is None:
                            request = self._empty(first, Reason.FETCH_ALONG, kind, now)
                        self._ask(request, kind, simulated)
                    break
        return request


class RecLetter(Rec):
    """The client scheduling document's letter: projects are ranked for work fetch by REC as it is, less for their
    queues in proportion to the buffer; the half-life is fixed."""

    name = PolicyName.REC_LETTER
    follows_letter = True
