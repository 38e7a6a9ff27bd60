"""Output files that another server requested from computers before its project moved here.

Their names and certificates are that server's. A file that it had when the project moved counts as complete, until the
computer sends it with other content: then it was only a part.
"""

from __future__ import annotations

from django.db import transaction

from credit.models import Result, ServerState
from portal.wire import signing
from scheduler.models import FormerOutput, PendingFile, Upload
from scheduler.wire.uploads import FileUpload


def find(asked: FileUpload) -> FormerOutput | None:
    """Return the former output for this upload, if its certificate is valid."""
    rows = FormerOutput.objects.select_related("key", "result__workunit")
    former = rows.filter(name=asked.name).first()
    if former is None or (former.key is not None and not _has_signed(former.key.text, asked)):
        return None
    return former


def _has_signed(key: str, asked: FileUpload) -> bool:
    """Whether the key signed this request (BOINC protocol, keys and signatures)."""
    text = f"<name>{asked.name}</name><max_nbytes>{asked.max_nbytes}</max_nbytes>"
    try:
        return signing.verify(text.encode(), asked.certificate, signing.parse_public_key(key))
    except signing.SigningError:
        return False


@transaction.atomic
def upload_of(former: FormerOutput, asked: FileUpload) -> Upload | None:
    """Return its earlier upload, under our name; one with other content starts again.

    Locks the result, as long as nobody has reported it, then the upload.
    """
    open_results = Result.objects.select_for_update(no_key=True).filter(server_state=ServerState.IN_PROGRESS)
    is_open = open_results.filter(pk=former.result_id).first() is not None
    upload = Upload.objects.select_for_update(no_key=True).filter(name=asked.name).first()
    if is_open and upload is not None and upload.is_complete and upload.as_sent != (asked.nbytes, asked.md5):
        PendingFile.objects.create(path=upload.path)  # so that it is deleted
        upload.path, upload.completed_at = "", None
        upload.save(update_fields=["path", "completed_at"])
    return upload
