"""The reads and locks of a validator's pass, as columns, and the engine's facts built from them.

The functions that lock are listed in the order of their locks (``credit.validator.sql``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import repeat
from typing import Any, Final

import numpy as np

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import RESULT_NUMBERS, HostVersionFacts, ResultFacts, VersionFacts
from credit.validator import sql
from credit.validator.binary import NO_TIME, Column

_RECORD_FIELDS: Final = tuple(fact.name for fact in fields(HostVersionFacts))


@dataclass(slots=True)
class Workunits:
    """A batch of workunits in the order of their ids. Without a canonical result its id is 0, and its credit NaN.

    ``confirm_until``: until then it waits for another result to confirm it, with its quorum raised by one; microseconds
    since 1970 or `NO_TIME`.
    """

    id: Column
    fpops_est: Column
    fpops_bound: Column
    min_quorum: Column
    target_nresults: Column
    canonical_id: Column
    canonical_credit: Column
    delay_bound_secs: Column
    given_credit: Column
    confirm_until: Column
    is_own: Column

    def have_waited(self, now_us: int) -> Column:
        """Return which of them have waited long enough for another result."""
        waited: Column = (self.confirm_until != NO_TIME) & (self.confirm_until <= now_us)
        return waited

    def are_unconfirmed(self, begins: Sequence[int], ends: Sequence[int], now_us: int) -> Column:
        """Return those that nobody confirmed. A result that came late and was not examined yet counts as usual."""
        unconfirmed: Column = self.have_waited(now_us) & (np.subtract(ends, begins) < self.min_quorum)
        return unconfirmed


@dataclass(slots=True)
class Results:
    """Their results that count, in the order of (workunit, id). Host, user and version are 0 if there is none; unknown
    is NaN.

    ``sent_at`` and ``received_at`` in microseconds since 1970. ``assigned_credit``: set by the comparison.
    """

    id: Column
    workunit_id: Column
    host_id: Column
    user_id: Column
    version_id: Column
    type: Column
    validate_state: Column
    peak_flops: Column
    sent_at: Column
    received_at: Column
    elapsed_secs: Column
    cpu_secs: Column
    fpops_cumulative: Column
    fpops_per_cpu_sec: Column
    is_runtime_outlier: Column
    p_fpops: Column
    partial_elapsed_secs: Column
    partial_credit: Column
    digest: list[bytes | None] = field(kw_only=True)
    assigned_credit: Column = field(init=False)

    def __post_init__(self) -> None:
        self.assigned_credit = np.full(len(self.id), np.nan)


@dataclass(slots=True)
class Records:
    """(host, version) records in the order of their ids; ``place``: which key each belongs to, from 1.

    NaN: no average yet. ``host_scale_at`` and ``samples_at`` in microseconds since 1970 or `NO_TIME`.
    """

    place: Column
    id: Column
    pfc_n: Column
    pfc_avg: Column
    et_n: Column
    et_avg: Column
    et_var: Column
    et_q: Column
    turnaround_n: Column
    turnaround_avg: Column
    turnaround_var: Column
    turnaround_q: Column
    scale_probation: Column
    host_scale_at: Column
    error_rate: Column
    consecutive_valid: Column
    max_jobs_per_day: Column
    clean_n: Column
    clean_avg: Column
    recent_n: Column
    recent_avg: Column
    waiting_n: Column
    waiting_avg: Column
    samples_at: Column
    failing_share: Column
    peak_flops: Column
    lead_jobs: Column


@dataclass(slots=True)
class Accounts:
    """Credit of users or of hosts, in the order of their ids; ``expavg_at`` in microseconds since 1970 or `NO_TIME`."""

    id: Column
    total: Column
    expavg: Column
    expavg_at: Column


def lock_workunits(app_id: int, limit: int, now_us: int) -> Workunits:
    """Lock the first waiting workunits that no other pass has locked."""
    return Workunits(**sql.LOCK_WORKUNITS.read(app_id, limit, now_us))


def read_results(workunit_ids: Column) -> Results:
    """Read results in a separate statement, after the workunits were locked, so that no earlier report is missed."""
    columns = sql.READ_RESULTS.read(workunit_ids)
    # PostgreSQL would copy all rows to sort them, and they are mostly in order already.
    order = np.lexsort((columns["id"], columns["workunit_id"]))
    if (order[1:] < order[:-1]).any():
        digest = [columns["digest"][place] for place in order.tolist()]
        columns = {name: column if name == "digest" else column[order] for name, column in columns.items()}
        columns["digest"] = digest
    return Results(**columns)


def places_of(workunits: Workunits, results: Results) -> tuple[list[int], list[int]]:
    """Return where the results of each workunit begin and end."""
    begins = np.searchsorted(results.workunit_id, workunits.id, "left").tolist()
    return begins, np.searchsorted(results.workunit_id, workunits.id, "right").tolist()


def hold_workunits(workunit_ids: Column, now_us: int) -> set[int]:
    """Let these locked workunits wait for their results in progress; return the ids of those that have any."""
    return set(sql.HOLD_WORKUNITS.read(workunit_ids, now_us)["id"].tolist())


def lock_records(app_id: int, hosts: Column, versions: Column, types: Column) -> Records:
    """Lock the (host, version) records of these keys."""
    return Records(**sql.LOCK_RECORDS.read(hosts, versions, types, app_id))


def lock_users(ids: Column) -> Accounts:
    return Accounts(**sql.LOCK_USERS.read(ids))


def lock_hosts(ids: Column) -> tuple[Accounts, Column]:
    """Lock computers; return their credit, and the benchmark of each (FLOPS) for jobs that have none of their own."""
    columns = sql.LOCK_HOSTS.read(ids)
    p_fpops = columns.pop("p_fpops")
    return Accounts(**columns), p_fpops


def keys_of(results: Results) -> tuple[Column, Column, Column, Column]:
    """Return the distinct keys of the results' (host, version) records: hosts, versions, types; and each result's
    position.

    A version's type is always 1; results without a host have the key (0, 0, 1).
    """
    anonymous = (results.version_id == 0) & (results.host_id != 0)
    types = np.where(anonymous, results.type, 1).astype(np.int64)
    versions = np.where(results.host_id != 0, results.version_id, 0)
    code = versions * (len(sql.PROCESSOR_TYPES) + 1) + types
    width = int(code.max(initial=0)) + 1
    keys, places = np.unique(results.host_id * width + code, return_inverse=True)
    hosts, code = np.divmod(keys, width)
    versions, types = np.divmod(code, len(sql.PROCESSOR_TYPES) + 1)
    return hosts, versions, types, places


def read_newer(results: Results, places: Sequence[int]) -> list[tuple[int, int]]:
    """Return (host, version) of each record that a host of these results has for a newer version than the result's."""
    hosts, versions = results.host_id[places], results.version_id[places]
    columns = sql.READ_NEWER.read(hosts, versions)
    return list(zip(columns["host_id"].tolist(), columns["version_id"].tolist(), strict=True))


