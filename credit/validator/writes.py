"""The writes of a validator's pass, a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.explanation import Explanation
from credit.engine.facts import AppFacts, HostVersionFacts, VersionFacts
from credit.engine.passes import PassDecisions, add_samples
from credit.engine.recent_credit import add_credit, add_credit_as_deployed
from credit.engine.rules import MAX_CREDIT, Rules
from credit.validator import sql
from credit.validator.binary import NO_TIME, Column, Write
from credit.validator.reads import Accounts

Send = Callable[..., None]

_CLAIM: Final = tuple(field.name for field in fields(Explanation) if field.name in sql.UPDATE_RESULTS.columns)
"""The fields of an explanation that are stored."""
_stored: Final = attrgetter(*_CLAIM)
_NO_CLAIM: Final = (None,) * len(_CLAIM)

_VERSION_COLUMNS: Final = ("id", "pfc_n", "pfc_avg", "expavg", "expavg_at", "total", "ngranted")
_MAX_VERSION_CREDIT: Final = 1e29


def send_results(send: Send, result_ids: Column, decided: PassDecisions, now_us: int) -> None:
    """Send the verdict, the claim and the grant of each result; None if there is none."""
    claims = [_NO_CLAIM if claim is None else _stored(claim) for claim in decided.claims]
    columns = zip(*claims, strict=True) if claims else [()] * len(_CLAIM)
    values = sql.UPDATE_RESULTS.in_order(
        id=result_ids[np.asarray(decided.places, np.int64)],
        validate_state=decided.states,
        grant_rule=decided.grant_rules,
        granted_credit=decided.credits,
        **dict(zip(_CLAIM, columns, strict=True)),
        now=now_us,
    )
    send(sql.UPDATE_RESULTS, *values)


def send_workunits(send: Send, result_ids: Column, decided: PassDecisions, now_us: int) -> None:
    """Send the decision on each workunit, and its canonical result with its credit if it got one now."""
    ids, places, credits = zip(*decided.workunits, strict=True) if decided.workunits else ((), (), ())
    canonical = [None if place is None else int(result_ids[place]) for place in places]
    values = sql.UPDATE_WORKUNITS.in_order(id=ids, canonical_id=canonical, credit=credits, now=now_us)
    send(sql.UPDATE_WORKUNITS, *values)


def send_records(send: Send, ids: Column, records: Sequence[HostVersionFacts]) -> None:
    values = sql.UPDATE_RECORDS.in_order(
        id=ids,
        **_average("pfc", [r.pfc for r in records]),
        **_with_variance("et", [r.et for r in records]),
        **_with_variance("turnaround", [r.turnaround for r in records]),
        scale_probation=[r.scale_probation for r in records],
        host_scale_at=[NO_TIME if r.host_scale_time is None else round(r.host_scale_time * 1e6) for r in records],
        error_rate=[r.error_rate for r in records],
        consecutive_valid=[r.consecutive_valid for r in records],
        max_jobs_per_day=[r.max_jobs_per_day for r in records],
        **_average("clean_pfc", [r.clean_pfc for r in records]),
        **_average("recent_pfc", [r.recent_pfc for r in records]),
        **_average("waiting_pfc", [r.waiting_pfc for r in records]),
        samples_at=[NO_TIME if r.samples_since is None else round(r.samples_since * 1e6) for r in records],
        failing_share=[r.failing_share for r in records],
        peak_flops=[r.peak_flops for r in records],
        lead_jobs=[r.lead_jobs for r in records],
    )
    send(sql.UPDATE_RECORDS, *values)


def _average(name: str, averages: Sequence[Average | AverageWithVariance]) -> dict[str, list[Any]]:
    return {f"{name}_n": [a.n for a in averages], f"{name}_avg": [a.avg for a in averages]}


def _with_variance(name: str, averages: Sequence[AverageWithVariance]) -> dict[str, list[Any]]:
    columns = _average(name, averages)
    columns |= {f"{name}_var": [a.var for a in averages], f"{name}_q": [a.q for a in averages]}
    return columns


def send_accounts(
    send: Send,
    statement: Write,
    accounts: Accounts,
    owners: Column,
    due: Column,
    sent_at: Column,
    now: float,
    rules: Rules,
) -> None:
    """Add the credit due to each result's owner, in order. ``sent_at`` in seconds; owner 0 is nobody."""
    real = owners != 0
    owners, due, sent_at = owners[real], due[real], sent_at[real]
    places = np.searchsorted(accounts.id, owners)
    totals = np.bincount(places, due, len(accounts.id))
    granted, first = np.unique(places, return_index=True)
    expavg, expavg_at = accounts.expavg.copy(), accounts.expavg_at.copy()
    for place, at in zip(granted.tolist(), first.tolist(), strict=True):
        first_due = float(due[at])
        rest = float(totals[place]) - first_due
        expavg[place], expavg_at[place] = _updated_average(
            expavg[place], expavg_at[place], now, first_due, rest, float(sent_at[at]), rules, add_credit
        )
    values = statement.in_order(
        id=accounts.id[granted],
        total=(accounts.total + totals)[granted],
        expavg=expavg[granted],
        expavg_at=expavg_at[granted],
    )
    send(statement, *values)


