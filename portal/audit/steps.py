"""The step between "Save" and a change: what it may show, and what it may carry out besides setting fields.

Apps add theirs (`portal.extras`): forecasts for their models, operations by name, and sections of a change's page.
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
    """The status of a preview, in words; ``progress`` from 0 to 1."""

    is_finished: bool
    progress: float
    words: list[str]
    warnings: list[str]
    url: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """What can be known beforehand about changes to a model.

    ``fields``: changes of these go through the step. ``why_no_preview``: "" where one is possible. ``ask`` starts a
    preview and returns its number; ``show`` returns its status, None if it is gone; ``remember`` records with the
    change which one was seen. ``permission``: needed to ask.
    """

    fields: frozenset[str]
    permission: str
    why_no_preview: Callable[[Proposal], str]
    ask: Callable[[User, Proposal], int]
    show: Callable[[int], Preview | None]
    remember: Callable[[Change, Proposal], None]


@dataclass(frozen=True, slots=True)
class RowOperation:
    """A change of a row that is not made through its form.

    ``title`` of the step; ``lines``: before and after; ``notes``: what else to know. ``carry_out`` runs in the
    transaction that has the row locked, and returns the change that it records; None if there is nothing to do, or if
    saving the row records it. ``undo`` makes the proposal that undoes one; None: it changes settings, which are undone
    as such. ``permission``: needed to carry it out; "": the one to change the row.
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


def operation_named(name: str) -> RowOperation | None:
    """The operation of this name; None for no name, or if the site no longer has it."""
    return next((operation for app in site_apps() if (operation := app.operations().get(name))), None)


def sections_of(change: Change) -> list[Section]:
    return [section for app in site_apps() if (section := app.change_section(change)) is not None]
