"""Sentences that are stored in English, in the visitor's language.

What readers of files and workers find is kept in English, so that exports and copies stay the same for everybody.
A page recognises each sentence by its pattern and shows its translation; one that it does not know stays English.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext, gettext_noop

from emulator.files.presets import preset
from emulator.pages.preset_texts import title_of
from portal.languages.stored import filled, made_of

JOB_TIMES_UNKNOWN: Final = gettext_noop(
    "The run times of its tasks are not known. The scenario assumes %(cpu)s h on a CPU and a deadline of one week."
)
GPU_JOB_TIMES_UNKNOWN: Final = gettext_noop(
    "The run times of its tasks are not known. The scenario assumes %(cpu)s h on a CPU, %(gpu)s h on a GPU and a "
    "deadline of one week."
)
SPEED_UNKNOWN: Final = gettext_noop(
    "The speed of its processor has not been measured. The scenario assumes %(gflops)s GFLOPS."
)
SENTENCES: Final = (
    JOB_TIMES_UNKNOWN,
    GPU_JOB_TIMES_UNKNOWN,
    SPEED_UNKNOWN,
    # Notes of emulator.files.scenario
    gettext_noop("%(name)s is left out: it has no application that this computer can run"),
    gettext_noop("The %(kind)s is left out: the file does not say how fast it is"),
    gettext_noop("All GPUs are left out because cc_config.xml disables them"),
    gettext_noop("%(name)s: finished tasks in the file are left out"),
    gettext_noop("%(name)s: %(app)s is left out because it hardly uses the CPU"),
    gettext_noop("%(name)s: %(app)s is left out because it has no version for this computer"),
    gettext_noop("%(name)s: tasks whose version this computer cannot run are left out"),
    gettext_noop("%(file)s has no effect: no project has the folder %(folder)s"),
    gettext_noop("%(file)s has no effect: no project has all its applications"),
    gettext_noop("%(file)s has no effect: it names no application, so put it in its project's folder"),
    # Faults of emulator.runs
    gettext_noop("It needs more than %(mib)s MiB of memory. Try fewer days or projects."),
    gettext_noop("It took more than %(secs)s s of processor time. Try fewer days, fewer projects or longer tasks."),
    gettext_noop("It failed because of a fault of this site. The site’s operators can see the reason."),
    gettext_noop("Its worker was lost every time it was tried."),
    gettext_noop(
        "This site failed to read them every time it tried. The site’s operators can see the reason. Try again later."
    ),
)
REASONS: Final = (
    # Of the files' readers and the scenario's own checks, after the place and a colon
    gettext_noop("exclude_gpu for a single device is ignored: only a whole type of GPU can be excluded"),
    gettext_noop("%(tag)s is ignored: the GPU is kept"),
    gettext_noop("rec_half_life_days is ignored: the half-life is set with the policy"),
    gettext_noop("it is missing"),
    gettext_noop("it is missing: the application must be named"),
    gettext_noop("it is missing: the file does not describe the computer"),
    gettext_noop("it is missing: the client has no projects"),
    gettext_noop("it is missing: a project needs one"),
    gettext_noop("it is missing: a coprocessor needs a type"),
    gettext_noop("it is missing: a distribution needs one"),
    gettext_noop("it is missing; all the other files are optional"),
    gettext_noop("<p_ncpus> and <p_fpops> are required"),
    gettext_noop("two entries for %(kind)s, or more than %(limit)s types of processor"),
    gettext_noop("it must be a number from 0 to 1, or -1 for unknown"),
    gettext_noop("it comes before the first <project>, so it belongs to no project"),
    gettext_noop("the project already has an application of this name, or has more than %(limit)s"),
    gettext_noop("the project has no application of this name"),
    gettext_noop("the project has no workunit of this name"),
    gettext_noop("a version without a coprocessor must use some CPU"),
    gettext_noop("more than %(limit)s projects"),
    gettext_noop("more than %(limit)s versions of an application"),
    gettext_noop("more than %(limit)s unfinished tasks"),
    gettext_noop("more than %(limit)s elements"),
    gettext_noop("more than %(limit)s elements are never closed"),
    gettext_noop("document types and entities are not accepted"),
    gettext_noop("the file is larger than %(limit)s MiB"),
    gettext_noop("this is the wrong kind of file: it does not begin with <%(tag)s>"),
    gettext_noop("a second one begins before the first is closed"),
    gettext_noop("it is never closed: the file is incomplete"),
    gettext_noop("nested deeper than %(limit)s levels"),
    gettext_noop("longer than %(limit)s characters"),
    gettext_noop("longer than %(limit)s bytes"),
    gettext_noop("not an integer from %(low)s to %(high)s"),
    gettext_noop("not a decimal number from %(low)s to %(high)s"),
    gettext_noop("no project has an application this computer can run"),
    gettext_noop("at least one project needs a share above 0"),
    gettext_noop("a second project of this name and address"),
    gettext_noop("two projects have the same name"),
    gettext_noop("its tasks would take less than a millisecond"),
    gettext_noop("%(value)s is not a number from %(low)s to %(high)s"),
    gettext_noop("there are %(number)s; the limit is %(low)s to %(high)s"),
    gettext_noop("a name must have 1 to %(limit)s characters"),
    gettext_noop("its version cannot run on this computer"),
    gettext_noop("this computer has no %(kind)s"),
    gettext_noop("%(hours)s is not a run time"),
    gettext_noop("name at least one"),
    gettext_noop("%(value)s is not from %(low)s to %(high)s"),
    gettext_noop("a version must use some CPU, or name a GPU and use some of it"),
    gettext_noop("more than %(limit)s of them"),
    gettext_noop("two entries have the same type; use one entry with more instances"),
    # Of scenarios as JSON, and of events
    gettext_noop("the file is not JSON: %(error)s"),
    gettext_noop("it is missing: this site reads version %(version)s"),
    gettext_noop("%(given)s is not known: this site reads version %(version)s"),
    gettext_noop("it is not an object"),
    gettext_noop("it is not a list"),
    gettext_noop("it has the wrong type"),
    gettext_noop("%(value)s is not a number"),
    gettext_noop("%(value)s is not a whole number"),
    gettext_noop("%(value)s is not true or false"),
    gettext_noop("%(value)s is not text"),
    gettext_noop("it is not Unicode text"),
    gettext_noop("the character NUL is not allowed"),
    gettext_noop("unknown: %(names)s"),
    gettext_noop("the scenario has no project %(name)s"),
    gettext_noop("the scenario has no application %(name)s of that project"),
    gettext_noop("it must be longer than the downtime"),
    gettext_noop("it changes nothing: give at least one preference"),
    gettext_noop("it changes nothing: give a number of processors or their speed"),
    gettext_noop("a computer has at least one CPU"),
    gettext_noop("the computer has no %(kind)s yet: give the number and the speed of new ones"),
    gettext_noop("the first must be %(kind)s"),
)
_LINE_AND_TAG: Final = gettext_noop("%(file)s, line %(line)s, <%(tag)s>")
_LINE: Final = gettext_noop("%(file)s, line %(line)s")


def shown(text: str) -> str:
    """A stored sentence, or the message of a ScenarioError, in the active language."""
    whole = _translated(SENTENCES, text)
    if whole is not None:
        return whole
    # A place may have a colon too: the reason is the longest part behind one that is known.
    for colon in re.finditer(": ", text):
        reason = _translated(REASONS, text[colon.end() :])
        if reason is not None:
            return f"{_place(text[: colon.start()])}: {reason}"
    return text


def is_known(text: str) -> bool:
    """Whether there is a translation for the sentence, or for the reason."""
    return made_of(text, (*SENTENCES, *REASONS)) is not None


def reason(text: str) -> str:
    """What is wrong, without the place, in the active language."""
    return _translated(REASONS, text) or text


def origin(text: str) -> str:
    """Where an experiment's scenario is from: ``kind:name`` as views store it, in words."""
    kind, _, name = text.partition(":")
    if kind == "example":
        try:
            return gettext("example “%(title)s”") % {"title": title_of(preset(name))}
        except KeyError:
            return text
    words = {
        "computer": gettext("computer %(name)s"),
        "form": gettext("a description"),
        "files": gettext("uploaded files"),
        "json": gettext("a JSON file"),
        "blank": gettext("the editor"),
        "api": gettext("a program"),
    }
    return words[kind] % {"name": name} if kind in words else text


def _place(text: str) -> str:
    return _translated((_LINE_AND_TAG, _LINE), text) or text


def _translated(known: tuple[str, ...], text: str) -> str | None:
    # What stands in the placeholders are names and numbers, which stay as they are.
    found = made_of(text, known)
    return None if found is None else filled(*found)
