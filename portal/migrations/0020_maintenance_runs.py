"""Runs of checks that operators start in the browser."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0019_changes_of_settings"),
    ]

    operations = [
        migrations.CreateModel(
            name="MaintenanceRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("job", models.CharField(max_length=40)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("lines", models.JSONField(default=list)),
                ("nlines", models.PositiveIntegerField(default=0, verbose_name="lines")),
                ("failure", models.TextField(blank=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": ("view", "add"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("job",), name="maintenancerun_one_at_a_time"
                    )
                ],
            },
        ),
    ]
