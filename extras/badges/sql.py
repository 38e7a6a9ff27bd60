"""SQL for awarding badges. Runs under an advisory lock. Locks only the accounts that are checked, so that none of them
is erased meanwhile; one that is being erased is skipped.
"""

from __future__ import annotations

from typing import Final

from accounting.engine.amounts import KINDS

# The accounts not checked since their last work, or since the rules changed; the longest waiting first. An account
# whose computers have not reported since then has nothing new.
DUE: Final = """
SELECT u.id FROM portal_user u LEFT JOIN badges_badgecheck c ON c.user_id = u.id
 WHERE u.deletion_asked_at IS NULL
   AND (c.user_id IS NULL OR c.checked_at < %(rules_changed)s
        OR c.checked_at < %(long_ago)s
           AND EXISTS (SELECT FROM portal_host h WHERE h.owner_id = u.id AND h.last_contact_at >= c.checked_at))
 ORDER BY c.checked_at NULLS FIRST, u.id LIMIT %(limit)s
"""
LOCK_USERS: Final = """
SELECT id FROM portal_user WHERE id = ANY(%(users)s) AND deletion_asked_at IS NULL ORDER BY id
   FOR KEY SHARE SKIP LOCKED
"""
_SUMS: Final = ", ".join(f"sum({kind})::bigint" for kind in KINDS)
# By volunteer, month and project; one line for each. Only of the months that were closed when their end was read: one
# that is closed meanwhile counts by its days.
MONTHS: Final = f"""
SELECT user_id, month, project_id, {_SUMS} FROM accounting_month
 WHERE user_id = ANY(%(users)s) AND month < %(until)s GROUP BY 1, 2, 3 ORDER BY 1, 2
"""
ACTIVE_DAYS: Final = """
SELECT user_id, month, active_days FROM accounting_bestday WHERE user_id = ANY(%(users)s) AND month < %(until)s
"""
# The same by days, of a range: the days of open months, or those of one closed month.
DAYS: Final = f"""
SELECT user_id, day, project_id, {_SUMS} FROM accounting_day
 WHERE user_id = ANY(%(users)s) AND day >= %(first)s AND day <= %(last)s GROUP BY 1, 2, 3 ORDER BY 1, 2
"""
CHECKED: Final = """
INSERT INTO badges_badgecheck (user_id, checked_at) SELECT unnest(%(users)s::bigint[]), %(now)s
ON CONFLICT (user_id) DO UPDATE SET checked_at = excluded.checked_at
"""
