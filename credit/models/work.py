"""Batches, workunits and their results.

The numbers behind a claim and a grant are stored in columns of the result, named like the fields of
``credit.engine.explanation``. The states are those of ``credit.engine.states``.
"""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.engine.facts import ProcessorType
from credit.engine.rules import LEAST_CREDIT, MAX_CREDIT, MAX_STATISTIC
from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState, WorkunitError
from credit.models.apps import App
from credit.models.claims import StoredClaim
from credit.models.common import JOB_NAME, within
from credit.models.versions import PROCESSOR_TYPES, AppVersion
from portal.languages.sentences import MessagesField
from portal.models import Host, User

MAX_FLOPS_COUNT: Final = 1e25
"""The maximum of a job's estimated or allowed FLOPs: 3 million years at 100 GFLOPS."""
MAX_RESULTS_PER_WORKUNIT: Final = 100
MAX_WORKUNIT_NAME_CHARS: Final = 191
"""The limit of BOINC's own server."""
MAX_INSTANCES: Final = 65_535
"""The maximum of processors for a job."""


class Batch(models.Model):
    """A set of workunits to monitor and fetch together; it may be created before them."""

    app = models.ForeignKey(App, models.PROTECT, related_name="batches", verbose_name=_("app"))
    owner = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="batches", verbose_name=_("owner")
    )
    name = models.CharField(_("name"), max_length=MAX_WORKUNIT_NAME_CHARS)
    # Sent by the submitter so that a repeated submission has no effect; it is refused if its content differs. Any
    # number of batches may have none
    request_id = models.CharField(_("id of the request"), max_length=64, blank=True, default="")
    request_digest = models.BinaryField(max_length=32, null=True, editable=False)
    nworkunits = models.PositiveIntegerField(_("workunits"), default=0)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    cancelled_at = models.DateTimeField(_("cancelled"), null=True, blank=True)
    # When it will be cancelled and retired; NULL: never
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    # Its outputs are deleted, and new ones are not kept
    retired_at = models.DateTimeField(_("retired"), null=True, blank=True)

    class Meta:
        verbose_name = _("batch")
        ordering = ["-id"]
        verbose_name_plural = _("batches")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "request_id"],
                condition=~Q(request_id=""),
                nulls_distinct=False,
                name="batch_request_id",
            )
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(expires_at__isnull=False, retired_at=None), name="batch_to_expire"
            )
        ]

    def __str__(self) -> str:
        return self.name


ASSIMILATE_STATES: Final = {
    AssimilateState.INIT: _("not decided"),
    AssimilateState.READY: _("to be assimilated"),
    AssimilateState.DONE: _("assimilated"),
}
FILE_DELETE_STATES: Final = {
    FileDeleteState.INIT: _("needed"),
    FileDeleteState.READY: _("may be deleted"),
    FileDeleteState.DONE: _("deleted"),
    FileDeleteState.ERROR: _("could not be deleted"),
}
WORKUNIT_ERRORS: Final = {
    WorkunitError.COULD_NOT_SEND: _("could not be sent"),
    WorkunitError.TOO_MANY_ERROR_RESULTS: _("too many errors"),
    WorkunitError.TOO_MANY_SUCCESS_RESULTS: _("too many results without agreement"),
    WorkunitError.TOO_MANY_TOTAL_RESULTS: _("too many results"),
    WorkunitError.CANCELLED: _("cancelled"),
}


