"""Alerts: a volunteer's channels, their known troubles, and the messages to send."""

from __future__ import annotations

import uuid
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from extras.alerts.rules import AlertKind

TEST: Final = "test"
"""The kind of a message by which a volunteer tests a channel."""


class AlertChannel(models.Model):
    """A destination of a volunteer's alerts: a browser, a webhook, an ntfy server. The address is as secret as a
    key.
    """

    user = models.ForeignKey("portal.User", models.CASCADE, related_name="alert_channels")
    # A name of `kinds.KINDS`
    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=100)
    # For display; the rest of the address is never shown.
    host = models.CharField(max_length=255)
    # A `wire.Destination` as JSON, encrypted as account keys are
    destination = models.BinaryField("address and keys, encrypted", editable=False)
    # SHA-256 of a browser's address, so that a browser is one channel, of the person who uses it now
    digest = models.BinaryField(max_length=32, null=True, editable=False)
    # The key of the form that added it, so that repeating the form adds only one
    form_key = models.UUIDField(null=True, editable=False)
    alert_kinds = ArrayField(models.CharField(max_length=8), default=list, blank=True)
    tells_end = models.BooleanField("also when a trouble is over", default=False)
    created_at = models.DateTimeField(default=timezone.now)
    last_sent_at = models.DateTimeField(null=True)
    failing_since = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    # Why the last message was not accepted, in words for its owner
    fault = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="alertchannel_browser_once"),
            models.UniqueConstraint(fields=["user", "form_key"], name="alertchannel_form_once"),
            CheckConstraint(
                condition=Q(alert_kinds__contained_by=[kind.value for kind in AlertKind]), name="alertchannel_kinds"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"


class AlertWatch(models.Model):
    """When a volunteer with channels was last evaluated; NULL: not yet. Its lock serialises evaluations.

    It outlives the channels, for the tests of the day: otherwise one could send any number by adding a channel for
    each.
    """

    user = models.OneToOneField("portal.User", models.CASCADE, primary_key=True, related_name="alert_watch")
    since = models.DateTimeField(default=timezone.now)
    looked_at = models.DateTimeField(null=True, db_index=True)
    tests_on = models.DateField("day of the last test", null=True)
    ntests = models.PositiveSmallIntegerField("tests of that day", default=0)

    def __str__(self) -> str:
        return f"watch of {self.user}"


class AlertTrouble(models.Model):
    """A trouble or an event that was seen, and so is not reported again (`rules.OpenAlert`)."""

    user = models.ForeignKey("portal.User", models.CASCADE, related_name="alert_troubles", db_index=False)
    key = models.CharField(max_length=120)
    kind = models.CharField(max_length=8)
    text = models.TextField()
    path = models.CharField(max_length=200)
    began_at = models.DateTimeField()
    gone_since = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="alerttrouble_once")]

    def __str__(self) -> str:
        return f"{self.key} of {self.user}"


class AlertMessage(models.Model):
    """A message for one channel, until a week after it was sent or given up.

    ``due_at``: when to try next. The process that takes it moves that into the future, so that it is retried if the
    process dies. ``uid``: its id for receivers; the same for each attempt.
    """

    class Outcome(models.TextChoices):
        WAITING = "waiting", _("waiting")
        SENT = "sent", _("sent")
        FAILED = "failed", _("not sent")
        LEFT_OUT = "left_out", _("left out")

    channel = models.ForeignKey(AlertChannel, models.CASCADE, related_name="messages", db_index=False)
    uid = models.UUIDField(default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=8)
    is_over = models.BooleanField(default=False)
    title = models.CharField(max_length=200)
    lines = ArrayField(models.TextField(), default=list)
    path = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)
    ntries = models.PositiveSmallIntegerField(default=0)
    outcome = models.CharField(max_length=8, choices=Outcome, default=Outcome.WAITING)
    finished_at = models.DateTimeField(null=True)
    # The result of the last attempt, in words for the channel's owner
    answer = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(outcome="waiting"), name="alertmessage_due"),
            models.Index(fields=["channel", "created_at"], name="alertmessage_channel"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(outcome="waiting", finished_at=None) | (~Q(outcome="waiting") & ~Q(finished_at=None)),
                name="alertmessage_finished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} to {self.channel_id}"
