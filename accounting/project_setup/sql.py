"""SQL for the page of projects' problems. All statements only read, and lock nothing."""

from __future__ import annotations

from typing import Final

from accounting.engine.choice.troubles import MIN_FAILURES
from accounting.engine.states import NoteKind

# What recently connected computers last reported of each project: how many have it, how many report failed requests in
# a row, how many got no work when they asked; and when one of them last had an answer, in Unix seconds.
REPORTED: Final = f"""
SELECT p.project_id,
       count(*),
       count(*) FILTER (WHERE s.failures >= {MIN_FAILURES}),
       max(s.failures),
       count(*) FILTER (WHERE s.no_work),
       max(s.at) FILTER (WHERE s.failures = 0)
  FROM accounting_hostproject p
  JOIN portal_host h ON h.id = p.host_id AND h.merged_into_id IS NULL
  JOIN accounting_hostledger l ON l.host_id = p.host_id AND l.last_at >= %(since)s
  CROSS JOIN LATERAL (
       SELECT coalesce((p.state->>'failures')::bigint, 0) AS failures,
              coalesce(jsonb_array_length(p.state->'no_work'), 0) > 0 AS no_work,
              (p.state->>'at')::bigint AS at) s
 WHERE p.listed
 GROUP BY p.project_id
"""

# Reports that could not be read, or were more than a computer can have done: computers and reports, by project.
REFUSED: Final = f"""
SELECT project_id, kind, count(DISTINCT host_id), sum(count)::bigint
  FROM accounting_note
 WHERE day >= %(first)s AND project_id IS NOT NULL
   AND kind IN ('{NoteKind.INVALID.value}', '{NoteKind.DROPPED.value}', '{NoteKind.EC_ABOVE_TIME.value}')
 GROUP BY project_id, kind
"""

# Which owners' computers have a project at an address that is not known for it, and have earned credit there. Locks
# nothing, and reads the ledgers of all computers.
REPORTED_ADDRESSES: Final = """
SELECT DISTINCT e.key::bigint, e.value, h.owner_id
  FROM accounting_hostledger l
  JOIN portal_host h ON h.id = l.host_id
 CROSS JOIN jsonb_each_text(l.contact->'elsewhere') e
  JOIN accounting_hostproject p
    ON p.host_id = l.host_id AND p.project_id = e.key::bigint AND 0 < ANY (p.credited)
 WHERE l.last_at >= %(since)s
"""
