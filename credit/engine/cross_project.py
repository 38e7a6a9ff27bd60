"""The central server's rule: version factors averaged over projects (credit document, "Cross-project version
normalization"). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules

MAX_FACTORS: Final = 1_000
"""The limit on factors in a list of averages."""
MIN_SCALE: Final = 1e-4
MAX_SCALE: Final = 100.0
"""Factors beyond this are treated as faults: a GPU version is about ten times less efficient than a CPU version."""


@dataclass(frozen=True, slots=True)
class ExportedVersion:
    """A version as its project exports it.

    ``pfc_scale`` is 0 if it has none yet. ``expavg_credit``: credits a day as of ``expavg_time`` (Unix time).
    ``is_received``: its factor came from a central server.
    """

    app_name: str
    platform: str
    version_num: int
    plan_class: str
    processor_type: str
    pfc_n: float
    pfc_scale: float
    expavg_credit: float
    expavg_time: float
    sample_threshold: int = 100
    is_received: bool = False


@dataclass(frozen=True, slots=True)
class Factor:
    """An average factor; ``plan_class`` None: of all versions for this type of processor.

    ``expavg_credit``: the sum of the weights, in credits a day. ``nprojects``, ``nversions``: how many were averaged.
    """

    processor_type: str
    plan_class: str | None
    scale: float
    expavg_credit: float
    nprojects: int
    nversions: int


def versions_that_count(versions: Iterable[ExportedVersion]) -> list[ExportedVersion]:
    """Return a project's versions above their sample threshold, from apps with such versions for both CPUs and GPUs.

    Only in these apps does a factor compare a version's efficiency with the other kind's. A received factor adds
    nothing new.
    """
    apps: dict[str, list[ExportedVersion]] = defaultdict(list)
    for version in versions:
        if version.pfc_n >= version.sample_threshold and MIN_SCALE <= version.pfc_scale <= MAX_SCALE:
            apps[version.app_name].append(version)
    counted = []
    for group in apps.values():
        own = [version for version in group if not version.is_received]
        if len({version.processor_type == ProcessorType.CPU for version in own}) == 2:
            counted += own
    return counted


def average_factors(projects: Iterable[Sequence[ExportedVersion]], now: float) -> list[Factor]:
    """Average the factors of each type of processor and of each of its plan classes, weighted by recent average credit.

    Versions without recent credit have no weight, and groups without any are left out. If there are more than
    `MAX_FACTORS`, those of whole processor types are kept first, then those of plan classes that most projects have.
    """
    groups: dict[tuple[str, str | None], list[tuple[int, float, float]]] = defaultdict(list)
    for number, versions in enumerate(projects):
        for version in versions_that_count(versions):
            credit = decayed(version.expavg_credit, version.expavg_time, now, Rules.published())
            for plan_class in (None, version.plan_class):
                groups[version.processor_type, plan_class].append((number, version.pfc_scale, credit))
    factors = []
    for (processor_type, plan_class), group in groups.items():
        rows = [row for row in group if row[2] > 0]
        total = fsum(credit for _, _, credit in rows)
        if total > 0:
            scales = [scale for _, scale, _ in rows]
            mean = fsum(scale * credit for _, scale, credit in rows) / total
            # Rounding can exceed the limits, by far where credit is tiny.
            scale = min(max(mean, min(scales)), max(scales))
            nprojects = len({number for number, _, _ in rows})
            factors.append(Factor(processor_type, plan_class, scale, total, nprojects, len(rows)))
    factors.sort(key=lambda factor: (factor.plan_class is not None, -factor.nprojects, -factor.expavg_credit))
    return sorted(factors[:MAX_FACTORS], key=_place)


def _place(factor: Factor) -> tuple[str, bool, str]:
    return factor.processor_type, factor.plan_class is not None, factor.plan_class or ""


def factor_for(factors: Iterable[Factor], processor_type: str, plan_class: str) -> Factor | None:
    """Return S(V): the factor of the version's plan class, else of its type of processor."""
    of_type = {factor.plan_class: factor for factor in factors if factor.processor_type == processor_type}
    return of_type.get(plan_class) or of_type.get(None)
