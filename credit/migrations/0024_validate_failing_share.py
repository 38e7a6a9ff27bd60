"""Checks the rows that are there for 0023. Reads and writes go on meanwhile."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    # Each by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    dependencies = [("credit", "0023_failing_share")]
    operations = [
        ValidateConstraint(model_name="hostappversion", name="hostappversion_waiting_pfc_range"),
        ValidateConstraint(model_name="hostappversion", name="hostappversion_failing_share_range"),
    ]
