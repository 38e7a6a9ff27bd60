"""An import that is interrupted anywhere goes on, and ends as one that was not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from extras.moving_in.machinery import run
from extras.moving_in.models import ImportStep
from extras.moving_in.tests.imports import content, import_
from extras.moving_in.tests.old_project import OldProject


class _Killed(BaseException):
    """The process ends here: what was not committed is gone."""


class _KillAt:
    """Ends the process in place of its statement of this number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        self.left -= 1
        if not self.left and "pg_advisory" not in sql:
            raise _Killed
        return execute(sql, params, many, context)


def test_interrupted_at_any_statement_an_import_ends_as_without(
    small_project: OldProject, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CHUNK_ROWS", 20)
    with transaction.atomic():
        import_(small_project)
        expected = content()
        transaction.set_rollback(True)
    assert not ImportStep.objects.exists()
    draw, nkills = random.Random(7), 0
    while not ImportStep.objects.exists() or ImportStep.objects.filter(finished_at=None).exists():
        try:
            # A chunk has about 30 statements, so that some runs come further than others.
            with connection.execute_wrapper(_KillAt(draw.randint(20, 150))):
                import_(small_project)
        except _Killed:
            nkills += 1
    assert nkills >= 5
    assert set(ImportStep.objects.values_list("run", flat=True)) == {1}
    assert content() == expected
