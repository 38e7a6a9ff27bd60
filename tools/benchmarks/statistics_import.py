"""The import of the export of tools.benchmarks.export, EXPORT_USERS accounts with two computers each: rate, memory.

A tenth of the accounts and of the computers are volunteers' here. For comparison in the same run, the same rows by COPY
… TO STDOUT, which are read and dropped. A separate web server has the files.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command

from accounting.models import AccountTotal, GrantedDay, GrantedTotal, Project, StatisticsImport
from tools.benchmarks.export import HOSTS_EACH, USERS, beside_copy, fill
from tools.benchmarks.harness.database import execute
from tools.benchmarks.harness.server import most_memory_kb

ONE_IN: Final = 10
_CLAIM: Final = """
INSERT INTO accounting_hostproject (host_id, project_id, credited, pending, dropped, earlier, listed, state,
       suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting, broken)
SELECT id, %(project)s, '{0,0,0,0,0,0}', '{0,0,0,0,0,0}', '{0,0,0,0,0,0}', '{}', true,
       json_build_object('hostid', id), false, false, false, false, '{}', false, false, '{}'
  FROM portal_host WHERE id %% %(one_in)s = 0"""
# The other accounts are somebody else's.
_STRANGERS: Final = "UPDATE portal_user SET cross_project_id = md5(email) WHERE id %% %(one_in)s <> 0"
_LEDGERS: Final = """
INSERT INTO accounting_hostledger (host_id, contacts, level, excluded_types, contact, answer_digest,
       answers_logged, same_answers)
SELECT host_id, 0, '{0,0,0,0,0}', '{}', '{}', '', 0, 0 FROM accounting_hostproject
    ON CONFLICT DO NOTHING"""


def claim(project: Project, one_in: int) -> None:
    """Let one in this many computers report that it works for the project, under its own number."""
    execute(_CLAIM, project=project.pk, one_in=one_in)
    execute(_LEDGERS)


def measure() -> dict[str, Any]:
    """Measure records a second, those of COPY, their ratio, and the peak memory of the importing process."""
    fill(USERS)
    project = Project.objects.create(name="Itself", master_url="https://itself.example.org/")
    claim(project, ONE_IN)
    with tempfile.TemporaryDirectory(dir=settings.VAR_DIR) as folder:
        settings.MEDIA_ROOT = Path(folder) / "out"
        call_command("export_statistics")
        execute(_STRANGERS, one_in=ONE_IN)
        (published,) = settings.MEDIA_ROOT.glob("statistics/*")
        with _served(published) as url:
            StatisticsImport.objects.create(project=project, url=url)
            return beside_copy(lambda: _timed_import(Path(folder) / "in"))


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve the files of the folder; yield the address of the web server."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        match = re.search(r"port (\d+)", server.stdout.readline())
        assert match is not None  # it prints this first
        try:
            yield f"http://127.0.0.1:{match[1]}/"
        finally:
            server.terminate()


def _timed_import(folder: Path) -> tuple[float, int]:
    """Return seconds, without the start of its process, and the peak memory of that process in kilobytes."""
    for model in (AccountTotal, GrantedDay, GrantedTotal):
        model._default_manager.all().delete()
    StatisticsImport.objects.update(update_time=None, first_update_time=None, etag="", last_modified="")
    kilobytes = most_memory_kb(
        "import_statistics", STATISTICS_IMPORT_DIR=str(folder), FETCH_ALLOWED_NETWORKS="127.0.0.0/8"
    )
    row = StatisticsImport.objects.get()
    assert row.asked_at and row.imported_at and row.hosts_read == USERS * HOSTS_EACH, row.trouble
    return (row.imported_at - row.asked_at).total_seconds(), kilobytes
