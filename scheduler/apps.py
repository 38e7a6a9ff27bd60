"""The project server's application, and what it adds to others when it starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


class SchedulerConfig(extras.SiteApp):
    name = "scheduler"
    verbose_name = _("Project server")
    room = "project"

    def ready(self) -> None:
        from django.conf import settings

        from credit import functions
        from credit.pages.app_reads import tested_versions
        from credit.statistics.check import archives
        from credit.top_lists.count import archives as archived_app_credit
        from portal.audit.register import audit
        from portal.computers.host_changes import merge_hooks
        from portal.computers.host_programs import program_readers
        from portal.computers.host_sections import host_sections
        from portal.dashboard.navigation import Page, pages
        from portal.maintenance import jobs
        from portal.people import consents
        from scheduler.files.check import FILES
        from scheduler.lifecycle import figures, host_merge
        from scheduler.lifecycle.archived_credit import archived_credit, archived_credit_for_apps
        from scheduler.lifecycle.host_programs import programs_run, programs_section
        from scheduler.models import AppKeyword, PlanClass
        from scheduler.releases import rollout, second_person, testers
        from scheduler.releases import steps as release_steps
        from scheduler.submission.generations import NAMES

        archives.append(archived_credit)
        archived_app_credit.append(archived_credit_for_apps)
        functions.built_in[functions.Kind.TRICKLE].append("scheduler.rpc.trickles.grant_partial_credit")
        merge_hooks.append(host_merge.follow)
        host_sections.append(programs_section)
        program_readers.append(programs_run)
        if "project" in settings.ROOMS:
            figures.register()
            consents.add(testers.TESTING)
            pages.append(
                Page(_("Apps and credit"), _("New code-signing key"), "admin:new_key", "scheduler.add_keychange")
            )
            jobs.add(FILES)
            jobs.add(NAMES)
        tested_versions.append(rollout.tested_ids)
        audit(PlanClass)
        audit(AppKeyword)
        release_steps.register()
        second_person.register()

    def collectors(self) -> Sequence[Collector]:
        from scheduler.lifecycle.metrics import Background

        return [Background()]

    def supplied_texts(self) -> Iterable[str]:
        from scheduler.examples.texts import SUPPLIED

        return SUPPLIED
