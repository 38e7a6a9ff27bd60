"""Input files of open workunits, and outputs that computers have delivered there.

Files are copied into the storage; a copy that was interrupted begins again. Rows name a file only once it is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.core.files import File
from django.core.files.storage import default_storage
from django.utils import timezone

from credit.models import Outcome, Result, ServerState, Workunit
from extras.moving_in.boinc import folders
from extras.moving_in.boinc.workunits import WORKUNITS
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow
from extras.moving_in.machinery.steps import CallStep, Context, Translate
from extras.moving_in.source import Row
from portal.object_storage import storage
from portal.object_storage.storage import ContentDigest
from scheduler.engine.outputs import expected_and_received, upload_name
from scheduler.files import uploads
from scheduler.files.store import save_content
from scheduler.models import FormerOutput, StoredFile, Upload

CHUNK: Final = 500
_NO_INPUT: Final = "an input file is not in download/: computers that get its tasks cannot fetch it"
_OTHER_INPUT: Final = "an input file in download/ has not the MD5 that its tasks name"
_NO_OUTPUT: Final = "an output of a task that is to be validated is not in upload/"


def _content(path: Path) -> ContentDigest:
    with path.open("rb") as file:
        return storage.content_of(file)


def take_inputs(context: Context, tally: Tally) -> None:
    """Those of workunits that go on here, each once."""
    for files in _inputs(context):
        wanted = {file["name"]: file for file in files if "url" not in file}
        here = set(StoredFile.objects.filter(name__in=wanted).values_list("name", flat=True))
        rows = []
        for name, file in wanted.items():
            tally.nread += 1
            if name in here:
                tally.ntaken += 1
                continue
            path = folders.of(context).download(name)
            content = _content(path) if path is not None else None
            if path is None or content is None:
                tally.leave(_NO_INPUT, name)
            elif content.md5 != file["md5"]:
                tally.leave(_OTHER_INPUT, name)
            else:
                tally.ntaken += 1
                if context.writes:
                    with path.open("rb") as opened:
                        kept = save_content(name, File(opened))
                    rows.append(StoredFile(name=name, path=kept, nbytes=content.nbytes, md5=content.md5))
        storage.sync([row.path for row in rows])
        tally.nchanged += len(StoredFile.objects.bulk_create(rows, ignore_conflicts=True))


def _inputs(context: Context) -> Iterator[list[dict[str, Any]]]:
    """The input files of many open workunits at a time; of those that a rehearsal finds there."""
    if context.writes:
        last = 0
        while chunk := list(
            Workunit.objects.filter(pk__gt=last).order_by("pk").values_list("pk", "input_files")[:CHUNK]
        ):
            last = chunk[-1][0]
            yield [file for _, files in chunk for file in files]
        return
    translate, unused = WORKUNITS.translator(context), Tally()
    place = list(WORKUNITS.columns).index("input_files")
    for row in context.source.rows(WORKUNITS.table, 0, None):
        yield _rehearsed(translate, row, unused, place)


def _rehearsed(translate: Translate, row: Row, unused: Tally, place: int) -> list[dict[str, Any]]:
    try:
        values = translate(row, unused)
    except (BrokenRow, ValueError, ArithmeticError):
        return []
    return list(json.loads(str(values[place]))) if values is not None else []


def take_uploads(context: Context, tally: Tally) -> None:
    """Of tasks that are open, or that are to be validated. What came in part is taken for the whole until its computer
    sends it again (`scheduler.files.former_outputs`).
    """
    if not context.writes:
        return
    last = 0
    while chunk := list(
        FormerOutput.objects.filter(pk__gt=last).select_related("result__workunit").order_by("pk")[:CHUNK]
    ):
        last = chunk[-1].pk
        for former in chunk:
            _take_upload(context, former, tally)
        over = [former.result for former in chunk if former.result.outcome == Outcome.SUCCESS]
        _note_outputs({result.pk: result for result in over}.values())


def _take_upload(context: Context, former: FormerOutput, tally: Tally) -> None:
    path, result = folders.of(context).upload(former.name), former.result
    if path is None:
        spec = result.workunit.output_files[former.number]
        is_waited_for = result.outcome == Outcome.SUCCESS and not result.workunit.assimilate_state
        if is_waited_for and not spec.get("optional"):
            tally.tell(_NO_OUTPUT, former.name)
        return
    tally.nread += 1
    tally.ntaken += 1
    name, content = upload_name(result.name, former.number), _content(path)
    upload = Upload.objects.filter(name=name).first()
    if upload is not None and (upload.nbytes, upload.md5) == content:
        return
    if upload is not None and result.server_state != ServerState.IN_PROGRESS:
        return  # what counts came here
    kept = f"{uploads.stored_path(name)}.moved"
    default_storage.delete(kept)  # left by an interrupted run, or an earlier part
    with path.open("rb") as opened:
        kept = storage.keep(kept, File(opened), content)
    row = {"result": result, "path": kept, "nbytes": content.nbytes, "md5": content.md5, "completed_at": timezone.now()}
    Upload.objects.update_or_create(name=name, defaults=row)
    tally.nchanged += 1


def _note_outputs(results: Iterable[Result]) -> None:
    """What a reported result has delivered, as a report here would have noted it."""
    for result in results:
        received = expected_and_received(result.workunit.output_files, result.name, result.uploads.all())
        if received.outputs and received.outputs != result.outputs:
            Result.objects.filter(pk=result.pk).update(outputs=received.outputs, output_digest=received.digest)


FILES: Final = (CallStep("input files", take_inputs), CallStep("outputs", take_uploads))
