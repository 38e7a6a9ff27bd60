"""SQL of teams' sums. now() is the time of the transaction."""

from __future__ import annotations

from typing import Final

# The recent average of {credit} as of now, like credit.engine.recent_credit.decayed: a test of the export compares the
# two. PostgreSQL raises an error on underflow, so tiny averages are 0, and none falls by more than e^-600.
RECENT: Final = """(CASE WHEN {credit}.expavg_credit < 1e-40 THEN 0 ELSE {credit}.expavg_credit * exp(greatest(-600,
    -ln(2) * greatest(0, extract(epoch FROM now() - coalesce({credit}.expavg_at, now())))::float8 / 604800)) END)"""

# A team's credit: its members' since they joined, and that of former members while they were in it.
SUMS: Final = f"""
SELECT t.id AS team_id, count(m.user_id) AS nmembers,
       t.former_credit + coalesce(sum(greatest(c.total_credit - m.credit_before, 0)), 0) AS total_credit,
       coalesce(sum({RECENT.format(credit="c")}), 0) AS expavg_credit
  FROM credit_team t
  LEFT JOIN credit_membership m ON m.team_id = t.id
  LEFT JOIN credit_usercredit c ON c.user_id = m.user_id
 GROUP BY t.id"""

OF_TEAMS: Final = f"SELECT * FROM ({SUMS}) s WHERE team_id = ANY(%(teams)s)"

# Locks the membership, then the team. The team keeps the credit of a member who leaves.
LEAVE: Final = """
WITH gone AS (
    DELETE FROM credit_membership m WHERE m.user_id = %(user)s RETURNING m.team_id, m.credit_before
)
UPDATE credit_team t
   SET former_credit = former_credit + greatest(0, %(credit)s - gone.credit_before)
  FROM gone WHERE t.id = gone.team_id
RETURNING t.id"""
