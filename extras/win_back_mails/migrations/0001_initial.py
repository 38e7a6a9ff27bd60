import django.core.validators
import django.utils.timezone
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
            name="MailCampaign",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100)),
                ("text", models.TextField(max_length=4000)),
                (
                    "lapsed_days",
                    models.PositiveIntegerField(
                        default=90,
                        validators=[
                            django.core.validators.MinValueValidator(30),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("released_at", models.DateTimeField(editable=False, null=True)),
                ("stopped_at", models.DateTimeField(editable=False, null=True)),
                ("finished_at", models.DateTimeField(editable=False, null=True)),
                ("nsent", models.PositiveIntegerField(default=0, editable=False)),
                ("nfailed", models.PositiveIntegerField(default=0, editable=False)),
            ],
            options={
                "ordering": ["-created_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("lapsed_days__gte", 30), ("lapsed_days__lte", 3650)),
                        name="mailcampaign_lapsed_days",
                    )
                ],
            },
        ),
    ]
