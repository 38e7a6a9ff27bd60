from __future__ import annotations

from django.db import migrations, models

# What counts today is that of each computer's last day; where the account manager alone knows a computer, none was sent.
_TAKE_OVER = """
UPDATE scheduler_hostrecord s SET jobs_day = c.jobs_day, jobs_of_day = c.counts
  FROM (SELECT v.host_id, v.jobs_day, jsonb_agg(jsonb_build_array(
               v.app_id, coalesce(v.app_version_id, 0), v.processor_type, v.n_jobs_today)) AS counts
          FROM credit_hostappversion v
          JOIN (SELECT host_id, max(jobs_day) AS jobs_day FROM credit_hostappversion GROUP BY host_id) l
            ON l.host_id = v.host_id AND l.jobs_day = v.jobs_day
         GROUP BY v.host_id, v.jobs_day) c
 WHERE s.host_id = c.host_id
"""


class Migration(migrations.Migration):
    """Count a computer's jobs of the day in the row that each RPC writes, and not in one more for each version."""

    dependencies = [("scheduler", "0006_keys_and_set_aside"), ("credit", "0012_deadlines_apart")]

    operations = [
        migrations.AddField(model_name="hostrecord", name="jobs_day", field=models.DateField(blank=True, null=True)),
        migrations.AddField(
            model_name="hostrecord", name="jobs_of_day", field=models.JSONField(blank=True, default=list)
        ),
        migrations.RunSQL(_TAKE_OVER, migrations.RunSQL.noop),
    ]
