"""Accounts as support sees them, support's actions on them, and why one is blocked."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class Account(User):
    """A person as support sees them (portal/operators/support.py); a proxy, for permissions and pages of the admin."""

    class Meta:
        verbose_name = _("volunteer")
        verbose_name_plural = _("volunteers")
        proxy = True
        default_permissions = ("view",)
        permissions = [
            ("remove_factors_account", gettext_noop("Can remove a lost second factor")),
            ("block_account", gettext_noop("Can block and unblock an account")),
            ("copy_data_account", gettext_noop("Can have a copy of somebody's data made for them")),
            ("erase_account", gettext_noop("Can have an account deleted at its owner's request")),
        ]


class SupportAction(LogEntry):
    """A search, a look or an action of support, in the admin's log; a proxy, for its permission and page there."""

    class Meta:
        proxy = True
        ordering = ["-action_time", "-id"]
        default_permissions = ("view",)
        verbose_name = _("support action")
        verbose_name_plural = _("support actions")


class AccountBlock(models.Model):
    """Why an account is blocked; it is inactive while the row exists. Only operators see the reason."""

    user = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="block", verbose_name=_("volunteer")
    )
    reason = models.CharField(_("reason"), max_length=200)
    blocked_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", verbose_name=_("blocked by"))
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("account block")
        verbose_name_plural = _("account blocks")

    def __str__(self) -> str:
        return gettext("block of %(person)s") % {"person": self.user}
