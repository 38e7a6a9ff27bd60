"""What a validator's pass reads and locks: each a statement that brings all rows at once, a column an array.

In the order of the locks (docs/validator.md): workunits, (host, version) records, users, hosts. All locks of a kind
are taken in key order, so passes wait for each other and never in a circle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from credit.engine.facts import ProcessorType
from credit.engine.states import Outcome, ValidateState
from credit.validator.binary import Column, Statement, decode, decode_bytes

TYPES: Final = tuple(type_.value for type_ in ProcessorType)
_TYPE_PLACES: Final = f"array_position(ARRAY{list(TYPES)}::varchar[], {{}})::int2"

# The app as a range: were it a constant, order by id would be order enough for the planner to walk through all
# workunits by their primary key, decided ones of years included, instead of the few that wait.
_WORKUNITS: Final = Statement(
    """WITH batch AS (
  SELECT id, fpops_est, fpops_bound, min_quorum, target_nresults, canonical_result_id, canonical_credit
    FROM credit_workunit
   WHERE app_id >= $1 AND app_id <= $1 AND need_validate AND (validate_after IS NULL OR validate_after <= $3)
   ORDER BY app_id, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
SELECT array_agg(id), array_agg(fpops_est), array_agg(fpops_bound), array_agg(min_quorum), array_agg(target_nresults),
       array_agg(coalesce(canonical_result_id, 0)), array_agg(coalesce(canonical_credit, 'NaN'))
  FROM batch""",
    "int8 int8 timestamptz",
)

# Results that count: reported as a success, and not found wrong already.
_UNDECIDED_OR_VALID: Final = ", ".join(
    str(state.value) for state in (ValidateState.INIT, ValidateState.VALID, ValidateState.INCONCLUSIVE)
)
_RESULTS: Final = Statement(
    f"""SELECT array_agg(id), array_agg(workunit_id), array_agg(coalesce(host_id, 0)), array_agg(coalesce(user_id, 0)),
       array_agg(coalesce(app_version_id, 0)), array_agg({_TYPE_PLACES.format("processor_type")}),
       array_agg(validate_state),
       array_agg(coalesce(peak_flops, 'NaN')), array_agg(coalesce(sent_at, received_at)), array_agg(received_at),
       array_agg(coalesce(elapsed_secs, 'NaN')), array_agg(coalesce(cpu_secs, 'NaN')),
       array_agg(coalesce(fpops_cumulative, 'NaN')), array_agg(coalesce(fpops_per_cpu_sec, 'NaN')),
       array_agg(is_runtime_outlier), array_agg(partial_elapsed_secs), array_agg(partial_credit),
       array_agg(output_digest)
  FROM credit_result
 WHERE workunit_id = ANY ($1) AND outcome = {Outcome.SUCCESS.value}
   AND validate_state IN ({_UNDECIDED_OR_VALID})""",
    "int8[]",
)

# A record of a version's is found by it, one of a host's own programs by app and type of processor.
_RECORDS: Final = Statement(
    f"""WITH wanted AS (
  SELECT h.id, k.place FROM unnest($1, $2, $3) WITH ORDINALITY k(host, version, type, place)
    JOIN credit_hostappversion h ON h.host_id = k.host AND h.app_version_id = k.version
  UNION ALL
  SELECT h.id, k.place FROM unnest($1, $2, $3) WITH ORDINALITY k(host, version, type, place)
    JOIN credit_hostappversion h ON h.host_id = k.host AND h.app_id = $4 AND h.app_version_id IS NULL
     AND h.processor_type = (ARRAY{list(TYPES)}::varchar[])[k.type]
   WHERE k.version = 0)
SELECT array_agg(place), array_agg(id), array_agg(pfc_n), array_agg(coalesce(pfc_avg, 'NaN')),
       array_agg(et_n), array_agg(coalesce(et_avg, 'NaN')), array_agg(coalesce(et_var, 'NaN')), array_agg(et_q),
       array_agg(turnaround_n), array_agg(coalesce(turnaround_avg, 'NaN')), array_agg(coalesce(turnaround_var, 'NaN')),
       array_agg(turnaround_q), array_agg(scale_probation), array_agg(coalesce(host_scale_at, '-infinity')),
       array_agg(error_rate), array_agg(consecutive_valid::int8), array_agg(max_jobs_per_day::int8)
  FROM (SELECT h.*, w.place FROM credit_hostappversion h JOIN wanted w ON w.id = h.id
         ORDER BY h.id FOR NO KEY UPDATE OF h) locked""",
    "int8[] int8[] int2[] int8",
)
_USERS: Final = Statement(
    """SELECT array_agg(user_id), array_agg(total_credit), array_agg(expavg_credit),
       array_agg(coalesce(expavg_at, '-infinity'))
  FROM (SELECT * FROM credit_usercredit WHERE user_id = ANY ($1) ORDER BY user_id FOR NO KEY UPDATE) locked""",
    "int8[]",
)
_HOSTS: Final = Statement(
    """SELECT array_agg(host_id), array_agg(total_credit), array_agg(expavg_credit),
       array_agg(coalesce(expavg_at, '-infinity')), array_agg(p_fpops)
  FROM (SELECT c.*, coalesce(h.p_fpops, 'NaN') AS p_fpops
          FROM credit_hostcredit c JOIN portal_host h ON h.id = c.host_id
         WHERE c.host_id = ANY ($1) ORDER BY c.host_id FOR NO KEY UPDATE OF c) locked""",
    "int8[]",
)


@dataclass(slots=True)
class Workunits:
    """A batch of workunits in the order of their ids. No canonical result: 0; its credit then: NaN."""

    id: Column
    fpops_est: Column
    fpops_bound: Column
    min_quorum: Column
    target_nresults: Column
    canonical_id: Column
    canonical_credit: Column


@dataclass(slots=True)
class Results:
    """Their results that count, in the order of (workunit, id). 0: none, for host, user and version; NaN: not known.

    ``sent_at`` and ``received_at`` in microseconds since 1970.
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
    partial_elapsed_secs: Column
    partial_credit: Column
    digest: list[bytes | None] = field(kw_only=True)


@dataclass(slots=True)
class Accounts:
    """Credit of users or of hosts, whose ids are in order; ``expavg_at`` in microseconds since 1970 or `NO_TIME`."""

    id: Column
    total: Column
    expavg: Column
    expavg_at: Column


def lock_workunits(app_id: int, limit: int, now_us: int) -> Workunits:
    """The first workunits that wait and that nobody else has at hand."""
    return Workunits(*_decoded(_WORKUNITS.run(app_id, limit, now_us), "int8 float8 float8 int2 int2 int8 float8"))


_RESULT_TYPES: Final = (
    "int8 int8 int8 int8 int8 int2 int2 float8 timestamptz timestamptz float8 float8 float8 float8 bool float8 float8"
)


def read_results(workunit_ids: Column) -> Results:
    """Read by a statement of its own, after the workunits were locked: so nothing is missed that came before."""
    *others, digests = _RESULTS.run(workunit_ids)
    columns, digest = _decoded(others, _RESULT_TYPES), decode_bytes(digests)
    # The server would copy all rows to sort them, and mostly they are in order.
    order = np.lexsort((columns[0], columns[1]))
    if (order[1:] < order[:-1]).any():
        columns = [column[order] for column in columns]
        digest = [digest[place] for place in order.tolist()]
    return Results(*columns, digest=digest)


_RECORD_TYPES: Final = (
    "int8 int8 int8 float8 int8 float8 float8 float8 int8 float8 float8 float8 bool timestamptz float8 int8 int8"
)


def lock_records(app_id: int, hosts: Column, versions: Column, types: Column) -> list[Column]:
    """The (host, version) records of these keys; the first column says which key each belongs to, from 1."""
    return _decoded(_RECORDS.run(hosts, versions, types, app_id), _RECORD_TYPES)


def lock_users(ids: Column) -> Accounts:
    return Accounts(*_decoded(_USERS.run(ids), "int8 float8 float8 timestamptz"))


def lock_hosts(ids: Column) -> tuple[Accounts, Column]:
    """Their credit, and the benchmark of each (FLOPS)."""
    *account, p_fpops = _decoded(_HOSTS.run(ids), "int8 float8 float8 timestamptz float8")
    return Accounts(*account), p_fpops


def _decoded(columns: list[bytes | None], types: str) -> list[Any]:
    return [decode(column, type_) for column, type_ in zip(columns, types.split(), strict=True)]


def keys_of(results: Results) -> tuple[Column, Column, Column, Column]:
    """The keys of the (host, version) records of results, each once: hosts, versions, types; and each result's place.

    A version's type is 1 whatever it is; results of no host have the key (0, 0, 1).
    """
    anonymous = (results.version_id == 0) & (results.host_id != 0)
    types = np.where(anonymous, results.type, 1).astype(np.int64)
    versions = np.where(results.host_id != 0, results.version_id, 0)
    code = versions * (len(TYPES) + 1) + types
    width = int(code.max(initial=0)) + 1
    keys, places = np.unique(results.host_id * width + code, return_inverse=True)
    hosts, code = np.divmod(keys, width)
    versions, types = np.divmod(code, len(TYPES) + 1)
    return hosts, versions, types, places
