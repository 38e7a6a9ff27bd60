from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


def _range(name: str) -> models.CheckConstraint:
    known = Q((f"{name}_avg__gte", 0), (f"{name}_avg__lt", 1e300), (f"{name}_n__gt", 0))
    return models.CheckConstraint(
        condition=Q((f"{name}_avg__isnull", True)) | known, name=f"hostappversion_{name}_range"
    )


class Migration(migrations.Migration):
    dependencies = [("credit", "0020_job_limits_of_apps")]

    operations = [
        *(
            migrations.AddField("hostappversion", f"{name}_pfc_n", models.BigIntegerField(db_default=0, default=0))
            for name in ("clean", "spell")
        ),
        *(
            migrations.AddField("hostappversion", f"{name}_pfc_avg", models.FloatField(null=True))
            for name in ("clean", "spell")
        ),
        # 0022 checks the rows that are there, without keeping others from the table.
        AddConstraintNotValid("hostappversion", _range("clean_pfc")),
        AddConstraintNotValid("hostappversion", _range("spell_pfc")),
    ]
