"""Parts of a scenario without fields in the editor. They are preserved, and the page says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _

from emulator.engine.scenario import CPU, Host, Processor, Project
from emulator.files.scenario_json import part_to_json
from extras.scenario_editor.fields import part_of
from extras.scenario_editor.rows import new_app

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise as Text

HOST: Final[dict[tuple[str, ...], Text]] = {
    ("on", "trace_secs"): _("Recorded times at which the computer is on, which count instead of a percentage"),
    ("active", "trace_secs"): _("Recorded times at which it may compute, which count instead of a percentage"),
    ("gpu_active", "trace_secs"): _("Recorded times at which GPUs may compute, which count instead of a percentage"),
    ("connected", "trace_secs"): _("Recorded times at which it is connected, which count instead of a percentage"),
}
PROJECT: Final[dict[tuple[str, ...], Text]] = {
    ("available", "trace_secs"): _("Recorded times at which the server is up, which count instead of a percentage"),
    ("standing",): _("Credit or debt at the start"),
    ("backoffs",): _("Back-offs at the start"),
    ("not_asked",): _("Processors for which the project is not asked"),
    ("error_delay_secs",): _("Another delay after failed tasks than usual"),
    ("uses_dcf",): _("A correction factor of run times"),
}
APP: Final[dict[tuple[str, ...], Text]] = {
    ("non_cpu_intensive",): _("Tasks that use hardly any processor time"),
}
_USUAL_HOST: Final = part_to_json(Host((Processor(CPU, 1, 1.0),)))
_USUAL_PROJECT: Final = part_to_json(Project("A", 1.0))
_USUAL_APP: Final = part_to_json(new_app())


def hidden_of(state: Mapping[str, Any]) -> list[tuple[Text, str]]:
    """Return those that the scenario has, each with its projects or apps; for the computer, with nothing."""
    projects = [(project["base"]["name"], project["base"]) for project in state["projects"]]
    apps = [
        (f"{project['base']['name']}, {app['base']['name']}", app["base"])
        for project in state["projects"]
        for app in project["apps"]
    ]
    apps += [(event["app"]["base"]["name"], event["app"]["base"]) for event in state["events"] if "app" in event]
    return [
        *_found(HOST, _USUAL_HOST, [("", state["host"]["base"])]),
        *_found(PROJECT, _USUAL_PROJECT, projects),
        *_found(APP, _USUAL_APP, apps),
    ]


def _found(
    labels: Mapping[tuple[str, ...], Text], usual: Mapping[str, Any], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> list[tuple[Text, str]]:
    fields = []
    for path, label in labels.items():
        names = [name for name, base in rows if part_of(base, path) != part_of(usual, path)]
        if names:
            fields.append((label, "; ".join(filter(None, names))))
    return fields
