from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

_KNOWN = Q(("waiting_pfc_avg__gte", 0), ("waiting_pfc_avg__lt", 1e300), ("waiting_pfc_n__gt", 0))


class Migration(migrations.Migration):
    dependencies = [("credit", "0022_validate_constraints")]

    operations = [
        migrations.AddField(
            "hostappversion",
            "failing_share",
            models.FloatField(db_default=0, default=0, verbose_name="part of the last jobs without a valid result"),
        ),
        migrations.AddField("hostappversion", "waiting_pfc_n", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("hostappversion", "waiting_pfc_avg", models.FloatField(null=True)),
        migrations.AddField("hostappversion", "samples_at", models.DateTimeField(null=True)),
        # 0024 checks the rows that are there, without keeping others from the table.
        AddConstraintNotValid(
            "hostappversion",
            models.CheckConstraint(
                condition=Q(("waiting_pfc_avg__isnull", True)) | _KNOWN, name="hostappversion_waiting_pfc_range"
            ),
        ),
        AddConstraintNotValid(
            "hostappversion",
            models.CheckConstraint(
                condition=Q(("failing_share__gte", 0), ("failing_share__lte", 1)),
                name="hostappversion_failing_share_range",
            ),
        ),
    ]
