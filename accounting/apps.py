"""The account manager: client RPC, ledger, daily history."""

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    name = "accounting"
    verbose_name = "Account manager"
