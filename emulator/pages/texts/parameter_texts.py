"""The parameters of a sweep in words: emulator.runs.sweeps defines their effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from emulator.engine.scenario import ScenarioError
from emulator.runs.sweeps import split
from portal.templatetags.display import localised

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

TEXTS: Final[dict[str, tuple[_StrPromise, _StrPromise | str]]] = {
    "work_buf_min_days": (_("Minimum buffer"), _("days")),
    "work_buf_additional_days": (_("Additional buffer"), _("days")),
    "half_life_days": (_("Half-life of recent credit"), _("days")),
    "period_secs": (_("Time slice"), _("seconds")),
    "cpus": (_("CPUs"), ""),
    "max_cpus_percent": (_("Use of the CPUs"), _("% of their number")),
    "on_fraction": (_("Part of the time the computer is on"), ""),
    "share": (_("Share of %(project)s"), ""),
    "max_concurrent": (_("Tasks of an app of %(project)s at once"), _("0: no limit")),
}
"""Label and unit of each."""


def label(full_name: str) -> str:
    """Return a label such as "Share of Rosetta"."""
    name, project = split(full_name)
    text = str(TEXTS[name][0])
    return text % {"project": project} if project else text


def unit(full_name: str) -> str:
    """Return the unit of its values; empty for a number without one."""
    return str(TEXTS[split(full_name)[0]][1])


def with_unit(full_name: str) -> str:
    """Return a label such as "Minimum buffer (days)"."""
    return f"{label(full_name)} ({unit(full_name)})" if unit(full_name) else label(full_name)


def setting(full_name: str, value: float) -> str:
    """Return a setting such as "Minimum buffer: 2 days"; a parameter that no longer exists keeps its name."""
    try:
        return f"{label(full_name)}: {localised(f'{value:g}')} {unit(full_name)}".rstrip()
    except ScenarioError:
        return gettext("%(name)s: %(value)s") % {"name": full_name, "value": value}
