"""Validated credit: engine, validator, feeder."""

from django.apps import AppConfig


class CreditConfig(AppConfig):
    name = "credit"
    verbose_name = "Validated credit"

    def ready(self) -> None:
        from credit import merging
        from credit.pass_counts import Passes
        from portal.hosts import merge_followers
        from portal.metrics import app_collectors

        app_collectors.append(Passes())
        merge_followers.append(merging.follow)
