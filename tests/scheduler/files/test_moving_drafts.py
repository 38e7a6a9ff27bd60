"""Moving what a row names without its MD5: the uploads of drafts of batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage

from portal.models import User
from scheduler.files.moving import MoveOutcome, move
from scheduler.models import SubmissionDraft
from tests.support.credit_factories import make_app


@pytest.mark.django_db
def test_what_a_run_that_was_interrupted_has_moved_is_there_and_what_is_nowhere_is_missing(
    alice: User, tmp_path: Path
) -> None:
    source, target = (FileSystemStorage(tmp_path / name) for name in ("source", "target"))
    app = make_app()
    for path, storages in (("both", (source, target)), ("moved", (target,)), ("new", (source,)), ("gone", ())):
        SubmissionDraft.objects.create(app=app, owner=alice, is_archive=False, path=path)
        for storage in storages:
            storage.save(path, ContentFile(b"1 2 3"))
    assert [*move(source, target, deletes=True)] == [
        MoveOutcome("both", 5, was_there=True),
        MoveOutcome("moved", 5, was_there=True),
        MoveOutcome("new", 5, was_there=False),
        MoveOutcome("gone", 0, False, "missing in both storages"),
    ]
    assert [sorted(storage.listdir("")[1]) for storage in (source, target)] == [[], ["both", "moved", "new"]]
