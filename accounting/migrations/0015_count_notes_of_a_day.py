"""Made without locking the table against writes, which clients' reports need."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounting", "0014_project_profile")]
    operations = [
        AddIndexConcurrently("note", models.Index(fields=["day", "kind"], name="note_day_kind")),
    ]