class Workunit(models.Model):
    """A piece of work: its sizes, inputs and bounds, its replication, and how it ended."""

    app = models.ForeignKey(App, models.PROTECT, related_name="workunits", db_index=False, verbose_name=_("app"))
    batch = models.ForeignKey(
        Batch, models.PROTECT, null=True, blank=True, related_name="workunits", db_index=False, verbose_name=_("batch")
    )
    name = models.CharField(_("name"), max_length=MAX_WORKUNIT_NAME_CHARS, validators=[JOB_NAME])
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    priority = models.SmallIntegerField(_("priority"), default=0)
    fpops_est = models.FloatField(_("estimated FLOPs"))
    fpops_bound = models.FloatField(_("maximum FLOPs"))
    memory_bound_bytes = models.BigIntegerField(_("memory limit (bytes)"), default=128 * 1024 * 1024)
    disk_bound_bytes = models.BigIntegerField(_("disk space limit (bytes)"), default=128 * 1024 * 1024)
    delay_bound_secs = models.PositiveIntegerField(_("time allowed (s)"), default=7 * 86400)
    min_quorum = models.PositiveSmallIntegerField(_("matching results needed"), default=2)
    target_nresults = models.PositiveSmallIntegerField(_("initial results"), default=2)
    max_error_results = models.PositiveSmallIntegerField(_("maximum errors"), default=3)
    max_total_results = models.PositiveSmallIntegerField(_("maximum results"), default=10)
    max_success_results = models.PositiveSmallIntegerField(_("maximum results without agreement"), default=6)
    command_line = models.CharField(_("command line"), max_length=2000, blank=True)
    # [{"name", "open_name", "nbytes", "md5"}, …]: physical names of stored files
    input_files = models.JSONField(_("input files"), default=list, blank=True)
    # [{"open_name", "max_nbytes", "optional"}, …]: the n-th is uploaded as <result name>_<n>
    output_files = models.JSONField(_("output files"), default=list, blank=True)

    need_validate = models.BooleanField(_("to be validated"), default=False)
    # If outputs could not be compared: why, and when that is tried again
    validate_fault = models.CharField(_("why outputs could not be compared"), max_length=500, blank=True, db_default="")
    validate_after = models.DateTimeField(_("not validated before"), null=True, blank=True)
    # Until then its quorum is raised by one; NULL: it waits for nobody
    confirm_until = models.DateTimeField(_("waits for confirmation until"), null=True, blank=True)
    transition_at = models.DateTimeField(_("next check by the transitioner"), null=True, blank=True)
    # There is no constraint in the database: it would cost a fifth of the validator's writing time. The validator only
    # sets results that it has read with this workunit locked, and check_credit checks all of them.
    canonical_result = models.ForeignKey(
        "Result",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
        verbose_name=_("canonical result"),
    )
    canonical_credit = models.FloatField(_("canonical credit"), null=True, blank=True)
    # The only computers that may get its results (scheduler.engine.lanes): those of a target, of the class and version
    # that its first result went to, or with the version that it asks for. 0: all. Stored here because new results take
    # it from here
    lane = models.BigIntegerField(_("reserved for"), default=0, db_default=0, editable=False)
    # Only for its submitter's own computers. Nobody else confirms it, so it earns no credit
    is_own = models.BooleanField(_("for its submitter’s computers"), default=False, db_default=False, editable=False)
    # 0: any; else only versions of this number
    app_version_num = models.PositiveIntegerField(_("version asked for"), default=0, db_default=0)
    # The speed class of computers in its app that it is made for, 0 the slowest; NULL: all alike. Stays set while its
    # results are in another lane
    size_class = models.PositiveSmallIntegerField(_("size class"), null=True, blank=True)
    # For apps with homogeneous redundancy, once a result was sent; 0: not yet, or any
    hr_class = models.PositiveSmallIntegerField(_("class of computers"), default=0, db_default=0, editable=False)
    # For apps with homogeneous versions, once a result was sent. No constraint: versions are never deleted
    bound_version = models.ForeignKey(
        AppVersion,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        db_index=False,
        db_constraint=False,
        verbose_name=_("version of all results"),
    )
    # For apps whose jobs set their own credit
    credit = models.FloatField(_("credit given with the job"), null=True, blank=True)
    error_mask = models.PositiveSmallIntegerField(_("errors (bits)"), default=0)
    assimilate_state = models.PositiveSmallIntegerField(
        _("assimilation"), choices=ASSIMILATE_STATES, default=AssimilateState.INIT
    )
    file_delete_state = models.PositiveSmallIntegerField(
        _("file deletion"), choices=FILE_DELETE_STATES, default=FileDeleteState.INIT
    )
    assimilated_at = models.DateTimeField(_("assimilated"), null=True, blank=True)

    class Meta:
        verbose_name = _("workunit")
        verbose_name_plural = _("workunits")
        ordering = ["-id"]
        constraints = [
            # Not unique=True: that would add a second index, for LIKE, to maintain.
            models.UniqueConstraint(fields=["name"], name="workunit_name"),
            CheckConstraint(
                condition=Q(fpops_est__gte=1, fpops_est__lt=MAX_FLOPS_COUNT)
                & Q(fpops_bound__gte=F("fpops_est"), fpops_bound__lt=MAX_FLOPS_COUNT),
                name="workunit_fpops_range",
            ),
            CheckConstraint(
                condition=Q(min_quorum__gte=1, target_nresults__gte=F("min_quorum"))
                & Q(max_total_results__gte=F("target_nresults"), max_total_results__lte=MAX_RESULTS_PER_WORKUNIT)
                & Q(max_success_results__gte=F("min_quorum"), max_error_results__gte=1),
                name="workunit_counts_of_results",
            ),
            CheckConstraint(
                condition=Q(delay_bound_secs__gte=1, delay_bound_secs__lte=10 * 366 * 86400),
                name="workunit_delay_bound_range",
            ),
            CheckConstraint(
                condition=Q(memory_bound_bytes__gte=0, disk_bound_bytes__gte=0), name="workunit_bounds_not_negative"
            ),
            CheckConstraint(
                condition=Q(canonical_credit__isnull=True)
                | Q(canonical_credit__gte=0, canonical_credit__lte=MAX_CREDIT),
                name="workunit_canonical_credit_range",
            ),
            within("workunit", "credit", 0, MAX_CREDIT),
            CheckConstraint(
                condition=~Q(lane=0) | Q(app_version_num=0, hr_class=0, bound_version=None),
                name="workunit_restricted_is_in_a_lane",
            ),
            CheckConstraint(
                condition=Q(size_class=None) | Q(app_version_num=0) & ~Q(lane=0),
                name="workunit_with_size_is_in_a_lane",
            ),
            CheckConstraint(
                condition=Q(assimilate_state=AssimilateState.INIT)
                | Q(canonical_result__isnull=False)
                | Q(error_mask__gt=0),
                name="workunit_ends_with_result_or_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["app", "id"], condition=Q(need_validate=True), name="workunit_to_validate"),
            models.Index(
                fields=["transition_at"], condition=Q(transition_at__isnull=False), name="workunit_to_transition"
            ),
            models.Index(
                fields=["app", "id"],
                condition=Q(assimilate_state=AssimilateState.READY),
                name="workunit_to_assimilate",
            ),
            models.Index(
                fields=["id"], condition=Q(file_delete_state=FileDeleteState.READY), name="workunit_to_delete_files"
            ),
            models.Index(
                fields=["assimilated_at"], condition=Q(file_delete_state=FileDeleteState.DONE), name="workunit_to_purge"
            ),
            models.Index(fields=["batch", "id"], condition=Q(batch__isnull=False), name="workunit_batch"),
            models.Index(fields=["app", "-id"], name="workunit_app"),
            # Those for one computer, person or team (scheduler.engine.lanes): few among all.
            models.Index(fields=["lane"], condition=Q(lane__gte=1 << 60), name="workunit_targeted"),
        ]

    def __str__(self) -> str:
        return self.name


SERVER_STATES: Final = {
    ServerState.UNSENT: _("waiting to be sent"),
    ServerState.IN_PROGRESS: _("in progress"),
    ServerState.OVER: _("ended"),
}
OUTCOMES: Final = {
    Outcome.INIT: _("open"),
    Outcome.SUCCESS: _("completed"),
    Outcome.COULD_NOT_SEND: _("could not be sent"),
    Outcome.CLIENT_ERROR: _("computation error"),
    Outcome.NO_REPLY: _("no reply before the deadline"),
    Outcome.DIDNT_NEED: _("no longer needed"),
    Outcome.VALIDATE_ERROR: _("output could not be checked"),
    Outcome.CLIENT_DETACHED: _("abandoned"),
}
VALIDATE_STATES: Final = {
    ValidateState.INIT: _("not checked yet"),
    ValidateState.VALID: _("valid"),
    ValidateState.INVALID: _("invalid"),
    ValidateState.NO_CHECK: _("not checked"),
    ValidateState.INCONCLUSIVE: _("inconclusive"),
    ValidateState.TOO_LATE: _("too late"),
}


class Result(StoredClaim):
    """One replica of a workunit: its computer, its report, and the explanation of its credit."""

    workunit = models.ForeignKey(
        Workunit, models.CASCADE, related_name="results", db_index=False, verbose_name=_("workunit")
    )
    app = models.ForeignKey(App, models.PROTECT, related_name="+", db_index=False, verbose_name=_("app"))
    # The workunit's name, its number, and the mark of a restore
    name = models.CharField(_("name"), max_length=MAX_WORKUNIT_NAME_CHARS + len("_99_r00000000"))
    priority = models.SmallIntegerField(_("priority"), default=0)
    # Its position in the queue is its id plus this random number, drawn when it is created
    # (scheduler/submission/sql.py).
    queue_shift = models.BigIntegerField(_("shift in the queue"), default=0, db_default=0, editable=False)
    # The workunit's lane: a separate queue within the app's, so that requests of others need not skip what waits there.
    lane = models.BigIntegerField(_("reserved for"), default=0, db_default=0, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    # The allowed values of these three are checked below, so they are not positive fields, which would add a second
    # check.
    server_state = models.SmallIntegerField(_("server state"), choices=SERVER_STATES, default=ServerState.UNSENT)
    outcome = models.SmallIntegerField(_("outcome"), choices=OUTCOMES, default=Outcome.INIT)
    validate_state = models.SmallIntegerField(_("validation"), choices=VALIDATE_STATES, default=ValidateState.INIT)
    file_delete_state = models.PositiveSmallIntegerField(
        _("file deletion"), choices=FILE_DELETE_STATES, default=FileDeleteState.INIT
    )

    # These three have no constraints in the database, which would take a tenth of its time for a dispatch. Any code
    # that gives a result to a computer has locked the computer, and so has the only code that deletes computers and
    # volunteers: erasing an account. Versions are never deleted. check_credit checks all of them.
    user = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="results",
        db_index=False,
        db_constraint=False,
        verbose_name=_("volunteer"),
    )
    host = models.ForeignKey(
        Host,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="results",
        db_index=False,
        db_constraint=False,
        verbose_name=_("computer"),
    )
    # NULL after sending: anonymous platform
    app_version = models.ForeignKey(
        AppVersion,
        models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        db_constraint=False,
        verbose_name=_("app version"),
    )
    processor_type = models.CharField(
        _("processor type"), max_length=16, choices=PROCESSOR_TYPES, default=ProcessorType.CPU
    )
    peak_flops = models.FloatField(_("peak FLOPS of the devices used"), null=True, blank=True)
    # For the credit systems that count benchmark × CPU time; NULL: unknown, because another server sent the job
    p_fpops = models.FloatField(_("benchmark of the computer when sent (FLOPS)"), null=True, blank=True)
    projected_flops = models.FloatField(_("speed used to estimate the run time (FLOPS)"), null=True, blank=True)
    # NULL: not sent yet, or sent by another server before the project moved here
    ninstances = models.FloatField(_("processors of its type in use"), null=True, blank=True)
    # Digests of what its computer shares with others that may belong to the same person (scheduler.engine.choice.ties)
    ties = ArrayField(models.BigIntegerField(), null=True, blank=True, editable=False)
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)
    deadline_at = models.DateTimeField(_("deadline"), null=True, blank=True)

    received_at = models.DateTimeField(_("received"), null=True, blank=True)
    client_state = models.SmallIntegerField(_("client state"), null=True, blank=True)
    exit_status = models.IntegerField(_("exit status"), null=True, blank=True)
    elapsed_secs = models.FloatField(_("run time (s)"), null=True, blank=True)
    cpu_secs = models.FloatField(_("CPU time (s)"), null=True, blank=True)
    fpops_cumulative = models.FloatField(_("FLOPs counted by the app"), null=True, blank=True)
    fpops_per_cpu_sec = models.FloatField(_("FLOPs per CPU second, reported by the app"), null=True, blank=True)
    is_runtime_outlier = models.BooleanField(_("run-time outlier"), default=False)
    peak_working_set_bytes = models.BigIntegerField(_("peak memory (bytes)"), null=True, blank=True)
    peak_swap_bytes = models.BigIntegerField(_("peak swap space (bytes)"), null=True, blank=True)
    peak_disk_bytes = models.BigIntegerField(_("peak disk space (bytes)"), null=True, blank=True)
    stderr_text = models.TextField(_("error output"), blank=True)
    # Values of its report that were cut or missing, each with the field and the limit
    report_faults = MessagesField(_("corrected values"))
    # [{"name", "nbytes", "md5", "path"}, …]: path in the default storage
    outputs = models.JSONField(_("outputs"), default=list, blank=True)
    # Equal if and only if all outputs are; NULL: none known
    output_digest = models.BinaryField(_("output digest"), max_length=16, null=True, blank=True)

    # Partial credit by trickle-up messages: how much of elapsed_secs was already credited, and the credit for it.
    partial_elapsed_secs = models.FloatField(_("run time credited while running (s)"), default=0)
    partial_credit = models.FloatField(_("credit granted while running"), default=0)

    grant_rule = models.SmallIntegerField(_("grant rule"), null=True, blank=True)
    granted_credit = models.FloatField(_("granted credit"), null=True, blank=True)
    granted_at = models.DateTimeField(_("granted"), null=True, blank=True)

    class Meta:
        verbose_name = _("result")
        verbose_name_plural = _("results")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="result_name"),
            # A single constraint for all states: every statement that writes results prepares each constraint again.
            CheckConstraint(
                condition=Q(server_state=ServerState.UNSENT, outcome=Outcome.INIT, host=None, user=None, sent_at=None)
                | Q(
                    server_state=ServerState.IN_PROGRESS,
                    outcome=Outcome.INIT,
                    sent_at__isnull=False,
                    deadline_at__isnull=False,
                )
                | Q(
                    server_state=ServerState.OVER,
                    outcome__in=[outcome for outcome in Outcome if outcome != Outcome.INIT],
                ),
                name="result_state",
            ),
            CheckConstraint(
                condition=~Q(outcome=Outcome.SUCCESS) | Q(received_at__isnull=False), name="result_success_was_received"
            ),
            CheckConstraint(
                condition=Q(validate_state=ValidateState.INIT)
                | Q(validate_state__in=list(ValidateState), outcome=Outcome.SUCCESS),
                name="result_checked_when_success",
            ),
            CheckConstraint(
                condition=Q(granted_credit__isnull=True)
                | Q(granted_credit=0)
                | Q(granted_credit__gte=LEAST_CREDIT, granted_credit__lte=MAX_CREDIT),
                name="result_granted_credit_range",
            ),
            CheckConstraint(
                condition=Q(partial_credit__gte=0, partial_credit__lte=MAX_CREDIT, partial_elapsed_secs__gte=0),
                name="result_partial_credit_range",
            ),
            within("result", "ninstances", 0, MAX_INSTANCES),
        ]
        indexes = [
            models.Index(fields=["workunit"], name="result_workunit"),
            # All ascending, so that a single row comparison finds a position in the queue
            # (scheduler/rpc/sql/suitable.sql).
            models.Index(
                F("app"),
                F("priority") * -1,
                F("id") + F("queue_shift"),
                condition=Q(server_state=ServerState.UNSENT, lane=0),
                name="result_queue",
            ),
            models.Index(
                F("app"),
                F("lane"),
                F("priority") * -1,
                F("id") + F("queue_shift"),
                condition=Q(server_state=ServerState.UNSENT) & ~Q(lane=0),
                name="result_lanes",
            ),
            models.Index(fields=["host"], condition=Q(server_state=ServerState.IN_PROGRESS), name="result_in_progress"),
            # The second condition is implied by the first. It keeps the planner from reading the whole index to find a
            # computer's jobs, as it did while the statistics had no jobs in progress.
            models.Index(
                fields=["deadline_at"],
                condition=Q(server_state=ServerState.IN_PROGRESS, deadline_at__isnull=False),
                name="result_deadline",
            ),
            # For the roll-up by hour. It never changes after the report, which changes the other indexes anyway.
            models.Index(fields=["received_at"], condition=Q(received_at__isnull=False), name="result_received"),
            models.Index(fields=["deadline_at"], condition=Q(outcome=Outcome.NO_REPLY), name="result_timed_out"),
            models.Index(fields=["received_at"], condition=Q(outcome=Outcome.VALIDATE_ERROR), name="result_unfit"),
            models.Index(fields=["user", "-id"], condition=Q(user__isnull=False), name="result_user"),
            models.Index(fields=["host", "-id"], condition=Q(host__isnull=False), name="result_host"),
        ]

    def __str__(self) -> str:
        return self.name


