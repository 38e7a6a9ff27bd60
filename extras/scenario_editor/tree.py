"""The editor's state: a scenario's JSON in rows, each with its input on top, stored as JSON until it is saved.

Rows are numbered by position, in the names of their fields: ``projects-1-apps-0-hours``. So a submitted form must have
been made from the same rows; ``revision`` ensures this: it increases when a row is added or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    MAX_KINDS,
    Attach,
    ChangePreferences,
    ChangeProcessor,
    ChangeShare,
    Detach,
    Event,
    HasWork,
    NewApp,
    NoNewTasks,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    ServerUp,
    Suspend,
)
from emulator.files.scenario_json import from_json, part_to_json, to_json
from emulator.models import DAYS_MAX
from emulator.pages.forms import GPU_KINDS, PlainForm
from extras.scenario_editor import hour_fields
from extras.scenario_editor.fields import EVENTS, GIGA
from extras.scenario_editor.rows import (
    AppRow,
    EventRow,
    HostRow,
    PreferencesRow,
    ProcessorRow,
    ProjectRow,
    Row,
    StartRow,
    choices_for,
    new_app,
)
from portal.languages.sentences import sentence

FIELDS_MAX: Final = 900
"""The site reads no form with more fields (DATA_UPLOAD_MAX_NUMBER_FIELDS)."""
TEXT_CHARS_MAX: Final = 20_000
_ROW_FIELDS: Final = {"projects": 16, "apps": 14, "processors": 4}
_OTHER_FIELDS: Final = 62
_CHANGE_FIELDS: Final = 3 * len(hour_fields.PREFERENCES)


class EditorRefusedError(Exception):
    """The change is not possible; the message says why."""


class WholeForm(PlainForm):
    """The experiment's own fields."""

    title = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    days = forms.FloatField(label=gettext_lazy("Days"), min_value=0.01, max_value=DAYS_MAX)


@dataclass(slots=True)
class ProjectRows:
    """A project's row and those of its applications."""

    row: Row
    apps: list[AppRow]


@dataclass(slots=True)
class EventRows:
    """An event's row; `app` for an event that adds an application."""

    row: EventRow
    app: AppRow | None


@dataclass
class Rows:
    """All rows as forms, in their order."""

    whole: WholeForm
    host: HostRow
    preferences: PreferencesRow
    start: StartRow
    processors: list[ProcessorRow]
    projects: list[ProjectRows]
    events: list[EventRows]
    faults: list[str] = field(default_factory=list)  # of the whole scenario, in no single field

    def named_forms(self) -> Iterator[tuple[str, PlainForm]]:
        """Return all forms, each with a name for its subject: empty for those that exist once."""
        for row in (self.whole, self.host, self.preferences, self.start):
            yield "", row
        for processor in self.processors:
            yield processor.typed.get("kind", ""), processor
        for project in self.projects:
            name = project.row.typed.get("name", "")
            yield name, project.row
            for app in project.apps:
                yield f"{name}, {app.typed.get('name', '')}", app
        for event in self.events:
            yield str(event.row.title), event.row
            if event.app is not None:
                yield str(event.row.title), event.app

    def forms(self) -> Iterator[PlainForm]:
        for _about, form in self.named_forms():
            yield form

    def errors(self) -> list[tuple[str, str, str]]:
        """Return the id of each field with an error, its subject and label, and the error."""
        return [
            (
                form[name].id_for_label,
                f"{about}: {form[name].label}" if about else str(form[name].label),
                " ".join(map(str, errors)),
            )
            for about, form in self.named_forms()
            for name, errors in form.errors.items()
        ]


def begin(scenario: Scenario, title: str, days: float) -> dict[str, Any]:
    """Return the state for a scenario without any input yet."""
    rest = to_json(scenario)
    host = rest.pop("host")
    processors = host.pop("processors")
    return {
        "revision": 1,
        "typed": {"title": title, "days": f"{days:.12g}"},
        "processors": [{"base": processor} for processor in processors],
        "host": {"base": host},
        "preferences": {"base": rest.pop("preferences")},
        "projects": [_project(project) for project in rest.pop("projects")],
        "events": [_event(event) for event in rest.pop("events")],
        "rest": rest,
    }


def _project(data: dict[str, Any]) -> dict[str, Any]:
    apps = data.pop("apps")
    return {"base": data, "apps": [{"base": app} for app in apps]}


def _event(data: dict[str, Any]) -> dict[str, Any]:
    app = data.pop("app", None)
    return {"base": data} if app is None else {"base": data, "app": {"base": app}}


