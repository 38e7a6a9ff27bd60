"""Remote job submission, as the site knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.audit.register import Audited
    from portal.models import User


_ACTIONS = ("view", "add", "change", "delete")


class RemoteJobsConfig(extras.SiteApp):
    name = "extras.remote_jobs"
    verbose_name = _("Remote job submission")
    room = "project"

    def links(self) -> Sequence[extras.Link]:
        return [extras.Link("jobs_keys", _("Keys for jobs"), (extras.LinkPlace.BATCHES,))]

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {"reap-files": extras.Periodic("extras.remote_jobs.tasks.reap_files", 3600)}

    def rights(self) -> Mapping[str, Sequence[str]]:
        names = [f"{action}_{model}" for model in ("jobtemplate", "submitter") for action in _ACTIONS]
        return {"Project administrator": [f"remote_jobs.{name}" for name in names]}

    def audited(self) -> Sequence[Audited]:
        from extras.remote_jobs.models import JobTemplate, Submitter
        from portal.audit.register import Audited

        return [Audited(JobTemplate), Audited(Submitter)]

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.remote_jobs.models import StagedFile, Submitter

        rows = {
            "files": StagedFile.objects.filter(owner=user).order_by("pk"),
            "share": Submitter.objects.filter(user=user),
        }
        about = "the input files that your programs staged, and your share of the project"
        yield extras.CopiedFile("remote_jobs.json", about, rows)
