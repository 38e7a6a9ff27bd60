"""The feeder's rules: the scales of an app's versions, and the app's lowest average of PFC.

Credit document, "Cross-version normalization" and "Cross-project version normalization".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from credit.engine.facts import AppFacts, VersionFacts
from credit.engine.rules import MAX_STATISTIC, Rules, Scaling


@dataclass(slots=True)
class Normalisation:
    """The result of a feeder pass: the scales of versions by id (None: no scale), and the lowest average.

    ``min_avg_pfc`` None: not enough is known; the app keeps its value. A version that is not in ``scales`` keeps its
    scale. ``counted`` are the versions whose averages made ``min_avg_pfc`` (published rules; else empty). ``received``:
    the versions whose scale comes from other projects, as it was set or in proportion to one that was.
    """

    min_avg_pfc: float | None = None
    scales: dict[int, float | None] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    received: set[int] = field(default_factory=set)


def normalise(versions: Sequence[VersionFacts], rules: Rules) -> Normalisation:
    """Compute the scales of one app's versions; ``versions`` are all of them, including deprecated ones."""
    normalisation = _SCALINGS[rules.scaling](versions, rules)
    normalisation.received |= {
        version.id for version in versions if version.is_scale_received and version.id not in normalisation.scales
    }
    return normalisation


def renew_scales(app: AppFacts, versions: Sequence[VersionFacts]) -> list[int]:
    """Run the feeder: update in place all versions' scales, which of them count, and the app's lowest average.

    Returns the versions whose scale could not be stored as a number: they get none. A lowest average that could not be
    stored is left out, too.
    """
    normalisation = normalise(versions, app.rules)
    scales, counted, received = normalisation.scales, normalisation.counted, normalisation.received
    impossible = []
    for version in versions:
        scale = scales.get(version.id, version.pfc_scale)
        if scale is not None and not 0 < scale < MAX_STATISTIC:
            impossible.append(version.id)
            scale = None
        version.pfc_scale = scale
        version.is_scale_received = version.id in received
        if counted:
            version.is_counted = version.id in counted
    least = normalisation.min_avg_pfc
    if least is not None and 0 < least < MAX_STATISTIC:
        app.min_avg_pfc = least
    return impossible


def takes_received_scales(versions: Sequence[VersionFacts], rules: Rules) -> bool:
    """Whether factors of other projects apply to an app: none of its versions that count is for CPUs.

    Published: versions need enough samples to count, so a newly released CPU version changes nothing yet.
    """
    if rules.scaling is Scaling.NEWEST:
        return False
    counted = [version for version in versions if not version.is_deprecated]
    if rules.scaling is Scaling.KEPT:
        counted += [version for version in versions if version.is_counted]
        counted = _above(counted, rules.min_version_samples)
    return all(version.is_gpu for version in counted)


def _published(versions: Sequence[VersionFacts], rules: Rules) -> Normalisation:
    """Normalise so that no scale jumps because a version comes or goes.

    Versions count if they are current and above the threshold. If they are too few, those that counted at the last pass
    still count, withdrawn or not. A new version counts, and makes its kind count, once it reaches the threshold.
    """
    normalisation = Normalisation()
    current = [version for version in versions if not version.is_deprecated]
    enough = _above(current, rules.min_version_samples)
    last = _above((version for version in versions if version.is_counted), rules.min_version_samples)
    with_received = [version for version in current + last if version.cross_project_scale]
    takes_received = takes_received_scales(versions, rules)
    if with_received and takes_received:
        counted = _above((v for v in current if v.cross_project_scale), rules.min_version_samples)
        counted = counted or [version for version in last if version.cross_project_scale]
        _cross_project(normalisation, current, enough, counted)
    else:
        if takes_received and any(version.cross_project_scale for version in versions):
            # Inherited from a version that was withdrawn without samples, so there is no proportion to derive.
            enough = [version for version in enough if not version.is_scale_received]
        counted = _counted(enough, last)
        if counted:
            level = normalisation.min_avg_pfc = min(_mean(group) for group in _by_kind(counted))
            normalisation.scales = {version.id: level / (version.pfc.avg or 1.0) for version in enough}
    normalisation.counted = {version.id for version in counted}
    _inherit(normalisation, versions, current)
    return normalisation


def _counted(enough: Sequence[VersionFacts], last: Sequence[VersionFacts]) -> list[VersionFacts]:
    """Return the versions whose means are compared: the document needs one of each kind, or two of the only kind."""
    kinds = {version.is_gpu for version in enough}
    counted = [*enough, *(version for version in last if version.is_gpu not in kinds)]
    if len(enough) < 2 and len({version.is_gpu for version in counted}) < 2:
        ids = {version.id for version in counted}
        counted += [version for version in last if version.id not in ids]
    return counted


def _by_kind(versions: Sequence[VersionFacts]) -> list[list[VersionFacts]]:
    groups = [[version for version in versions if version.is_gpu is is_gpu] for is_gpu in (False, True)]
    return [group for group in groups if group]


