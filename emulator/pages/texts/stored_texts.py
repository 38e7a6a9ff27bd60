"""Sentences that are stored in English, in the visitor's language.

What readers of files and workers find is kept in English, so that exports and copies stay the same for everybody.
A page recognises each sentence by its pattern and shows its translation; one that it does not know stays English.
"""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext, gettext_noop

from emulator.files.presets import preset
from emulator.pages.texts.preset_texts import title_of
from portal.languages.stored import filled, made_of

JOB_TIMES_UNKNOWN: Final = gettext_noop(
    "The run times of its tasks are not known. The scenario assumes %(cpu)s h on a CPU and a deadline of one week."
)
GPU_JOB_TIMES_UNKNOWN: Final = gettext_noop(
    "The run times of its tasks are not known. The scenario assumes %(cpu)s h on a CPU, %(gpu)s h on a GPU and a "
    "deadline of one week."
)
OTHER_JOB_TIMES_UNKNOWN: Final = gettext_noop(
    "The run times of other tasks are not known. The scenario assumes %(cpu)s h on a CPU, %(gpu)s h on a GPU and a "
    "deadline of one week."
)
SPEED_UNKNOWN: Final = gettext_noop(
    "The speed of its processor has not been measured. The scenario assumes %(gflops)s GFLOPS."
)
JOB_TIMES_OF_TASKS: Final = gettext_noop(
    "New tasks take as long as those on the computer now, and have as much time: %(projects)s."
)
TASKS_ASSUMED: Final = gettext_noop(
    "The emulation goes on from the tasks that the client listed (%(tasks)s). Its list does not name their processors: "
    "they count as CPU tasks wherever their project has a program for CPUs."
)
AVAILABILITY_UNKNOWN: Final = gettext_noop(
    "The client has not reported how much the computer is on. The scenario assumes that it always is."
)
SENTENCES: Final = (
    # Of emulator.engine.replay
    gettext_noop("This policy does not use the round-robin simulation."),
    gettext_noop("This was no decision of the policy."),
    gettext_noop("The emulator has changed since this run was made. Run the experiment again to see its decisions."),
    JOB_TIMES_UNKNOWN,
    JOB_TIMES_OF_TASKS,
    TASKS_ASSUMED,
    AVAILABILITY_UNKNOWN,
    GPU_JOB_TIMES_UNKNOWN,
    OTHER_JOB_TIMES_UNKNOWN,
    SPEED_UNKNOWN,
    # Notes of emulator.files.scenario
    gettext_noop("%(name)s is left out: it has no app that this computer can run"),
    gettext_noop("The %(kind)s is left out: the file does not say how fast it is"),
    gettext_noop("All GPUs are left out because cc_config.xml disables them"),
    gettext_noop("%(name)s: finished tasks in the file are left out"),  # of scenarios that an older release made
    gettext_noop("Files that were read: %(files)s"),
    gettext_noop("The emulation begins at %(moment)s UTC, when the client wrote client_state.xml"),
    gettext_noop(
        "The computer is on, active and connected as time_stats_log says. Its last whole days are repeated: %(days)s"
    ),
    gettext_noop("time_stats_log is not used: it covers less than a day"),
    gettext_noop("%(file)s: lines that cannot be read are left out: %(number)s, the first is line %(line)s"),
    gettext_noop("Other files of the ZIP, which were not opened: %(number)s"),
    gettext_noop("%(name)s: sizes of %(app)s are those of %(number)s tasks in its job log"),
    gettext_noop(
        "%(name)s: sizes of %(app)s are those of %(number)s tasks in the project's job log, which does not say of "
        "which app they are"
    ),
    gettext_noop("%(name)s: tasks whose files are not downloaded yet can run at once"),
    gettext_noop("%(name)s: tasks whose files are not uploaded yet can be reported"),
    gettext_noop("%(name)s: suspended tasks stay suspended, so the project is not asked for new ones"),
    # Why elements of files are not used (emulator.files.unused)
    gettext_noop("it says who the volunteer is"),
    gettext_noop("it is a statistic that decides nothing"),
    gettext_noop("transfers are not emulated: what is to be downloaded or uploaded counts as done"),
    gettext_noop("it is about programs and their files, which are not run"),
    gettext_noop("it is about messages between the client and servers"),
    gettext_noop("disk space and swapped memory are not emulated"),
    gettext_noop("the preferences of the computer's place are used instead"),
    gettext_noop("it describes the computer, but does not change what it computes"),
    gettext_noop("it is about how the client program works, shows or logs"),
    gettext_noop("what the owner chose for a time is not continued"),
    gettext_noop("the emulator does not model it"),
    gettext_noop("it is for computers at another place"),
    gettext_noop("the emulator does not know it"),
    gettext_noop("%(name)s: %(app)s is left out because it hardly uses the CPU"),
    gettext_noop("%(name)s: %(app)s is left out because it has no version for this computer"),
    gettext_noop("%(name)s: tasks whose version this computer cannot run are left out"),
    gettext_noop("%(file)s has no effect: no project has the folder %(folder)s"),
    gettext_noop("%(file)s has no effect: no project has all its apps"),
    gettext_noop("%(file)s has no effect: it names no app, so put it in its project's folder"),
    # These are of scenarios that an older release made.
    gettext_noop("%(name)s is left out: it has no application that this computer can run"),
    gettext_noop(
        "%(name)s: sizes of %(app)s are those of %(number)s tasks in the project's job log, which does not say of "
        "which application they are"
    ),
    gettext_noop("%(file)s has no effect: no project has all its applications"),
    gettext_noop("%(file)s has no effect: it names no application, so put it in its project's folder"),
    # Notes of emulator.files.owner
    gettext_noop(
        "Tasks wait while the computer is in use. "
        "The scenario assumes %(hours)s h a day, %(length)s h at a time on average."
    ),
    gettext_noop(
        "GPU tasks wait while the computer is in use. "
        "The scenario assumes %(hours)s h a day, %(length)s h at a time on average."
    ),
    gettext_noop(
        "Tasks wait while the computer runs on its battery. "
        "The scenario assumes %(hours)s h a day, %(length)s h at a time on average."
    ),
    gettext_noop(
        "Tasks wait while an exclusive application runs. "
        "The scenario assumes %(hours)s h a day, %(length)s h at a time on average."
    ),
    gettext_noop(
        "GPU tasks wait while an exclusive GPU application runs. "
        "The scenario assumes %(hours)s h a day, %(length)s h at a time on average."
    ),
    gettext_noop(
        "The client measured that tasks could run %(measured)s h a day. Its preferences allow %(allowed)s h a day. "
        "In the rest of these hours something else stopped tasks, and the scenario assumes that this goes on."
    ),
    gettext_noop("The file does not say when it was written. The scenario begins on Sunday at 0:00."),
    # Notes of emulator.engine.policies.registry
    gettext_noop("Debt with preemption does not use GPUs: it neither asks for GPU tasks nor runs them."),
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
    gettext_noop("it is missing: the app must be named"),
    gettext_noop("it is missing: the file does not describe the computer"),
    gettext_noop("it is missing: the client has no projects"),
    gettext_noop("it is missing: a project needs one"),
    gettext_noop("it is missing: a coprocessor needs a type"),
    gettext_noop("it is missing: a distribution needs one"),
    gettext_noop("it is missing: hours of a day need one, from 0 (Sunday) to 6"),
    gettext_noop("%(value)s is not a number from 0 to 6"),
    gettext_noop("two entries are for the same day"),
    gettext_noop("it is missing; all the other files are optional"),
    gettext_noop("<p_ncpus> and <p_fpops> are required"),
    gettext_noop("two entries for %(kind)s, or more than %(limit)s types of processor"),
    gettext_noop("it must be a number from 0 to 1, or -1 for unknown"),
    gettext_noop("it comes before the first <project>, so it belongs to no project"),
    gettext_noop("the project already has an app of this name, or has more than %(limit)s"),
    gettext_noop("the project has no app of this name"),
    gettext_noop("the project has no workunit of this name"),
    gettext_noop("a version without a coprocessor must use some CPU"),
    gettext_noop("more than %(limit)s projects"),
    gettext_noop("more than %(limit)s versions of an app"),
    gettext_noop("more than %(limit)s tasks"),
    gettext_noop("this is the wrong kind of file: not a Unix time and an event"),
    gettext_noop("this is the wrong kind of file: not a line of a job log"),
    gettext_noop("it has more than %(limit)s files"),
    gettext_noop("this is no ZIP file, or it is damaged"),
    gettext_noop("more than %(limit)s of its files would have to be read"),
    gettext_noop("the files to read are larger than %(limit)s MiB together"),
    gettext_noop("its path leads out of the ZIP"),
    gettext_noop("the ZIP does not have it: pack the client's whole data folder"),
    gettext_noop("the ZIP has the data folders of several clients: pack one"),
    gettext_noop("it is a link, not a file"),
    gettext_noop("it is encrypted: pack the folder without a password"),
    gettext_noop("it is packed to less than 1/%(limit)s of its size"),
    gettext_noop("it cannot be unpacked: the ZIP is damaged"),
    gettext_noop("the interval %(since)s to %(until)s is empty or does not follow the last"),
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
    gettext_noop("no project has an app this computer can run"),
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
    # Of a sweep's values
    gettext_noop("%(value)s is not a whole number from %(low)s to %(high)s"),
    gettext_noop("this computer follows a trace; leave it out to vary the fraction"),
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
    gettext_noop("the scenario has no app %(name)s of that project"),
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
