"""Made without locking the table of results against writes; it reads the table once."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("credit", "0027_credit_experiments")]
    operations = [
        AddIndexConcurrently(
            "result", models.Index(condition=models.Q(("outcome", 6)), fields=["received_at"], name="result_unfit")
        ),
    ]
