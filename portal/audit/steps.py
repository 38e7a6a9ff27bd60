"""The step between "Save" and a change: what it may show, and what else than fields it may carry out.

Apps have theirs (`portal.extras`): a forecast for their models, operations by name, and sections of a change's page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from portal.audit.proposals import Proposal
from portal.audit.values import Line
from portal.extras import site_apps
from portal.models import Change, User


class RefusedPreviewError(Exception):
    """A preview that cannot be made now; the message says why."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a change's page that an app adds."""

    template: str
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Preview:
    """Where a preview stands, in words; ``progress`` from 0 to 1."""

    is_finished: bool
    progress: float
    words: list[str]
    warnings: list[str]
    url: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known beforehand of changes to a model.

    ``fields``: those for which the step is made. ``why_no_preview``: "" where there can be one. ``ask`` starts a
    preview and returns its number; ``show`` says where it stands, None if it is gone; ``remember`` keeps with the
    change which one was seen. ``permission``: to ask.
    """

    fields: frozenset[str]
    permission: str
    why_no_preview: Callable[[Proposal], str]
    ask: Callable[[User, Proposal], int]
    show: Callable[[int], Preview | None]
    remember: Callable[[Change, Proposal], None]


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that changes a row otherwise than by its form.

    ``title`` of the step; ``lines``: before and after, ``notes``: what else to know. ``carry_out`` runs in the
    transaction that has the row locked, and keeps a change; None if there is nothing to do, or if saving the row keeps
    it. ``undo`` makes the proposal that undoes one; None: what it changes are settings, and undone as such.
    ``permission``: to carry it out; "": that to change the row.
    """

    title: Callable[[Any, Proposal], str]
    lines: Callable[[Any, Proposal], list[Line]]
    notes: Callable[[Any, Proposal], list[str]]
    lock: Callable[[Proposal], None]
    carry_out: Callable[[Any, Proposal], Change | None]
    undo: Callable[[Change], Proposal] | None = None
    permission: str = ""


def forecast_of(model: type[Model]) -> Forecast | None:
    return next((forecast for app in site_apps() if (forecast := app.forecasts().get(model))), None)


def operation_named(name: str) -> Operation | None:
    """None for no name, and for that of an operation that is gone from the site."""
    return next((operation for app in site_apps() if (operation := app.operations().get(name))), None)


def sections_of(change: Change) -> list[Section]:
    return [section for app in site_apps() if (section := app.change_section(change)) is not None]
