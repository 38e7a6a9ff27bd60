"""Register remote job submission with the site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

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
        return {
            "reap-files": extras.Periodic(
                "extras.remote_jobs.tasks.reap_files", 3600, _("Delete staged files without a batch")
            )
        }

    def admin_group(self) -> StrOrPromise:
        from portal.dashboard.navigation import JOBS

        return JOBS

    def rights(self) -> Mapping[str, Sequence[str]]:
        return {"Project administrator": [f"remote_jobs.{action}_jobtemplate" for action in _ACTIONS]}

    def audited(self) -> Sequence[Audited]:
        from extras.remote_jobs.models import JobTemplate
        from portal.audit.register import Audited

        return [Audited(JobTemplate)]

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.remote_jobs.models import StagedFile

        rows = {"files": StagedFile.objects.filter(owner=user).order_by("pk")}
        about = "the input files that your programs staged"
        yield extras.CopiedFile("remote_jobs.json", about, rows)