class PartState(models.IntegerChoices):
    """Whether a part's credit is final."""

    KEPT = 0, _("granted")
    PROVISIONAL = 1, _("provisional")  # until the job ends, because the computer is on probation
    CONFIRMED = 2, _("confirmed")
    TAKEN_BACK = 3, _("taken back")


class ResultPart(StoredClaim):
    """Credit for a part of a job, granted by a trickle-up message while it ran; the claim is for this part.

    The parts are the ledger of such credit: when some is taken back, its line stays, with the time.
    """

    result = models.ForeignKey(Result, models.CASCADE, related_name="parts", db_index=False)
    granted_at = models.DateTimeField()
    from_secs = models.FloatField(_("run time credited before (s)"))
    to_secs = models.FloatField(_("run time credited with it (s)"))
    credit = models.FloatField()
    state = models.PositiveSmallIntegerField(
        choices=PartState.choices, default=PartState.KEPT, db_default=PartState.KEPT
    )
    settled_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("credited part of a result")
        verbose_name_plural = _("credited parts of results")
        ordering = ["id"]
        constraints = [
            # Each part continues where another ended.
            models.UniqueConstraint(fields=["result", "from_secs"], name="resultpart_result_from"),
            CheckConstraint(
                condition=Q(from_secs__gte=0, to_secs__gt=F("from_secs"), to_secs__lt=MAX_STATISTIC),
                name="resultpart_secs_range",
            ),
            CheckConstraint(condition=Q(credit__gt=0, credit__lte=MAX_CREDIT), name="resultpart_credit_range"),
            CheckConstraint(
                condition=Q(
                    claim_rule__isnull=False,
                    raw_pfc__isnull=False,
                    claimed_pfc__isnull=False,
                    claimed_credit__isnull=False,
                    is_approximate__isnull=False,
                ),
                name="resultpart_claim_is_there",
            ),
            CheckConstraint(
                condition=Q(state__in=[PartState.KEPT, PartState.PROVISIONAL], settled_at__isnull=True)
                | Q(state__in=[PartState.CONFIRMED, PartState.TAKEN_BACK], settled_at__isnull=False),
                name="resultpart_settled",
            ),
        ]
        indexes = [
            models.Index(fields=["result"], condition=Q(state=PartState.PROVISIONAL), name="resultpart_provisional")
        ]

    def __str__(self) -> str:
        return f"{self.result_id}: {self.from_secs:.0f} s to {self.to_secs:.0f} s"
