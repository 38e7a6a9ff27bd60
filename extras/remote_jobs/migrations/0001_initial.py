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
            name="JobsKey",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="jobs_key",
                        serialize=False,
                        to="portal.apitoken",
                    ),
                ),
                ("sealed_key", models.BinaryField()),
                ("apps", models.ManyToManyField(related_name="+", to="credit.app")),
            ],
        ),
        migrations.CreateModel(
            name="JobTemplate",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                ("kind", models.CharField(max_length=3)),
                (
                    "name",
                    models.CharField(
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*$",
                                "Letters, digits, _ . # @ and - only, - not first.",
                            )
                        ],
                    ),
                ),
                ("text", models.TextField(max_length=65535)),
            ],
            options={
                "ordering": ["app", "name"],
                "constraints": [models.UniqueConstraint(fields=("app", "name"), name="jobtemplate_once")],
            },
        ),
        migrations.CreateModel(
            name="StagedFile",
            fields=[
                (
                    "file",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="staged",
                        serialize=False,
                        to="scheduler.storedfile",
                    ),
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
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("delete_at", models.DateTimeField(null=True)),
                ("batches", models.ManyToManyField(related_name="+", to="credit.batch")),
            ],
        ),
    ]
