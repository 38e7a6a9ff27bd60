"""Checks the rows that are there for the constraint of 0012. Reads and writes go on meanwhile."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0012_what_tells_copies_apart")]
    operations = [ValidateConstraint(model_name="hostrecord", name="hostrecord_cpids_len")]
