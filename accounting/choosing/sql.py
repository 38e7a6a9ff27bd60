"""SQL for the projects' standings. Both statements only read, and lock nothing."""

from __future__ import annotations

from typing import Final

from accounting.engine.choice.facts import CPU, TroubleKind
from accounting.engine.states import DayFlag

_NO_WORK, _FAILING, _ENDED = TroubleKind.NO_WORK.value, TroubleKind.FAILING.value, TroubleKind.ENDED.value

# How many volunteers report each trouble of a project, and how many could. A volunteer reports it if all of their
# computers that could report it do: for a GPU type, those that have such a GPU.
TROUBLES_SAID: Final = f"""
WITH said AS (
  SELECT p.project_id, h.owner_id, h.coprocs, coalesce(p.state->'troubles', '[]'::jsonb) AS troubles
    FROM accounting_hostproject p
    JOIN portal_host h ON h.id = p.host_id AND h.merged_into_id IS NULL
    JOIN accounting_hostledger l ON l.host_id = p.host_id
   WHERE p.listed AND l.last_at >= %(since)s),
asked AS (
  SELECT s.project_id, s.owner_id, q.kind, q.type,
         bool_and(EXISTS (SELECT FROM jsonb_array_elements(s.troubles) t
                           WHERE t->>0 = q.kind AND t->>1 = q.type)) AS says
    FROM said s, LATERAL (
         SELECT '{_NO_WORK}' AS kind, '{CPU}' AS type
          UNION SELECT '{_NO_WORK}', d->>'type' FROM jsonb_array_elements(s.coprocs) d WHERE d->>'type' <> ''
          UNION VALUES ('{_FAILING}', ''), ('{_ENDED}', '')) q
   GROUP BY s.project_id, s.owner_id, q.kind, q.type)
SELECT project_id, kind, type, count(*) FILTER (WHERE says), count(*) FROM asked WHERE length(type) <= 64
 GROUP BY project_id, kind, type
"""

# Credit of the last seven whole days by computer and project, of computers that are still in contact and were never
# capped in these days.
LAST_WEEK: Final = f"""
SELECT d.host_id, d.project_id, sum(d.cpu_ec) / 1e6, sum(d.gpu_ec) / 1e6,
       extract(epoch FROM %(midnight)s - h.created_at) / 86400
  FROM accounting_day d
  JOIN portal_host h ON h.id = d.host_id
  JOIN accounting_hostledger l ON l.host_id = d.host_id AND l.last_at >= %(here_since)s
 WHERE d.day >= %(first)s AND d.day < %(today)s
   AND d.host_id NOT IN (SELECT host_id FROM accounting_day
                          WHERE day >= %(first)s AND day < %(today)s AND flags & {DayFlag.CAPPED.value} <> 0)
 GROUP BY d.host_id, d.project_id, h.created_at
"""
