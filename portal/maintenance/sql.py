"""SQL of runs: session locks that show which of them have a live worker."""

from typing import Final

# "mr", the first key of advisory locks; the second is the run's.
LOCK: Final = 0x6D72

# PostgreSQL frees the lock if the worker dies. Not a lock of a transaction: a run has many, or takes hours.
TRY_LOCK: Final = f"SELECT pg_try_advisory_lock({LOCK}, %s)"
UNLOCK: Final = f"SELECT pg_advisory_unlock({LOCK}, %s)"
HELD: Final = f"""
SELECT objid::bigint FROM pg_locks
 WHERE locktype = 'advisory' AND classid = {LOCK} AND objsubid = 2 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Locks nothing: numbers of sequences are taken outside of transactions.
LEAVE_GAP: Final = """
SELECT setval(pg_get_serial_sequence(%(table)s, 'id'),
              greatest(nextval(pg_get_serial_sequence(%(table)s, 'id')) + %(gap)s, %(minutes)s))
"""
