"""Django's configuration of the project server, and its additions to other apps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from django.db.models import Model

    from portal.audit.proposals import Proposal
    from portal.audit.register import Audited
    from portal.audit.steps import RowOperation
    from portal.audit.two_persons import StepKind
    from portal.dashboard.navigation import AdminPage
    from portal.dashboard.registry import Part
    from portal.maintenance.jobs import Job
    from portal.models import Host
    from portal.people.consents import ConsentKind


class SchedulerConfig(extras.SiteApp):
    name = "scheduler"
    verbose_name = _("Project server")
    room = "project"

    def audited(self) -> Sequence[Audited]:
        from portal.audit.register import Audited
        from scheduler.models import AppKeyword, PlanClass, Submitter, WorkBlock

        return [Audited(PlanClass), Audited(AppKeyword), Audited(Submitter), Audited(WorkBlock)]

    def operations(self) -> Mapping[str, RowOperation]:
        from scheduler.releases.steps import OPERATIONS

        return OPERATIONS

    def two_person_steps(self) -> Mapping[str, StepKind]:
        from scheduler.releases.second_person import STEPS

        return STEPS

    def needs_two_persons(self, row: Model, proposal: Proposal) -> bool:
        from scheduler.releases.second_person import is_release

        return is_release(row, proposal)

    def figures(self) -> Sequence[Part]:
        from scheduler.lifecycle.figures import PART

        return [PART]

    def consents(self) -> Sequence[ConsentKind]:
        from scheduler.releases.testers import TESTING

        return [TESTING]

    def maintenance_jobs(self) -> Sequence[Job]:
        from scheduler.files.check import FILES
        from scheduler.submission.generations import NAMES

        return [FILES, NAMES]

    def admin_pages(self) -> Sequence[AdminPage]:
        from portal.dashboard.navigation import JOBS, SETTINGS, AdminPage

        reserved = AdminPage(JOBS, _("Jobs for certain computers"), "admin:reserved_jobs", "credit.view_workunit")
        invalid = AdminPage(JOBS, _("Invalid results"), "admin:invalid_results", "credit.view_result")
        return [
            reserved,
            invalid,
            AdminPage(SETTINGS, _("New code-signing key"), "admin:new_key", "scheduler.add_keychange"),
        ]

    def account_erased(self, user_id: int, now: dt.datetime) -> None:
        from scheduler.lanes.release import forget
        from scheduler.submission.batches import disown

        forget(user_id)
        disown(user_id)

    def host_merged(self, older: int, newer: int) -> None:
        from scheduler.lifecycle.host_merge import merge_records

        merge_records(older, newer)

    def host_sections(self, host: Host, now: dt.datetime) -> Iterable[extras.HostSection]:
        from scheduler.lifecycle.host_programs import block_section, programs_section

        return [section for section in (block_section(host), programs_section(host, now)) if section is not None]

    def programs_run(self, host_id: int) -> Iterable[tuple[str, int]]:
        from scheduler.lifecycle.host_programs import programs_run

        return programs_run(host_id)

    def tested_versions(self) -> Iterable[int]:
        from scheduler.releases.rollout import tested_ids

        return tested_ids()

    def archived_credit(self, owner: str) -> Iterable[extras.ArchivedCredit]:
        from credit.statistics.check import Owner
        from scheduler.lifecycle.archived_credit import archived_credit

        return archived_credit(Owner(owner))

    def functions(self) -> Mapping[str, Sequence[str]]:
        from credit.functions import FunctionKind

        return {FunctionKind.TRICKLE: ["scheduler.rpc.trickles.grant_partial_credit"]}

    def supplied_texts(self) -> Iterable[str]:
        from scheduler.examples import SUPPLIED

        return SUPPLIED
