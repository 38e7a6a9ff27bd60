"""The account manager: client RPC, ledger, daily history."""

from collections.abc import Iterable

from django.utils.translation import gettext_lazy as _

from portal import extras


class AccountingConfig(extras.SiteApp):
    name = "accounting"
    verbose_name = _("Account manager")
    room = "account_manager"

    def ready(self) -> None:
        from django.conf import settings

        from accounting import figures
        from accounting.account_data import copies
        from accounting.computers.support_problems import read_problems
        from accounting.exchange import exports
        from accounting.ledger.check import LEDGER
        from accounting.models import (
            Announcement,
            Project,
            ProjectAddress,
            ProjectKeyword,
            ProjectVersion,
            StatisticsImport,
        )
        from accounting.projects import moves
        from accounting.statistics.run import IMPORT
        from portal.audit import signed_log
        from portal.audit.register import audit
        from portal.maintenance import jobs
        from portal.operators.support import data_copiers, problem_readers
        from portal.requested_work.queue import kinds

        kinds[copies.KIND] = copies.make_copy
        kinds[exports.KIND] = exports.make
        if "account_manager" in settings.ROOMS:
            figures.register()
            jobs.add(LEDGER)
            jobs.add(IMPORT)
        problem_readers.append(read_problems)
        data_copiers.append(copies.ask_copy)
        audit(Project, secret=["shared_account_key"])
        moves.register()
        signed_log.follow(Project, ["master_url", "url_signature"])
        for model in (Announcement, ProjectAddress, ProjectKeyword, ProjectVersion, StatisticsImport):
            audit(model)

    def supplied_texts(self) -> Iterable[str]:
        from accounting.projects import own_project
        from accounting.simulation import demo_projects

        return [own_project.SUMMARY, *demo_projects.TEXTS]
