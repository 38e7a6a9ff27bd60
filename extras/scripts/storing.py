"""Store a script. Where TWO_PERSONS is on, another operator has to confirm the program."""

from __future__ import annotations

import datetime as dt
import json
from hashlib import sha256
from typing import Final

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.models import App, Comparison
from extras.scripts.models import Script
from portal.audit import two_persons
from portal.audit.proposals import Proposal
from portal.audit.two_persons import Payload, StepKind, StepRefused
from portal.models import User

STEP: Final = "script"
CODE: Final = ("kind", "protocol", "source", "words", "check_source", "check_words")
"""The fields that decide what is run; the others are limits."""


def save(script: Script, person: User, now: dt.datetime) -> bool:
    """Save a checked script; return False if its program stays as it was until another operator has confirmed it.

    Raises StepRefused if too many steps wait.
    """
    stored = Script.objects.filter(pk=script.pk).first() if script.pk else None
    code, before = _code(script), _code(stored) if stored is not None else {}
    if not two_persons.is_on() or code == before:
        script.save()
        return True
    if stored is None:
        script.source = script.check_source = ""
    else:
        for name in CODE:
            setattr(script, name, getattr(stored, name))
    script.save()
    payload = {"script": script.pk, "before": _digest(_code(script)), "code": code}
    two_persons.ask(STEP, script.name, payload, person, now)
    return False


def use(script: Script, app: App) -> None:
    """Set the script by which an app compares outputs, or hands over finished workunits."""
    if script.kind == Script.Kind.COMPARE:
        app.comparison, app.comparison_function = Comparison.CUSTOM, script.function_name
        app.save(update_fields=["comparison", "comparison_function"])
    else:
        app.assimilation_function = script.function_name
        app.save(update_fields=["assimilation_function"])


def is_used(script: Script) -> bool:
    return App.objects.filter(**{script.function_kind.value: script.function_name}).exists()


def is_code(row: Model, proposal: Proposal) -> bool:
    """Whether a change that was proposed in another way is for two persons, and is refused there."""
    return isinstance(row, Script) and bool(proposal.changes.keys() & set(CODE))


def _code(script: Script) -> dict[str, str]:
    return {name: str(getattr(script, name)) for name in CODE}


def _digest(code: dict[str, str]) -> str:
    return sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()


def _carry_out(payload: Payload, asked_by: User) -> None:
    """Carry the step out. Locks the script."""
    script = Script.objects.select_for_update(no_key=True).filter(pk=payload["script"]).first()
    if script is None or _digest(_code(script)) != payload["before"]:
        raise StepRefused(gettext("The script was changed since this was asked for. Ask again."))
    for name in CODE:
        setattr(script, name, payload["code"][name])
    try:
        script.full_clean()
    except ValidationError as error:
        raise StepRefused(" ".join(error.messages)) from error
    script.save(update_fields=CODE)


def _lines(payload: Payload) -> list[tuple[str, str]]:
    """Return everything that would be run, for reading."""
    code = payload["code"]
    fields = {field.name: field for field in Script._meta.concrete_fields}
    words = {name: dict(fields[name].flatchoices).get(code[name], code[name]) for name in CODE}
    return [(str(fields[name].verbose_name), str(text)) for name, text in words.items() if text]


STEPS: Final = {STEP: StepKind(_("Program of a script"), "scripts.change_script", _carry_out, _lines)}
