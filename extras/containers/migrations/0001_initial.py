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
        ("scheduler", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Image",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*\\Z", "Use a–z, 0–9, _ and -, beginning with a–z or 0–9."
                            )
                        ],
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ImageFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "image",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="containers.image",
                    ),
                ),
                ("plan_class", models.CharField(blank=True, max_length=64)),
                ("cpu", models.CharField(blank=True, max_length=8)),
                ("open_name", models.CharField(max_length=200)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="scheduler.storedfile"
                    ),
                ),
                ("is_executable", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("image", "plan_class", "cpu", "open_name"), name="imagefile_once"),
                    models.CheckConstraint(condition=models.Q(("cpu__in", ["", "intel", "arm"])), name="imagefile_cpu"),
                ],
            },
        ),
    ]
