"""A history of validated credit for ``make run``: weeks of work of the demo volunteer's computers and of others'.

All of it goes through the real validator and feeder, on a clock that is passed in.
"""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any, Final

from credit.engine.facts import ProcessorType
from credit.laboratory.population import KINDS, LINUX, WINDOWS, Cheat, Computer
from credit.laboratory.simulation import SimulatedProject, make_computers, release_versions, run
from credit.models import App
from portal.models import Host, User

HISTORY: Final = dt.timedelta(days=21)
JOBS: Final = 800
WINGMEN: Final = 24
SEED: Final = 2026
SHARE: Final = 3
"""A computer of the demo volunteer's does as many times the jobs of another one."""


def make_history(owner: User, now: dt.datetime) -> int:
    """Three weeks of a finished app; the number of results. Safe to repeat: only the first time does anything."""
    app, is_new = App.objects.get_or_create(
        name="sediment",
        defaults={
            "user_friendly_name": "Sediment transport",
            "description": "Where a river leaves the sand that it carries, grain by grain. All its jobs are done.",
            "is_deprecated": True,
        },
    )
    if not is_new:
        return 0
    rng = Random(SEED)
    own = [_computer(host) for host in Host.objects.filter(owner=owner, merged_into=None).order_by("pk")]
    others = make_computers(
        rng, WINGMEN, anonymous_part=0.1, cheats={Cheat.EXAGGERATE: 0.05, Cheat.WRONG: 0.05, Cheat.ONE_TIME: 0.05}
    )
    project = SimulatedProject(app, KINDS, release_versions(app), own * SHARE + others, rng)
    nresults, _ = run(project, JOBS, now - HISTORY, now, nsteps=21)
    return nresults


def _computer(host: Host) -> Computer:
    """The platform in the simulation; a system that the app has no version for counts as Linux."""
    types = {kind.processor_type for kind in KINDS if kind.processor_type != ProcessorType.CPU}
    gpu: dict[str, Any] = next((c for c in host.coprocs if c.get("type") in types), {})
    platform = host.platform_name if host.platform_name == WINDOWS else LINUX
    return Computer(
        host.pk,
        host.owner_id,
        platform,
        p_fpops=host.p_fpops or 3e9,
        ncpus=max(1, host.ncpus),
        gpu_type=str(gpu.get("type", "")),
        gpu_flops=float(gpu.get("peak_flops") or 0),
    )
