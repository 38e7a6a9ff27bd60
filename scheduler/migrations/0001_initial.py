import credit.engine.facts
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import portal.languages.sentences
import scheduler.models.work
from django.conf import settings
from django.db import migrations, models
from scheduler.migrations import _by_hand


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("credit", "0001_initial"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("portal", "0002_log_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="AppKeyword",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keywords",
                        to="credit.app",
                    ),
                ),
                ("keyword", models.PositiveIntegerField()),
            ],
            options={
                "ordering": ["app", "keyword"],
                "constraints": [models.UniqueConstraint(fields=("app", "keyword"), name="appkeyword_once")],
            },
        ),
        migrations.CreateModel(
            name="ArchivedWorkunit",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="credit.app"
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="archived_workunits",
                        to="credit.batch",
                    ),
                ),
                ("name", models.CharField(max_length=191, unique=True)),
                ("error_mask", models.PositiveSmallIntegerField()),
                ("facts", models.JSONField()),
                ("archived_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("batch__isnull", False)), fields=["batch"], name="archivedworkunit_batch"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BetaTest",
            fields=[
                (
                    "app_version",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="beta_test",
                        serialize=False,
                        to="credit.appversion",
                    ),
                ),
                (
                    "begun_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("with_volunteers", models.BooleanField(default=False)),
                ("begun_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="BetaTester",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="beta_tester",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("agreed_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="ReleaseDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "creator",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("fields", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "app_version",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="draft",
                        to="credit.appversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "permissions": [("release_appversion", "Can test, release, withdraw and roll back versions of apps")],
            },
        ),
        migrations.CreateModel(
            name="FormerUploadKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("text", models.TextField(unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Generation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("mark", models.CharField(max_length=8, unique=True)),
                ("begun_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="HostRecord",
            fields=[
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scheduler_record",
                        serialize=False,
                        to="portal.host",
                    ),
                ),
                ("rpc_seqno", models.BigIntegerField(default=0)),
                (
                    "cpids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                ("named_jobs_until", models.DateTimeField(null=True)),
                ("repeated_seqno", models.BigIntegerField(null=True)),
                ("repeated_times", models.SmallIntegerField(db_default=0, default=0)),
                ("last_rpc_at", models.DateTimeField(null=True)),
                ("work_asked_at", models.DateTimeField(null=True)),
                ("on_frac", models.FloatField(default=1)),
                ("active_frac", models.FloatField(default=1)),
                ("gpu_active_frac", models.FloatField(default=1)),
                ("connected_frac", models.FloatField(null=True)),
                ("cpu_and_network_available_frac", models.FloatField(null=True)),
                ("duration_correction_factor", models.FloatField(default=1)),
                ("statistics", models.JSONField(blank=True, default=dict)),
                ("hardware_digest", models.BinaryField(default=bytes, max_length=16)),
                ("last_messages", models.JSONField(blank=True, default=list)),
                ("jobs_day", models.DateField(blank=True, null=True)),
                ("jobs_of_day", models.JSONField(blank=True, default=list)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("cpids__len__lte", 3)), name="hostrecord_cpids_len")
                ],
            },
        ),
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*$",
                                "Letters, digits, _ . # @ and - only, - not first.",
                            )
                        ],
                    ),
                ),
                ("path", models.CharField(max_length=255)),
                ("nbytes", models.BigIntegerField()),
                ("md5", models.CharField(max_length=32)),
                ("signature", models.TextField(blank=True)),
                ("is_executable", models.BooleanField(default=False)),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="files",
                        to="credit.batch",
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["name"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("batch__isnull", False)), fields=["batch"], name="storedfile_batch"
                    )
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("nbytes__gte", 0)), name="storedfile_nbytes_range")
                ],
            },
        ),
        migrations.CreateModel(
            name="JobLease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                ("lane", models.BigIntegerField(db_default=0, default=0)),
                ("block", models.BigIntegerField()),
                ("holder", models.BigIntegerField()),
                ("until", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("app", "lane", "block"), name="joblease_one_holder")],
            },
        ),
        migrations.CreateModel(
            name="KeptOutput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="outputs",
                        to="credit.batch",
                    ),
                ),
                ("workunit_name", models.CharField(max_length=191)),
                ("number", models.PositiveSmallIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("path", models.CharField(max_length=255)),
                ("nbytes", models.BigIntegerField()),
                ("md5", models.CharField(max_length=32)),
                ("kept_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [models.Index(fields=["batch", "id"], name="keptoutput_batch")],
                "constraints": [models.UniqueConstraint(fields=("workunit_name", "number"), name="keptoutput_once")],
            },
        ),
        migrations.CreateModel(
            name="KeyChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("old_key", models.TextField()),
                ("new_key", models.TextField()),
                ("signature", models.TextField()),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(fields=("old_key",), name="keychange_one_successor"),
                    models.UniqueConstraint(fields=("new_key",), name="keychange_one_forerunner"),
                    models.CheckConstraint(
                        condition=models.Q(("old_key", models.F("new_key")), _negated=True), name="keychange_changes"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PendingFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("path", models.CharField(max_length=255)),
                ("begun_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="PlanClass",
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
                ("processor_type", models.CharField(default=credit.engine.facts.ProcessorType["CPU"], max_length=16)),
                ("min_ncpus", models.PositiveIntegerField(default=0)),
                (
                    "max_ncpus",
                    models.PositiveIntegerField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1024),
                        ],
                    ),
                ),
                ("cpu_features", models.CharField(blank=True, max_length=200)),
                ("min_gpu_ram_bytes", models.BigIntegerField(default=0)),
                ("min_driver_version", models.PositiveIntegerField(default=0)),
                ("min_compute_capability", models.PositiveIntegerField(default=0)),
                ("needs_opencl", models.BooleanField(default=False)),
                ("needs_docker", models.BooleanField(db_default=False, default=False)),
                ("needs_wsl", models.BooleanField(db_default=False, default=False)),
                ("nthreads_cmdline", models.BooleanField(db_default=False, default=False)),
                ("min_client_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_client_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_driver_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_compute_capability", models.PositiveIntegerField(db_default=0, default=0)),
                ("min_cuda_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_cuda_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("min_opencl_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_opencl_version", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "min_gpu_peak_flops",
                    models.FloatField(
                        db_default=0,
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1e18),
                        ],
                    ),
                ),
                (
                    "max_gpu_peak_flops",
                    models.FloatField(
                        db_default=0,
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1e18),
                        ],
                    ),
                ),
                ("needs_double_precision", models.BooleanField(db_default=False, default=False)),
                (
                    "gpu_ram_used_bytes",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1125899906842624),
                        ],
                    ),
                ),
                (
                    "cpu_share",
                    models.FloatField(
                        db_default=0,
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                ("os_pattern", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("cpu_vendor_pattern", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("cpu_model_pattern", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("gpu_model_pattern", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("min_os_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_os_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("min_libc_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("needs_virtualbox", models.BooleanField(db_default=False, default=False)),
                ("needs_vm_acceleration", models.BooleanField(db_default=False, default=False)),
                ("min_virtualbox_version", models.PositiveIntegerField(db_default=0, default=0)),
                ("max_virtualbox_version", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "excluded_virtualbox_versions",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        max_length=200,
                        validators=[django.core.validators.RegexValidator("^[0-9]{1,9}( [0-9]{1,9})*\\Z")],
                    ),
                ),
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
                (
                    "projected_flops_scale",
                    models.FloatField(
                        db_default=1,
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("avg_ncpus__gt", 0),
                                ("gpu_usage", 0),
                                ("processor_type", credit.engine.facts.ProcessorType["CPU"]),
                            ),
                            models.Q(
                                models.Q(("processor_type", credit.engine.facts.ProcessorType["CPU"]), _negated=True),
                                ("avg_ncpus__gte", 0),
                                ("gpu_usage__gte", 0),
                            ),
                            _connector="OR",
                        ),
                        name="planclass_uses_something",
                    ),
                    models.CheckConstraint(condition=models.Q(("max_ncpus__gte", 1)), name="planclass_max_ncpus"),
                    models.CheckConstraint(
                        condition=models.Q(("projected_flops_scale__gte", 0.01), ("projected_flops_scale__lte", 100)),
                        name="planclass_flops_scale",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cpu_share__gte", 0),
                            ("cpu_share__lte", 1),
                            ("gpu_ram_used_bytes__gte", 0),
                            ("min_gpu_peak_flops__gte", 0),
                            ("max_gpu_peak_flops__gte", 0),
                            ("max_gpu_peak_flops__lte", 1e18),
                            ("min_gpu_peak_flops__lte", 1e18),
                        ),
                        name="planclass_gpu_ranges",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("excluded_virtualbox_versions__regex", "^([0-9]{1,9}( [0-9]{1,9})*)?$")),
                        name="planclass_excluded_form",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RetryEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "workunit",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retry_entries",
                        to="credit.workunit",
                    ),
                ),
                ("step", models.CharField(max_length=16)),
                ("fault", models.CharField(max_length=500)),
                ("ntries", models.PositiveIntegerField(default=1)),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
                ("retry_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-since"],
                "constraints": [models.UniqueConstraint(fields=("workunit", "step"), name="retryentry_once")],
            },
        ),
        migrations.CreateModel(
            name="StickyFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sticky_files",
                        to="credit.batch",
                    ),
                ),
                ("name", models.CharField(max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["batch"], name="stickyfile_batch")],
                "constraints": [models.UniqueConstraint(fields=("name", "batch"), name="stickyfile_once")],
            },
        ),
        migrations.CreateModel(
            name="SubmissionDraft",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
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
                ("name", models.CharField(blank=True, max_length=100)),
                (
                    "request_id",
                    models.CharField(default=scheduler.models.work.new_request_id, max_length=64, unique=True),
                ),
                ("is_archive", models.BooleanField()),
                ("path", models.CharField(max_length=255)),
                ("open_name", models.CharField(blank=True, max_length=200)),
                ("defaults", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "batch",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="draft", to="credit.batch"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Submitter",
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
                (
                    "share",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(100.0),
                        ],
                    ),
                ),
                (
                    "max_priority",
                    models.SmallIntegerField(
                        default=0,
                        validators=[
                            django.core.validators.MinValueValidator(-30000),
                            django.core.validators.MaxValueValidator(30000),
                        ],
                    ),
                ),
                ("max_jobs", models.PositiveIntegerField(blank=True, default=100000, null=True)),
                (
                    "max_fpops",
                    models.FloatField(
                        blank=True, default=1e20, null=True, validators=[django.core.validators.MinValueValidator(0)]
                    ),
                ),
                ("app_names", models.CharField(blank=True, default="", max_length=1000)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("share__gte", 0.01), ("share__lte", 100.0)), name="submitter_share_range"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Trickle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trickles",
                        to="portal.host",
                    ),
                ),
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
                    "result",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trickles",
                        to="credit.result",
                    ),
                ),
                ("variety", models.CharField(max_length=64)),
                ("text", models.TextField()),
                ("digest", models.BinaryField(max_length=16)),
                ("written_at", models.DateTimeField()),
                ("received_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("handled_at", models.DateTimeField(blank=True, null=True)),
                ("fault", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("handled_at__isnull", True)), fields=["id"], name="trickle_to_handle"
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("host", "digest"), name="trickle_once")],
            },
        ),
        migrations.CreateModel(
            name="TrickleDown",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "result",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trickle_downs",
                        to="credit.result",
                    ),
                ),
                ("text", models.TextField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("told_deadline_at", models.DateTimeField(blank=True, null=True)),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["result"], name="trickledown_result"),
                    models.Index(
                        condition=models.Q(("acknowledged_at__isnull", True)),
                        fields=["result"],
                        name="trickledown_to_tell",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("acknowledged_at__isnull", True), ("told_deadline_at__isnull", False), _connector="OR"
                        ),
                        name="trickledown_told_before_acknowledged",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "result",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="uploads", to="credit.result"
                    ),
                ),
                ("name", models.CharField(max_length=207, unique=True)),
                ("path", models.CharField(blank=True, max_length=255)),
                ("nbytes", models.BigIntegerField()),
                ("md5", models.CharField(max_length=32)),
                ("sent_nbytes", models.BigIntegerField(blank=True, null=True)),
                ("sent_md5", models.CharField(blank=True, max_length=32)),
                ("started_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("completed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("nbytes__gte", 0)), name="upload_nbytes_range")
                ],
            },
        ),
        migrations.CreateModel(
            name="UserPreferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scheduler_preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("mod_time", models.FloatField(db_default=0, default=0)),
                ("text", models.TextField(blank=True, db_default="")),
                ("of_project", models.JSONField(blank=True, db_default={}, default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="WorkBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="work_block",
                        to="portal.host",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="work_block",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("reason", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("host__isnull", False), ("user__isnull", True)),
                            models.Q(("host__isnull", True), ("user__isnull", False)),
                            _connector="OR",
                        ),
                        name="workblock_of_one",
                        violation_error_message="Choose a computer or a volunteer, not both.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="workblock_has_reason"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ArchivedTask",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                (
                    "workunit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="scheduler.archivedworkunit",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="archived_tasks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="portal.host"
                    ),
                ),
                (
                    "app_version",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="credit.appversion",
                    ),
                ),
                ("facts", models.JSONField()),
                ("is_counted", models.BooleanField(db_default=False, editable=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("user__isnull", False)), fields=["user", "-id"], name="archivedtask_user"
                    ),
                    models.Index(
                        condition=models.Q(("is_counted", False)), fields=["id"], name="archivedtask_uncounted"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DraftFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "draft",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="scheduler.releasedraft",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first."
                            )
                        ],
                    ),
                ),
                ("path", models.CharField(max_length=255)),
                ("nbytes", models.BigIntegerField()),
                ("md5", models.CharField(max_length=32)),
                ("open_name", models.CharField(blank=True, max_length=200)),
                ("is_main_program", models.BooleanField(default=False)),
                ("is_executable", models.BooleanField(default=False)),
                ("is_copied", models.BooleanField(default=False)),
                ("signature", models.TextField(blank=True)),
            ],
            options={
                "ordering": ["id"],
                "constraints": [models.UniqueConstraint(fields=("draft", "name"), name="draftfile_once")],
            },
        ),
        migrations.CreateModel(
            name="FormerOutput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=254, unique=True)),
                (
                    "result",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="former_outputs",
                        to="credit.result",
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "key",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="scheduler.formeruploadkey",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("result", "number"), name="formeroutput_once")],
            },
        ),
        migrations.CreateModel(
            name="InputUpload",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("nbytes", models.BigIntegerField()),
                ("md5", models.CharField(max_length=32)),
                ("continued_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "file",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="scheduler.storedfile",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("nbytes__gte", 0)), name="inputupload_nbytes_range")
                ],
            },
        ),
        migrations.CreateModel(
            name="VersionFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "app_version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="credit.appversion",
                    ),
                ),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="scheduler.storedfile"
                    ),
                ),
                ("open_name", models.CharField(blank=True, max_length=200)),
                ("is_main_program", models.BooleanField(default=False)),
                ("is_copied", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("app_version", "file"), name="versionfile_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("is_main_program", True)),
                        fields=("app_version",),
                        name="versionfile_one_main_program",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SubmitterPlace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "submitter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="places",
                        to="scheduler.submitter",
                    ),
                ),
                (
                    "app",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="credit.app"
                    ),
                ),
                ("lane", models.BigIntegerField(db_default=0, default=0)),
                ("priority", models.SmallIntegerField()),
                ("end", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("submitter", "app", "lane", "priority"), name="submitterplace_once")
                ],
            },
        ),
        *_by_hand.OPERATIONS,
    ]
