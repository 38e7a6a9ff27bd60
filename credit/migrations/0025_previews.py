import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0024_indexes_of_results_by_hour"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LoggedPass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField()),
                ("is_feeder", models.BooleanField(default=False)),
                ("nworkunits", models.PositiveIntegerField(default=0)),
                ("min_avg_pfc", models.FloatField(null=True)),
                ("versions", models.BinaryField()),
                ("records", models.BinaryField(default=b"")),
                ("workunits", models.BinaryField(default=b"")),
                ("results", models.BinaryField(default=b"")),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["app", "-id"], name="loggedpass_app")],
            },
        ),
        migrations.CreateModel(
            name="Preview",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked_at", models.DateTimeField()),
                ("changes", models.JSONField()),
                ("progress", models.FloatField(default=0)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("failure", models.TextField(blank=True, default="")),
                ("result", models.JSONField(blank=True, null=True)),
                (
                    "app",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="previews", to="credit.app"
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="previews",
                        to="credit.appversion",
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("progress__gte", 0), ("progress__lte", 1)), name="preview_progress_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("result__isnull", True), ("finished_at__isnull", False), _connector="OR"),
                        name="preview_result_when_finished",
                    ),
                ],
            },
        ),
        # The arrays hardly shrink, and compressing them would cost the validator time.
        migrations.RunSQL(
            [
                f"ALTER TABLE credit_loggedpass ALTER COLUMN {column} SET STORAGE EXTERNAL"
                for column in ("records", "workunits", "results")
            ],
            migrations.RunSQL.noop,
        ),
    ]
