"""SQL of certificates. Locks nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from accounting.engine.amounts import KINDS, NO_WORK, Totals
from accounting.ledger.archive.reads import ArchivedDay

_PROJECTS: Final = "AND (%(projects)s::bigint[] IS NULL OR project_id = ANY(%(projects)s))"
_NO_WORK: Final = ", ".join("0" for _ in KINDS)
_WORK: Final = ", ".join(KINDS)
_OLD: Final = ", ".join(f"%(old_{kind})s::bigint[]" for kind in KINDS)


def sums(nranges: int) -> str:
    """The sums of some months and ranges of days, of all projects or some: estimated and granted credit, run time,
    tasks, and computers with any of it. ``first0``, ``last0`` and so on are the ends of the ranges;
    ``old_hosts`` and ``old_cpu_ec`` and so on are what is archived of them (`old_params`).

    The ranges are written out, so that PostgreSQL opens only the partitions of their months.
    """
    days = " OR ".join(f"day BETWEEN %(first{number})s AND %(last{number})s" for number in range(nranges)) or "false"
    return f"""
SELECT coalesce(sum(cpu_ec + gpu_ec), 0)::numeric, coalesce(sum(granted), 0)::numeric,
       coalesce(sum(cpu_time), 0)::numeric, coalesce(sum(gpu_time), 0)::numeric,
       coalesce(sum(njobs_success), 0)::numeric,
       count(DISTINCT host_id) FILTER (WHERE cpu_ec + gpu_ec + cpu_time + gpu_time + njobs_success > 0)
  FROM (SELECT host_id, {_WORK}, granted FROM accounting_month
         WHERE user_id = %(user)s AND month = ANY(%(months)s::date[]) {_PROJECTS}
         UNION ALL
        SELECT host_id, {_WORK}, 0 FROM accounting_day WHERE user_id = %(user)s AND ({days}) {_PROJECTS}
         UNION ALL
        SELECT host_id, {_WORK}, 0 FROM unnest(%(old_hosts)s::bigint[], {_OLD}) AS old(host_id, {_WORK})
         UNION ALL
        SELECT host_id, {_NO_WORK}, credit FROM accounting_grantedday
         WHERE user_id = %(user)s AND ({days}) {_PROJECTS}) AS work
"""


def range_params(ranges: Sequence[tuple[object, object]]) -> dict[str, object]:
    """The ends of the ranges, by the names in `sums`."""
    ends: dict[str, object] = {}
    for number, (first, last) in enumerate(ranges):
        ends |= {f"first{number}": first, f"last{number}": last}
    return ends


def old_params(days: Iterable[ArchivedDay], projects: Collection[int] | None) -> dict[str, object]:
    """Archived days of these projects, or of all, added up by computer."""
    found: dict[int, Totals] = {}
    for row in days:
        if projects is None or row.project_id in projects:
            found[row.host_id] = found.get(row.host_id, NO_WORK).plus(row.amounts)
    columns = {f"old_{kind}": [amounts[place] for amounts in found.values()] for place, kind in enumerate(KINDS)}
    return {"old_hosts": list(found), **columns}
