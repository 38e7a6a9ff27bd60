import django.core.validators
import django.db.models.deletion
import django.utils.timezone
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
            name="Badge",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=60, unique=True)),
                ("text", models.CharField(blank=True, max_length=200)),
                ("kind", models.CharField(max_length=16)),
                ("subject", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "threshold",
                    models.PositiveBigIntegerField(
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000000),
                        ]
                    ),
                ),
                ("is_active", models.BooleanField(default=False)),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["kind", "subject", "threshold", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("threshold__range", (1, 1000000000000))), name="badge_threshold"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "subject_hours"), ("subject__isnull", False)),
                            models.Q(models.Q(("kind", "subject_hours"), _negated=True), ("subject__isnull", True)),
                            _connector="OR",
                        ),
                        name="badge_subject",
                        violation_error_message="Choose a subject only if the run time for a subject is counted.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BadgeCheck",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="badge_check",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("checked_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="BadgeAward",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="badge_awards",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "badge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="awards", to="badges.badge"
                    ),
                ),
                ("day", models.DateField()),
                ("rule", models.CharField(max_length=200)),
                ("awarded_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["day", "pk"],
                "constraints": [models.UniqueConstraint(fields=("user", "badge"), name="badgeaward_once")],
            },
        ),
    ]
