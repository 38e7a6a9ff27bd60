"""A change that a person is about to make: kept in their session until it is carried out."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.apps import apps
from django.contrib.sessions.backends.base import SessionBase
from django.db.models import Model

_SESSION_KEY: Final = "proposed_changes"
_MAX_KEPT: Final = 20


@dataclass(slots=True)
class Proposal:
    """A proposed change of a row.

    ``changes``: {field: [before, after]} as a change stores values. ``operation``: something other than fields, by its
    name in `portal.extras.SiteApp.operations`, with ``subject``, what it needs to know. ``undoes``: the change whose
    values are restored. ``preview``: the last preview that was requested.
    """

    model: str
    pk: int
    changes: dict[str, list[Any]] = field(default_factory=dict)
    operation: str = ""
    subject: int | None = None
    undoes: int | None = None
    preview: int | None = None

    def model_class(self) -> type[Model]:
        return apps.get_model(self.model)


def keep(session: SessionBase, proposal: Proposal, key: str = "") -> str:
    """Keep a proposal in the session, and return its key; the oldest of many are forgotten."""
    key = key or secrets.token_urlsafe(9)
    proposals = session.get(_SESSION_KEY, {})
    proposals[key] = asdict(proposal)
    session[_SESSION_KEY] = dict(list(proposals.items())[-_MAX_KEPT:])
    return key


def find(session: SessionBase, key: str) -> Proposal | None:
    proposal = session.get(_SESSION_KEY, {}).get(key)
    return Proposal(**proposal) if proposal is not None else None


def forget(session: SessionBase, key: str) -> None:
    proposals = session.get(_SESSION_KEY, {})
    if proposals.pop(key, None) is not None:
        session[_SESSION_KEY] = proposals
