"""Checks the rows that are there for the constraints of 0019 and 0021. Reads and writes go on meanwhile."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

_CONSTRAINTS = (
    ("hostcredit", "hostcredit_cpus_credited_until_range"),
    ("hostcredit", "hostcredit_gpus_credited_until_range"),
    ("result", "result_ninstances_range"),
    ("hostappversion", "hostappversion_clean_pfc_range"),
    ("hostappversion", "hostappversion_spell_pfc_range"),
)


class Migration(migrations.Migration):
    # Each by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    dependencies = [("credit", "0021_clean_samples")]
    operations = [ValidateConstraint(model_name=model, name=name) for model, name in _CONSTRAINTS]
