"""The subjects of apps' jobs, by BOINC's keywords."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from credit.models import App
from portal.wire.keywords import KEYWORDS


def keyword_choices() -> list[tuple[int, str]]:
    return [(id_, "– " * keyword.level + keyword.name) for id_, keyword in KEYWORDS.items()]


class AppKeyword(models.Model):
    """A keyword of an app. Volunteers who said no to it, or to its parent, get none of the app's jobs."""

    app = models.ForeignKey(App, models.CASCADE, related_name="keywords", db_index=False, verbose_name=_("app"))
    keyword = models.PositiveIntegerField(_("keyword"), choices=keyword_choices)

    class Meta:
        ordering = ["app", "keyword"]
        verbose_name = _("app subject")
        verbose_name_plural = _("app subjects")
        constraints = [models.UniqueConstraint(fields=["app", "keyword"], name="appkeyword_once")]

    def __str__(self) -> str:
        return f"{self.app}: {self.get_keyword_display().lstrip('– ')}"
