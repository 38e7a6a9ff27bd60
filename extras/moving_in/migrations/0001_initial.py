import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("accounting", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("credit", "0001_initial"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("portal", "0002_log_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportStep",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("source", models.CharField(max_length=20)),
                ("name", models.CharField(max_length=40)),
                ("run", models.PositiveIntegerField(default=1)),
                ("last_key", models.BigIntegerField(default=0)),
                ("tally", models.JSONField(default=dict)),
                ("as_of", models.DateTimeField(null=True)),
                ("since", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("source", "name"), name="importstep_once")],
            },
        ),
        migrations.CreateModel(
            name="MergedHost",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("into_id", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="UnsubscribeCode",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("code_hash", models.BinaryField(max_length=32)),
            ],
        ),
    ]
