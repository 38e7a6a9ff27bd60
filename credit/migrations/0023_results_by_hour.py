import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credit", "0022_validate_constraints")]

    operations = [
        migrations.CreateModel(
            name="ResultHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour", models.DateTimeField()),
                ("outcome", models.PositiveSmallIntegerField()),
                ("exit_status", models.IntegerField(null=True)),
                ("count", models.PositiveBigIntegerField()),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="credit.appversion",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "app", "app_version", "outcome", "exit_status"),
                        name="resulthour_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultHourMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("counted_until", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="resulthourmark_is_one")],
            },
        ),
    ]
