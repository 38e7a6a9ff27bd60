"""The account manager: client RPC, ledger, daily history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from django.db.models import Model

    from portal.audit.proposals import Proposal
    from portal.audit.register import Audited
    from portal.audit.two_persons import StepKind
    from portal.dashboard.registry import Part
    from portal.maintenance.jobs import Job
    from portal.models import User


class AccountingConfig(extras.SiteApp):
    name = "accounting"
    verbose_name = _("Account manager")
    room = "account_manager"

    def audited(self) -> Sequence[Audited]:
        from accounting.models import (
            Announcement,
            Project,
            ProjectAddress,
            ProjectKeyword,
            ProjectVersion,
            StatisticsImport,
        )
        from portal.audit.register import Audited

        others = (Announcement, ProjectAddress, ProjectKeyword, ProjectVersion, StatisticsImport)
        project = Audited(Project, secret=["shared_account_key"], signed=["master_url", "url_signature"])
        return [project, *map(Audited, others)]

    def two_person_steps(self) -> Mapping[str, StepKind]:
        from accounting.projects.moves import STEPS

        return STEPS

    def needs_two_persons(self, row: Model, proposal: Proposal) -> bool:
        from accounting.projects.moves import is_move

        return is_move(row, proposal)

    def figures(self) -> Sequence[Part]:
        from accounting.figures import PART

        return [PART]

    def maintenance_jobs(self) -> Sequence[Job]:
        from accounting.ledger.check import LEDGER
        from accounting.statistics.run import IMPORT

        return [LEDGER, IMPORT]

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from accounting.account_data import copies
        from accounting.exchange import exports

        return {copies.KIND: copies.make_copy, exports.KIND: exports.make}

    def host_problems(self, user: User, now: dt.datetime) -> Iterable[extras.HostProblem]:
        from accounting.computers.support_problems import read_problems

        return read_problems(user, now)

    def ask_data_copy(self, user: User) -> object:
        from accounting.account_data.copies import ask_copy

        return ask_copy(user)

    def supplied_texts(self) -> Iterable[str]:
        from accounting.projects import demo_projects, own_project

        return [own_project.SUMMARY, *demo_projects.TEXTS]
