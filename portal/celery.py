"""The Celery application: ``celery -A portal worker`` and ``celery -A portal beat``."""

import os
from typing import Any

import structlog
from celery import Celery, Task
from celery.signals import task_postrun, task_prerun

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("cobblestone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_prerun.connect
def _name_task(task_id: str, task: Task[Any, Any], **_: object) -> None:
    """Every log line of the task carries its name and id."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def _forget_task(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
