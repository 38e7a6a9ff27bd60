"""The form of an experiment: rules to compare, and the population. Its ranges are those of the laboratory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db import models
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from credit.engine.rules import LIMITS, RulesError, RuleSet
from credit.models import App
from credit.models.apps import RULE_SETS
from extras.laboratory import texts
from extras.laboratory.trials.experiment import (
    MAX_JOBS,
    MAX_SEEDS,
    MAX_VARIANTS,
    MIN_JOBS,
    USUAL_JOBS,
    Experiment,
    ExperimentError,
    Variant,
    out_of_range,
)
from extras.laboratory.trials.goals import SINGLE, WAYS
from extras.laboratory.trials.parameters import PARAMETERS
from portal.languages.messages import Message
from portal.languages.sentences import sentence

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_CHECKS: Final = (("off", _("off")), ("on", _("on")))
_LIMIT: Final = "limit_"
_CHEATING: Final = gettext_noop("Computers that cheat")
GROUPS: Final = {
    gettext_noop("Computers"): (
        "hosts",
        "jobs_per_host_day",
        "cpu_gflops",
        "speed_spread",
        "efficiency_spread",
        "gpu_part",
        "wrong_benchmark_part",
        "wrong_benchmark_factor",
        "anonymous_part",
        "failing_part",
    ),
    gettext_noop("Jobs and projects"): ("size_spread", "hidden_ratio", "other_efficiency"),
    gettext_noop("Programs: share of their device’s peak speed that they achieve"): tuple(
        name for name in PARAMETERS if name.startswith("efficiency_") and name != "efficiency_spread"
    ),
    _CHEATING: tuple(name for name in PARAMETERS if name.startswith("cheat_")),
}

NOTES: Final = {
    _CHEATING: gettext_noop(
        "For each way of cheating there is at least one computer, with the project’s programs. Long jobs are those "
        "that take more than 1.5 times the usual or estimated time. For these to matter, give long jobs a run time of "
        "more than three times that of short ones, under “Jobs and projects”."
    ),
}


def _ways() -> list[tuple[str, str]]:
    return [(way, sentence(Message(way))) for way in WAYS]


def _several(label: StrOrPromise, choices: Any, initial: list[str]) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, choices=choices, initial=initial, widget=forms.CheckboxSelectMultiple, label_suffix=""
    )


def _number(
    label: StrOrPromise, low: float, high: float, help_text: StrOrPromise, *, is_whole: bool = False, **more: Any
) -> Any:
    made: Any = forms.IntegerField if is_whole else forms.FloatField
    return made(label=label, min_value=low, max_value=high, help_text=help_text, **more)


class ExperimentForm(forms.Form):
    """Every combination of the chosen rule sets, ways and checks is a variant."""

    title = forms.CharField(label=_("Title"), max_length=100, initial=_("Experiment"))
    rule_sets = _several(_("Rule sets"), list(RULE_SETS.items()), [RuleSet.PUBLISHED, RuleSet.DEPLOYED])
    replications = _several(_("Replication"), _ways, [SINGLE])
    checks = _several(_("Host-scale probation (host_scale_check)"), _CHECKS, ["on"])
    compares_limits = forms.BooleanField(
        label=_("Compare with the rule sets’ own limits"), required=False, help_text=_("If you set limits below.")
    )
    jobs = _number(_("Jobs per population"), MIN_JOBS, MAX_JOBS, "", is_whole=True, initial=USUAL_JOBS)
    nseeds = _number(
        _("Populations"), 1, MAX_SEEDS, _("More populations make chance differences smaller."), is_whole=True, initial=2
    )
    is_document = forms.BooleanField(
        label=_("Measure the goals of the credit document instead, on its own populations"),
        required=False,
        help_text=_(
            "As manage.py credit_report does. This takes minutes for each rule set and population, so choose one of "
            "each. The population described here and the chosen replication and probation then have no effect."
        ),
    )

    def __init__(self, *args: Any, is_operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_operator:
            del self.fields["is_document"]
        for name, (low, high) in LIMITS.items():
            meant: Any = App._meta.get_field(name)
            label = gettext("%(label)s (%(name)s)") % {"label": capfirst(str(meant.verbose_name)), "name": name}
            is_whole = isinstance(meant, models.IntegerField)
            words = str(meant.help_text)
            self.fields[_LIMIT + name] = _number(label, low, high, words, is_whole=is_whole, required=False)
        for name, parameter in PARAMETERS.items():
            field = _number(
                texts.label(parameter),
                parameter.low,
                parameter.high,
                texts.help_text(parameter),
                is_whole=parameter.is_whole,
                required=False,
            )
            field.initial = round(parameter.usual) if parameter.is_whole else parameter.usual
            self.fields[name] = field
        for field in self.fields.values():
            if isinstance(field, forms.FloatField):
                field.widget.attrs["step"] = "any"

    @property
    def choices(self) -> list[forms.BoundField]:
        return [self[name] for name in ("rule_sets", "replications", "checks")]

    @property
    def groups(self) -> list[tuple[str, str, list[forms.BoundField], bool]]:
        """The groups: title, introduction, fields, and whether one has an error."""
        groups = {gettext_noop("Limits of the rules"): tuple(_LIMIT + name for name in LIMITS), **GROUPS}
        return [
            (
                gettext(title),
                gettext(NOTES[title]) if title in NOTES else "",
                [self[name] for name in names],
                any(name in self.errors for name in names),
            )
            for title, names in groups.items()
        ]

    def clean(self) -> dict[str, Any]:
        """Set ``experiment``, if the fields are valid."""
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        try:
            data["experiment"] = self._experiment(data)
        except ExperimentError as error:
            self.add_error(error.name if error.name in self.fields else None, sentence(error.message))
        except RulesError as error:
            limit = out_of_range(error.name, error.low, error.high, str(data.get(_LIMIT + error.name)))
            self.add_error(_LIMIT + error.name, sentence(limit))
        return data

    def _experiment(self, data: Mapping[str, Any]) -> Experiment:
        limits = {name: data[_LIMIT + name] for name in LIMITS if data[_LIMIT + name] is not None}
        choices: list[dict[str, float]] = [limits]
        if limits and data["compares_limits"]:
            choices.insert(0, {})
        is_document = bool(data.get("is_document"))
        # Those goals are measured for each way, with and without the check.
        ways = [SINGLE] if is_document else data["replications"]
        checks = ["off"] if is_document else data["checks"]
        variants = tuple(
            Variant(rule_set, check == "on", way, chosen)
            for rule_set, way, check, chosen in product(data["rule_sets"], ways, checks, choices)
        )
        if len(variants) > MAX_VARIANTS:
            raise ExperimentError("variants", Message("experiment_variants", number=len(variants), most=MAX_VARIANTS))
        parameters = {
            name: data[name] for name, parameter in PARAMETERS.items() if data[name] not in (None, parameter.usual)
        }
        return Experiment(variants, parameters, data["jobs"], data["nseeds"], is_document)


def initial_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's initial values for a changed copy of a stored experiment (`Experiment.as_json`)."""
    experiment = Experiment.from_json(data)
    variants = experiment.variants
    limits: dict[str, float | None] = {}
    for variant in variants:
        limits |= variant.limits
    return {
        "rule_sets": sorted({str(variant.rule_set) for variant in variants}),
        "replications": sorted({variant.replication for variant in variants}),
        "checks": sorted({"on" if variant.host_scale_check else "off" for variant in variants}),
        "compares_limits": bool(limits) and any(not variant.limits for variant in variants),
        "jobs": experiment.jobs,
        "nseeds": experiment.nseeds,
        "is_document": experiment.is_document,
        **{_LIMIT + name: value for name, value in limits.items()},
        **experiment.parameters,
    }
