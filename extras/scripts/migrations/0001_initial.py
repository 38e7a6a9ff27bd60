import django.core.validators
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
            name="Script",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        max_length=60,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*\\Z", "Use a–z, 0–9, _ and -, beginning with a–z or 0–9."
                            )
                        ],
                    ),
                ),
                ("kind", models.CharField(max_length=10)),
                ("protocol", models.CharField(default="lines", max_length=5)),
                ("source", models.TextField(blank=True, max_length=262144)),
                ("words", models.CharField(blank=True, max_length=200)),
                ("check_source", models.TextField(blank=True, max_length=262144)),
                ("check_words", models.CharField(blank=True, max_length=200)),
                (
                    "max_secs",
                    models.PositiveSmallIntegerField(
                        default=10,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(120),
                        ],
                    ),
                ),
                (
                    "max_memory_mib",
                    models.PositiveSmallIntegerField(
                        default=256,
                        validators=[
                            django.core.validators.MinValueValidator(16),
                            django.core.validators.MaxValueValidator(4096),
                        ],
                    ),
                ),
                ("last_fault", models.CharField(blank=True, editable=False, max_length=500)),
                ("failed_at", models.DateTimeField(editable=False, null=True)),
                ("rests_until", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_secs__gte", 1), ("max_secs__lte", 120)), name="script_secs_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_memory_mib__gte", 16), ("max_memory_mib__lte", 4096)),
                        name="script_memory_range",
                    ),
                ],
            },
        ),
    ]
