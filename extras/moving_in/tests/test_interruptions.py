"""An import that is interrupted anywhere goes on, and ends as one that was not."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from django.db import connection, transaction

from extras.moving_in.machinery import run
from extras.moving_in.models import ImportStep
from extras.moving_in.tests.imports import TABLES, KillAt, Killed, content, import_
from extras.moving_in.tests.old_project import OldProject
from tests.support.site_process import CHECKOUT, environment

_KILLS: Final = 3
_PROGRAM: Final = """
import os, sys
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
django.setup()
from django.core.management import call_command
from extras.moving_in.machinery import run
from extras.moving_in.source import Source

class Told(Source):
    def bound(self, *arguments):
        print("range", flush=True)
        return super().bound(*arguments)

run.CHUNK_ROWS = 10
import extras.moving_in.management.commands.import_boinc as command
command.Source = Told
call_command("import_boinc", *sys.argv[1:])
"""


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
            with connection.execute_wrapper(KillAt(draw.randint(20, 150))):
                import_(small_project)
        except Killed:
            nkills += 1
    assert nkills >= 5
    assert set(ImportStep.objects.values_list("run", flat=True)) == {1}
    assert content() == expected


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_killed_again_and_again_ends_as_one_that_is_not(
    small_project: OldProject, tmp_path: Path
) -> None:
    options = tmp_path / "my.cnf"
    options.write_text(f"[client]\nuser=root\nsocket={small_project.server.socket}\n")
    command = [sys.executable, "-c", _PROGRAM, small_project.name, f"--defaults-file={options}"]
    draw, nkills = random.Random(11), 0
    while True:
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if nkills < _KILLS:
            # It tells each range that it begins.
            for _ in range(draw.randint(1, 6)):
                process.stdout.readline()
            # Somewhere within that range: there is nothing to wait for.
            time.sleep(draw.uniform(0, 0.05))
            process.kill()
            nkills += process.wait() == -signal.SIGKILL
            process.stdout.close()
        else:
            process.communicate()
            assert process.returncode == 0
            break
    assert nkills == _KILLS
    killed = content()
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)}, moving_in_importstep CASCADE")
    import_(small_project)
    assert content() == killed
