"""SQL for merging two records of a computer.

All statements run after the owner's row and the ledger rows of both computers were locked, so no report is being
written meanwhile (accounting/computers/merge.py).
"""

from typing import Final

from accounting.ledger.sql import MOST_CREDIT

# Locks the days of both computers. All months are visited: a merge is rare, and no day may be left behind.
MOVE_DAYS: Final = """
WITH moved AS (
    DELETE FROM accounting_day WHERE user_id = %(owner)s AND host_id = %(older)s RETURNING *
)
INSERT INTO accounting_day AS kept (user_id, day, project_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time,
                                    njobs_success, njobs_error, flags)
SELECT user_id, day, project_id, %(newer)s, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error,
flags FROM moved ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE SET
    cpu_ec = kept.cpu_ec + excluded.cpu_ec,
    gpu_ec = kept.gpu_ec + excluded.gpu_ec,
    cpu_time = kept.cpu_time + excluded.cpu_time,
    gpu_time = kept.gpu_time + excluded.gpu_time,
    njobs_success = kept.njobs_success + excluded.njobs_success,
    njobs_error = kept.njobs_error + excluded.njobs_error,
    flags = kept.flags | excluded.flags
"""

# The same for projects' grants. An import waits for the ledger rows first.
MOVE_GRANTED_DAYS: Final = f"""
WITH moved AS (
    DELETE FROM accounting_grantedday WHERE user_id = %(owner)s AND host_id = %(older)s RETURNING *
)
INSERT INTO accounting_grantedday AS kept (user_id, day, project_id, host_id, credit)
SELECT user_id, day, project_id, %(newer)s, credit FROM moved
ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE
   SET credit = least(kept.credit::numeric + excluded.credit, {MOST_CREDIT})
"""

# The same for the sums of closed months. The best days of their owner stay as they are.
MOVE_MONTHS: Final = f"""
WITH moved AS (
    DELETE FROM accounting_month WHERE user_id = %(owner)s AND host_id = %(older)s RETURNING *
)
INSERT INTO accounting_month AS kept (user_id, month, project_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time,
                                      njobs_success, njobs_error, flags, granted)
SELECT user_id, month, project_id, %(newer)s, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error, flags,
granted FROM moved ON CONFLICT (user_id, month, project_id, host_id) DO UPDATE SET
    cpu_ec = kept.cpu_ec + excluded.cpu_ec,
    gpu_ec = kept.gpu_ec + excluded.gpu_ec,
    cpu_time = kept.cpu_time + excluded.cpu_time,
    gpu_time = kept.gpu_time + excluded.gpu_time,
    njobs_success = kept.njobs_success + excluded.njobs_success,
    njobs_error = kept.njobs_error + excluded.njobs_error,
    flags = kept.flags | excluded.flags,
    granted = least(kept.granted::numeric + excluded.granted, {MOST_CREDIT})
"""

# Locks the notes of both computers.
MOVE_NOTES: Final = """
WITH moved AS (
    DELETE FROM accounting_note WHERE host_id = %(older)s RETURNING *
)
INSERT INTO accounting_note AS kept (host_id, project_id, day, kind, detail, amount, count, first_at, last_at)
SELECT %(newer)s, project_id, day, kind, detail, amount, count, first_at, last_at FROM moved
ON CONFLICT (host_id, day, kind, project_id, detail) DO UPDATE SET
    amount = kept.amount + excluded.amount,
    count = kept.count + excluded.count,
    first_at = least(kept.first_at, excluded.first_at),
    last_at = greatest(kept.last_at, excluded.last_at)
"""
