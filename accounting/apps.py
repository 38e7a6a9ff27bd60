"""The account manager: client RPC, ledger, daily history."""

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    name = "accounting"
    verbose_name = "Account manager"

    def ready(self) -> None:
        from accounting.account_data import copies
        from accounting.models import Announcement, Project, ProjectKeyword, ProjectVersion
        from portal.audit.register import audit
        from portal.requested_work.queue import kinds

        kinds[copies.KIND] = copies.make_copy
        audit(Project, secret=["shared_account_key"])
        for model in (Announcement, ProjectKeyword, ProjectVersion):
            audit(model)
