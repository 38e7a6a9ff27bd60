"""Answer one request of remote job submission directly: read from standard input, written to standard output."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from extras.remote_jobs.operations.table import answer_files, answer_jobs
from scheduler.web_rpcs import documents


class Command(BaseCommand):
    help = "Answer the XML request on standard input, as submit_rpc_handler.php; with --files as job_file.php."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--files", nargs="*", type=Path, help="the files of an upload, in order")

    def handle(self, *args: Any, files: list[Path] | None, **options: Any) -> None:
        raw = sys.stdin.buffer.read()
        if files is None:
            answer = answer_jobs(raw, "", timezone.now())
        else:
            with ExitStack() as stack:
                opened: list[File[bytes]] = [File(stack.enter_context(path.open("rb"))) for path in files]
                answer = answer_files(raw, opened, "", timezone.now())
        self.stdout.write(documents.reply(*answer).body.decode("iso-8859-1"), ending="")
