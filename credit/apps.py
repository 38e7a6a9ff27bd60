"""Django's configuration of validated credit."""

from django.apps import AppConfig


class CreditConfig(AppConfig):
    name = "credit"
    verbose_name = "Validated credit"

    def ready(self) -> None:
        from credit.experiments import worker as experiments
        from credit.experiments.request import KIND as EXPERIMENT
        from credit.statistics import host_merge
        from credit.validator.metrics import Passes
        from portal.computers.host_changes import merge_hooks
        from portal.ops.metrics import app_collectors
        from portal.requested_work.queue import kinds

        app_collectors.append(Passes())
        merge_hooks.append(host_merge.merge_host)
        kinds[EXPERIMENT] = experiments.carry_out
