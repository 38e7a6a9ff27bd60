from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

_AVERAGES = ("clean_pfc", "waiting_pfc", "recent_pfc")


def _range(name: str) -> models.CheckConstraint:
    known = Q((f"{name}_avg__gte", 0), (f"{name}_avg__lt", 1e300), (f"{name}_n__gt", 0))
    return models.CheckConstraint(
        condition=Q((f"{name}_avg__isnull", True)) | known, name=f"hostappversion_{name}_range"
    )


class Migration(migrations.Migration):
    dependencies = [("credit", "0020_job_limits_of_apps")]

    operations = [
        *(
            migrations.AddField("hostappversion", f"{name}_n", models.BigIntegerField(db_default=0, default=0))
            for name in _AVERAGES
        ),
        *(migrations.AddField("hostappversion", f"{name}_avg", models.FloatField(null=True)) for name in _AVERAGES),
        migrations.AddField("hostappversion", "samples_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "hostappversion",
            "failing_share",
            models.FloatField(db_default=0, default=0, verbose_name="part of the last jobs without a valid result"),
        ),
        # 0022 checks the rows that are there, without keeping others from the table.
        *(AddConstraintNotValid("hostappversion", _range(name)) for name in _AVERAGES),
        AddConstraintNotValid(
            "hostappversion",
            models.CheckConstraint(
                condition=Q(("failing_share__gte", 0), ("failing_share__lte", 1)),
                name="hostappversion_failing_share_range",
            ),
        ),
    ]
