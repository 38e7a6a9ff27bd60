"""Preferences for the project as BOINC's server kept them: XML text, which may be malformed. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from scheduler.engine.project_preferences import REFUSING_TAGS, TYPES, VENUES, ProjectPreferences, bounded

MAX_CHARS: Final = 1 << 16
_WHOLE: Final = re.compile(r"<project_preferences>(.*)</project_preferences>", re.S)
_VENUE: Final = re.compile(r'<venue\s+name="([^"<>]*)"\s*>(.*?)</venue>', re.S)


def read(text: str) -> dict[str, dict[str, Any]] | None:
    """What is stored of them by place; None if there is nothing to read. A place has a whole set."""
    whole = _WHOLE.search(text) if len(text) <= MAX_CHARS else None
    if whole is None:
        return None
    places = {"": _VENUE.sub("", whole[1])}
    places |= {name: own for name, own in _VENUE.findall(whole[1]) if name in VENUES and name}
    return {venue: _of(elements).stored() for venue, elements in places.items()}


def _of(elements: str) -> ProjectPreferences:
    """BOINC's scheduler reads these elements wherever they stand. The first of several counts, but for apps."""
    refused = {type_ for type_ in TYPES if _flag(elements, REFUSING_TAGS[type_])}
    if _flag(elements, "no_gpus"):
        refused.update(TYPES[1:])
    apps = [int(id_) for id_ in re.findall(r"<app_id>\s*(\d{1,9})\s*</app_id>", elements)]
    return bounded(
        apps=apps,
        # BOINC's server sends none of the others unless this is ticked.
        other_apps=not apps or _flag(elements, "allow_non_preferred_apps"),
        max_jobs=_number(elements, "max_jobs"),
        max_cpus=_number(elements, "max_cpus"),
        refused_types=refused,
        # Who did not agree to test is told nothing here: whether one agreed is kept elsewhere.
        resource_share=_number(elements, "resource_share"),
    )


def _flag(elements: str, tag: str) -> bool:
    return re.search(rf"<{tag}(?:\s*/>|>\s*0*1\s*<)", elements) is not None


def _number(elements: str, tag: str) -> float | None:
    found = re.search(rf"<{tag}>\s*(\d{{1,15}}(?:\.\d{{0,9}})?)\s*<", elements)
    return float(found[1]) if found else None
