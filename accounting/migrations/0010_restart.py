"""The totals at a reset, beside those before it."""

import django.contrib.postgres.fields
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0009_shown_and_dropped"),
        ("portal", "0009_api_token_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="hostproject",
            name="restart",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.DecimalField(decimal_places=0, max_digits=22), null=True, size=6
            ),
        ),
        # 0012 fills and checks the rows that are there, without keeping others from the table.
        AddConstraintNotValid(
            "hostproject",
            models.CheckConstraint(condition=Q(restart__len=6), name="hostproject_restart_six"),
        ),
        AddConstraintNotValid(
            "hostproject",
            models.CheckConstraint(
                condition=Q(high__isnull=True, restart__isnull=True) | Q(high__isnull=False, restart__isnull=False),
                name="hostproject_high_and_restart",
            ),
        ),
    ]