def rows_of(state: Mapping[str, Any]) -> Rows:
    """Return the rows as forms."""
    kinds = [_text(processor, "kind") for processor in state["processors"]]
    kinds += [_text(event, "kind") for event in state["events"] if event["base"]["event"] == "ChangeProcessor"]
    kinds += [version["gpu"] for app in _apps(state) for version in app["base"]["versions"] if version["gpu"]]
    choices = choices_for([kind for kind in kinds if kind], [_text(project, "name") for project in state["projects"]])
    return Rows(
        WholeForm(state["typed"]),
        HostRow(state["host"]["base"], state["host"].get("typed"), "host"),
        PreferencesRow(state["preferences"]["base"], state["preferences"].get("typed"), "preferences"),
        StartRow(state["rest"], state.get("start", {}).get("typed"), "start"),
        [
            ProcessorRow(processor["base"], processor.get("typed"), f"processors-{place}", choices)
            for place, processor in enumerate(state["processors"])
        ],
        [
            ProjectRows(
                ProjectRow(project["base"], project.get("typed"), f"projects-{place}"),
                [
                    AppRow(app["base"], app.get("typed"), f"projects-{place}-apps-{number}", choices)
                    for number, app in enumerate(project["apps"])
                ],
            )
            for place, project in enumerate(state["projects"])
        ],
        [
            EventRows(
                EventRow(event["base"], event.get("typed"), f"events-{place}", choices),
                AppRow(event["app"]["base"], event["app"].get("typed"), f"events-{place}-app", choices)
                if "app" in event
                else None,
            )
            for place, event in enumerate(state["events"])
        ],
    )


