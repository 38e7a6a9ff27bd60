"""Made without locking the table of results against writes; it reads the table once."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("credit", "0024_indexes_of_results_by_hour")]
    operations = [
        AddIndexConcurrently(
            "result", models.Index(condition=models.Q(("outcome", 6)), fields=["received_at"], name="result_unfit")
        ),
    ]
