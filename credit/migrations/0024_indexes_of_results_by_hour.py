"""Made without locking the table of results against writes; on ten million results it takes about a minute."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("credit", "0023_results_by_hour")]
    operations = [
        AddIndexConcurrently(
            "result",
            models.Index(
                condition=models.Q(("received_at__isnull", False)), fields=["received_at"], name="result_received"
            ),
        ),
        AddIndexConcurrently(
            "result",
            models.Index(condition=models.Q(("outcome", 4)), fields=["deadline_at"], name="result_timed_out"),
        ),
    ]
