"""The engine's facts of an app and of its versions, made from their rows."""

from __future__ import annotations

from typing import Final

from credit.engine.averages import Average
from credit.engine.facts import AppFacts, CreditSystem, ReplicaRule, VersionFacts
from credit.engine.rules import LIMITS, Rules
from credit.models import App, AppVersion

USUAL_REPLICAS: Final = 2


def rules_of(app: App) -> Rules:
    """The app's rule set with its own limits; raises RulesError for a limit out of range."""
    return Rules.of(app.rule_set).with_limits(**{name: getattr(app, name) for name in LIMITS})


def app_facts(app: App) -> AppFacts:
    return AppFacts(
        id=app.pk,
        rules=rules_of(app),
        min_avg_pfc=app.min_avg_pfc,
        host_scale_check=app.host_scale_check,
        credit_system=CreditSystem(app.credit_system),
        replica_rule=ReplicaRule(app.replica_rule),
        fixed_credit=app.fixed_credit,
        fixed_credit_per_flop=app.fixed_credit_per_flop,
        actual_flops_scale=app.actual_flops_scale,
        benchmark_scale=app.benchmark_scale,
        # An app that allows single results replicates its jobs but for those of reliable computers.
        target_nresults=USUAL_REPLICAS if app.adaptive_replication else 1,
    )


def version_facts(version: AppVersion) -> VersionFacts:
    return VersionFacts(
        id=version.pk,
        pfc=Average(version.pfc_n, version.pfc_avg),
        pfc_scale=version.pfc_scale,
        processor_type=version.processor_type,
        is_deprecated=version.is_deprecated,
        cross_project_scale=version.cross_project_scale,
        platform_id=version.platform_id,
        plan_class=version.plan_class,
        version_num=version.version_num,
    )
