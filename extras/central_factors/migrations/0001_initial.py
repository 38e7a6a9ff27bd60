import portal.languages.sentences
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
            name="CollectedExport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=255, unique=True)),
                ("asked_at", models.DateTimeField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("problem", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("problem_since", models.DateTimeField(null=True)),
                ("versions", models.JSONField(default=list)),
                ("nversions", models.PositiveIntegerField(default=0)),
                ("ncounted", models.PositiveIntegerField(default=0)),
                ("refused", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "ordering": ["url"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="FactorList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=255, unique=True)),
                ("asked_at", models.DateTimeField(null=True)),
                ("read_at", models.DateTimeField(null=True)),
                ("problem", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("problem_since", models.DateTimeField(null=True)),
                ("factors", models.JSONField(default=list)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