def _inherit(normalisation: Normalisation, versions: Sequence[VersionFacts], current: Sequence[VersionFacts]) -> None:
    """Let a version without a scale start with that of the newest older one of the same platform and plan class.

    Oldest first, so that several releases may follow each other before any has samples. A scale received from other
    projects is no longer inherited once it was withdrawn.
    """
    has_received = any(version.cross_project_scale for version in versions)
    ended = {version.id for version in versions if _has_ended(version, has_received)} - normalisation.scales.keys()
    normalisation.scales |= dict.fromkeys(ended)
    scales = {version.id: normalisation.scales.get(version.id, version.pfc_scale) for version in versions}
    received = normalisation.received | {
        v.id for v in versions if v.is_scale_received and v.id not in normalisation.scales
    }
    to_do = [version for version in versions if version.id in ended or version in current]
    for version in sorted(to_do, key=lambda version: version.version_num):
        if version.id in normalisation.scales and version.id not in ended:
            continue
        older = [
            other
            for other in versions
            if (other.platform_id, other.plan_class) == (version.platform_id, version.plan_class)
            and other.version_num < version.version_num
            and scales[other.id] is not None
        ]
        if older:
            last = max(older, key=lambda other: other.version_num)
            normalisation.scales[version.id] = scales[version.id] = scales[last.id]
            if last.id in received:
                normalisation.received.add(version.id)
                received.add(version.id)


def _has_ended(version: VersionFacts, has_received: bool) -> bool:
    """Whether its scale came from another project, and no setting provides one any more.

    A withdrawn version keeps its last scale as long as the app has any from other projects.
    """
    is_kept = has_received if version.is_deprecated else bool(version.cross_project_scale)
    return version.is_scale_received and not is_kept


def _to_the_letter(versions: Sequence[VersionFacts], rules: Rules) -> Normalisation:
    normalisation = Normalisation(scales={version.id: None for version in versions})
    current = [version for version in versions if not version.is_deprecated]
    enough = _above(current, rules.min_version_samples)
    if takes_received_scales(versions, rules) and any(version.cross_project_scale for version in current):
        with_received = [version for version in enough if version.cross_project_scale]
        _cross_project(normalisation, current, enough, with_received)
        return normalisation
    level = _level(current, enough)
    if level is not None:
        normalisation.min_avg_pfc = level
        for version in enough:
            normalisation.scales[version.id] = level / (version.pfc.avg or 1.0)
    elif enough:
        normalisation.min_avg_pfc = _mean(enough)
        for version in enough:
            normalisation.scales[version.id] = 1.0
    return normalisation


def _level(current: Sequence[VersionFacts], enough: Sequence[VersionFacts]) -> float | None:
    """Return the document's X, which all versions' averages are scaled to; None if it is not defined."""
    cpu = [version for version in enough if not version.is_gpu]
    gpu = [version for version in enough if version.is_gpu]
    if len({version.is_gpu for version in current}) == 2:
        return min(_mean(cpu), _mean(gpu)) if cpu and gpu else None
    return _mean(enough) if len(enough) >= 2 else None


def _cross_project(
    normalisation: Normalisation,
    current: Sequence[VersionFacts],
    enough: Sequence[VersionFacts],
    with_received: Sequence[VersionFacts],
) -> None:
    """Scale an app that only has GPU versions, some with a factor set from outside (``with_received``).

    The factor holds from the first job: it does not depend on samples of this project. Versions without one are scaled
    to those with one.
    """
    for version in current:
        if version.cross_project_scale:
            normalisation.scales[version.id] = version.cross_project_scale
            normalisation.received.add(version.id)
    if not with_received:
        return
    total = sum(version.pfc.n for version in with_received)
    level = sum((v.cross_project_scale or 0.0) * (v.pfc.avg or 0.0) * v.pfc.n for v in with_received) / total
    normalisation.min_avg_pfc = level
    for version in enough:
        if not version.cross_project_scale:
            normalisation.scales[version.id] = level / (version.pfc.avg or 1.0)
            normalisation.received.add(version.id)


def _deployed(versions: Sequence[VersionFacts], rules: Rules) -> Normalisation:
    """Normalise as BOINC's feeder does: one GPU version is enough, a CPU version needs a second; others stay as they
    are.
    """
    newest: dict[tuple[int, str], VersionFacts] = {}
    for version in versions:
        key = (version.platform_id, version.plan_class)
        if not version.is_deprecated and (key not in newest or newest[key].version_num < version.version_num):
            newest[key] = version
    threshold = rules.min_version_samples + rules.extra_samples_in_mean
    counted = [version for version in newest.values() if version.pfc.n >= threshold]
    cpu = [version for version in counted if not version.is_gpu]
    gpu = [version for version in counted if version.is_gpu]
    normalisation = Normalisation()
    if cpu and gpu:
        normalisation.min_avg_pfc = min(_mean(cpu), _mean(gpu))
    elif len(cpu) >= 2:
        normalisation.min_avg_pfc = _mean(cpu)
    elif gpu:
        normalisation.min_avg_pfc = (rules.only_gpu_scale or 1.0) * _mean(gpu)
    else:
        return normalisation
    for version in _above(newest.values(), rules.min_version_samples):
        normalisation.scales[version.id] = normalisation.min_avg_pfc / (version.pfc.avg or 1.0)
    return normalisation


_SCALINGS: Final = {Scaling.KEPT: _published, Scaling.RENEWED: _to_the_letter, Scaling.NEWEST: _deployed}


def _above(versions: Iterable[VersionFacts], threshold: int) -> list[VersionFacts]:
    return [version for version in versions if version.pfc.n >= threshold and version.pfc.avg]


def _mean(versions: Sequence[VersionFacts]) -> float:
    """Return the mean of averages, weighted by their samples."""
    return sum((v.pfc.avg or 0.0) * v.pfc.n for v in versions) / sum(v.pfc.n for v in versions)
