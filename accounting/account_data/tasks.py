"""The background task that the views of this package start."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from accounting.account_data import copies


@shared_task(name="accounting.tasks.make_data_copy")
def make_data_copy(copy_id: int) -> None:
    copies.make_copy(copy_id, settings.SITE_NAME)
