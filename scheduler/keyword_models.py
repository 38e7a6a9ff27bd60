"""What the jobs of apps are about, by BOINC's keywords."""

from __future__ import annotations

from django.db import models

from credit.models import App
from portal.wire.keywords import KEYWORDS


def keyword_choices() -> list[tuple[int, str]]:
    return [(id_, "– " * keyword.level + keyword.name) for id_, keyword in KEYWORDS.items()]


class AppKeyword(models.Model):
    """A keyword of an app. Volunteers who said no to it, or to what it is part of, get none of the app's jobs."""

    app = models.ForeignKey(App, models.CASCADE, related_name="keywords", db_index=False)
    keyword = models.PositiveIntegerField(choices=keyword_choices)

    class Meta:
        ordering = ["app", "keyword"]
        verbose_name = "keyword of an app"
        verbose_name_plural = "keywords of apps"
        constraints = [models.UniqueConstraint(fields=["app", "keyword"], name="appkeyword_once")]

    def __str__(self) -> str:
        return f"{self.app}: {self.get_keyword_display().lstrip('– ')}"
