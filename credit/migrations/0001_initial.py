import credit.engine.facts
import credit.engine.rules
import credit.engine.states
import datetime
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.text
import django.utils.timezone
import portal.languages.sentences
from django.conf import settings
from django.db import migrations, models
from credit.migrations import _by_hand


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("portal", "0002_log_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="App",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first."
                            )
                        ],
                    ),
                ),
                ("user_friendly_name", models.CharField(max_length=100)),
                ("description", models.TextField(blank=True)),
                ("is_deprecated", models.BooleanField(default=False)),
                ("is_non_cpu_intensive", models.BooleanField(default=False)),
                (
                    "weight",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                (
                    "credit_system",
                    models.CharField(default=credit.engine.facts.CreditSystem["CREDITNEW"], max_length=16),
                ),
                ("rule_set", models.CharField(default=credit.engine.rules.RuleSet["PUBLISHED"], max_length=16)),
                ("host_scale_check", models.BooleanField(default=False)),
                (
                    "max_granted_credit",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1000000000000000.0),
                        ],
                    ),
                ),
                (
                    "fixed_credit",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000000000000.0),
                        ],
                    ),
                ),
                (
                    "fixed_credit_per_flop",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "max_credited_secs",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000.0),
                        ],
                    ),
                ),
                (
                    "actual_flops_scale",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                (
                    "benchmark_scale",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                ("replica_rule", models.CharField(default=credit.engine.facts.ReplicaRule["MEAN"], max_length=8)),
                ("version_average", models.CharField(default="mean", max_length=8)),
                (
                    "host_avg_samples",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10000),
                        ],
                    ),
                ),
                (
                    "host_avg_weight",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "host_avg_limit",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                (
                    "version_avg_samples",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                (
                    "version_avg_weight",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "version_avg_limit",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                (
                    "min_host_samples",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10000),
                        ],
                    ),
                ),
                (
                    "min_version_samples",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                (
                    "max_host_scale",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                ("min_avg_pfc", models.FloatField(blank=True, editable=False, null=True)),
                ("comparison", models.CharField(default="bitwise", max_length=16)),
                (
                    "comparison_tolerance",
                    models.FloatField(
                        default=1e-05,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "comparison_absolute_tolerance",
                    models.FloatField(
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1e300),
                        ],
                    ),
                ),
                ("comparison_function", models.CharField(blank=True, max_length=200)),
                ("assimilation_function", models.CharField(blank=True, max_length=200)),
                ("trickle_function", models.CharField(blank=True, max_length=200)),
                (
                    "max_jobs_per_day_init",
                    models.PositiveIntegerField(
                        default=100,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                    ),
                ),
                (
                    "max_jobs_in_progress",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10000),
                        ],
                    ),
                ),
                (
                    "max_gpu_jobs_in_progress",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(10000),
                        ],
                    ),
                ),
                (
                    "max_jobs_per_rpc",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(500),
                        ],
                    ),
                ),
                (
                    "deadline_extension_secs",
                    models.PositiveIntegerField(
                        db_default=0, default=0, validators=[django.core.validators.MaxValueValidator(316224000)]
                    ),
                ),
                (
                    "max_extended_secs",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(316224000),
                        ],
                    ),
                ),
                ("adaptive_replication", models.BooleanField(default=False)),
                (
                    "min_replication_chance",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.001),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                ("one_result_per_user", models.BooleanField(default=True)),
                ("homogeneous_redundancy", models.CharField(db_default="off", default="off", max_length=8)),
                ("homogeneous_app_version", models.BooleanField(db_default=False, default=False)),
                (
                    "reliable_turnaround_secs",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(60),
                            django.core.validators.MaxValueValidator(1000000000.0),
                        ],
                    ),
                ),
                (
                    "n_size_classes",
                    models.PositiveSmallIntegerField(
                        db_default=1,
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10),
                        ],
                    ),
                ),
                (
                    "size_limits",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(), db_default=[], default=list, editable=False, size=None
                    ),
                ),
                (
                    "size_nhosts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), db_default=[], default=list, editable=False, size=None
                    ),
                ),
                ("is_beta", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("min_avg_pfc__isnull", True),
                            models.Q(("min_avg_pfc__gt", 0), ("min_avg_pfc__lt", 1e30)),
                            _connector="OR",
                        ),
                        name="app_min_avg_pfc_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 0), ("weight__lte", 1000000.0)), name="app_weight_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("fixed_credit__gte", 0), ("fixed_credit__lte", 1000000000000000.0)),
                        name="app_fixed_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("fixed_credit_per_flop__gte", 0), ("fixed_credit_per_flop__lte", 1)),
                        name="app_fixed_credit_per_flop_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_credited_secs__gte", 1), ("max_credited_secs__lte", 1000000000.0)),
                        name="app_max_credited_secs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("actual_flops_scale__gte", 1e-06), ("actual_flops_scale__lte", 1000000.0)),
                        name="app_actual_flops_scale_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("benchmark_scale__gte", 1e-06), ("benchmark_scale__lte", 1000000.0)),
                        name="app_benchmark_scale_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("comparison_tolerance__gte", 0), ("comparison_tolerance__lte", 1)),
                        name="app_comparison_tolerance_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("comparison_absolute_tolerance__gte", 0), ("comparison_absolute_tolerance__lte", 1e300)
                        ),
                        name="app_comparison_absolute_tolerance_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_jobs_per_day_init__gte", 1), ("max_jobs_per_day_init__lte", 100000)),
                        name="app_max_jobs_per_day_init_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reliable_turnaround_secs__gte", 60), ("reliable_turnaround_secs__lte", 1000000000.0)
                        ),
                        name="app_reliable_turnaround_secs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("n_size_classes__gte", 1), ("n_size_classes__lte", 10)),
                        name="app_n_size_classes_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_jobs_in_progress__gte", 1), ("max_jobs_in_progress__lte", 10000)),
                        name="app_max_jobs_in_progress_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_gpu_jobs_in_progress__gte", 0), ("max_gpu_jobs_in_progress__lte", 10000)
                        ),
                        name="app_max_gpu_jobs_in_progress_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_jobs_per_rpc__gte", 1), ("max_jobs_per_rpc__lte", 500)),
                        name="app_max_jobs_per_rpc_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("deadline_extension_secs__gte", 0), ("deadline_extension_secs__lte", 316224000)
                        ),
                        name="app_deadline_extension_secs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_extended_secs__gte", 1), ("max_extended_secs__lte", 316224000)),
                        name="app_max_extended_secs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("host_avg_samples__gte", 1), ("host_avg_samples__lte", 10000)),
                        name="app_host_avg_samples_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("host_avg_weight__gte", 1e-06), ("host_avg_weight__lte", 1)),
                        name="app_host_avg_weight_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("host_avg_limit__gte", 1), ("host_avg_limit__lte", 1000000.0)),
                        name="app_host_avg_limit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version_avg_samples__gte", 1), ("version_avg_samples__lte", 1000000)),
                        name="app_version_avg_samples_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version_avg_weight__gte", 1e-06), ("version_avg_weight__lte", 1)),
                        name="app_version_avg_weight_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version_avg_limit__gte", 1), ("version_avg_limit__lte", 1000000.0)),
                        name="app_version_avg_limit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_host_samples__gte", 1), ("min_host_samples__lte", 10000)),
                        name="app_min_host_samples_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_version_samples__gte", 1), ("min_version_samples__lte", 1000000)),
                        name="app_min_version_samples_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_host_scale__gte", 1), ("max_host_scale__lte", 1000000.0)),
                        name="app_max_host_scale_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_granted_credit__gte", 1e-06), ("max_granted_credit__lte", 1000000000000000.0)
                        ),
                        name="app_max_granted_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_replication_chance__gte", 0.001), ("min_replication_chance__lte", 1)),
                        name="app_min_replication_chance_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "credit_system__in",
                                [
                                    credit.engine.facts.CreditSystem["CREDITNEW"],
                                    credit.engine.facts.CreditSystem["PEAK_FLOPS"],
                                    credit.engine.facts.CreditSystem["ACTUAL_FLOPS"],
                                    credit.engine.facts.CreditSystem["FIXED"],
                                    credit.engine.facts.CreditSystem["GIVEN"],
                                    credit.engine.facts.CreditSystem["RUN_TIME"],
                                    credit.engine.facts.CreditSystem["ASSIGNED"],
                                ],
                            )
                        ),
                        name="app_credit_system_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("comparison__in", ["bitwise", "tolerance", "custom"])),
                        name="app_comparison_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "replica_rule__in",
                                [credit.engine.facts.ReplicaRule["MEAN"], credit.engine.facts.ReplicaRule["MINIMUM"]],
                            )
                        ),
                        name="app_replica_rule_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("version_average__in", ["mean", "median"])),
                        name="app_version_average_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("homogeneous_redundancy__in", ["off", "coarse", "fine"])),
                        name="app_homogeneous_redundancy_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("comparison", "custom"), _negated=True),
                            models.Q(("comparison_function", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="app_custom_comparison_is_named",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("credit_system", credit.engine.facts.CreditSystem["FIXED"]), _negated=True),
                            ("fixed_credit__isnull", False),
                            ("fixed_credit_per_flop__isnull", False),
                            _connector="OR",
                        ),
                        name="app_fixed_credit_is_given",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("credit_system", credit.engine.facts.CreditSystem["RUN_TIME"]), _negated=True),
                            ("max_credited_secs__isnull", False),
                            _connector="OR",
                        ),
                        name="app_credited_run_time_has_a_limit",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Platform",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first."
                            )
                        ],
                    ),
                ),
                ("user_friendly_name", models.CharField(blank=True, max_length=100)),
                ("is_deprecated", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ExportConsent",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="export_consent",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("exports_statistics", models.BooleanField(default=False)),
                ("shows_hosts", models.BooleanField(default=False)),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="GoneHost",
            fields=[
                ("host_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("cpid", models.CharField(max_length=32)),
                ("gone_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="GoneUser",
            fields=[
                ("user_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("cpid", models.CharField(max_length=32)),
                ("gone_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="HostCredit",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="credit",
                        serialize=False,
                        to="portal.host",
                    ),
                ),
                ("cpus_credited_until", models.DateTimeField(null=True)),
                ("gpus_credited_until", models.DateTimeField(null=True)),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="hostcredit_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="hostcredit_expavg_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cpus_credited_until__gte", datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            ("cpus_credited_until__lt", datetime.datetime(9999, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                        ),
                        name="hostcredit_cpus_credited_until_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("gpus_credited_until__gte", datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            ("gpus_credited_until__lt", datetime.datetime(9999, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                        ),
                        name="hostcredit_gpus_credited_until_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HostOpening",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="portal.host",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="hostopening_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="hostopening_expavg_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Team",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=80)),
                ("type", models.PositiveSmallIntegerField(default=1)),
                ("url", models.URLField(blank=True)),
                ("description", models.TextField(blank=True, max_length=2000)),
                ("country", models.CharField(blank=True, max_length=60)),
                (
                    "founder",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="founded_teams",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("former_credit", models.FloatField(default=0, editable=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="team_name_once",
                        violation_error_message="A team with this name already exists. Choose another name, or join that team.",
                    ),
                    models.CheckConstraint(condition=models.Q(("name", ""), _negated=True), name="team_has_name"),
                    models.CheckConstraint(
                        condition=models.Q(("former_credit__gte", 0), ("former_credit__lte", 1e30)),
                        name="team_former_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("type__in", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])),
                        name="team_type_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultHourMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("counted_until", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="resulthourmark_is_one")],
            },
        ),
        migrations.CreateModel(
            name="StatisticsExport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("nrecords", models.BigIntegerField(default=0)),
                ("nusers", models.BigIntegerField(default=0)),
                ("nteams", models.BigIntegerField(default=0)),
                ("nhosts", models.BigIntegerField(default=0)),
                ("nbytes", models.BigIntegerField(default=0)),
                ("failure", models.CharField(blank=True, max_length=200)),
                ("is_in_storage", models.BooleanField(db_default=False, default=False, editable=False)),
                ("published_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="UserCredit",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="credit",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="usercredit_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="usercredit_expavg_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UserOpening",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
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
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="useropening_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="useropening_expavg_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AppOpening",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"),
                ),
                ("njobs", models.BigIntegerField(default=0)),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="appopening_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="appopening_expavg_credit_range",
                    ),
                    models.UniqueConstraint(fields=("user", "app"), name="appopening_once"),
                    models.CheckConstraint(condition=models.Q(("njobs__gte", 0)), name="appopening_njobs"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AppSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="credit.app",
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("min_avg_pfc", models.FloatField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("app", "taken_at"), name="appsnapshot_app_taken_at")],
            },
        ),
        migrations.CreateModel(
            name="ArchivedDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="portal.host"
                    ),
                ),
                ("day", models.DateField()),
                ("on_gpu", models.BooleanField()),
                ("credit", models.FloatField(default=0)),
                ("elapsed_secs", models.FloatField(default=0)),
                ("nsucceeded", models.IntegerField(default=0)),
                ("nfailed", models.IntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "app", "day", "host", "on_gpu"), name="archivedday_once", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("credit__gte", 0), ("elapsed_secs__gte", 0), ("nfailed__gte", 0), ("nsucceeded__gte", 0)
                        ),
                        name="archivedday_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="batches", to="credit.app"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="batches",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("name", models.CharField(max_length=191)),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("request_digest", models.BinaryField(max_length=32, null=True)),
                ("nworkunits", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False), ("retired_at", None)),
                        fields=["expires_at"],
                        name="batch_to_expire",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=("owner", "request_id"),
                        name="batch_request_id",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ConfirmingPair",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pairs",
                        to="credit.app",
                    ),
                ),
                (
                    "one",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "other",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("together", models.PositiveIntegerField()),
                ("expected", models.FloatField()),
                ("chance", models.FloatField()),
                ("needs_another", models.BooleanField()),
                ("counted_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["chance", "id"],
                "constraints": [
                    models.UniqueConstraint(fields=("app", "one", "other"), name="confirmingpair_once"),
                    models.CheckConstraint(
                        condition=models.Q(("one__lt", models.F("other"))), name="confirmingpair_lower_first"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("expected__gte", 0),
                            ("expected__lt", models.F("together")),
                            ("together__gte", 3),
                            ("chance__gte", 1e-300),
                            ("chance__lte", 1),
                        ),
                        name="confirmingpair_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LoggedPass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("is_feeder", models.BooleanField(default=False)),
                ("nworkunits", models.PositiveIntegerField(default=0)),
                ("min_avg_pfc", models.FloatField(null=True)),
                ("versions", models.BinaryField()),
                ("records", models.BinaryField(default=b"")),
                ("workunits", models.BinaryField(default=b"")),
                ("results", models.BinaryField(default=b"")),
            ],
            options={
                "indexes": [models.Index(fields=["app", "-id"], name="loggedpass_app")],
            },
        ),
        migrations.CreateModel(
            name="AppVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="credit.app",
                    ),
                ),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="credit.platform"
                    ),
                ),
                (
                    "version_num",
                    models.PositiveIntegerField(validators=[django.core.validators.MaxValueValidator(100000000)]),
                ),
                ("plan_class", models.CharField(blank=True, max_length=64)),
                ("processor_type", models.CharField(default=credit.engine.facts.ProcessorType["CPU"], max_length=16)),
                (
                    "avg_ncpus",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1024),
                        ],
                    ),
                ),
                (
                    "gpu_usage",
                    models.FloatField(
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(64),
                        ],
                    ),
                ),
                ("min_gpu_ram_bytes", models.BigIntegerField(default=0)),
                ("api_version", models.CharField(blank=True, default="", max_length=11)),
                ("cmdline", models.CharField(blank=True, default="", max_length=239)),
                (
                    "min_client_version",
                    models.PositiveIntegerField(
                        db_default=0, default=0, validators=[django.core.validators.MaxValueValidator(9999999)]
                    ),
                ),
                (
                    "max_client_version",
                    models.PositiveIntegerField(
                        db_default=0, default=0, validators=[django.core.validators.MaxValueValidator(9999999)]
                    ),
                ),
                ("is_wrapper", models.BooleanField(db_default=False, default=False)),
                ("needs_network", models.BooleanField(db_default=False, default=False)),
                ("dont_throttle", models.BooleanField(db_default=False, default=False)),
                ("file_prefix", models.CharField(blank=True, default="", max_length=16)),
                ("is_deprecated", models.BooleanField(default=False)),
                (
                    "cross_project_scale",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1e-06),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                ("pfc_n", models.BigIntegerField(default=0, editable=False)),
                ("pfc_avg", models.FloatField(blank=True, editable=False, null=True)),
                ("pfc_scale", models.FloatField(blank=True, editable=False, null=True)),
                ("is_counted", models.BooleanField(db_default=False, default=False, editable=False)),
                ("is_scale_received", models.BooleanField(db_default=False, default=False, editable=False)),
                ("total_credit", models.FloatField(default=0, editable=False)),
                ("ngranted", models.BigIntegerField(default=0, editable=False)),
                ("expavg_credit", models.FloatField(default=0, editable=False)),
                ("expavg_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["app", "platform", "plan_class", "-version_num"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("app", "platform", "plan_class", "version_num"),
                        name="appversion_app_platform_class_num",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("avg_ncpus__gte", 0), ("avg_ncpus__lte", 1024)),
                        name="appversion_avg_ncpus_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("gpu_usage__gte", 0), ("gpu_usage__lte", 64)),
                        name="appversion_gpu_usage_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("min_gpu_ram_bytes__gte", 0), ("min_gpu_ram_bytes__lte", 1125899906842624)),
                        name="appversion_min_gpu_ram_bytes_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cross_project_scale__gte", 1e-06), ("cross_project_scale__lte", 1000000.0)
                        ),
                        name="appversion_cross_project_scale_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lte", 1e30)),
                        name="appversion_total_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "processor_type__in",
                                [
                                    credit.engine.facts.ProcessorType["CPU"],
                                    credit.engine.facts.ProcessorType["NVIDIA"],
                                    credit.engine.facts.ProcessorType["ATI"],
                                    credit.engine.facts.ProcessorType["INTEL"],
                                    credit.engine.facts.ProcessorType["APPLE"],
                                ],
                            )
                        ),
                        name="appversion_processor_type_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("api_version__regex", "^([0-9]{1,3}(\\.[0-9]{1,3}){2})?$")),
                        name="appversion_api_version_form",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("file_prefix__regex", "^([A-Za-z0-9_-]{1,16})?$")),
                        name="appversion_file_prefix_form",
                    ),
                    models.CheckConstraint(condition=models.Q(("ngranted__gte", 0)), name="appversion_ngranted_range"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("pfc_avg__isnull", True), ("pfc_n", 0)),
                            models.Q(("pfc_avg__isnull", False), ("pfc_n__gt", 0)),
                            _connector="OR",
                        ),
                        name="appversion_averages_have_samples",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pfc_avg__isnull", True),
                            models.Q(("pfc_avg__gte", 0), ("pfc_avg__lt", 1e30)),
                            _connector="OR",
                        ),
                        name="appversion_pfc_avg_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pfc_scale__isnull", True),
                            models.Q(("pfc_scale__gt", 0), ("pfc_scale__lt", 1e30)),
                            _connector="OR",
                        ),
                        name="appversion_pfc_scale_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lt", 1e30)),
                        name="appversion_expavg_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("gpu_usage", 0), ("processor_type", credit.engine.facts.ProcessorType["CPU"])),
                            models.Q(
                                models.Q(("processor_type", credit.engine.facts.ProcessorType["CPU"]), _negated=True),
                                ("gpu_usage__gt", 0),
                            ),
                            _connector="OR",
                        ),
                        name="appversion_gpu_usage_fits_type",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("avg_ncpus__gt", 0),
                            models.Q(
                                models.Q(("processor_type", credit.engine.facts.ProcessorType["CPU"]), _negated=True),
                                ("avg_ncpus", 0),
                            ),
                            _connector="OR",
                        ),
                        name="appversion_uses_something",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="membership",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="memberships", to="credit.team"
                    ),
                ),
                ("joined_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("credit_before", models.FloatField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("credit_before__gte", 0), ("credit_before__lte", 1e30)),
                        name="membership_credit_before_range",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TeamOpening",
            fields=[
                ("total_credit", models.FloatField(default=0)),
                ("expavg_credit", models.FloatField(default=0)),
                ("expavg_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="credit.team",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("total_credit__gte", 0), ("total_credit__lt", 1e30)),
                        name="teamopening_total_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expavg_credit__gte", 0), ("expavg_credit__lte", 1e30)),
                        name="teamopening_expavg_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AppVersionSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app_version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="credit.appversion",
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("pfc_n", models.BigIntegerField()),
                ("pfc_avg", models.FloatField(null=True)),
                ("pfc_scale", models.FloatField(null=True)),
                ("expavg_credit", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("app_version", "taken_at"), name="appversionsnapshot_version_taken_at"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HostAppVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="app_versions",
                        to="portal.host",
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to="credit.app"),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="credit.appversion",
                    ),
                ),
                ("processor_type", models.CharField(default=credit.engine.facts.ProcessorType["CPU"], max_length=16)),
                ("pfc_n", models.BigIntegerField(default=0)),
                ("pfc_avg", models.FloatField(null=True)),
                ("clean_pfc_n", models.BigIntegerField(db_default=0, default=0)),
                ("clean_pfc_avg", models.FloatField(null=True)),
                ("waiting_pfc_n", models.BigIntegerField(db_default=0, default=0)),
                ("waiting_pfc_avg", models.FloatField(null=True)),
                ("recent_pfc_n", models.BigIntegerField(db_default=0, default=0)),
                ("recent_pfc_avg", models.FloatField(null=True)),
                ("samples_at", models.DateTimeField(null=True)),
                ("peak_flops", models.FloatField(null=True)),
                ("lead_jobs", models.FloatField(db_default=0, default=0)),
                ("et_n", models.BigIntegerField(default=0)),
                ("et_avg", models.FloatField(null=True)),
                ("et_var", models.FloatField(null=True)),
                ("et_q", models.FloatField(default=0)),
                ("turnaround_n", models.BigIntegerField(default=0)),
                ("turnaround_avg", models.FloatField(null=True)),
                ("turnaround_var", models.FloatField(null=True)),
                ("turnaround_q", models.FloatField(default=0)),
                ("consecutive_valid", models.PositiveIntegerField(default=0)),
                ("scale_probation", models.BooleanField(default=True)),
                ("host_scale_at", models.DateTimeField(null=True)),
                ("error_rate", models.FloatField(default=0.1)),
                ("failing_share", models.FloatField(db_default=0, default=0)),
                ("max_jobs_per_day", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["app_version"], name="hostappversion_version"),
                    models.Index(fields=["host"], name="hostappversion_host"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("app_version__isnull", False)),
                        fields=("host", "app_version"),
                        name="hostappversion_host_version",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("app_version__isnull", True)),
                        fields=("host", "app", "processor_type"),
                        name="hostappversion_host_app_type",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("error_rate__gte", 0), ("error_rate__lte", 1)),
                        name="hostappversion_error_rate_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("pfc_avg__isnull", True),
                            models.Q(("pfc_avg__gte", 0), ("pfc_avg__lt", 1e300)),
                            _connector="OR",
                        ),
                        name="hostappversion_pfc_avg_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("et_avg__gte", 0), ("et_avg__lte", 1e150)),
                        name="hostappversion_et_avg_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("et_var__gte", 0), ("et_var__lte", 9.999999999999999e299)),
                        name="hostappversion_et_var_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("et_q__gte", 0), ("et_q__lte", 1e304)), name="hostappversion_et_q_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("peak_flops__gte", 0), ("peak_flops__lte", 1e300)),
                        name="hostappversion_peak_flops_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("turnaround_avg__gte", 0), ("turnaround_avg__lte", 1e150)),
                        name="hostappversion_turnaround_avg_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("turnaround_var__gte", 0), ("turnaround_var__lte", 9.999999999999999e299)),
                        name="hostappversion_turnaround_var_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("turnaround_q__gte", 0), ("turnaround_q__lte", 1e304)),
                        name="hostappversion_turnaround_q_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("lead_jobs__gte", -1e30), ("lead_jobs__lte", 1e30)),
                        name="hostappversion_lead_jobs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                models.Q(("pfc_avg__isnull", True), ("pfc_n", 0)),
                                models.Q(("pfc_avg__isnull", False), ("pfc_n__gt", 0)),
                                _connector="OR",
                            ),
                            models.Q(
                                models.Q(("et_avg__isnull", True), ("et_n", 0)),
                                models.Q(("et_avg__isnull", False), ("et_n__gt", 0)),
                                _connector="OR",
                            ),
                            models.Q(
                                models.Q(("turnaround_avg__isnull", True), ("turnaround_n", 0)),
                                models.Q(("turnaround_avg__isnull", False), ("turnaround_n__gt", 0)),
                                _connector="OR",
                            ),
                        ),
                        name="hostappversion_averages_have_samples",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("clean_pfc_avg__isnull", True),
                            models.Q(("clean_pfc_avg__gte", 0), ("clean_pfc_avg__lt", 1e300), ("clean_pfc_n__gt", 0)),
                            _connector="OR",
                        ),
                        name="hostappversion_clean_pfc_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("waiting_pfc_avg__isnull", True),
                            models.Q(
                                ("waiting_pfc_avg__gte", 0), ("waiting_pfc_avg__lt", 1e300), ("waiting_pfc_n__gt", 0)
                            ),
                            _connector="OR",
                        ),
                        name="hostappversion_waiting_pfc_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("failing_share__gte", 0), ("failing_share__lte", 1)),
                        name="hostappversion_failing_share_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("recent_pfc_avg__isnull", True),
                            models.Q(
                                ("recent_pfc_avg__gte", 0), ("recent_pfc_avg__lt", 1e300), ("recent_pfc_n__gt", 0)
                            ),
                            _connector="OR",
                        ),
                        name="hostappversion_recent_pfc_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "processor_type__in",
                                [
                                    credit.engine.facts.ProcessorType["CPU"],
                                    credit.engine.facts.ProcessorType["NVIDIA"],
                                    credit.engine.facts.ProcessorType["ATI"],
                                    credit.engine.facts.ProcessorType["INTEL"],
                                    credit.engine.facts.ProcessorType["APPLE"],
                                ],
                            )
                        ),
                        name="hostappversion_processor_type_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Preview",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="previews", to="credit.app"
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="previews",
                        to="credit.appversion",
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("changes", models.JSONField()),
                ("progress", models.FloatField(default=0)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("failure", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("result", models.JSONField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("progress__gte", 0), ("progress__lte", 1)), name="preview_progress_range"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("result__isnull", True), ("finished_at__isnull", False), _connector="OR"),
                        name="preview_result_when_finished",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("hour", models.DateTimeField()),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="credit.appversion",
                    ),
                ),
                ("outcome", models.PositiveSmallIntegerField()),
                ("exit_status", models.IntegerField(null=True)),
                ("count", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hour", "app", "app_version", "outcome", "exit_status"),
                        name="resulthour_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StatisticsSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("pfc_n", models.BigIntegerField()),
                ("pfc_avg", models.FloatField(null=True)),
                (
                    "change",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statistics",
                        to=settings.AUDITLOG_LOGENTRY_MODEL,
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statistics_snapshots",
                        to="credit.appversion",
                    ),
                ),
                ("taken_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("pfc_scale", models.FloatField(null=True)),
                ("is_counted", models.BooleanField()),
            ],
        ),
        migrations.CreateModel(
            name="Workunit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="workunits",
                        to="credit.app",
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="workunits",
                        to="credit.batch",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=191,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*$",
                                "Letters, digits, _ . # @ and - only, - not first.",
                            )
                        ],
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("priority", models.SmallIntegerField(default=0)),
                ("fpops_est", models.FloatField()),
                ("fpops_bound", models.FloatField()),
                ("memory_bound_bytes", models.BigIntegerField(default=134217728)),
                ("disk_bound_bytes", models.BigIntegerField(default=134217728)),
                ("delay_bound_secs", models.PositiveIntegerField(default=604800)),
                ("min_quorum", models.PositiveSmallIntegerField(default=2)),
                ("target_nresults", models.PositiveSmallIntegerField(default=2)),
                ("max_error_results", models.PositiveSmallIntegerField(default=3)),
                ("max_total_results", models.PositiveSmallIntegerField(default=10)),
                ("max_success_results", models.PositiveSmallIntegerField(default=6)),
                ("command_line", models.CharField(blank=True, max_length=2000)),
                ("input_files", models.JSONField(blank=True, default=list)),
                ("output_files", models.JSONField(blank=True, default=list)),
                ("need_validate", models.BooleanField(default=False)),
                ("validate_fault", models.CharField(blank=True, db_default="", max_length=500)),
                ("validate_after", models.DateTimeField(blank=True, null=True)),
                ("confirm_until", models.DateTimeField(blank=True, null=True)),
                ("transition_at", models.DateTimeField(blank=True, null=True)),
                ("canonical_credit", models.FloatField(blank=True, null=True)),
                ("lane", models.BigIntegerField(db_default=0, default=0, editable=False)),
                ("is_own", models.BooleanField(db_default=False, default=False, editable=False)),
                ("app_version_num", models.PositiveIntegerField(db_default=0, default=0)),
                ("size_class", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("hr_class", models.PositiveSmallIntegerField(db_default=0, default=0, editable=False)),
                (
                    "bound_version",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="credit.appversion",
                    ),
                ),
                ("credit", models.FloatField(blank=True, null=True)),
                ("error_mask", models.PositiveSmallIntegerField(default=0)),
                (
                    "assimilate_state",
                    models.PositiveSmallIntegerField(default=credit.engine.states.AssimilateState["INIT"]),
                ),
                (
                    "file_delete_state",
                    models.PositiveSmallIntegerField(default=credit.engine.states.FileDeleteState["INIT"]),
                ),
                ("assimilated_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("need_validate", True)), fields=["app", "id"], name="workunit_to_validate"
                    ),
                    models.Index(
                        condition=models.Q(("transition_at__isnull", False)),
                        fields=["transition_at"],
                        name="workunit_to_transition",
                    ),
                    models.Index(
                        condition=models.Q(("assimilate_state", credit.engine.states.AssimilateState["READY"])),
                        fields=["app", "id"],
                        name="workunit_to_assimilate",
                    ),
                    models.Index(
                        condition=models.Q(("file_delete_state", credit.engine.states.FileDeleteState["READY"])),
                        fields=["id"],
                        name="workunit_to_delete_files",
                    ),
                    models.Index(
                        condition=models.Q(("file_delete_state", credit.engine.states.FileDeleteState["DONE"])),
                        fields=["assimilated_at"],
                        name="workunit_to_purge",
                    ),
                    models.Index(
                        condition=models.Q(("batch__isnull", False)), fields=["batch", "id"], name="workunit_batch"
                    ),
                    models.Index(fields=["app", "-id"], name="workunit_app"),
                    models.Index(
                        condition=models.Q(("lane__gte", 1152921504606846976)),
                        fields=["lane"],
                        name="workunit_targeted",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="workunit_name"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("fpops_est__gte", 1),
                            ("fpops_est__lt", 1e25),
                            ("fpops_bound__gte", models.F("fpops_est")),
                            ("fpops_bound__lt", 1e25),
                        ),
                        name="workunit_fpops_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("min_quorum__gte", 1),
                            ("target_nresults__gte", models.F("min_quorum")),
                            ("max_total_results__gte", models.F("target_nresults")),
                            ("max_total_results__lte", 100),
                            ("max_error_results__gte", 1),
                            ("max_success_results__gte", models.F("min_quorum")),
                        ),
                        name="workunit_counts_of_results",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("delay_bound_secs__gte", 1), ("delay_bound_secs__lte", 316224000)),
                        name="workunit_delay_bound_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("disk_bound_bytes__gte", 0), ("memory_bound_bytes__gte", 0)),
                        name="workunit_bounds_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("canonical_credit__isnull", True),
                            models.Q(("canonical_credit__gte", 0), ("canonical_credit__lte", 1000000000000000.0)),
                            _connector="OR",
                        ),
                        name="workunit_canonical_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("credit__gte", 0), ("credit__lte", 1000000000000000.0)),
                        name="workunit_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lane", 0), _negated=True),
                            models.Q(("app_version_num", 0), ("bound_version", None), ("hr_class", 0)),
                            _connector="OR",
                        ),
                        name="workunit_restricted_is_in_a_lane",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("size_class", None),
                            models.Q(("app_version_num", 0), models.Q(("lane", 0), _negated=True)),
                            _connector="OR",
                        ),
                        name="workunit_with_size_is_in_a_lane",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CreditChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "change",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credit",
                        to=settings.AUDITLOG_LOGENTRY_MODEL,
                    ),
                ),
                (
                    "preview",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="changes_made",
                        to="credit.preview",
                    ),
                ),
                ("effects", models.JSONField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="HostRecordSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("pfc_n", models.BigIntegerField()),
                ("pfc_avg", models.FloatField(null=True)),
                (
                    "snapshot",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="host_records",
                        to="credit.statisticssnapshot",
                    ),
                ),
                (
                    "record",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="credit.hostappversion",
                    ),
                ),
                ("clean_pfc_n", models.BigIntegerField()),
                ("clean_pfc_avg", models.FloatField(null=True)),
                ("waiting_pfc_n", models.BigIntegerField()),
                ("waiting_pfc_avg", models.FloatField(null=True)),
                ("recent_pfc_n", models.BigIntegerField()),
                ("recent_pfc_avg", models.FloatField(null=True)),
                ("samples_at", models.DateTimeField(null=True)),
                ("peak_flops", models.FloatField(null=True)),
                ("lead_jobs", models.FloatField(default=0)),
                ("et_n", models.BigIntegerField()),
                ("et_avg", models.FloatField(null=True)),
                ("et_var", models.FloatField(null=True)),
                ("et_q", models.FloatField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("snapshot", "record"), name="hostrecordsnapshot_once")],
            },
        ),
        migrations.CreateModel(
            name="Result",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("claim_rule", models.SmallIntegerField(blank=True, null=True)),
                ("raw_pfc", models.FloatField(blank=True, null=True)),
                ("claimed_pfc", models.FloatField(blank=True, null=True)),
                ("claimed_credit", models.FloatField(blank=True, null=True)),
                ("is_approximate", models.BooleanField(blank=True, null=True)),
                ("version_scale", models.FloatField(blank=True, null=True)),
                ("host_scale", models.FloatField(blank=True, null=True)),
                ("on_probation", models.BooleanField(blank=True, null=True)),
                ("version_pfc_n", models.BigIntegerField(blank=True, null=True)),
                ("version_pfc_avg", models.FloatField(blank=True, null=True)),
                ("host_pfc_n", models.BigIntegerField(blank=True, null=True)),
                ("host_pfc_avg", models.FloatField(blank=True, null=True)),
                ("min_avg_pfc", models.FloatField(blank=True, null=True)),
                (
                    "workunit",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="results",
                        to="credit.workunit",
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="credit.app"
                    ),
                ),
                ("name", models.CharField(max_length=204)),
                ("priority", models.SmallIntegerField(default=0)),
                ("queue_shift", models.BigIntegerField(db_default=0, default=0, editable=False)),
                ("lane", models.BigIntegerField(db_default=0, default=0, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("server_state", models.SmallIntegerField(default=credit.engine.states.ServerState["UNSENT"])),
                ("outcome", models.SmallIntegerField(default=credit.engine.states.Outcome["INIT"])),
                ("validate_state", models.SmallIntegerField(default=credit.engine.states.ValidateState["INIT"])),
                (
                    "file_delete_state",
                    models.PositiveSmallIntegerField(default=credit.engine.states.FileDeleteState["INIT"]),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="results",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="results",
                        to="portal.host",
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="credit.appversion",
                    ),
                ),
                ("processor_type", models.CharField(default=credit.engine.facts.ProcessorType["CPU"], max_length=16)),
                ("peak_flops", models.FloatField(blank=True, null=True)),
                ("p_fpops", models.FloatField(blank=True, null=True)),
                ("projected_flops", models.FloatField(blank=True, null=True)),
                ("ninstances", models.FloatField(blank=True, null=True)),
                (
                    "ties",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), blank=True, editable=False, null=True, size=None
                    ),
                ),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                ("deadline_at", models.DateTimeField(blank=True, null=True)),
                ("received_at", models.DateTimeField(blank=True, null=True)),
                ("client_state", models.SmallIntegerField(blank=True, null=True)),
                ("exit_status", models.IntegerField(blank=True, null=True)),
                ("elapsed_secs", models.FloatField(blank=True, null=True)),
                ("cpu_secs", models.FloatField(blank=True, null=True)),
                ("fpops_cumulative", models.FloatField(blank=True, null=True)),
                ("fpops_per_cpu_sec", models.FloatField(blank=True, null=True)),
                ("is_runtime_outlier", models.BooleanField(default=False)),
                ("peak_working_set_bytes", models.BigIntegerField(blank=True, null=True)),
                ("peak_swap_bytes", models.BigIntegerField(blank=True, null=True)),
                ("peak_disk_bytes", models.BigIntegerField(blank=True, null=True)),
                ("stderr_text", models.TextField(blank=True)),
                ("report_faults", portal.languages.sentences.MessagesField(blank=True, default=list, editable=False)),
                ("outputs", models.JSONField(blank=True, default=list)),
                ("output_digest", models.BinaryField(blank=True, max_length=16, null=True)),
                ("partial_elapsed_secs", models.FloatField(default=0)),
                ("partial_credit", models.FloatField(default=0)),
                ("grant_rule", models.SmallIntegerField(blank=True, null=True)),
                ("granted_credit", models.FloatField(blank=True, null=True)),
                ("granted_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["workunit"], name="result_workunit"),
                    models.Index(
                        models.F("app"),
                        django.db.models.expressions.CombinedExpression(models.F("priority"), "*", models.Value(-1)),
                        django.db.models.expressions.CombinedExpression(models.F("id"), "+", models.F("queue_shift")),
                        condition=models.Q(("lane", 0), ("server_state", credit.engine.states.ServerState["UNSENT"])),
                        name="result_queue",
                    ),
                    models.Index(
                        models.F("app"),
                        models.F("lane"),
                        django.db.models.expressions.CombinedExpression(models.F("priority"), "*", models.Value(-1)),
                        django.db.models.expressions.CombinedExpression(models.F("id"), "+", models.F("queue_shift")),
                        condition=models.Q(
                            ("server_state", credit.engine.states.ServerState["UNSENT"]),
                            models.Q(("lane", 0), _negated=True),
                        ),
                        name="result_lanes",
                    ),
                    models.Index(
                        condition=models.Q(("server_state", credit.engine.states.ServerState["IN_PROGRESS"])),
                        fields=["host"],
                        name="result_in_progress",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("deadline_at__isnull", False),
                            ("server_state", credit.engine.states.ServerState["IN_PROGRESS"]),
                        ),
                        fields=["deadline_at"],
                        name="result_deadline",
                    ),
                    models.Index(
                        condition=models.Q(("received_at__isnull", False)),
                        fields=["received_at"],
                        name="result_received",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", credit.engine.states.Outcome["NO_REPLY"])),
                        fields=["deadline_at"],
                        name="result_timed_out",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", credit.engine.states.Outcome["VALIDATE_ERROR"])),
                        fields=["received_at"],
                        name="result_unfit",
                    ),
                    models.Index(
                        condition=models.Q(("user__isnull", False)), fields=["user", "-id"], name="result_user"
                    ),
                    models.Index(
                        condition=models.Q(("host__isnull", False)), fields=["host", "-id"], name="result_host"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="result_name"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("host", None),
                                ("outcome", credit.engine.states.Outcome["INIT"]),
                                ("sent_at", None),
                                ("server_state", credit.engine.states.ServerState["UNSENT"]),
                                ("user", None),
                            ),
                            models.Q(
                                ("deadline_at__isnull", False),
                                ("outcome", credit.engine.states.Outcome["INIT"]),
                                ("sent_at__isnull", False),
                                ("server_state", credit.engine.states.ServerState["IN_PROGRESS"]),
                            ),
                            models.Q(
                                (
                                    "outcome__in",
                                    [
                                        credit.engine.states.Outcome["SUCCESS"],
                                        credit.engine.states.Outcome["COULD_NOT_SEND"],
                                        credit.engine.states.Outcome["CLIENT_ERROR"],
                                        credit.engine.states.Outcome["NO_REPLY"],
                                        credit.engine.states.Outcome["DIDNT_NEED"],
                                        credit.engine.states.Outcome["VALIDATE_ERROR"],
                                        credit.engine.states.Outcome["CLIENT_DETACHED"],
                                    ],
                                ),
                                ("server_state", credit.engine.states.ServerState["OVER"]),
                            ),
                            _connector="OR",
                        ),
                        name="result_state",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("outcome", credit.engine.states.Outcome["SUCCESS"]), _negated=True),
                            ("received_at__isnull", False),
                            _connector="OR",
                        ),
                        name="result_success_was_received",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("validate_state", credit.engine.states.ValidateState["INIT"]),
                            models.Q(
                                ("outcome", credit.engine.states.Outcome["SUCCESS"]),
                                (
                                    "validate_state__in",
                                    [
                                        credit.engine.states.ValidateState["INIT"],
                                        credit.engine.states.ValidateState["VALID"],
                                        credit.engine.states.ValidateState["INVALID"],
                                        credit.engine.states.ValidateState["NO_CHECK"],
                                        credit.engine.states.ValidateState["INCONCLUSIVE"],
                                        credit.engine.states.ValidateState["TOO_LATE"],
                                    ],
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="result_checked_when_success",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("granted_credit__isnull", True),
                            ("granted_credit", 0),
                            models.Q(("granted_credit__gte", 1e-100), ("granted_credit__lte", 1000000000000000.0)),
                            _connector="OR",
                        ),
                        name="result_granted_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("partial_credit__gte", 0),
                            ("partial_credit__lte", 1000000000000000.0),
                            ("partial_elapsed_secs__gte", 0),
                        ),
                        name="result_partial_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("ninstances__gte", 0), ("ninstances__lte", 65535)),
                        name="result_ninstances_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("claim_rule", models.SmallIntegerField(blank=True, null=True)),
                ("raw_pfc", models.FloatField(blank=True, null=True)),
                ("claimed_pfc", models.FloatField(blank=True, null=True)),
                ("claimed_credit", models.FloatField(blank=True, null=True)),
                ("is_approximate", models.BooleanField(blank=True, null=True)),
                ("version_scale", models.FloatField(blank=True, null=True)),
                ("host_scale", models.FloatField(blank=True, null=True)),
                ("on_probation", models.BooleanField(blank=True, null=True)),
                ("version_pfc_n", models.BigIntegerField(blank=True, null=True)),
                ("version_pfc_avg", models.FloatField(blank=True, null=True)),
                ("host_pfc_n", models.BigIntegerField(blank=True, null=True)),
                ("host_pfc_avg", models.FloatField(blank=True, null=True)),
                ("min_avg_pfc", models.FloatField(blank=True, null=True)),
                (
                    "result",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="credit.result",
                    ),
                ),
                ("granted_at", models.DateTimeField()),
                ("from_secs", models.FloatField()),
                ("to_secs", models.FloatField()),
                ("credit", models.FloatField()),
                ("state", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("settled_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["id"],
                "indexes": [
                    models.Index(condition=models.Q(("state", 1)), fields=["result"], name="resultpart_provisional")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("result", "from_secs"), name="resultpart_result_from"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("from_secs__gte", 0), ("to_secs__gt", models.F("from_secs")), ("to_secs__lt", 1e30)
                        ),
                        name="resultpart_secs_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("credit__gt", 0), ("credit__lte", 1000000000000000.0)),
                        name="resultpart_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("claim_rule__isnull", False),
                            ("claimed_credit__isnull", False),
                            ("claimed_pfc__isnull", False),
                            ("is_approximate__isnull", False),
                            ("raw_pfc__isnull", False),
                        ),
                        name="resultpart_claim_is_there",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("settled_at__isnull", True), ("state__in", [0, 1])),
                            models.Q(("settled_at__isnull", False), ("state__in", [2, 3])),
                            _connector="OR",
                        ),
                        name="resultpart_settled",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="Workunit",
            name="canonical_result",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="credit.result",
            ),
        ),
        migrations.AddConstraint(
            model_name="Workunit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("assimilate_state", credit.engine.states.AssimilateState["INIT"]),
                    ("canonical_result__isnull", False),
                    ("error_mask__gt", 0),
                    _connector="OR",
                ),
                name="workunit_ends_with_result_or_reason",
            ),
        ),
        *_by_hand.OPERATIONS,
    ]
