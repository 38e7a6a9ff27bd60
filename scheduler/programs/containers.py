"""Apps that run in containers: none of their jobs may leave its container, whenever it was submitted.

A submission checks its jobs if the app has a version for containers (`scheduler.wire.container_jobs`); the release of
the first such version checks the open jobs. Both hold the app's advisory lock until their transaction ends; submissions
share it with one another. So neither misses what the other is doing.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from django.core.files.storage import default_storage
from django.db import connection

from credit.models import App, AppVersion, Workunit
from portal.languages.messages import Message
from scheduler.models import PlanClass, StoredFile
from scheduler.wire import container_jobs
from scheduler.wire.job_fields import JobError

# "cn", the first key of the advisory locks; the second is the app's id.
_LOCK: Final = 0x636E


def runs_in_containers(app: App) -> bool:
    """Whether any version of the app needs Docker, even a withdrawn one, because it may be sent again."""
    classes = PlanClass.objects.filter(needs_docker=True).values("name")
    return AppVersion.objects.filter(app=app, plan_class__in=classes).exists()


def keep_as_it_is(app: App) -> None:
    """Keep the app's first version for containers from being released until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", [_LOCK, app.pk % 2**31])


def fault_of_open_jobs(app: App) -> tuple[str, Message] | None:
    """Return an open job that could leave a container, with its field and how; None if there is none and none can come.

    Takes the app's advisory lock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK, app.pk % 2**31])
    if runs_in_containers(app):
        return None
    settings_fault = cache(_settings_fault)
    jobs = Workunit.objects.filter(app=app, canonical_result=None, error_mask=0).order_by()
    for name, command_line, inputs in jobs.values_list("name", "command_line", "input_files").iterator():
        if (message := container_jobs.command_fault(command_line)) is not None:
            return f"{name}, command_line", message
        for file in inputs:
            if not container_jobs.is_settings(file["open_name"]):
                continue
            message = Message("container_settings_remote") if "urls" in file else settings_fault(file["name"])
            if message is not None:
                return f"{name}, {file['open_name']}", message
    return None


def _settings_fault(name: str) -> Message | None:
    try:
        container_jobs.read_settings(container_jobs.decoded(beginning(name)))
    except JobError as error:
        return error.message
    return None


def beginning(name: str) -> bytes:
    """Return the beginning of a stored file, long enough to see whether it is too long.

    Empty if there is no such file, which is reported elsewhere. Raises JobError if its content is lost.
    """
    file = StoredFile.objects.filter(name=name, deleted_at=None).first()
    if file is None:
        return b""
    try:
        with default_storage.open(file.path, "rb") as content:
            begun: bytes = content.read(container_jobs.MAX_SETTINGS_NBYTES + 1)
    except FileNotFoundError as error:
        raise JobError("input_files", Message("storage_lost", name=name)) from error
    return begun
