"""What the account manager noted when it asked its projects (accounting/project_setup/asking.py)."""

from __future__ import annotations

from django.db import models


class ProjectChange(models.Model):
    """A difference in a project's answers, or an event, noted when it was asked; in words.

    The row applies nothing. A project's oldest rows are dropped (`project_setup.answer_history.MAX_ROWS`).
    """

    project = models.ForeignKey("accounting.Project", models.CASCADE, related_name="changes_said", db_index=False)
    at = models.DateTimeField("noticed")
    label = models.CharField(max_length=60)
    before = models.CharField(max_length=500, blank=True)
    now = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]
        # Shown only on the page of the project's set-up
        default_permissions = ()
        indexes = [models.Index(fields=["project", "-at"], name="projectchange_by_project")]

    def __str__(self) -> str:
        return f"{self.project}: {self.label}"
