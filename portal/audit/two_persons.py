"""Steps that one operator asks for and another one confirms, if TWO_PERSONS is on.

Apps add their kinds (`portal.extras`). A page asks for such a step (`ask`) instead of doing it; `confirm` does it, with
the rights of both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext

from portal.audit.proposals import Proposal
from portal.audit.who import changes_by
from portal.extras import site_apps
from portal.models import ConfirmationRequest, User

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_OPEN: Final = 100
LIFETIME: Final = dt.timedelta(days=7)
Payload = dict[str, Any]


class StepRefused(Exception):
    """The step was not asked for or not done. ``str`` is a sentence for operators."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step.

    ``carry_out``, given the payload and who asked, does it within a transaction; it raises StepRefused if that is
    no longer possible. ``lines``: what it would change, in words. ``permission``: needed by both; "": superusers.
    """

    title: StrOrPromise
    permission: str
    carry_out: Callable[[Payload, User], None]
    lines: Callable[[Payload], list[tuple[str, str]]]


def kind_named(name: str) -> StepKind | None:
    return next((kind for app in site_apps() if (kind := app.two_person_steps().get(name))), None)


def is_on() -> bool:
    return bool(settings.TWO_PERSONS)


def is_guarded(row: Model, proposal: Proposal) -> bool:
    """Whether a proposed change needs two persons, and so has a page of its own."""
    return is_on() and any(app.needs_two_persons(row, proposal) for app in site_apps())


def may_decide(person: User, kind: str) -> bool:
    step_kind = kind_named(kind)
    if step_kind is None or not person.is_active:
        return False
    return person.has_perm(step_kind.permission) if step_kind.permission else bool(person.is_superuser)


@transaction.atomic
def ask(kind: str, subject: str, payload: Payload, person: User, now: dt.datetime) -> ConfirmationRequest:
    """Ask another person to confirm a step; asking again returns the same. Raises StepRefused if too many wait."""
    waiting = ConfirmationRequest.objects.filter(is_confirmed=None, asked_at__gt=now - LIFETIME)
    same = waiting.filter(kind=kind, payload=payload, asked_by=person).first()
    if same is not None:
        return same
    if waiting.count() >= MAX_OPEN:
        raise StepRefused(
            gettext("%(number)s steps are already waiting. Confirm or refuse them first.") % {"number": MAX_OPEN}
        )
    return ConfirmationRequest.objects.create(
        kind=kind, subject=subject[:300], payload=payload, asked_by=person, asked_at=now
    )


def asked_text() -> str:
    """The message shown instead of "done"."""
    return gettext("Another operator has to confirm this, at “Steps to confirm”. Until then, nothing changes.")


@transaction.atomic
def confirm(pk: int, person: User, now: dt.datetime) -> ConfirmationRequest:
    """Do the step. Raises StepRefused; then nothing has changed. Locks the request, then what the step locks."""
    confirmation = _undecided(pk)
    asked_by = confirmation.asked_by
    if confirmation.asked_at <= now - LIFETIME:
        raise StepRefused(gettext("This request has expired. It has to be made again."))
    if asked_by == person:
        raise StepRefused(gettext("You asked for this yourself: another operator has to confirm it."))
    kind = kind_named(confirmation.kind)
    if kind is None or not may_decide(person, confirmation.kind):
        raise StepRefused(gettext("Your role does not cover this step."))
    if not may_decide(asked_by, confirmation.kind):
        raise StepRefused(gettext("The person who asked for this may no longer do it."))
    with changes_by(person, f"Asked for by person {asked_by.pk}, confirmed by person {person.pk}"):
        kind.carry_out(confirmation.payload, asked_by)
    return _decide(confirmation, person, now, is_confirmed=True)


@transaction.atomic
def refuse(pk: int, person: User, now: dt.datetime) -> ConfirmationRequest:
    """Refuse a step, as its requester or as anybody who could confirm it. Raises StepRefused."""
    confirmation = _undecided(pk)
    if confirmation.asked_by != person and not may_decide(person, confirmation.kind):
        raise StepRefused(gettext("Your role does not cover this step."))
    return _decide(confirmation, person, now, is_confirmed=False)


def _undecided(pk: int) -> ConfirmationRequest:
    confirmation = ConfirmationRequest.objects.select_for_update(of=("self",)).select_related("asked_by").get(pk=pk)
    if confirmation.is_confirmed is not None:
        raise StepRefused(gettext("This has already been decided."))
    return confirmation


def _decide(
    confirmation: ConfirmationRequest, person: User, now: dt.datetime, *, is_confirmed: bool
) -> ConfirmationRequest:
    confirmation.is_confirmed, confirmation.decided_by, confirmation.decided_at = is_confirmed, person, now
    confirmation.save(update_fields=["is_confirmed", "decided_by", "decided_at"])
    return confirmation
