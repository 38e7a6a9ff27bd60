"""The limits set by the processors of an emulated computer and its owner's preferences. Both may change during a
run.
"""

from __future__ import annotations

from typing import Final

from emulator.engine.limits import allowed_fractions
from emulator.engine.quirks import Quirks
from emulator.engine.scenario import DAY_SECS, App, Preferences, Processor, Scenario
from emulator.engine.state import NEVER, AppState, Job, Offer, ProjectState

MIN_BUFFER_SECS: Final = 180.0
MIN_UP_FRACTION: Final = 0.01


class Capacity:
    """Processors, the limits of preferences, and the versions for which servers may send jobs."""

    def __init__(self, scenario: Scenario, quirks: Quirks) -> None:
        self.quirks = quirks
        processors = scenario.all_processors()
        self.kinds: Final = tuple(processor.kind for processor in processors)  # names; [0] is "CPU"
        self.processors = list(processors)
        self.count = [processor.instances for processor in processors]
        self.present = [kind < len(scenario.host.processors) for kind in range(len(processors))]  # per kind: it exists
        self.instances = [float(count) for count in self.count]  # per kind: as much as preferences let jobs use
        self.instance_flops = [self._counted_flops(kind) for kind in range(len(processors))]
        self._host: Final = scenario.host
        # Per kind, the fraction of the time in which it computes, as the client measures it: everything that stops it
        # counts.
        self.up_fraction = [1.0] * len(processors)
        self.ram_bytes = NEVER  # what running jobs may use now; infinity for no limit
        self.kind_active = [True] * len(processors)  # per kind: jobs may run on it now (on, active, GPU active)
        self.set_preferences(scenario.preferences)
        self.limited = False  # a project or an application has a limit of jobs at once
        # No present job can miss its deadline before that; 0: unknown (kernel.bounds).
        self.safe_until_secs = 0.0

    def set_preferences(self, preferences: Preferences) -> None:
        """Applies the owner's preferences from now on; jobs and versions stay as they are.

        The client is assumed to know at once what fraction of the time it will compute: in reality it learns that in
        some days.
        """
        self.preferences = preferences
        self.cpu_limit = preferences.cpu_usage_percent / 100  # the part of the time in which jobs of whole CPUs run
        host = self._host
        allowed, gpus_allowed = allowed_fractions(host, preferences)
        active = [host.active.fraction * allowed * self.cpu_limit, host.gpu_active.fraction * gpus_allowed]
        for kind in range(len(self.kinds)):
            self.up_fraction[kind] = max(MIN_UP_FRACTION, host.on.fraction * active[min(kind, 1)])
        most = max(preferences.ram_busy_fraction, preferences.ram_idle_fraction)
        self.ram_bytes_max = host.ram_bytes * most if host.ram_bytes else NEVER
        self.period_secs = preferences.period_secs  # scheduling period
        self.report_at_once = preferences.report_at_once
        self.buffer_min_secs = max(preferences.work_buf_min_days * DAY_SECS, MIN_BUFFER_SECS)
        self.buffer_total_secs = self.buffer_min_secs + preferences.work_buf_additional_days * DAY_SECS
        self.safe_until_secs = 0.0
        self._use_cpus()

    def _counted_flops(self, kind: int) -> float:
        processor = self.processors[kind]
        weight = processor.instances if self.quirks.gpu_count_squared and kind else 1
        return processor.counted_flops * weight

    def set_processor(self, kind: int, processor: Processor, *, is_there: bool) -> None:
        """Gives the computer these processors of a kind from now on, or none; jobs and versions stay as they are."""
        self.processors[kind] = processor
        self.count[kind] = processor.instances
        self.present[kind] = is_there
        self.instances[kind] = float(processor.instances)
        self.instance_flops[kind] = self._counted_flops(kind)
        self.safe_until_secs = 0.0
        self._use_cpus()

    def _use_cpus(self) -> None:
        """Sets the CPUs that preferences let jobs use, and the computer's counted FLOPS."""
        self.instances[0] = float(self.preferences.usable_cpus(self.count[0]))
        rows = zip(self.present, self.instances, self.instance_flops, strict=True)
        self.host_flops = sum(n * flops for present, n, flops in rows if present)

    def add_app(self, project: ProjectState, app: App) -> None:
        """Gives the project this application, or these versions of it, from now on."""
        if app.non_cpu_intensive:
            return
        state = next((old for old in project.apps if old.app.name == app.name), None)
        if state is None:
            state = AppState(app)
            project.apps.append(state)
        for number, version in enumerate(app.versions):
            if version.kind in self.kinds:
                kind = self.kinds.index(version.kind)
                offer = Offer(project, state, number, version, kind, self.instance_flops, self.cpu_limit)
                offer.too_large = app.working_set_bytes > self.ram_bytes_max
                state.all_offers.append(offer)
        if project.project.max_concurrent:
            self.limited = True
        self.find_offers(project, state)

    def find_offers(self, project: ProjectState, app: AppState) -> None:
        """Finds the versions for which the server may send jobs, with the present processors."""
        app.most_at_once = self._most_at_once(app.app)
        if app.most_at_once:
            self.limited = True
        for offer in app.all_offers:
            offer.barred = self.barred(project, app, offer.kind)
        app.offers = [offer for offer in app.all_offers if self.can_run(offer) and not offer.too_large]
        app.offers = [offer for offer in app.offers if offer.usage <= self._allowed(offer.kind, offer.barred)]
        for offer in app.offers:
            self.limited = self.limited or offer.barred != 0
            project.can_supply[offer.kind] = self.kinds[offer.kind] not in project.project.not_asked
        self._find_most_used(project)

    def _find_most_used(self, project: ProjectState) -> None:
        """Finds how many instances of each kind its jobs can occupy at once."""
        limit = project.project.max_concurrent
        for kind in range(len(self.kinds)):
            largest, of_apps = 0.0, 0.0
            barred_for_all = -1
            for state in project.apps:
                for offer in state.offers:
                    if offer.kind == kind:
                        barred_for_all &= offer.barred
                usage = max([offer.usage for offer in state.offers if offer.kind == kind], default=0.0)
                largest = max(largest, usage)
                if usage:
                    of_apps += usage * state.most_at_once if state.most_at_once else NEVER
            if largest:
                most = self._allowed(kind, barred_for_all) if barred_for_all else NEVER
                project.most_used[kind] = min(of_apps, most, limit * largest if limit else NEVER)

    def barred(self, project: ProjectState, app: AppState, kind: int) -> int:
        """The devices of that kind, as bits, that an application's jobs must not use."""
        devices = {
            excluded.device
            for excluded in project.project.excluded_gpus
            if excluded.gpu == self.kinds[kind] and excluded.app in ("", app.app.name)
        }
        return sum([1 << device for device in devices if device < self.count[kind]])

    def _allowed(self, kind: int, barred: int) -> int:
        return self.count[kind] - barred.bit_count()

    def _most_at_once(self, app: App) -> int:
        """How many jobs of an application may run at once, 0 for any number: by its limit, or because no more fit into
        the RAM.
        """
        most = self.ram_bytes_max / app.working_set_bytes if app.working_set_bytes else NEVER
        if most < 1 or most >= sum(self.instances):
            return app.max_concurrent
        return min(app.max_concurrent or int(most), int(most))

    def can_run(self, need: Offer | Job) -> bool:
        """Whether the computer has the processors that a version or a job needs."""
        kind = need.kind
        return self.present[kind] and need.usage <= self.count[kind] and need.cpus <= self.count[0]

    def usable_secs(self, project: ProjectState, kind: int, now: float) -> float:
        """How much more work of that kind its limits let it do within the buffer; infinity if they do not matter."""
        most = project.most_used[kind]
        if most >= self.instances[kind]:
            return NEVER
        queued_secs = project.waiting_secs[kind]
        for job in project.begun[kind]:
            queued_secs += job.left_secs(now) * job.usage
        return most * self.buffer_total_secs - queued_secs / self.up_fraction[kind]
