"""The totals before each reset, beside the highest of them in one row. 0018 fills and checks the rows that are there."""

import django.contrib.postgres.fields
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Func, Q
from django.db.models.lookups import Exact


class Migration(migrations.Migration):
    dependencies = [("accounting", "0016_news_and_campaigns")]

    operations = [
        migrations.AddField(
            model_name="hostproject",
            name="earlier",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=django.contrib.postgres.fields.ArrayField(
                    base_field=models.DecimalField(decimal_places=0, max_digits=22), size=6
                ),
                default=list,
                size=16,
            ),
        ),
        migrations.RemoveConstraint("hostproject", "hostproject_high_and_restart"),
        AddConstraintNotValid(
            "hostproject",
            models.CheckConstraint(
                condition=Q(
                    Exact(Func("earlier", 2, function="array_length", output_field=models.IntegerField()), 6),
                    earlier__len__lte=16,
                ),
                name="hostproject_earlier_sixes",
            ),
        ),
        AddConstraintNotValid(
            "hostproject",
            models.CheckConstraint(
                condition=Q(restart__isnull=True) | Q(earlier__len__gt=0), name="hostproject_earlier_and_restart"
            ),
        ),
    ]
