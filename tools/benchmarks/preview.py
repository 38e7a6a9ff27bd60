"""How long a preview of 20,000 workunits takes: reading the stored passes, both replays, and the figures."""

from __future__ import annotations

import datetime as dt
import time
from random import Random
from typing import Any, Final

from django.test.utils import override_settings
from django.utils import timezone

from credit.models import App, Preview, VersionAverage
from credit.previews import worker
from credit.previews.settings import checked
from credit.statistics.feeder import feed
from credit.validator.passes import run_pass
from extras.laboratory.trials.population import KINDS
from extras.laboratory.trials.simulation import SimulatedProject, make_computers, release_versions
from portal.models import User

WORKUNITS: Final = 20_000
HOSTS: Final = 600
BATCH: Final = 2500
CHANGES: Final[dict[str, dict[str, Any]]] = {
    "host_scale_check": {"host_scale_check": [False, True]},
    "median": {"version_average": [VersionAverage.MEAN, VersionAverage.MEDIAN]},
}


def measure() -> dict[str, Any]:
    """Measure seconds and processor seconds of this process, by the changed setting. Two results per workunit."""
    now = timezone.now()
    app = App.objects.create(name="bench-preview", user_friendly_name="Benchmark of previews")
    rng = Random(1)
    project = SimulatedProject(app, KINDS, release_versions(app), make_computers(rng, HOSTS), rng, 2)
    for days in range(4, 0, -1):
        project.report(WORKUNITS // 4, now - dt.timedelta(days=days + 1), now - dt.timedelta(days=days))
        while run_pass(app.pk, now, BATCH).nworkunits:
            pass
        feed(now, app)
    user = User.objects.create(email="operator-of-previews@example.org")
    return {"workunits": WORKUNITS, **{name: _preview(app, user, changes) for name, changes in CHANGES.items()}}


def _preview(app: App, user: User, changes: dict[str, Any]) -> dict[str, float]:
    changed = checked(app, {"app": changes})
    preview = Preview.objects.create(app=app, asked_by=user, asked_at=timezone.now(), changes=changed)
    began, cpu_began = time.perf_counter(), time.process_time()
    with override_settings(PREVIEW_WORKUNITS=WORKUNITS):
        worker.carry_out(preview.pk)
    secs, cpu_secs = time.perf_counter() - began, time.process_time() - cpu_began
    preview.refresh_from_db()
    assert preview.result is not None, preview.failure
    return {"secs": round(secs, 2), "cpu_secs": round(cpu_secs, 2)}