def _apps(state: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    own = [app for project in state["projects"] for app in project["apps"]]
    return own + [event["app"] for event in state["events"] if "app" in event]


def _text(row: Mapping[str, Any], name: str) -> str:
    typed = row.get("typed")
    return str(row["base"][name] if typed is None else typed.get(name, ""))


def type_in(state: dict[str, Any], data: Mapping[str, str]) -> None:
    """Put the input into every row. Events follow a project that has a new name."""
    before = [_text(project, "name") for project in state["projects"]]
    rows = rows_of(state)
    state["typed"] = {name: data.get(name, "")[:TEXT_CHARS_MAX] for name in ("title", "days")}
    pairs: list[tuple[dict[str, Any], Row]] = [(state["host"], rows.host), (state["preferences"], rows.preferences)]
    pairs.append((state.setdefault("start", {}), rows.start))
    pairs += list(zip(state["processors"], rows.processors, strict=True))
    for stored, project in zip(state["projects"], rows.projects, strict=True):
        pairs += [(stored, project.row), *zip(stored["apps"], project.apps, strict=True)]
    for stored, event in zip(state["events"], rows.events, strict=True):
        pairs.append((stored, event.row))
        if event.app is not None:
            pairs.append((stored["app"], event.app))
    for stored, form in pairs:
        # A page of an older release lacks fields added since; an unticked box is not sent either. Browsers end lines
        # with two characters, which are no change.
        stored["typed"] = {
            name: data.get(
                f"{form.prefix}-{name}", "" if isinstance(field, forms.BooleanField) else form.typed.get(name, "")
            ).replace("\r\n", "\n")[:TEXT_CHARS_MAX]
            for name, field in form.fields.items()
        }
    _rename(state, before, [_text(project, "name") for project in state["projects"]])


def _rename(state: dict[str, Any], before: list[str], after: list[str]) -> None:
    renamed = {old: new for old, new in zip(before, after, strict=True) if old != new and old not in after}
    for event in state["events"]:
        if event["typed"].get("project") in renamed:
            event["typed"]["project"] = renamed[event["typed"]["project"]]


def scenario_from(rows: Rows) -> Scenario | None:
    """Return the scenario, if all rows are valid and consistent; else the rows have the errors."""
    if not all([form.is_valid() for form in rows.forms()]):
        return None
    data = rows.start.merged()
    data["host"] = {**rows.host.merged(), "processors": [row.merged() for row in rows.processors]}
    data["preferences"] = rows.preferences.merged()
    data["projects"] = [
        {**project.row.merged(), "apps": [app.merged() for app in project.apps]} for project in rows.projects
    ]
    data["events"] = sorted(
        (_merged_event(merged) for merged in rows.events), key=lambda event: float(event["at_secs"])
    )
    data["jobs"] = [job for job in (_moved_job(job, rows) for job in data["jobs"]) if job is not None]
    try:
        return from_json(data)
    except ScenarioError as error:
        rows.faults.append(sentence(error.message))
        return None


def _merged_event(event: EventRows) -> dict[str, Any]:
    data = event.row.merged()
    return data if event.app is None else {**data, "app": event.app.merged()}


def _moved_job(job: dict[str, Any], rows: Rows) -> dict[str, Any] | None:
    """Return a task at the start, under its project's and application's new names; None if one of them is gone."""
    for project in rows.projects:
        if project.row.base["name"] == job["project"]:
            for app in project.apps:
                if app.base["name"] == job["app"]:
                    names = {"project": project.row.cleaned_data["name"], "app": app.cleaned_data["name"]}
                    return {**job, **names}
    return None


# Adding and removing rows.


def count_fields(state: Mapping[str, Any]) -> int:
    """Return approximately how many fields the form has."""
    kinds = [event["base"]["event"] for event in state["events"]]
    return _OTHER_FIELDS + sum(
        (
            _ROW_FIELDS["processors"] * len(state["processors"]),
            _ROW_FIELDS["projects"] * len(state["projects"]),
            _ROW_FIELDS["apps"] * len(_apps(state)),
            sum(len(EVENTS[kind][1]) for kind in kinds),
            _CHANGE_FIELDS * kinds.count("ChangePreferences"),
        )
    )


def act(state: dict[str, Any], what: str, kind: str = "") -> str:
    """Add or remove a row: ``add-project``, ``remove-app-1-0``, ``add-event`` of a kind. Return the new row's prefix.

    Raises EditorRefusedError; the state must then be discarded.
    """
    verb, _dash, rest = what.partition("-")
    row, *numbers = rest.split("-")
    try:
        places = [int(number) for number in numbers]
        if verb == "add":
            made = _add(state, row, places, kind)
        elif verb == "remove":
            made = _remove(state, row, places)
        else:
            raise ValueError(verb)
    except (IndexError, KeyError, ValueError):
        raise EditorRefusedError(_("This row is not there any more.")) from None
    if count_fields(state) > FIELDS_MAX:
        raise EditorRefusedError(
            _("The form would have more than %(limit)s fields. Larger scenarios can be changed as JSON.")
            % {"limit": FIELDS_MAX}
        )
    state["revision"] += 1
    return made


def _add(state: dict[str, Any], row: str, places: list[int], kind: str) -> str:
    if row == "project":
        state["projects"].append(_project(part_to_json(Project(_free_name(state), 100.0, (new_app(),)))))
        return f"projects-{len(state['projects']) - 1}"
    if row == "app":
        apps = state["projects"][places[0]]["apps"]
        names = {_text(app, "name") for app in apps}
        app = part_to_json(new_app())
        app["name"] = next(name for name in (f"app {n}" for n in range(1, 10_000)) if name not in names)
        apps.append({"base": app})
        return f"projects-{places[0]}-apps-{len(apps) - 1}"
    if row == "processor":
        return _add_processor(state)
    if row == "event":
        state["events"].append(_event(part_to_json(_new_event(state, kind))))
        return f"events-{len(state['events']) - 1}"
    raise ValueError(row)


def _add_processor(state: dict[str, Any]) -> str:
    there = [_text(processor, "kind") for processor in state["processors"]]
    free = [kind for kind in (CPU, *(key for key, _title in GPU_KINDS)) if kind not in there]
    if not free or len(there) >= MAX_KINDS:
        raise EditorRefusedError(_("The computer has all types of processor."))
    state["processors"].append({"base": part_to_json(Processor(free[0], 1, 5000 * GIGA, 0.2))})
    return f"processors-{len(there)}"


def _free_name(state: Mapping[str, Any]) -> str:
    names = {_text(project, "name") for project in state["projects"]}
    letters = (letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in names)
    return next(letters, "") or next(name for name in (f"P{n}" for n in range(1, 10_000)) if name not in names)


def _new_event(state: Mapping[str, Any], kind: str) -> Event:
    days = [float(row["base"]["at_secs"]) for row in state["events"]]
    at = max(days, default=0.0) + DAY_SECS
    names = [_text(project, "name") for project in state["projects"]]
    project = names[0] if names else ""
    made: dict[str, Event] = {
        "Attach": Attach(at, project),
        "Detach": Detach(at, project),
        "ChangeShare": ChangeShare(at, project, 100.0),
        "Suspend": Suspend(at, project, True),
        "NoNewTasks": NoNewTasks(at, project, True),
        "HasWork": HasWork(at, project, False),
        "ServerUp": ServerUp(at, project, False),
        "NewApp": NewApp(at, project, new_app()),
        "ChangePreferences": ChangePreferences(at),
        "ChangeProcessor": ChangeProcessor(at, CPU),
    }
    return made[kind]


def _remove(state: dict[str, Any], row: str, places: list[int]) -> str:
    first, *others = places
    rows = state[f"{row}s"] if row != "app" else state["projects"][first]["apps"]
    place = others[0] if row == "app" else first
    if place < 0 or (row == "processor" and place == 0):
        raise ValueError(place)
    del rows[place]
    if row == "app":
        return f"projects-{first}"
    return f"{row}s-{min(place, len(rows) - 1)}" if rows else ""
