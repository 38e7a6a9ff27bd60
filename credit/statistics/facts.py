"""Converts database rows into the engine's facts."""

from __future__ import annotations

from math import nan
from typing import Final

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import AppFacts, CreditSystem, HostVersionFacts, ReplicaRule, VersionFacts, WorkunitFacts
from credit.engine.rules import LIMITS, Rules
from credit.models import App, AppVersion, HostAppVersion, Workunit

USUAL_REPLICAS: Final = 2


def rules_of(app: App) -> Rules:
    """Return the app's rule set with its own limits; raises RulesError for a limit out of range."""
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
        max_credited_secs=app.max_credited_secs,
        actual_flops_scale=app.actual_flops_scale,
        benchmark_scale=app.benchmark_scale,
        # An app that allows single results replicates all jobs except those of reliable computers.
        target_nresults=USUAL_REPLICAS if app.adaptive_replication else 1,
    )


def version_facts(version: AppVersion) -> VersionFacts:
    return VersionFacts(
        id=version.pk,
        pfc=Average(version.pfc_n, version.pfc_avg),
        pfc_scale=version.pfc_scale,
        processor_type=version.processor_type,
        is_deprecated=version.is_deprecated,
        is_counted=version.is_counted,
        cross_project_scale=version.cross_project_scale,
        is_scale_received=version.is_scale_received,
        platform_id=version.platform_id,
        plan_class=version.plan_class,
        version_num=version.version_num,
    )


def record_facts(record: HostAppVersion) -> HostVersionFacts:
    """Return what claims need of a record; without its turnaround and today's jobs."""
    return HostVersionFacts(
        Average(record.pfc_n, record.pfc_avg),
        AverageWithVariance(record.et_n, record.et_avg, record.et_var, record.et_q),
        scale_probation=record.scale_probation,
        host_scale_time=record.host_scale_at.timestamp() if record.host_scale_at else None,
        error_rate=record.error_rate,
        consecutive_valid=record.consecutive_valid,
        clean_pfc=Average(record.clean_pfc_n, record.clean_pfc_avg),
        recent_pfc=Average(record.recent_pfc_n, record.recent_pfc_avg),
        waiting_pfc=Average(record.waiting_pfc_n, record.waiting_pfc_avg),
        samples_since=record.samples_at.timestamp() if record.samples_at else None,
        failing_share=record.failing_share,
        peak_flops=record.peak_flops,
        lead_jobs=record.lead_jobs,
    )


def workunit_facts(workunit: Workunit) -> WorkunitFacts:
    return WorkunitFacts(
        workunit.fpops_est,
        workunit.fpops_bound,
        workunit.min_quorum,
        workunit.target_nresults,
        workunit.delay_bound_secs,
        nan if workunit.credit is None else workunit.credit,
        is_own=workunit.is_own,
    )
