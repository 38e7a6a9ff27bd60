"""A scenario as JSON and back, to store it and to send it to another process. Pure.

Events carry their class's name under ``event``; everything else is the dataclasses' own fields.
"""

from __future__ import annotations

from typing import Any

import cattrs
from cattrs.preconf.json import make_converter
from cattrs.strategies import configure_tagged_union

from emulator.engine.scenario import Event, Scenario, ScenarioError

_converter = make_converter(forbid_extra_keys=True)
configure_tagged_union(Event, _converter, tag_name="event")


def to_json(scenario: Scenario) -> dict[str, Any]:
    """Plain lists, dicts, numbers and strings that `from_json` makes the same scenario of."""
    unstructured: dict[str, Any] = _converter.unstructure(scenario)
    return unstructured


def from_json(data: Any) -> Scenario:
    """The scenario; ScenarioError names the field that does not fit."""
    try:
        return _converter.structure(data, Scenario)
    except ScenarioError:
        raise
    except cattrs.BaseValidationError as error:
        raise _first_fault(error) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ScenarioError("scenario", f"cannot be read: {error}") from None


def _first_fault(error: cattrs.BaseValidationError) -> ScenarioError:
    """The scenario's own complaint if there is one, else where the structure did not fit."""
    for fault in _leaves(error):
        if isinstance(fault, ScenarioError):
            return fault
    where = cattrs.transform_error(error)[0]
    return ScenarioError("scenario", where[:300])


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, cattrs.BaseValidationError):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    return [error]
