"""The Celery application: ``celery -A portal worker`` and ``celery -A portal beat``."""

import os
from typing import Any

import structlog
from amqp.exceptions import ChannelError
from celery import Celery, Task
from celery.signals import task_postrun, task_prerun, worker_process_init
from django.conf import settings
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("cobblestone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def queue_length(name: str) -> int:
    """How many messages the broker has in a queue, those that are too old included. Raises what the broker's library
    raises.
    """
    with app.connection_for_read(connect_timeout=2) as connection:
        channel: Any = connection.default_channel
        try:
            return int(channel.queue_declare(queue=name, passive=True).message_count)
        except ChannelError as error:
            # In Valkey a queue exists while there is something in it.
            if str(error.reply_code) != "404":
                raise
            return 0


@worker_process_init.connect
def _start_traces(**_: object) -> None:
    """In each process of a worker: the thread that sends does not live on in a fork."""
    if settings.TRACES_ENDPOINT:
        import_string("portal.ops.traces.start")("worker")


@task_prerun.connect
def _name_task(task_id: str, task: Task[Any, Any], **_: object) -> None:
    """Every log line of the task carries its name and id."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def _forget_task(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
