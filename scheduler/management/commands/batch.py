"""Show a batch of jobs, fetch its outputs, cancel or retire it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.models import Batch
from scheduler.files import check
from scheduler.submission import batches


class Command(BaseCommand):
    help = "Show the progress of a batch of jobs. The exit code is 0 even while it is unfinished."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("batch", type=int)
        parser.add_argument("--fetch", type=Path, metavar="FOLDER", help="copy the outputs there: WORKUNIT/FILE")
        parser.add_argument(
            "--cancel", action="store_true", help="end it: nothing more is sent, and running jobs are aborted"
        )
        parser.add_argument("--retire", action="store_true", help="delete the outputs of a finished batch")

    def handle(self, *args: Any, batch: int, fetch: Path | None, **options: Any) -> None:
        row = Batch.objects.select_related("app").filter(pk=batch).first()
        if row is None:
            raise CommandError(f"There is no batch {batch}.")
        if options["cancel"]:
            self.stdout.write(f"{batches.cancel(row, timezone.now())} workunits cancelled.")
        [progress] = batches.read_progress([row])
        self.stdout.write(
            f"{row.name}: {progress.nworkunits} workunits, {progress.ndone} done, {progress.nfailed} failed,"
            f" {progress.nopen} open; results: {progress.nunsent} unsent, {progress.nout} out, {progress.nover} over;"
            f" {progress.noutputs} output files."
        )
        if fetch is not None:
            copied, faults = _fetch(row, fetch)
            self.stdout.write(f"{copied} files copied to {fetch}.")
            for line in faults:
                self.stderr.write(line)
            if faults:
                # Nothing is retired then.
                raise CommandError(f"{len(faults)} files could not be fetched; all others are there.", returncode=1)
        if options["retire"]:
            try:
                self.stdout.write(f"{batches.retire(row, timezone.now())} output files deleted.")
            except batches.NotFinished as error:
                raise CommandError(str(error)) from error


def _fetch(batch: Batch, folder: Path) -> tuple[int, list[str]]:
    """Copy the files that are not there yet; return their number, and a line for each that is lost or damaged in the
    storage.
    """
    count = after = 0
    faults = []
    while page := batches.read_outputs(batch, after=after, limit=1000):
        after = page[-1].pk
        for output in page:
            target = folder / output.workunit_name / output.name
            if target.exists():
                continue
            if reason := check.fault(output):
                faults.append(f"{output} ({output.path}): {reason}")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f"{target.name}.part")
            with default_storage.open(output.path, "rb") as source, part.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            part.rename(target)
            count += 1
    return count, faults
