"""SQL for certificates. Locks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from accounting.engine.amounts import KINDS

_PROJECTS: Final = "AND (%(projects)s::bigint[] IS NULL OR project_id = ANY(%(projects)s))"
_WORK: Final = ", ".join(KINDS)


def sums(nranges: int) -> str:
    """Return the statement for the sums of some months and ranges of days, of all projects or some: estimated and
    granted credit, run time, tasks, and computers with any of it. ``first0``, ``last0`` and so on are the ends of the
    ranges.

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
        SELECT host_id, 0, 0, 0, 0, 0, 0, credit FROM accounting_grantedday
         WHERE user_id = %(user)s AND ({days}) {_PROJECTS}) AS work
"""


def range_params(ranges: Sequence[tuple[object, object]]) -> dict[str, object]:
    """Return the ends of the ranges, by the names in `sums`."""
    ends: dict[str, object] = {}
    for number, (first, last) in enumerate(ranges):
        ends |= {f"first{number}": first, f"last{number}": last}
    return ends
