"""SQL of archiving a month and bringing it back. ``{table}`` is the month's partition.

Locks of the transactions that decide, in this order: settlements of computers that were first seen in the month, by id;
AdvisoryLock.MONTHS, which merging and erasing share; AdvisoryLock.PARTITIONS; the table of days, for an instant. They
wait for each for half a second at most, as clients' requests wait behind them, and are tried again.
"""

from __future__ import annotations

from typing import Final

from accounting.engine.amounts import KINDS

TRY_ALONE: Final = "SELECT pg_try_advisory_lock(%s)"
LET_OTHERS: Final = "SELECT pg_advisory_unlock(%s)"
PARTITIONS_BEFORE: Final = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'accounting_day'::regclass AND c.relname < %s ORDER BY c.relname"""
_COLUMNS: Final = f"user_id, day, project_id, host_id, {', '.join(KINDS)}, flags"
# One statement, so one moment.
READ: Final = f"SELECT {_COLUMNS} FROM {{table}} ORDER BY user_id, day, project_id, host_id"
SUMS: Final = (
    f"SELECT {', '.join(f'coalesce(sum({kind}), 0)' for kind in KINDS)} FROM accounting_month WHERE month = %s"
)
# What was estimated on the day on which statistics first had a computer is added to what was before: the day is
# over, and pages need not look for it (reconciliation.sql.SEEN_DAYS). Bringing the month back undoes it.
FOLD_SEEN_DAYS: Final = """
UPDATE accounting_settlement s SET estimated_before = s.estimated_before + %(sign)s * (d.cpu_ec + d.gpu_ec)
  FROM accounting_day d
 WHERE s.seen_on >= %(month)s AND s.seen_on < %(next)s AND d.user_id = s.user_id
   AND d.day = s.seen_on AND d.project_id = s.project_id AND d.host_id = s.host_id
   AND d.day >= %(month)s AND d.day < %(next)s"""
# Without detaching it first: that would lock the accounts as well, for the key that refers to them.
DROP: Final = "DROP TABLE {table}"

# The partition is made as a table of its own, with all that the table of days asks for, so that attaching it reads
# nothing. It gets its name then: whoever looks for the partition does not find it before.
LEFT: Final = r"""
SELECT relname FROM pg_class
 WHERE relname ~ '^accounting_day_\d{4}_\d\d_new$' AND relkind = 'r' AND NOT relispartition"""
DROP_LEFT: Final = "DROP TABLE IF EXISTS {new}"
MAKE: Final = """
CREATE TABLE {new} (LIKE accounting_day INCLUDING ALL) WITH (fillfactor = 80)"""
COPY_INTO: Final = f"COPY {{new}} ({_COLUMNS}) FROM STDIN"
PREPARE: Final = (
    "ALTER TABLE {new} ADD CONSTRAINT of_month CHECK (day >= '{month}' AND day < '{next}')",
    "ALTER TABLE {new} ADD CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES portal_user (id)"
    " DEFERRABLE INITIALLY DEFERRED NOT VALID",
    "ALTER TABLE {new} VALIDATE CONSTRAINT of_user",
    "ANALYZE {new}",
)
DIFFERS: Final = f"""
SELECT 1 FROM (
  SELECT user_id, project_id, host_id, {", ".join(f"sum({kind}) AS {kind}" for kind in KINDS)}, bit_or(flags) AS flags
    FROM {{new}} GROUP BY 1, 2, 3) d
  FULL JOIN (SELECT * FROM accounting_month WHERE month = %s) m USING (user_id, project_id, host_id)
 WHERE {" OR ".join(f"coalesce(m.{kind}, 0) <> coalesce(d.{kind}, 0)" for kind in (*KINDS, "flags"))} LIMIT 1"""
HOLD_DAYS: Final = "LOCK TABLE accounting_day IN ACCESS EXCLUSIVE MODE"
ATTACH: Final = (
    "ALTER TABLE accounting_day ATTACH PARTITION {new} FOR VALUES FROM ('{month}') TO ('{next}')",
    "ALTER TABLE {new} DROP CONSTRAINT of_month",
    "ALTER TABLE {new} RENAME TO {table}",
)

# Adds to the sums of erased days; locks those that it writes.
KEEP_SUMS: Final = f"""
INSERT INTO accounting_erasedday AS e (project_id, day, {", ".join(KINDS)})
SELECT * FROM unnest(%s::bigint[], %s::date[], {", ".join("%s::bigint[]" for _ in KINDS)})
ON CONFLICT (project_id, day) DO UPDATE SET {", ".join(f"{kind} = e.{kind} + excluded.{kind}" for kind in KINDS)}"""
