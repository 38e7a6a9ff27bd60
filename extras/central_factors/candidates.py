"""App versions for GPUs without a counterpart for CPUs: the factor from other projects, and its effect."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from credit.engine.cross_project import Factor, factor_for
from credit.engine.facts import VersionFacts
from credit.engine.normalisation import normalise, takes_received_scales
from credit.models import PROCESSOR_TYPES, App, AppVersion, CreditSystem, ProcessorType, RuleSet, VersionAverage
from credit.statistics.facts import rules_of, version_facts
from credit.statistics.host_records import use_medians
from extras.central_factors.collect import known_factors
from portal.audit.proposals import Proposal

FIELD = "cross_project_scale"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version for GPUs with a factor from other projects, or with one that is set but not in force.

    ``found``: their average, None if they have none. ``scale_after``: the factor that the feeder would compute with it.
    ``is_in_force``: whether set factors are used; not beside a version for CPUs that counts.
    """

    version: AppVersion
    found: Factor | None
    scale_after: float | None
    is_in_force: bool

    @property
    def type_label(self) -> str:
        return str(PROCESSOR_TYPES[ProcessorType(self.version.processor_type)])

    @property
    def can_be_set(self) -> bool:
        return self.is_in_force and self.found is not None and self.found.scale != self.version.cross_project_scale

    @property
    def credit_ratio(self) -> float | None:
        """A job's credit with the factor divided by that without; None if it has no factor yet."""
        before, after = self.version.pfc_scale, self.scale_after
        return after / before if before and after else None

    def proposal(self) -> Proposal:
        """Propose to set the factor; only if it can be set."""
        assert self.found is not None  # `can_be_set`
        pair = [self.version.cross_project_scale, self.found.scale]
        return Proposal(model=AppVersion._meta.label, pk=self.version.pk, changes={FIELD: pair})


def candidates(now: dt.datetime) -> list[Candidate]:
    """Return candidates by app and version. A statement for all apps, one for their versions, one for each app that
    takes medians.
    """
    factors_now = known_factors(now)
    factors = factors_now.factors if factors_now is not None else []
    apps = App.objects.filter(is_deprecated=False, credit_system=CreditSystem.CREDITNEW)
    apps = apps.exclude(rule_set=RuleSet.DEPLOYED).prefetch_related("versions__platform")
    return [candidate for app in apps for candidate in _of_app(app, factors)]


def _of_app(app: App, factors: list[Factor]) -> list[Candidate]:
    versions = list(app.versions.all())
    on_gpus = [
        version for version in versions if version.processor_type != ProcessorType.CPU and not version.is_deprecated
    ]
    if not on_gpus:
        return []
    rules = rules_of(app)
    facts = [version_facts(version) for version in versions]
    if app.version_average == VersionAverage.MEDIAN:
        use_medians(facts, rules)
    is_in_force = takes_received_scales(facts, rules)
    app_candidates = []
    for version in on_gpus:
        version.app = app
        factor = factor_for(factors, version.processor_type, version.plan_class) if is_in_force else None
        if not is_in_force and version.cross_project_scale is None:
            continue
        scale = normalise(_with_factor(facts, version, factor), rules).scales.get(version.pk, version.pfc_scale)
        app_candidates.append(Candidate(version, factor, scale, is_in_force))
    return app_candidates


def _with_factor(facts: list[VersionFacts], version: AppVersion, factor: Factor | None) -> list[VersionFacts]:
    if factor is None:
        return facts
    return [replace(fact, cross_project_scale=factor.scale) if fact.id == version.pk else fact for fact in facts]
