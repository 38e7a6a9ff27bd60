"""Badges: the operators' rules, and who met them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounting.models.projects import keyword_choices
from extras.badges.rules import MAX_THRESHOLD, BadgeKind
from portal.models import User


class Badge(models.Model):
    """An operators' rule: what a volunteer has to achieve, and its name."""

    KINDS: ClassVar = [
        (BadgeKind.CREDIT.value, _("estimated credit, in credits")),
        (BadgeKind.TASKS.value, _("finished tasks")),
        (BadgeKind.DAYS.value, _("days with credit")),
        (BadgeKind.YEARS.value, _("calendar years with credit")),
        (BadgeKind.GPU_HOURS.value, _("GPU time, in hours")),
        (BadgeKind.SUBJECT_HOURS.value, _("run time for a subject, in hours")),
        (BadgeKind.SUBJECTS.value, _("fields of science worked for")),
        (BadgeKind.BEFORE_MOVE.value, _("nothing: held before this project moved here")),
    ]
    title = models.CharField(_("title"), max_length=60, unique=True)
    text = models.CharField(_("one line on what it means"), max_length=200, blank=True)
    kind = models.CharField(_("what is counted"), max_length=16, choices=KINDS)
    subject = models.PositiveIntegerField(
        pgettext_lazy("keyword", "subject"),
        choices=keyword_choices,
        null=True,
        blank=True,
        help_text=_("Only for “run time for a subject”."),
    )
    threshold = models.PositiveBigIntegerField(
        _("how much"), validators=[MinValueValidator(1), MaxValueValidator(MAX_THRESHOLD)]
    )
    is_active = models.BooleanField(_("awarded"), default=False, help_text=_("If off, it is no longer awarded."))
    changed_at = models.DateTimeField(_("changed on"), auto_now=True)

    class Meta:
        verbose_name = _("badge")
        verbose_name_plural = _("badges")
        ordering = ["kind", "subject", "threshold", "pk"]
        constraints = [
            CheckConstraint(condition=Q(threshold__range=(1, MAX_THRESHOLD)), name="badge_threshold"),
            CheckConstraint(
                condition=Q(kind=BadgeKind.SUBJECT_HOURS.value, subject__isnull=False)
                | (~Q(kind=BadgeKind.SUBJECT_HOURS.value) & Q(subject__isnull=True)),
                name="badge_subject",
                violation_error_message=_("Choose a subject only if the run time for a subject is counted."),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Record the time of the change also where only some fields are saved, as undoing a change does."""
        if kwargs.get("update_fields") is not None:
            kwargs["update_fields"] = {*kwargs["update_fields"], "changed_at"}
        super().save(*args, **kwargs)

    def clean(self) -> None:
        """Check that a subject belongs to a rule that needs one; the database has the last word."""
        if (self.kind == BadgeKind.SUBJECT_HOURS.value) != (self.subject is not None):
            raise ValidationError(
                {"subject": gettext("Choose a subject only if the run time for a subject is counted.")}
            )


class BadgeAward(models.Model):
    """A volunteer earned a badge. It is permanent: ``rule`` is the rule as of then, even if it changes."""

    user = models.ForeignKey(User, models.CASCADE, related_name="badge_awards", db_index=False)
    badge = models.ForeignKey(Badge, models.PROTECT, related_name="awards")
    day = models.DateField("day on which it was reached")
    rule = models.CharField("what had to be reached", max_length=200)
    awarded_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["day", "pk"]
        constraints = [UniqueConstraint(fields=["user", "badge"], name="badgeaward_once")]

    def __str__(self) -> str:
        return f"{self.badge} of {self.user}"


class BadgeCheck(models.Model):
    """When a volunteer's work was last checked against the rules."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="badge_check")
    checked_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"badges of {self.user}"
