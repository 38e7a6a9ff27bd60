"""The values that can be varied from run to run: of preferences, of the computer, of a project, of a policy. Pure.

`manage.py emulate --sweep` and the set-up page offer the same ones: those of `PARAMETERS`. Some belong to one project;
their full name has the project's after a colon ("share:Rosetta").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

from emulator.engine.policies.registry import POLICY_PARAMETERS
from emulator.engine.scenario import CPU, MAX_INSTANCES, Project, Scenario, ScenarioError

VALUES_MAX: Final = 1000

Apply = Callable[[Scenario, float], Scenario]
ApplyToProject = Callable[[Project, float], Project]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value to vary: its limits, and how a scenario gets it. One without `apply` is the policy's own."""

    low: float
    high: float
    apply: Apply | None = None
    apply_to_project: ApplyToProject | None = None
    is_whole: bool = False
    short: str = ""  # another name for the command line


def _preference(name: str) -> Apply:
    def apply(scenario: Scenario, value: float) -> Scenario:
        changes: dict[str, Any] = {name: value}
        return replace(scenario, preferences=replace(scenario.preferences, **changes))

    return apply


def _cpus(scenario: Scenario, value: float) -> Scenario:
    processors = tuple(
        replace(processor, instances=int(value)) if processor.kind == CPU else processor
        for processor in scenario.host.processors
    )
    return replace(scenario, host=replace(scenario.host, processors=processors))


def _on_fraction(scenario: Scenario, value: float) -> Scenario:
    # A trace determines when it is on, so there would be nothing to vary.
    if scenario.host.on.trace_secs:
        raise ScenarioError("on_fraction", "follows_trace")
    return replace(scenario, host=replace(scenario.host, on=replace(scenario.host.on, fraction=value)))


def _max_concurrent(project: Project, value: float) -> Project:
    return replace(project, apps=tuple(replace(app, max_concurrent=int(value)) for app in project.apps))


PARAMETERS: Final[dict[str, Parameter]] = {
    "work_buf_min_days": Parameter(0, 100, _preference("work_buf_min_days"), short="buffer"),
    "work_buf_additional_days": Parameter(0, 100, _preference("work_buf_additional_days"), short="additional_buffer"),
    "half_life_days": Parameter(0.01, 10_000, short="half_life"),
    "period_secs": Parameter(60, 864_000, _preference("period_secs"), short="period"),
    "cpus": Parameter(1, MAX_INSTANCES, _cpus, is_whole=True),
    "max_cpus_percent": Parameter(0.01, 100, _preference("max_cpus_percent")),
    "on_fraction": Parameter(0.001, 1, _on_fraction),
    "share": Parameter(0, 1e9, apply_to_project=lambda project, value: replace(project, share=value)),
    "max_concurrent": Parameter(0, 100_000, apply_to_project=_max_concurrent, is_whole=True),
}


def split(full_name: str) -> tuple[str, str]:
    """Return a parameter's name, and that of its project if there is one. Raises ScenarioError for an unknown one."""
    name, _, project = full_name.partition(":")
    name = next((long_name for long_name, parameter in PARAMETERS.items() if name in (long_name, parameter.short)), "")
    if not name or bool(PARAMETERS[name].apply_to_project) != bool(project):
        offered = [long_name + (":PROJECT" if row.apply_to_project else "") for long_name, row in PARAMETERS.items()]
        raise ScenarioError("sweep", "none_of", value=full_name, names=list(offered))
    return name, project


def full_names(scenario: Scenario) -> list[str]:
    """Return all parameters of a scenario; those of projects once for each."""
    return [
        full
        for name, parameter in PARAMETERS.items()
        for full in ([f"{name}:{p.name}" for p in scenario.projects] if parameter.apply_to_project else [name])
    ]


def read_values(text: str) -> list[float]:
    """Parse numbers separated by commas, semicolons or spaces, and ranges "first:last:step", both ends included.

    Returns them in order, each once. Raises ScenarioError.
    """
    values: set[Decimal] = set()
    for word in text.replace(",", " ").replace(";", " ").split():
        values.update(_range(word))
        if len(values) > VALUES_MAX:
            raise ScenarioError("sweep", "too_many_values", limit=VALUES_MAX)
    return [float(value) for value in sorted(values)]


def _range(word: str) -> list[Decimal]:
    try:
        numbers = [Decimal(part) for part in word.split(":")]
    except InvalidOperation:
        numbers = []
    if not all(number.is_finite() and abs(number) < 10**12 for number in numbers) or len(numbers) not in (1, 3):
        raise ScenarioError("sweep", "not_a_range", value=word[:40])
    if len(numbers) == 1:
        return numbers
    first, last, step = numbers
    if step <= 0 or last < first or (last - first) / step >= VALUES_MAX:
        raise ScenarioError("sweep", "no_values", value=word[:40], limit=VALUES_MAX)
    return [first + step * number for number in range(int((last - first) / step) + 1)]


def check_value(full_name: str, value: float) -> None:
    """Raise ScenarioError unless the parameter can have the value."""
    parameter = PARAMETERS[split(full_name)[0]]
    if not parameter.low <= value <= parameter.high or (parameter.is_whole and value != int(value)):
        limits = {"low": float(parameter.low), "high": float(parameter.high)}
        code = "not_a_whole_number_in_range" if parameter.is_whole else "not_in_range"
        raise ScenarioError(full_name, code, value=value, **limits)


def with_parameters(scenario: Scenario, parameters: Mapping[str, Any]) -> Scenario:
    """Return the scenario with a run's parameters applied; the policy's own change nothing. Raises ScenarioError."""
    for full_name, value in parameters.items():
        if full_name in POLICY_PARAMETERS and full_name not in PARAMETERS:
            continue
        name, project = split(full_name)
        check_value(full_name, value)
        parameter = PARAMETERS[name]
        if parameter.apply is not None:
            scenario = parameter.apply(scenario, value)
        elif parameter.apply_to_project is not None:
            scenario = _with_project(scenario, project, partial(_swap, parameter.apply_to_project, value))
    return scenario


def _swap(change: ApplyToProject, value: float, project: Project) -> Project:
    return change(project, value)


def _with_project(scenario: Scenario, name: str, change: Callable[[Project], Project]) -> Scenario:
    if name not in [project.name for project in scenario.projects]:
        raise ScenarioError("sweep", "no_such_project", name=name)
    projects = tuple(change(project) if project.name == name else project for project in scenario.projects)
    return replace(scenario, projects=projects)