def _updated_average(
    average: float, at_us: int, now: float, first: float, rest: float, since: float, rules: Rules, add: Any
) -> tuple[float, int]:
    """Return a recent average and its time after several grants at once: all after the first are added together."""
    updated_at = None if at_us == NO_TIME else at_us / 1e6
    average, then = add(float(average), updated_at, now, first, since, rules)
    if rest > 0:
        average, then = add(average, then, now, rest, since, rules)
    return average, round(then * 1e6)


class Grants(NamedTuple):
    """The credit due to the granted results of a version, and their number."""

    credit: float = 0.0
    nresults: int = 0


def granted_by_version(version_ids: Column, due: Column) -> dict[int, Grants]:
    """Sum the grants of each version. Volunteers' own programs, which have the id 0, are left out."""
    ids, places, counts = np.unique(version_ids, return_inverse=True, return_counts=True)
    sums = np.bincount(places, due, len(ids))
    return {
        id_: Grants(credit, count)
        for id_, credit, count in zip(ids.tolist(), sums.tolist(), counts.tolist(), strict=True)
        if id_
    }


def update_versions(
    app: AppFacts, versions: Mapping[int, VersionFacts], granted: Mapping[int, Grants], now: float
) -> None:
    """Add a pass's samples and grants to the current state of the versions, under a lock of their rows, in order.

    ``granted``: from `granted_by_version`. By the deployed rules a version's recent average is of claims; its total is
    always of grants.
    """
    rules = app.rules
    changed = sorted({v.id for v in versions.values() if v.samples or v.grants} | granted.keys())
    locked = sql.LOCK_VERSIONS.read(changed)
    columns = (locked[name].tolist() for name in _VERSION_COLUMNS)
    rows = []
    for id_, n, average, expavg, at_us, total, count in zip(*columns, strict=True):
        version = versions.get(id_) or VersionFacts(id_)
        pfc = Average(n, None if average != average else average)
        add_samples(app, version, pfc)
        if version.grants:
            since, first = version.grants[0]
            rest = sum(min(credit, MAX_CREDIT) for _, credit in version.grants[1:])
            add = _add_as_deployed if rules.averages_claims else add_credit
            expavg, at_us = _updated_average(expavg, at_us, now, min(first, MAX_CREDIT), rest, since, rules, add)
        more = granted.get(id_, Grants())
        expavg = min(max(expavg, 0.0), _MAX_VERSION_CREDIT)
        rows.append((id_, pfc.n, pfc.avg, expavg, at_us, total + more.credit, count + more.nresults))
    written = zip(*rows, strict=True) if rows else [()] * len(_VERSION_COLUMNS)
    sql.UPDATE_VERSIONS.run(*sql.UPDATE_VERSIONS.in_order(**dict(zip(_VERSION_COLUMNS, written, strict=True))))


def _add_as_deployed(
    average: float, updated_at: float | None, now: float, credit: float, since: float, rules: Rules
) -> tuple[float, float]:
    return add_credit_as_deployed(average, updated_at, now, credit, since, rules), now
