"""Operators' own texts for public pages."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class SiteText(models.Model):
    """An operators' text for a public page, in place of the one that comes with the software."""

    class Page(models.TextChoices):
        ABOUT = "about", _("About this site")
        PRIVACY = "privacy", _("Privacy")
        TERMS = "terms", _("Terms of use")

    page = models.CharField(_("page"), max_length=16, choices=Page, unique=True)
    text = models.TextField(
        _("text"),
        max_length=50_000,
        help_text=_("Markdown: blank lines, ## headings, *emphasis*, lists, [links](https://example.org/). No HTML."),
    )
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    class Meta:
        ordering = ["page"]
        verbose_name = _("text of a public page")
        verbose_name_plural = _("texts of public pages")
        constraints = [
            models.CheckConstraint(condition=models.Q(page__in=["about", "privacy", "terms"]), name="sitetext_page")
        ]

    def __str__(self) -> str:
        return self.get_page_display()