def with_newer(
    hosts: Column, versions: Column, types: Column, newer: Sequence[tuple[int, int]]
) -> tuple[Column, Column, Column, list[int]]:
    """Return the keys of ``keys_of``, followed by those of ``newer`` that are not among them, and all positions."""
    places = {key: place for place, key in enumerate(zip(hosts.tolist(), versions.tolist(), strict=True)) if key[1]}
    more = [key for key in dict.fromkeys(newer) if key not in places]
    places |= {key: len(hosts) + n for n, key in enumerate(more)}
    added = np.array(more, np.int64).reshape(-1, 2)
    return (
        np.concatenate((hosts, added[:, 0])),
        np.concatenate((versions, added[:, 1])),
        np.concatenate((types, np.ones(len(more), types.dtype))),
        [places[key] for key in newer],
    )


def records_of(records: Records) -> list[HostVersionFacts]:
    """Return the records as the engine takes them."""
    r = records
    columns: dict[str, Iterable[Any]] = {
        "pfc": _averages(r.pfc_n, r.pfc_avg),
        "et": _with_variance(r.et_n, r.et_avg, r.et_var, r.et_q),
        "turnaround": _with_variance(r.turnaround_n, r.turnaround_avg, r.turnaround_var, r.turnaround_q),
        "scale_probation": r.scale_probation.astype(bool).tolist(),
        "host_scale_time": map(_time, r.host_scale_at.tolist()),
        "error_rate": r.error_rate.tolist(),
        "consecutive_valid": r.consecutive_valid.tolist(),
        "max_jobs_per_day": r.max_jobs_per_day.tolist(),
        "n_jobs_today": repeat(0),
        "jobs_day": repeat(None),
        "clean_pfc": _averages(r.clean_n, r.clean_avg),
        "recent_pfc": _averages(r.recent_n, r.recent_avg),
        "waiting_pfc": _averages(r.waiting_n, r.waiting_avg),
        "samples_since": map(_time, r.samples_at.tolist()),
        "failing_share": r.failing_share.tolist(),
        "peak_flops": map(_number, r.peak_flops.tolist()),
        "lead_jobs": r.lead_jobs.tolist(),
    }
    # In the order of the fields: calls with names would take three times as long.
    return list(map(HostVersionFacts, *(columns[name] for name in _RECORD_FIELDS)))


def _averages(n: Column, avg: Column) -> Iterator[Average]:
    return map(Average, n.tolist(), map(_number, avg.tolist()))


def _with_variance(n: Column, avg: Column, var: Column, q: Column) -> Iterator[AverageWithVariance]:
    return map(AverageWithVariance, n.tolist(), map(_number, avg.tolist()), map(_number, var.tolist()), q.tolist())


def _number(value: float) -> float | None:
    return None if value != value else value


def _time(at_us: int) -> float | None:
    return None if at_us == NO_TIME else at_us / 1e6


def result_facts(
    results: Results,
    here: slice,
    places: Column,
    records: Sequence[HostVersionFacts | None],
    versions: Mapping[int, VersionFacts],
    p_fpops: Sequence[float],
) -> list[ResultFacts]:
    """Build the facts of the results within ``here``.

    ``places`` maps results to records, ``p_fpops`` is the benchmark of each one's host: both for all results.
    """
    version_ids = results.version_id[here]
    made: dict[str, Sequence[Any]] = {
        "sent_at": (results.sent_at[here] / 1e6).tolist(),
        "received_at": (results.received_at[here] / 1e6).tolist(),
        "is_anonymous": ((version_ids == 0) & (results.host_id[here] != 0)).tolist(),
        "is_runtime_outlier": (results.is_runtime_outlier[here] != 0).tolist(),
        "p_fpops": p_fpops[here],
    }
    return list(
        map(
            ResultFacts,
            map(records.__getitem__, places[here].tolist()),
            map(versions.get, version_ids.tolist()),
            *(made[name] if name in made else getattr(results, name)[here].tolist() for name in RESULT_NUMBERS),
        )
    )
