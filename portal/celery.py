"""The Celery application: ``celery -A portal worker`` and ``celery -A portal beat``."""

import datetime as dt
import os
from typing import Any, Final

import structlog
from amqp.exceptions import ChannelError
from celery import Celery, Task
from celery.signals import beat_init, task_postrun, task_prerun, worker_init

from portal.databases import clock
from portal.databases.connections import watch_from_the_start
from portal.databases.dropping import drop_connection
from portal.databases.errors import is_database_lost

RETRY_SECS: Final = 10
MAX_RETRIES: Final = 60
"""Ten minutes: by then beat queues anew what it queues, and the rest is looked after by such tasks."""


class SiteCelery(Celery):
    """Messages say by the site's time when they are due and when they expire (portal.databases.messages reads it)."""

    def now(self) -> dt.datetime:
        return clock.now()


class SiteTask(Task[Any, Any]):
    """A task that loses its database is queued again: tasks are safe to run twice."""

    Request = "portal.databases.messages:SiteRequest"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly:
            return super().__call__(*args, **kwargs)
        # The worker may have been forked while there was no primary to ask for the time.
        watch_from_the_start()
        try:
            return self.run(*args, **kwargs)
        except Exception as error:
            # Django's errors and psycopg's have no base of their own.
            if not is_database_lost(error):
                raise
            drop_connection()
            raise self.retry(exc=error, countdown=RETRY_SECS, max_retries=MAX_RETRIES) from error


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = SiteCelery("cobblestone", task_cls=SiteTask)
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


@worker_init.connect
@beat_init.connect
def _watch_databases(**_: object) -> None:
    """A worker's first process has no connection of its own, but looks at the times in messages."""
    watch_from_the_start()


@task_prerun.connect
def _name_task(task_id: str, task: Task[Any, Any], **_: object) -> None:
    """Every log line of the task carries its name and id."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def _forget_task(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
