"""The diagnosis of a run in words: late tasks, projects below their shares, idle processors, and changes that would
help.

The run's process stored the facts (emulator.advice); here they become sentences in the visitor's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from emulator.advice.findings import Cause
from emulator.advice.trials import FIGURES, Setting
from emulator.engine.scenario import CPU
from emulator.pages.forms import GPU_KINDS
from emulator.pages.texts.durations import duration
from portal.templatetags.display import significant

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_WHY_SHORT: Final[dict[str, _StrPromise]] = {
    Cause.NO_NEW_TASKS: _("It is set to get no new tasks. Allow them again."),
    Cause.HELD: _("One of its tasks is suspended, so it is not asked for new ones. Resume or abort that task."),
    Cause.MEMORY: _("Its tasks need more memory than your preferences allow. Allow more, if the computer has it."),
    Cause.MAX_CONCURRENT: _("Only a limited number of its tasks may run at once. Raise the limit in app_config.xml."),
    Cause.DEADLINES: _(
        "It does not send tasks that this computer would finish late. A smaller work buffer, or more hours a day for "
        "computing, lets it send more."
    ),
    Cause.SERVER_DOWN: _("Its server is often down. A larger work buffer bridges the time."),
    Cause.NO_WORK: _("It often has no tasks. A larger work buffer bridges the time."),
    Cause.NEVER_WORK: _("It never has new tasks. You can remove it, or wait until it has some."),
    Cause.UNKNOWN: _("Over a longer time the difference usually shrinks."),
}
_WHY_IDLE: Final[dict[str, _StrPromise]] = {
    Cause.SUSPENDED: _("All projects that could use it are suspended. Resume one of them."),
    Cause.NO_NEW_TASKS: _("All projects that could use it are set to get no new tasks. Allow them for one."),
    Cause.HELD: _(
        "All projects that could use it are suspended, set to get no new tasks, or not asked because one of their "
        "tasks is suspended."
    ),
    Cause.NO_PROGRAM: _("No project has a program for it. Add one that does."),
    Cause.MEMORY: _("Tasks wait because they need more memory than your preferences allow."),
    Cause.MAX_CONCURRENT: _(
        "Only a limited number of tasks may run at once, for all projects that could use it. Raise one of the limits."
    ),
    Cause.DEADLINES: _("Projects do not send tasks that this computer would finish late."),
    Cause.OFFLINE: _(
        "The network is not always available, and tasks run out before it is. A larger work buffer bridges the time."
    ),
    Cause.SERVER_DOWN: _("The servers of projects are often down. A further project would fill the gaps."),
    Cause.NO_WORK: _("Projects often have no tasks for it. A further project would fill the gaps."),
    Cause.NEVER_WORK: _("No project that could use it ever sends new tasks. Add one that does."),
}
_FIGURES: Final[dict[str, _StrPromise]] = {
    "late": _("Late tasks"),
    "short": _("Work missing from shares"),
    "idle": _("Idle"),
}


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of the table of trials; numbers as text."""

    change: str
    figures: list[str]
    contacts: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentences. ``good``: the one that says that nothing needs changing; then there are no problems."""

    good: str
    late: str
    late_tasks: list[str]
    problems: list[str]
    advice: list[str]
    no_advice: str
    figures: list[str]
    trials: list[TrialRow]
    trial_days: float


def answer_of(stored: Mapping[str, Any], *, has_names: bool = True) -> Answer | None:
    """Return the diagnosis that a run stored; None for a run that has none. Without names, tasks have numbers."""
    if not stored:
        return None
    findings, outcome = stored["findings"], stored["outcome"]
    problems = [_short(finding) for finding in findings["short"]] + [_idle(finding) for finding in findings["idle"]]
    is_good = not findings["nlate"] and not problems
    advice = [_advice(change, outcome["before"]) for change in outcome["advice"]] if outcome else []
    return Answer(
        good=_good(findings["njobs"]) if is_good else "",
        late=_late(findings["nlate"], findings["njobs"]),
        late_tasks=[_late_task(late, late["name"] if has_names else "") for late in findings["late"]],
        problems=problems,
        advice=advice,
        no_advice="" if is_good or advice else _no_advice(stored),
        figures=[str(_FIGURES[name]) for name in FIGURES],
        trials=_trials(outcome) if outcome and outcome["trials"] else [],
        trial_days=outcome["days"] if outcome else 0.0,
    )


def _good(njobs: int) -> str:
    whole = ngettext(
        "Nothing needs changing. The task is finished in time, projects get their shares, and the processors are busy.",
        "Nothing needs changing. All %(number)s tasks are finished in time, projects get their shares, and the "
        "processors are busy.",
        njobs,
    )
    return whole % {"number": njobs}


def _late(nlate: int, njobs: int) -> str:
    if not nlate:
        return ""
    late = ngettext("%(late)s of %(number)s tasks is late.", "%(late)s of %(number)s tasks are late.", nlate)
    return late % {"late": nlate, "number": njobs}


def _late_task(late: Mapping[str, Any], name: str) -> str:
    name = name or gettext("task %(number)s") % {"number": late["job"]}
    facts = {"task": name, "project": late["project"], "time": duration(late["late_secs"])}
    if late["is_finished"]:
        return gettext("%(task)s of %(project)s is finished %(time)s after its deadline.") % facts
    return gettext("%(task)s of %(project)s is not finished at the end, %(time)s after its deadline.") % facts


def _short(short: Mapping[str, Any]) -> str:
    facts = {"project": short["project"], "got": _percent(short["got"]), "share": _percent(short["share"])}
    if not short["kind"]:
        text = gettext("%(project)s gets %(got)s of the work. Its share is %(share)s.")
    elif short["kind"] == CPU:
        text = gettext("%(project)s gets %(got)s of the CPUs’ work. Its share of it is %(share)s.")
    else:
        facts["kind"] = _kind(short["kind"])
        text = gettext("%(project)s gets %(got)s of the work of the %(kind)s. Its share of it is %(share)s.")
    return f"{text % facts} {_WHY_SHORT[short['cause']]}"


def _idle(idle: Mapping[str, Any]) -> str:
    facts = {"part": _percent(idle["idle_secs"] / idle["able_secs"]), "time": duration(idle["idle_secs"])}
    if idle["kind"] == CPU:
        text = (
            gettext("The CPUs are idle for %(part)s of the time in which they could run tasks, %(time)s in all.")
            % facts
        )
    else:
        facts["kind"] = _kind(idle["kind"])
        text = gettext("The %(kind)s is idle for %(part)s of the time in which it could run tasks, %(time)s in all.")
        text %= facts
    return f"{text} {_WHY_IDLE.get(idle['cause'], '')}".rstrip()


def _kind(kind: str) -> str:
    if kind == CPU:
        return "CPU"
    kind_name = dict(GPU_KINDS).get(kind)
    return str(kind_name) if kind_name is not None else gettext("%(kind)s GPU") % {"kind": kind}


def _advice(advice: Mapping[str, Any], before: Mapping[str, float]) -> str:
    """Return what to do, what it improves, and the effect on the other figures."""
    after = advice["trial"]["measures"]
    names = [advice["figure"], *(name for name in FIGURES if name != advice["figure"])]
    effects = [
        gettext("%(figure)s: %(after)s instead of %(before)s")
        % {"figure": _FIGURES[name], "after": _percent(after[name]), "before": _percent(before[name])}
        for name in names
    ]
    return f"{_change(advice['trial']['change'])}. {'; '.join(effects)}."


def _change(change: Mapping[str, Any]) -> str:
    before, after = ([significant(value) for value in change[name]] for name in ("before", "after"))
    project = {"project": change["project"]}
    if change["setting"] == Setting.BUFFER:
        numbers = {"min": after[0], "more": after[1], "min_now": before[0], "more_now": before[1]}
        text = gettext("Store at least %(min)s and up to %(more)s more days of work (now %(min_now)s and %(more_now)s)")
        return text % numbers
    if change["setting"] == Setting.SHARE:
        text = gettext("Set the share of %(project)s to %(after)s (now %(before)s)")
        return text % {**project, "after": after[0], "before": before[0]}
    if change["after"][0]:
        return gettext("Let at most %(after)s tasks of %(project)s run at once") % {**project, "after": after[0]}
    text = gettext("Remove the limit of %(before)s tasks of %(project)s at once")
    return text % {**project, "before": before[0]}


def _no_advice(stored: Mapping[str, Any]) -> str:
    if stored.get("are_trials_skipped"):
        return gettext("No changes were tried, because this run alone takes long. Try fewer days.")
    if stored["outcome"] is None:
        return ""
    number = len(stored["outcome"]["trials"])
    if not number:
        return gettext("No setting of the client would change that.")
    text = ngettext(
        "%(number)s change was tried. It makes no clear difference, or makes something else worse.",
        "%(number)s changes were tried. None clearly helps without making something else worse.",
        number,
    )
    return text % {"number": number}


def _trials(outcome: Mapping[str, Any]) -> list[TrialRow]:
    rows = [(gettext("As it is"), outcome["before"])]
    rows += [(_change(trial["change"]), trial["measures"]) for trial in outcome["trials"]]
    return [
        TrialRow(text, [_percent(measures[name]) for name in FIGURES], floatformat(measures["rpcs_per_job"], 2))
        for text, measures in rows
    ]


def _percent(fraction: float) -> str:
    return f"{floatformat(100 * fraction, -1)}\u202f%"
