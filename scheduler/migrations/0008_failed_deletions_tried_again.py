from __future__ import annotations

from django.db import migrations

SET_ASIDE = """
INSERT INTO scheduler_setaside (workunit_id, step, fault, ntries, since, retry_at)
SELECT id, 'delete_files', 'A file could not be deleted; the log of that time says why.', 1, now(), now()
  FROM credit_workunit WHERE file_delete_state = 3
 ORDER BY id
    ON CONFLICT (workunit_id, step) DO NOTHING
"""


class Migration(migrations.Migration):
    """Try failed deletions from before workunits were set aside again: the file deleter knows them by their rows only."""

    dependencies = [("scheduler", "0007_jobs_of_the_day")]

    operations = [migrations.RunSQL(SET_ASIDE, migrations.RunSQL.noop)]
