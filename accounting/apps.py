"""The account manager: client RPC, ledger, daily history."""

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    name = "accounting"
    verbose_name = "Account manager"

    def ready(self) -> None:
        from accounting.account_data import copies
        from accounting.computers.support_problems import read_problems
        from portal.people.support import data_copiers, problem_readers
        from portal.requested_work.queue import kinds

        kinds[copies.KIND] = copies.make_copy
        problem_readers.append(read_problems)
        data_copiers.append(copies.ask_copy)
