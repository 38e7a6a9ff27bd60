from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """The scheduler counts a computer's jobs of the day in its own record of it now."""

    dependencies = [("credit", "0012_deadlines_apart"), ("scheduler", "0007_jobs_of_the_day")]

    operations = [
        migrations.RemoveField(model_name="hostappversion", name="jobs_day"),
        migrations.RemoveField(model_name="hostappversion", name="n_jobs_today"),
    ]
