"""The emulator's tables: experiments, their runs, and the result of each.

An experiment is a scenario and the settings tried with it: one run, or several policies or values compared, each with
one seed or more. It belongs to one volunteer. Nobody else can see it unless its owner shares it by an unguessable link.
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from emulator.engine.policies.names import PolicyName
from portal.languages.sentences import MessageField
from portal.models import User

DAYS_MAX = 36_525.0
POLICIES = [
    (PolicyName.REC.value, _("Recent estimated credit (current clients)")),
    (PolicyName.REC_LETTER.value, _("Recent estimated credit to the letter: the queue counts against the buffer")),
    (PolicyName.LTD.value, _("Long-term debt per processor type (client 6.6)")),
    (PolicyName.LTD_SINGLE.value, _("Single long-term debt, CPU time only (before 6.6)")),
    (PolicyName.DEBT.value, _("Debt with preemption (2005)")),
]


class Experiment(models.Model):
    """A scenario, the length of its runs, and whether others may see it."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="experiments")
    title = models.CharField(max_length=100)
    # "example:key", "computer:number", "form", "files", "json" or "blank": words in emulator.pages.texts.preset_texts
    origin = models.CharField(_("source of its scenario"), max_length=200, blank=True)
    # NULL while uploaded files wait to be read, and if they could not be
    scenario = models.JSONField(null=True)
    fault = MessageField(_("why it has no scenario"))
    # Until it is started: "editor", the unsaved input of the editor (extras.scenario_editor.tree), and "trial", the
    # settings from a JSON file (emulator.runs.experiments)
    draft = models.JSONField(default=dict, blank=True, editable=False)
    days = models.FloatField(default=30, validators=[MinValueValidator(0.01), MaxValueValidator(DAYS_MAX)])
    # The value that varies from run to run, for the axis of a chart; empty: policies, or nothing
    parameter = models.CharField(max_length=300, blank=True)
    share_token = models.CharField(max_length=32, null=True, blank=True, unique=True, editable=False)
    # The shared experiment whose scenario this one began with
    forked_from = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="forks")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(_("runs requested"), null=True, blank=True)
    # Makes a program's repeated request harmless
    request_id = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            CheckConstraint(condition=Q(days__gt=0, days__lte=DAYS_MAX), name="experiment_days_range"),
            models.UniqueConstraint(
                fields=["owner", "request_id"], condition=~Q(request_id=""), name="experiment_request_id"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Upload(models.Model):
    """Files that a scenario is read from, as a zip; deleted when they have been read."""

    experiment = models.OneToOneField(Experiment, models.CASCADE, primary_key=True, related_name="upload")
    files = models.BinaryField()

    def __str__(self) -> str:
        return f"files of {self.experiment}"


class RunState(models.TextChoices):
    QUEUED = "queued", _("Waiting for a worker")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class Run(models.Model):
    """One policy, one set of parameters, one seed. Its results are columns of JSON; its timeline has a table."""

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="runs", db_index=False)
    number = models.PositiveSmallIntegerField(_("place in the experiment, from 1"))
    variant = models.CharField(_("name in comparisons"), max_length=100)
    # Of POLICIES, or of those that the operator allows from installed packages
    policy = models.CharField(max_length=60, choices=POLICIES)
    has_quirks = models.BooleanField(_("as implemented in BOINC"), default=False)
    # The differences from the defaults: {"half_life_days": …, "work_buf_min_days": …, …}
    parameters = models.JSONField(default=dict, blank=True)
    value = models.FloatField(_("value of the varied parameter"), null=True, blank=True)
    seed = models.BigIntegerField(default=1)
    keeps_timeline = models.BooleanField(default=True)

    state = models.CharField(max_length=10, choices=RunState, default=RunState.QUEUED)
    progress = models.FloatField(default=0)
    cancel_asked = models.BooleanField(default=False)
    fault = MessageField(_("why it failed"))
    started_at = models.DateTimeField(null=True, blank=True)
    heard_of_at = models.DateTimeField(_("last report of its worker"), null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    cpu_secs = models.FloatField(null=True, blank=True)
    figures = models.JSONField(default=dict, blank=True)
    projects = models.JSONField(default=list, blank=True)
    # Of those that keep a timeline: {"findings": emulator.advice.findings.Findings, "outcome": of trials, or null}
    answer = models.JSONField(_("answer in words"), default=dict, db_default={}, blank=True)

    class Meta:
        ordering = ["experiment", "number"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "number"], name="run_experiment_number"),
            CheckConstraint(condition=Q(progress__gte=0, progress__lte=1), name="run_progress_range"),
        ]
        indexes = [
            models.Index(fields=["state"], condition=Q(state__in=["queued", "running"]), name="run_unfinished"),
        ]

    def __str__(self) -> str:
        return f"{self.experiment} · {self.variant}"


class Replay(models.Model):
    """A policy's knowledge at one of its decisions, found by repeating the run up to it."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="replays", db_index=False)
    decision = models.PositiveIntegerField(_("place among the decisions of the run, from 0"))
    # emulator.engine.replay.Moment; NULL until it was run, and if that failed
    moment = models.JSONField(null=True)
    fault = MessageField(_("why there is none"))
    asked_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["run", "decision"], name="replay_run_decision")]

    def __str__(self) -> str:
        return f"{self.run}, decision {self.decision}"


class RunTimeline(models.Model):
    """The timeline and the decisions of a run: compressed columns (emulator.runs.packed_timeline)."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="timeline")
    data = models.BinaryField()

    def __str__(self) -> str:
        return str(self.run)
