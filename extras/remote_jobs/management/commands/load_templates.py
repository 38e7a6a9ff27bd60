"""Store the templates of a BOINC project's folder ``templates/``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credit.models import App
from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.wire import job_templates
from extras.remote_jobs.wire.xml_tree import XmlError


class Command(BaseCommand):
    help = "Store the files of a folder of templates whose names begin with an app's. Safe to repeat; all or none."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        apps = sorted(App.objects.all(), key=lambda app: -len(app.name))
        templates, faults = [], []
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            app = next((app for app in apps if path.name.startswith(app.name)), None)
            if app is None:
                self.stdout.write(f"{path.name}: passed over, as no app's name begins it.")
                continue
            try:
                text = path.read_text()
                templates.append(JobTemplate(app=app, name=path.name, kind=_kind(text), text=text))
            except (XmlError, UnicodeDecodeError) as error:
                faults.append(f"{path.name}: {error}")
        if faults:
            raise CommandError("Nothing was stored:\n" + "\n".join(faults))
        JobTemplate.objects.bulk_create(
            templates, update_conflicts=True, unique_fields=["app", "name"], update_fields=["kind", "text"]
        )
        self.stdout.write(f"{len(templates)} templates stored.")


def _kind(text: str) -> str:
    """Return the kind: an output template has a <result>, an input template a <workunit>."""
    if "<result>" in text:
        job_templates.read_output(text)
        return JobTemplate.Kind.OUTPUT
    job_templates.read_input(text)
    return JobTemplate.Kind.INPUT
