"""SQL for erasing accounts."""

from typing import Final

from accounting.engine.amounts import KINDS

# Adds up the days of an account before they are deleted. Locks the sums of erased days that it writes, after the
# locks that accounting/account_data/erasure.py takes.
KEEP_SUMS: Final = f"""
INSERT INTO accounting_erasedday AS e (project_id, day, {", ".join(KINDS)})
SELECT project_id, day, {", ".join(f"sum({kind})" for kind in KINDS)}
  FROM accounting_day WHERE user_id = %s GROUP BY project_id, day
ON CONFLICT (project_id, day) DO UPDATE SET {", ".join(f"{kind} = e.{kind} + excluded.{kind}" for kind in KINDS)}
"""
