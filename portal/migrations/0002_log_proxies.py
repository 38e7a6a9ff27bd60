import django.contrib.admin.models
from django.db import migrations


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("portal", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SupportAction",
            fields=[],
            options={
                "ordering": ["-action_time", "-id"],
                "proxy": True,
                "default_permissions": ("view",),
            },
            bases=("admin.logentry",),
            managers=[
                ("objects", django.contrib.admin.models.LogEntryManager()),
            ],
        ),
    ]
