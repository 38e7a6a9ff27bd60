"""Tables of the tasks that volunteers' clients have: the last list of each computer, and the fate of each task."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounting.engine.client_tasks import MAX_CREDIT, TaskCreditState
from portal.languages.sentences import MessageField
from portal.models import Host

STANDINGS: Final = {
    TaskCreditState.OPEN: _("not finished"),
    TaskCreditState.PENDING: _("not decided yet"),
    TaskCreditState.GRANTED: _("granted"),
    TaskCreditState.REFUSED: _("refused"),
    TaskCreditState.FAILED: _("failed"),
    TaskCreditState.UNKNOWN: _("not known to the project"),
}


class TaskList(models.Model):
    """The tasks that a computer's client listed at its last contact; each report replaces the list.

    Written by the statement of the account-manager RPC. ``tasks``: at most `accounting.wire.client_tasks.MAX_TASKS` of
    {"project": our id, "name", "state": a `TaskState`, "fraction_done", "deadline" (Unix time), "elapsed_secs",
    "remaining_secs"}.
    """

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="task_list")
    at = models.DateTimeField("when it was reported")
    tasks = models.JSONField(default=list)
    left_out = models.PositiveIntegerField("tasks beyond the limit, or of other projects", default=0)
    # The list of this time is already among the followed tasks
    followed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["at"],
                condition=Q(followed_at__isnull=True) | Q(followed_at__lt=models.F("at")),
                name="tasklist_to_follow",
            )
        ]

    def __str__(self) -> str:
        return f"tasks of {self.host} at {self.at:%Y-%m-%d %H:%M}"


class FollowedTask(models.Model):
    """A task that was in a computer's list, and its state at its project. It enters no total.

    The name comes from the client, and a project does not say whose a task is: so this is shown to the computer's owner
    only.
    """

    host = models.ForeignKey(Host, models.CASCADE, related_name="followed_tasks", db_index=False)
    project = models.ForeignKey("accounting.Project", models.CASCADE, related_name="followed_tasks", db_index=False)
    name = models.CharField(max_length=255)
    first_seen_at = models.DateTimeField(default=timezone.now)
    last_seen_at = models.DateTimeField("last in the list", default=timezone.now)
    standing = models.PositiveSmallIntegerField(choices=STANDINGS, default=TaskCreditState.OPEN)
    granted_credit = models.FloatField(null=True)
    asks = models.PositiveSmallIntegerField("times that the project was asked", default=0)
    unknowns = models.PositiveSmallIntegerField("times in a row that it did not know the task", default=0)
    # NULL: it is decided, or no longer asked about
    ask_after = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["host", "project", "name"], name="followedtask_once"),
            CheckConstraint(condition=Q(standing__in=list(TaskCreditState)), name="followedtask_standing"),
            CheckConstraint(
                condition=Q(granted_credit__isnull=True) | Q(granted_credit__gte=0, granted_credit__lte=MAX_CREDIT),
                name="followedtask_credit_range",
            ),
            CheckConstraint(
                condition=Q(standing=TaskCreditState.GRANTED, granted_credit__isnull=False)
                | (~Q(standing=TaskCreditState.GRANTED) & Q(granted_credit__isnull=True)),
                name="followedtask_credit_when_granted",
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "ask_after"], condition=Q(ask_after__isnull=False), name="followedtask_to_ask"
            ),
            models.Index(fields=["last_seen_at"], name="followedtask_seen"),
        ]

    def __str__(self) -> str:
        return self.name


class TaskSource(models.Model):
    """Whether and how a project answers questions about tasks (`result_status.php`), and when it is asked next."""

    project = models.OneToOneField(
        "accounting.Project", models.CASCADE, primary_key=True, related_name="task_source", verbose_name=_("project")
    )
    answered_at = models.DateTimeField(_("last answered"), null=True)
    ask_after = models.DateTimeField(_("next asked after"), default=timezone.now)
    failures = models.PositiveSmallIntegerField(_("failures in a row"), default=0)
    # NULL: it answered
    problem = MessageField(_("problem"))

    class Meta:
        verbose_name = _("project asked about tasks")
        verbose_name_plural = _("projects asked about tasks")

    def __str__(self) -> str:
        return str(self.project)
