"""Reads the settings and statistics that a replay begins with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from credit.models import App, AppVersion, HostAppVersion, StatisticsSnapshot, VersionAverage
from credit.previews.replay import Replay
from credit.previews.run import ReplacedStatistics, Settings, VersionState
from credit.previews.settings import Changes, as_set
from credit.statistics import pass_log
from credit.statistics.facts import app_facts, version_facts
from credit.statistics.pass_arrays import PassFacts


def replay_of(app: App, changes: Changes, first: int, last: int) -> Replay:
    """Prepare a replay of the logged passes from ``first`` to ``last``."""
    versions = list(AppVersion.objects.filter(app=app))
    before = _settings(*as_set(app, versions, changes, 0))
    after = replace(
        _settings(*as_set(app, versions, changes, 1)),
        reset=frozenset(changes["reset"]),
        restored=_replaced(changes.get("restore", ())),
    )
    if not (before.uses_medians or after.uses_medians):
        return Replay(before, after)
    return Replay(before, after, _averages_at_first(app, pass_log.read(app.pk, first, last)))


def _settings(app: App, versions: list[AppVersion]) -> Settings:
    facts = {version.pk: version_facts(version) for version in versions}
    return Settings(app_facts(app), facts, app.version_average == VersionAverage.MEDIAN)


def _replaced(snapshots: Iterable[int]) -> dict[int, ReplacedStatistics]:
    """Return restored statistics, by version."""
    replaced = {}
    for snapshot in StatisticsSnapshot.objects.filter(pk__in=list(snapshots)).prefetch_related("host_records"):
        records = {
            row.record_id: HostVersionFacts(
                Average(row.pfc_n, row.pfc_avg),
                clean_pfc=Average(row.clean_pfc_n, row.clean_pfc_avg),
                recent_pfc=Average(row.recent_pfc_n, row.recent_pfc_avg),
                waiting_pfc=Average(row.waiting_pfc_n, row.waiting_pfc_avg),
                samples_since=row.samples_at.timestamp() if row.samples_at else None,
                peak_flops=row.peak_flops,
                lead_jobs=row.lead_jobs,
                et=AverageWithVariance(row.et_n, row.et_avg, row.et_var, row.et_q),
            )
            for row in snapshot.host_records.all()
        }
        state = VersionState(snapshot.pfc_n, snapshot.pfc_avg, snapshot.pfc_scale, snapshot.is_counted)
        replaced[snapshot.app_version_id] = ReplacedStatistics(snapshot.taken_at.timestamp(), state, records)
    return replaced


def _averages_at_first(app: App, passes: Iterable[PassFacts]) -> list[tuple[int, int, Average]]:
    """Return the averages of all (host, version) records when the replay begins.

    Records that no pass has used since then have their current averages.
    """
    now = HostAppVersion.objects.filter(app=app, app_version__isnull=False, pfc_n__gt=0)
    averages = {
        pk: (pk, version, Average(n, avg))
        for pk, version, n, avg in now.values_list("pk", "app_version_id", "pfc_n", "pfc_avg").iterator()
    }
    seen = set()
    for logged in passes:
        columns = (logged.records[name].tolist() for name in ("id", "version", "pfc_n", "pfc_avg"))
        for pk, version, n, avg in zip(*columns, strict=True):
            if version and pk not in seen:
                seen.add(pk)
                averages[pk] = (pk, version, Average(int(n), None if avg != avg else avg))
    return list(averages.values())
