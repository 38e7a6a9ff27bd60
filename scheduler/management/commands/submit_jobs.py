"""Submit a batch of jobs from a JSON file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.models import App
from portal.models import User
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError

MAX_COPIES: Final = 1_000_000


class Command(BaseCommand):
    help = (
        "Submit a batch of jobs of an app; docs/how-to/jobs.md describes jobs. With --request-id the same command"
        " may be repeated: it submits once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("app", help="short name of the app")
        parser.add_argument("file", help='JSON: {"defaults": {…}, "jobs": [{…}, …]}; "-" reads standard input')
        parser.add_argument("--name", default="", help="name of the batch")
        parser.add_argument("--request-id", default="", help="makes a repeated submission harmless")
        parser.add_argument("--owner", metavar="E-MAIL", help="owner of the batch")
        parser.add_argument("--copies", type=int, default=1, help="submit the list of jobs this many times; {n} counts")

    def handle(self, *args: Any, app: str, file: str, **options: Any) -> None:
        try:
            document = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"{file}: {error}") from error
        if not isinstance(document, dict) or not set(document) <= {"defaults", "jobs"}:
            raise CommandError(f'{file}: expected {{"defaults": {{…}}, "jobs": [{{…}}, …]}}.')
        try:
            batch, is_new = submit(
                self._app(app),
                document.get("defaults", {}),
                _copies(document.get("jobs"), options["copies"]),
                owner=self._owner(options["owner"]),
                name=options["name"],
                request_id=options["request_id"],
                now=timezone.now(),
            )
        except JobError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Batch {batch.pk}: {batch.nworkunits} jobs{'' if is_new else ', submitted before'}.")

    def _app(self, name: str) -> App:
        app = App.objects.filter(name=name).first()
        if app is None:
            raise CommandError(f"There is no app {name}. Release a version of it first.")
        return app

    def _owner(self, email: str | None) -> User | None:
        if email is None:
            return None
        owner = User.objects.filter(email=email.lower()).first()
        if owner is None:
            raise CommandError(f"There is no account {email}.")
        return owner


def _copies(jobs: Any, copies: int) -> Any:
    """Repeat the jobs this many times; ``{n}`` in a command line is the job's number."""
    if not isinstance(jobs, list) or copies == 1:
        return jobs
    if not 1 <= copies * len(jobs) <= MAX_COPIES:
        raise CommandError(
            f"--copies: at least 1, and at most {MAX_COPIES:,} jobs in total; this list has {len(jobs):,}."
        )
    made = []
    for number in range(copies * len(jobs)):
        job = jobs[number % len(jobs)]
        if isinstance(job, dict) and isinstance(line := job.get("command_line"), str):
            job = {**job, "command_line": line.replace("{n}", str(number))}
        made.append(job)
    return made
