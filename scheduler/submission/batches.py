"""Batches: their progress and outputs; cancelling and retiring them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import QuerySet

from credit.engine.states import WorkunitError
from credit.models import Batch
from portal.languages.messages import Message, MessageError
from portal.models import User
from scheduler.models import KeptOutput, Submitter
from scheduler.submission import sql

RETRY: Final = "retry-"
"""The prefix of request ids of failed jobs that are submitted again; the number of their first batch follows."""


class NotFinished(MessageError):
    """The batch still has unfinished jobs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a batch. Workunits: ``ndone`` with a result, ``nfailed`` without, ``nfinished`` assimilated.

    Results (of workunits that are not archived yet): unsent, out, over. ``noutputs``: files that can be downloaded.
    """

    nworkunits: int
    ndone: int = 0
    nfailed: int = 0
    nfinished: int = 0
    nunsent: int = 0
    nout: int = 0
    nover: int = 0
    noutputs: int = 0

    @property
    def nopen(self) -> int:
        return self.nworkunits - self.ndone - self.nfailed

    @property
    def is_finished(self) -> bool:
        """Whether it has jobs, and all are finished: jobs may still be submitted into an empty batch."""
        return 0 < self.nworkunits <= self.nfinished


def may_submit(user: User) -> bool:
    """Whether the user may submit jobs: superusers, and those who have a role or the permission to add batches."""
    return user.is_active and user.has_perm("credit.add_batch")


def may_look(user: User) -> bool:
    """Whether the user may see batches: those who may submit, and those who may view everybody's batches."""
    return may_submit(user) or (user.is_active and user.has_perm("credit.view_batch"))


def visible_batches(user: User) -> QuerySet[Batch]:
    """Return the user's own batches, or all if they may view them, newest first."""
    return _batches(user, "credit.view_batch")


def changeable_batches(user: User) -> QuerySet[Batch]:
    """Return the batches that the user may cancel, retry and retire: their own, or all if they may change batches."""
    return _batches(user, "credit.change_batch")


def _batches(user: User, permission: str) -> QuerySet[Batch]:
    batches = Batch.objects.select_related("app", "owner")
    return batches if user.has_perm(permission) else batches.filter(owner=user)


def read_progress(batches: list[Batch]) -> list[Progress]:
    """Return the progress of each batch, in the order given. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql.READ_PROGRESS, {"ids": [batch.pk for batch in batches]})
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
    return [Progress(batch.nworkunits, *rows[batch.pk]) for batch in batches]


def read_outputs(batch: Batch, *, after: int = 0, limit: int) -> list[KeptOutput]:
    """Return output files of its validated workunits, in the order they were kept, with ids above ``after``."""
    return list(KeptOutput.objects.filter(batch=batch, pk__gt=after).order_by("pk")[:limit])


def disown(user_id: int) -> None:
    """Clear the request ids of an account that is being erased: another erased account may have used the same."""
    Batch.objects.filter(owner=user_id).exclude(request_id__startswith=RETRY).update(request_id="")


@transaction.atomic
def cancel(batch: Batch, now: dt.datetime, workunit_ids: list[int] | None = None) -> int:
    """Cancel a batch, or these of its workunits; return how many were cancelled. Validated ones stay. Safe to repeat.

    Locks the batch if all of it is cancelled, its owner's row, so that no submission of theirs meanwhile reads where
    their work ends, and then what `sql.CANCEL` says.
    """
    if workunit_ids is None:
        Batch.objects.filter(pk=batch.pk, cancelled_at=None).update(cancelled_at=now)
    Submitter.objects.select_for_update(no_key=True).filter(user=batch.owner_id).first()
    values: dict[str, Any] = {
        "batch": batch.pk,
        "now": now,
        "cancelled": int(WorkunitError.CANCELLED),
        "workunits": workunit_ids,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.CANCEL, values)
        return int(cursor.rowcount)


def retire(batch: Batch, now: dt.datetime) -> int:
    """Delete the kept outputs of a finished batch; return how many. Raises NotFinished. Safe to repeat."""
    is_empty = not batch.nworkunits and batch.cancelled_at is not None
    if batch.retired_at is None and not is_empty and not read_progress([batch])[0].is_finished:
        raise NotFinished(Message("batch_unfinished", number=str(batch.pk)))
    return give_up(batch, now)


def give_up(batch: Batch, now: dt.datetime) -> int:
    """Retire a batch, cancelling its open jobs first; return how many outputs were deleted. Safe to repeat."""
    if not read_progress([batch])[0].is_finished:
        cancel(batch, now)
    Batch.objects.filter(pk=batch.pk, retired_at=None).update(retired_at=now)
    count = 0
    for output in KeptOutput.objects.filter(batch=batch).iterator():
        default_storage.delete(output.path)
        output.delete()
        count += 1
    return count


def expire(now: dt.datetime) -> int:
    """Cancel and retire the batches whose time is over; return how many.

    Outputs that were being kept while a batch was retired are deleted too: recently retired batches are checked again.
    """
    batches = list(Batch.objects.filter(expires_at__lte=now, retired_at=None))
    for batch in batches:
        give_up(batch, now)
    lately = now - dt.timedelta(days=1)
    for batch in Batch.objects.filter(retired_at__gt=lately, outputs__isnull=False).distinct():
        give_up(batch, now)
    return len(batches)
