"""A set of badges to begin with. All are off: an operator switches on what the site wants."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BADGES = [
    ("First task", "A computer of yours finished its first task.", "tasks", None, 1),
    ("1,000 tasks", "", "tasks", None, 1_000),
    ("10,000 credits", "", "credit", None, 10_000),
    ("100,000 credits", "", "credit", None, 100_000),
    ("1 million credits", "", "credit", None, 1_000_000),
    ("100 days", "On so many days your computers worked.", "days", None, 100),
    ("Two years", "You contributed in two calendar years.", "years", None, 2),
    ("Five years", "You contributed in five calendar years.", "years", None, 5),
    ("First hour on a GPU", "", "gpu_hours", None, 1),
    ("Three fields of science", "You worked for projects of three fields of science.", "subjects", None, 3),
    ("1,000 hours for biology and medicine", "", "subject_hours", 9, 1_000),
    ("1,000 hours for astronomy", "", "subject_hours", 1, 1_000),
]


def add(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    badge: Any = apps.get_model("accounting", "Badge")
    names = ("title", "text", "kind", "subject", "threshold")
    badge.objects.bulk_create([badge(**dict(zip(names, each, strict=True))) for each in BADGES], ignore_conflicts=True)


class Migration(migrations.Migration):
    dependencies = [
        ("accounting", "0033_proof"),
    ]

    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
