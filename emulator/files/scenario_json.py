"""Scenarios as JSON and back, to store them and to send them to another process or site. Pure.

`to_json` and `from_json` convert a scenario alone. A *document* is what people exchange, and what the site exports as
``result.json``: a version number, the scenario, and the settings tried with it, so that every reader gets the same
result. Events have their class's name under ``event``; everything else is the dataclasses' own fields. The limits are
published as a JSON Schema (emulator.files.scenario_schema).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Annotated, Any, Final, NoReturn, TypeVar, get_args, get_origin

import cattrs
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import DAY_SECS, Event, Scenario, ScenarioError, StartState
from emulator.engine.scenario.checks import Between, Chars, check_limits, check_text
from emulator.engine.scenario.whole import MAX_NOTE_CHARS
from portal.languages.messages import VERBATIM, Message, MessageError

VERSION: Final = 1
DOCUMENT_BYTES_MAX: Final = 4 * 1024 * 1024
MAX_DAYS: Final = 1_000_000.0
MAX_SEED: Final = 2**53 - 1  # other languages read larger whole numbers inexactly
RESULT_KEYS: Final = ("experiment", "variant", "figures_of_merit", "projects", "notes", "cpu_secs")
"""Fields of an export beside the document; a reader ignores them."""
TAG: Final = "event"
EVENTS: Final = tuple(kind.__name__ for kind in get_args(Event))
_BESIDE: Final = {*RESULT_KEYS, "version", "$schema"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Parameters:
    """Changes that a run makes to its policy and to the scenario's preferences. None: no change."""

    half_life_days: Annotated[float, Between(0.001, MAX_DAYS)] | None = None
    eligibility_rule: bool | None = None
    work_buf_min_days: Annotated[float, Between(0, 100)] | None = None
    work_buf_additional_days: Annotated[float, Between(0, 100)] | None = None
    period_secs: Annotated[float, Between(60, 10 * DAY_SECS)] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the given ones, as `emulator.engine.policies.registry.make_policy` takes them."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in named if value is not None}


@dataclass(frozen=True, slots=True)
class Document:
    """A scenario and one run of it: everything that determines its result. Raises ScenarioError for an impossible
    value.
    """

    scenario: Scenario
    days: Annotated[float, Between(0.001, MAX_DAYS)] = 30.0
    policy: PolicyName = PolicyName.REC
    quirks: bool = False  # as BOINC's own emulator where it differs
    parameters: Parameters = Parameters()
    seed: Annotated[int, Between(0, MAX_SEED)] = 1

    def __post_init__(self) -> None:
        check_limits("", self)
        check_limits("parameters.", self.parameters)

    def applied(self) -> Scenario:
        """The scenario with the parameters that are preferences; the policy takes the others."""
        names = {field.name for field in fields(self.scenario.preferences)}
        changes = {name: value for name, value in self.parameters.as_dict().items() if name in names}
        return replace(self.scenario, preferences=replace(self.scenario.preferences, **changes))


class _Unfit(MessageError, ValueError):
    """A value that does not fit."""


def _exactly(kind: type, value: Any) -> NoReturn:
    codes = {float: "not_a_number", int: "not_a_whole_number", bool: "not_a_boolean", str: "not_text"}
    raise _Unfit(Message(codes[kind], value=str(value)[:40]))


