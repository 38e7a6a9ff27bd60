"""Consents of volunteers and their history."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class ConsentEvent(models.Model):
    """A consent that was given or withdrawn. Rows are only ever added; they are deleted with their account.

    A trigger of the database refuses to change one (portal/migrations/_by_hand.py).
    """

    class Origin(models.TextChoices):
        PAGE = "page", _("on a page of this site")
        ACCOUNT_MANAGER = "rpc", _("by an account manager")
        # Imported, or from before this history
        EARLIER = "earlier", _("before this history began")

    user = models.ForeignKey(
        User, models.CASCADE, related_name="consent_events", db_index=False, verbose_name=_("volunteer")
    )
    # `portal.people.consents.kinds`
    kind = models.CharField(_("consent"), max_length=32)
    is_given = models.BooleanField(_("given"))
    at = models.DateTimeField(_("at"), default=timezone.now)
    # NULL: no text was shown, or it is not known which
    wording = models.PositiveSmallIntegerField(_("version of the text"), null=True)
    # The language of the text as shown; empty: none was
    language = models.CharField(_("language"), max_length=16, blank=True)
    origin = models.CharField(_("how"), max_length=16, choices=Origin, default=Origin.PAGE)

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("consent given or withdrawn")
        verbose_name_plural = _("consents given and withdrawn")
        indexes = [models.Index(fields=["user", "-id"], name="consentevent_user")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(origin__in=["page", "rpc", "earlier"]), name="consentevent_origin"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.at:%Y-%m-%d %H:%M}"
