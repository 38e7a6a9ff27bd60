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
            name="ListedVolunteer",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("recent_credit", models.FloatField(default=0)),
                ("counted_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="listing",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("shown_name", models.CharField(blank=True, max_length=100)),
                ("agreed_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("total_credit__gt", 0)),
                        fields=["-total_credit", "user"],
                        name="listedvolunteer_total",
                    ),
                    models.Index(
                        condition=models.Q(("total_credit__gt", 0)),
                        fields=["-recent_credit", "user"],
                        name="listedvolunteer_recent",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lte", 1e30)),
                        name="listedvolunteer_total_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("recent_credit__gte", 0), ("recent_credit__lte", 1e30)),
                        name="listedvolunteer_recent_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ListedTeam",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("recent_credit", models.FloatField(default=0)),
                ("counted_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "team",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="listing",
                        serialize=False,
                        to="credit.team",
                    ),
                ),
                ("nmembers", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["-total_credit", "team"], name="listedteam_total"),
                    models.Index(fields=["-recent_credit", "team"], name="listedteam_recent"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lte", 1e30)),
                        name="listedteam_total_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("recent_credit__gte", 0), ("recent_credit__lte", 1e30)),
                        name="listedteam_recent_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ListedAppCredit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "volunteer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="of_apps",
                        to="top_lists.listedvolunteer",
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                ("total_credit", models.FloatField()),
            ],
            options={
                "indexes": [models.Index(fields=["app", "-total_credit", "volunteer"], name="listedappcredit_total")],
                "constraints": [
                    models.UniqueConstraint(fields=("volunteer", "app"), name="listedappcredit_once"),
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lte", 1e30)),
                        name="listedappcredit_total_credit_range",
                    ),
                ],
            },
        ),
    ]