def _number(value: Any, _: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        _exactly(float, value)
    try:
        return float(value)
    except OverflowError:
        _exactly(float, value)


def _whole(value: Any, _: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        _exactly(int, value)
    return int(value)


def _bool(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        _exactly(bool, value)
    return value


def _text(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        _exactly(str, value)
    return value


def _choice(value: Any, kind: type[StrEnum]) -> StrEnum:
    if value not in list(kind):
        raise _Unfit(Message("none_of", value=str(value)[:40], names=list(kind)))
    return kind(value)


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis


def _list(kind: Any, converter: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    read_items = homogenous_tuple_structure_factory(kind, converter)

    def read(value: Any, kind: Any) -> Any:
        # Texts and objects are iterable, too.
        if not isinstance(value, list | tuple):
            raise _Unfit(Message("not_a_list"))
        return read_items(value, kind)

    return read


_converter = make_converter(forbid_extra_keys=True)
_converter.register_structure_hook_factory(_is_list, _list)
_converter.register_structure_hook(float, _number)
_converter.register_structure_hook(int, _whole)
_converter.register_structure_hook(bool, _bool)
_converter.register_structure_hook(str, _text)
for _kind in (PolicyName, StartState):
    _converter.register_structure_hook(_kind, _choice)
configure_tagged_union(Event, _converter, tag_name=TAG)
_event_of_its_class = _converter.get_structure_hook(Event)


def _event(value: Any, kind: Any) -> Any:
    if not isinstance(value, dict):
        raise _Unfit(Message("not_an_object"))
    if value.get(TAG) not in EVENTS:
        raise _Unfit(Message("none_of", value=TAG, names=list(EVENTS)))
    return _event_of_its_class(value, kind)


def _message(value: Any, _: Any) -> Message:
    """Parse a note; one that a person wrote into the file is a text."""
    if isinstance(value, dict) and (surplus := value.keys() - {"code", "args"}):
        raise _Unfit(Message("unknown_names", names=sorted(surplus)))
    code = value.get("code") if isinstance(value, dict) else value
    if not isinstance(code, str):
        _exactly(str, code)
    if isinstance(value, dict) and not isinstance(value.get("args"), dict):
        raise _Unfit(Message("not_an_object"))
    check_text("notes", code, Chars(0, MAX_NOTE_CHARS))
    return Message.from_json(value)


_converter.register_structure_hook(Event, _event)
_converter.register_structure_hook(Message, _message)
_converter.register_unstructure_hook(Message, Message.to_json)


def to_json(scenario: Scenario) -> dict[str, Any]:
    """Convert to plain lists, dicts, numbers and strings, which `from_json` turns back into the same scenario."""
    unstructured: dict[str, Any] = _converter.unstructure(scenario)
    return unstructured


def part_to_json(part: Any) -> dict[str, Any]:
    """Convert a part of a scenario, such as a project or an event."""
    unstructured: dict[str, Any] = _converter.unstructure(part, Event if type(part) in get_args(Event) else type(part))
    return unstructured


def from_json(data: Any) -> Scenario:
    """Parse the scenario; ScenarioError names the field that does not fit."""
    return _structured(data, Scenario)


def document_json(document: Document) -> dict[str, Any]:
    """Return the document as `from_document` reads it."""
    data: dict[str, Any] = {"version": VERSION, **_converter.unstructure(document)}
    data["parameters"] = document.parameters.as_dict()
    return data


def read_document(text: bytes) -> Document:
    """Read the document of a file. ScenarioError says what is wrong, and where."""
    if len(text) > DOCUMENT_BYTES_MAX:
        raise ScenarioError("document", "file_size_limit", limit_mib=DOCUMENT_BYTES_MAX // 2**20)
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (RecursionError, ValueError) as error:
        raise ScenarioError("document", "not_json", error=str(error)[:200]) from None
    return from_document(data)


def from_document(data: Any) -> Document:
    """Read parsed JSON as a document; an export's further fields are ignored. Raises ScenarioError."""
    if not isinstance(data, dict):
        raise ScenarioError("document", "not_an_object")
    if "version" not in data:
        raise ScenarioError("version", "version_missing", version=VERSION)
    if data["version"] != VERSION or isinstance(data["version"], bool):
        raise ScenarioError("version", "version_unknown", given=str(data["version"])[:20], version=VERSION)
    return _structured({key: value for key, value in data.items() if key not in _BESIDE}, Document)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _structured(data: Any, kind: type[_T]) -> _T:
    try:
        return _converter.structure(data, kind)
    except ScenarioError:
        raise
    except (cattrs.BaseValidationError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise _first_fault(error) from None


def _first_fault(error: BaseException) -> ScenarioError:
    """Return the scenario's own complaint if there is one, else where the structure did not fit."""
    for fault in _leaves(error):
        if isinstance(fault, ScenarioError):
            return fault
    faults: list[Message] = []

    def note(fault: BaseException, _: type | None) -> str:
        faults.append(_why(fault))
        return ""

    path = cattrs.transform_error(error, format_exception=note)[0].rpartition(" @ ")[2]
    return ScenarioError(path.removeprefix("$").removeprefix(".")[:200] or "document", faults[0])


def _why(error: BaseException) -> Message:
    if isinstance(error, MessageError):
        return error.message
    if isinstance(error, KeyError):
        return Message("value_missing")
    if isinstance(error, cattrs.ForbiddenExtraKeysError):
        return Message("unknown_names", names=sorted(map(str, error.extra_fields)))
    if isinstance(error, AttributeError | TypeError):
        return Message("wrong_type")
    return Message(VERBATIM, text=error)


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, cattrs.BaseValidationError):
        return [leaf for cause in error.exceptions for leaf in _leaves(cause)]
    return [error]
