from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # PostgreSQL makes the index without keeping anybody from the archive.
    atomic = False

    dependencies = [("scheduler", "0023_grants_by_day")]

    operations = [
        AddIndexConcurrently(
            model_name="archivedtask",
            index=models.Index(condition=models.Q(("is_counted", False)), fields=["id"], name="archivedtask_uncounted"),
        ),
    ]
