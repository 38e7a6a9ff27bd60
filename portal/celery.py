"""The Celery application: ``celery -A portal worker`` and ``celery -A portal beat``."""

import os
import time
from contextlib import suppress
from typing import Any, Final

import structlog
from amqp.exceptions import ChannelError
from celery import Celery, Task
from celery.exceptions import Ignore
from celery.signals import task_postrun, task_prerun
from kombu.exceptions import OperationalError

from portal.databases.dropping import drop_connection
from portal.databases.errors import is_database_lost
from portal.periodic.timetable import EVERY, rest_secs
from portal.periodic.turns import turn

RETRY_SECS: Final = 10
MAX_RETRIES: Final = 60
"""Ten minutes: by then beat queues its own tasks again, and those look after the rest."""
MAX_WAITING: Final = 1000
"""No periodic tasks are added to a queue with this many messages: no worker takes them, or not fast enough."""


class SiteTask(Task[Any, Any]):
    """A task that is queued again if it loses its database: tasks are safe to run twice. A periodic task runs one
    message at a time, and never soon after the one before (portal.periodic.turns).
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.request.called_directly:
            return super().__call__(*args, **kwargs)
        # Celery gives a worker the headers of a message one by one, and a task that is run at once all together.
        every_secs = getattr(self.request, EVERY, None) or (self.request.headers or {}).get(EVERY)
        try:
            if every_secs is None:
                return self.run(*args, **kwargs)
            with turn(self.name, rest_secs(float(every_secs))) as is_mine:
                if not is_mine:
                    # Neither a success nor a failure.
                    raise Ignore
                return self.run(*args, **kwargs)
        except Exception as error:
            # Django's errors and psycopg's have no base of their own.
            if not is_database_lost(error):
                raise
            drop_connection()
            # Waits here: a delayed message is due by the clock of the next worker, which may differ.
            time.sleep(RETRY_SECS)
            headers = {EVERY: every_secs} if every_secs else {}
            raise self.retry(exc=error, countdown=0, max_retries=MAX_RETRIES, headers=headers) from error


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("cobblestone", task_cls=SiteTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def queue_length(name: str) -> int:
    """How many messages the broker has in a queue. Raises what the broker's library raises."""
    with app.connection_for_read(connect_timeout=2) as connection:
        channel: Any = connection.default_channel
        try:
            return int(channel.queue_declare(queue=name, passive=True).message_count)
        except ChannelError as error:
            # In Valkey a queue exists while there is something in it.
            if str(error.reply_code) != "404":
                raise
            return 0


def send_if_possible(task: str, *args: Any) -> None:
    """Ask a worker to do this now; if the broker cannot be reached, a periodic task does it within a minute."""
    with suppress(OperationalError):
        app.send_task(task, args, retry=False)


def is_full(queue: str) -> bool:
    """Whether a queue takes no more periodic tasks. Raises OperationalError while the broker cannot be used."""
    with app.connection_for_read() as connection:
        errors = (*connection.connection_errors, *connection.channel_errors)
    try:
        return queue_length(queue) > MAX_WAITING
    except errors as error:
        raise OperationalError(str(error)) from error


@task_prerun.connect
def _name_task(task_id: str, task: Task[Any, Any], **_: object) -> None:
    """Bind the task's name and id to its log lines."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def _forget_task(**_: object) -> None:
    structlog.contextvars.clear_contextvars()
