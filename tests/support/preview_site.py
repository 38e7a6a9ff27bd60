"""A simulated population that has worked for a site for some days, and goes on in the same way wherever it is asked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from django.conf import settings

from credit.models import App, LoggedPass, Result
from credit.previews.facts import replay_of
from credit.previews.replay import Replay, ReplayedResult
from credit.previews.settings import checked
from credit.statistics import pass_log
from credit.statistics.feeder import feed
from credit.validator.passes import run_pass
from extras.laboratory.trials.population import KINDS, Cheat, VersionKind
from extras.laboratory.trials.simulation import SimulatedProject, make_computers, release_versions
from tests.support.credit_factories import NOON, make_app

HOUR = dt.timedelta(hours=1)
CHEATS = {Cheat.WRONG: 0.1, Cheat.CHERRY_PICK: 0.1, Cheat.EXAGGERATE: 0.05, Cheat.ONE_TIME: 0.05}


@dataclass
class Site:
    """A population that has worked for a while; ``work`` lets it go on, always in the same way."""

    app: App
    project: SimulatedProject

    def work(self, midway: Callable[[], object] = lambda: None) -> list[float]:
        """The credit of each result that is found valid in the next six steps, in the order of their numbers.

        ``midway`` is called after three of them, at NOON + 3 hours.
        """
        self.project.rng = Random(7)
        for step in range(6):
            if step == 3:
                midway()
            self.step(NOON + step * HOUR, 30)
        rows = Result.objects.filter(app=self.app, granted_at__gte=NOON).order_by("pk")
        return [credit or 0.0 for credit in rows.values_list("granted_credit", flat=True)]

    def grants(self) -> list[tuple[int, float | None]]:
        """Each result that was reported then, in the order of their numbers, with its credit."""
        rows = Result.objects.filter(app=self.app, received_at__gte=NOON).order_by("pk")
        return list(rows.values_list("pk", "granted_credit"))

    def step(self, begin: dt.datetime, njobs: int) -> None:
        end = begin + HOUR
        self.project.report(njobs, begin, end)
        self.validate(end)
        if self.project.nreplicas > 1 and self.project.add_replicas(end):
            self.validate(end + dt.timedelta(minutes=1))
        feed(end + dt.timedelta(minutes=5), self.app)

    def validate(self, now: dt.datetime) -> None:
        for number in range(100):
            # Passes of few workunits, so that many versions of the statistics are read.
            if not run_pass(self.app.pk, now + number * dt.timedelta(seconds=1), 15).nworkunits:
                return

    def replay(self, **changes: Any) -> tuple[list[ReplayedResult], Replay]:
        wanted = checked(self.app, changes)
        window = pass_log.window(self.app.pk, settings.PREVIEW_WORKUNITS)
        assert window is not None
        app = App.objects.get(pk=self.app.pk)
        replay = replay_of(app, wanted, *window[:2])
        return [o for logged in pass_log.read(app.pk, *window[:2]) for o in replay.step(logged)], replay


def make_site(nreplicas: int = 2, kinds: Sequence[VersionKind] = KINDS, **fields: Any) -> Site:
    """After four days; what passes logged begins with what comes next."""
    app = make_app(**fields)
    rng = Random(1)
    computers = make_computers(rng, 40, anonymous_part=0.1, cheats=CHEATS)
    computers = [computer for computer in computers if computer.kinds(kinds)]
    for computer in computers:
        computer.failing_part = 0.05
    versions = release_versions(app, kinds)
    # Factors need this many samples; a small population has them sooner.
    App.objects.filter(pk=app.pk).update(min_version_samples=20, min_host_samples=5)
    app.refresh_from_db()
    site = Site(app, SimulatedProject(app, kinds, versions, computers, rng, nreplicas))
    for day in range(4):
        site.step(NOON - (5 - day) * dt.timedelta(days=1), 60)
    LoggedPass.objects.all().delete()
    return site


def same(first: float, second: float) -> bool:
    return abs(first - second) <= 1e-9 * max(abs(first), abs(second), 1e-300)
