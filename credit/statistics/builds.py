"""How fast an app's builds are on each kind of hardware, from computers' run times; for operators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from credit.models import AppVersion
from credit.statistics.sql import BUILD_SPEEDS

SHOWN_MODELS: Final = 20
"""Those with the most jobs."""
MAX_RECORDS: Final = 20_000
"""The number of (host, version) records read for each version, newest first."""


@dataclass(frozen=True, slots=True)
class BuildSpeed:
    """A version on a model of processor or GPU: computers, run times, and estimated FLOPs done per second.

    ``spread``: the standard deviation of the run time per estimated FLOP, among jobs and computers, relative to its
    average. ``is_fastest``: of two or more versions there.
    """

    model: str
    version: AppVersion
    ncomputers: int
    nsamples: int
    flops: float
    spread: float
    is_fastest: bool


def build_speeds(version: AppVersion) -> list[BuildSpeed]:
    """Compare this version and those that computers may get instead, by model; the fastest first."""
    rivals = AppVersion.objects.filter(
        app=version.app_id, processor_type=version.processor_type, platform=version.platform_id
    ).select_related("app", "platform")
    versions = {rival.pk: rival for rival in rivals if rival.pk == version.pk or not rival.is_deprecated}
    values: dict[str, Any] = {
        "versions": list(versions),
        "type": version.processor_type,
        "most_records": MAX_RECORDS,
        "most_models": SHOWN_MODELS,
    }
    with connection.cursor() as cursor:
        cursor.execute(BUILD_SPEEDS, values)
        rows = cursor.fetchall()
    nbuilds: dict[str, int] = {}
    for model, *_ in rows:
        nbuilds[model] = nbuilds.get(model, 0) + 1
    speeds: list[BuildSpeed] = []
    for model, version_id, ncomputers, nsamples, secs, variance in rows:
        is_first = not speeds or speeds[-1].model != model
        spread = math.sqrt(max(variance, 0.0)) / secs
        is_fastest = is_first and nbuilds[model] > 1
        speeds.append(BuildSpeed(model, versions[version_id], ncomputers, nsamples, 1 / secs, spread, is_fastest))
    return speeds
