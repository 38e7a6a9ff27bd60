"""A policy's knowledge at a moment (emulator.engine.replay.Moment, as JSON), in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from emulator.pages.texts.durations import duration

_NAMED_MAX: Final = 5
_NAMED_SECS_MIN: Final = 0.5  # less is 0 s
_OBSTACLES: Final = {
    "suspended": gettext_lazy("It is suspended."),
    "no new tasks": gettext_lazy("It is set to no new tasks."),
    "job suspended": gettext_lazy("A task of it is suspended."),
    "enough jobs": gettext_lazy("It has as many tasks as it can run within the buffer."),
}


def hours(secs: float) -> str:
    """Return seconds as hours, for tables: "2.5"."""
    return str(floatformat(secs / 3600, 2))


def in_words(moment: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Return the sentences above the picture."""
    return [*_buffer_words(moment), *_request_words(moment, names), _late_words(moment)]


def _buffer_words(moment: dict[str, Any]) -> list[str]:
    words = []
    for row in moment["processors"]:
        busy, least = duration(row["saturated_secs"]), duration(moment["buffer_min_secs"])
        facts = {
            "kind": row["kind"],
            "busy": busy,
            "least": least,
            "total": duration(moment["buffer_total_secs"]),
            "short": duration(row["shortfall_secs"]),
            "idle": floatformat(row["idle"], -2),
            "count": floatformat(row["instances"], -2),
        }
        if row["idle"] > 1e-9:
            text = _("%(kind)s: %(idle)s of %(count)s were idle.")
        elif row["saturated_secs"] < moment["buffer_min_secs"]:
            if busy == least:
                text = _("%(kind)s: all would be busy until just before the end of the minimum buffer, %(least)s.")
            else:
                text = _("%(kind)s: all would be busy for only %(busy)s, less than the minimum buffer of %(least)s.")
        elif row["saturated_secs"] >= moment["buffer_total_secs"]:
            text = _("%(kind)s: all would be busy up to the end of the buffer, %(total)s.")
        elif busy == least:
            text = _("%(kind)s: all would be busy up to the end of the minimum buffer, %(least)s.")
        else:
            text = _("%(kind)s: all would be busy for %(busy)s, which is beyond the minimum buffer of %(least)s.")
        words.append(text % facts)
        if row["shortfall_secs"] >= _NAMED_SECS_MIN:
            words.append(_("%(kind)s: up to the end of the buffer, %(total)s, %(short)s of work were missing.") % facts)
    return words


def _request_words(moment: dict[str, Any], names: Sequence[str]) -> list[str]:
    request = moment["request"]
    if request is None:
        return []
    kinds = [row["kind"] for row in moment["processors"]]
    asked = [
        _("%(time)s of %(kind)s time") % {"time": duration(secs), "kind": kind}
        for kind, secs in zip(kinds, request["secs"], strict=False)
        if secs > 0
    ]
    if not asked:
        return []
    facts = {"project": names[request["project"]], "work": ", ".join(asked)}
    return [_("So %(project)s was asked for %(work)s.") % facts]


def _late_words(moment: dict[str, Any]) -> str:
    late = [row["job"] for row in moment["jobs"] if row["is_late"]]
    if not moment["was_searched"]:
        return _("No task could be late: all would be done before the first deadline, in whatever order they ran.")
    if not late:
        return _("No task would miss its deadline.")
    named = ", ".join(str(job) for job in late[:_NAMED_MAX])
    if len(late) > _NAMED_MAX:
        named = f"{named} …"
    text = ngettext(
        "%(number)s task would or might miss its deadline (%(jobs)s), so it runs first.",
        "%(number)s tasks would or might miss their deadlines (%(jobs)s), so these run first, by deadline.",
        len(late),
    )
    return text % {"number": len(late), "jobs": named}


def processor_row(row: dict[str, Any], moment: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table of processors, in hours."""
    place = [processor["kind"] for processor in moment["processors"]].index(row["kind"])
    request = moment["request"]
    return {
        "kind": row["kind"],
        "instances": floatformat(row["instances"], -2),
        "idle": floatformat(row["idle"], -2),
        "saturated": hours(row["saturated_secs"]),
        "shortfall": hours(row["shortfall_secs"]),
        "asked": "" if request is None else hours(request["secs"][place]),
        "asked_instances": "" if request is None else floatformat(request["instances"][place], -2),
    }


def project_row(row: dict[str, Any], names: Sequence[str], moment: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table of projects."""
    notes = []
    if row["obstacle"] == "waits":
        notes.append(_("It is not contacted for %(time)s.") % {"time": duration(row["wait_secs"])})
    elif row["obstacle"]:
        notes.append(str(_OBSTACLES[row["obstacle"]]))
    notes += [
        _("It is not asked for %(kind)s tasks for %(time)s.") % {"kind": processor["kind"], "time": duration(secs)}
        for processor, secs in zip(moment["processors"], row["backoffs_secs"], strict=False)
        if secs > 0
    ]
    priority = row["priority"]
    return {
        "name": names[row["project"]],
        "share": row["share"],
        "standing": _signed(row["standing"], -1),
        "place": row["place"] or "",
        "priority": "" if priority is None else _signed(priority, 3 if abs(priority) < 100 else 0),
        "notes": " ".join(notes),
        "was_asked": moment["request"] is not None and moment["request"]["project"] == row["project"],
    }


def job_row(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a row of the table of tasks, in hours from the moment."""
    times = {name: row[f"{name}_secs"] for name in ("begin", "end", "deadline")}
    return {
        "job": row["job"],
        "project": names[row["project"]],
        "kind": row["kind"],
        "left": hours(row["left_secs"]),
        "is_late": row["is_late"],
        "is_running": row["is_running"],
        **{name: "" if secs is None else hours(secs) for name, secs in times.items()},
    }


def _signed(number: float, digits: int) -> str:
    return str(floatformat(number, digits)).replace("-", "−")


def bar_title(job: int, project: str, begin_secs: float, end_secs: float, is_late: bool) -> str:
    """Return the tooltip of a bar of the picture."""
    facts = {"job": job, "project": project, "begin": hours(begin_secs), "end": hours(end_secs)}
    if is_late:
        return _("Task %(job)s of %(project)s, %(begin)s to %(end)s h; would or might miss its deadline") % facts
    return _("Task %(job)s of %(project)s, %(begin)s to %(end)s h") % facts
