"""What came of asking a project, in the reader's language. Errors and rows have it in English."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

from portal.languages import fetch_texts
from portal.languages.stored import filled, made_of

_SENTENCES: Final = (
    # Of accounting.project_setup.accounts; the longer of two that begin alike first
    gettext_noop(
        "%(text)s Some projects provide account information only for full keys, and this is a weak one. Test the "
        "scheduler instead."
    ),
    gettext_noop(
        "This project does not provide account information (it has no am_get_info.php). Test the scheduler instead."
    ),
    gettext_noop("The project has no %(page)s (%(why)s)."),
    gettext_noop("The project could not be asked: %(why)s"),
    gettext_noop("The project refused: %(said)s (error %(number)s)."),
    gettext_noop("The project’s answer could not be read: %(fault)s."),
    gettext_noop(
        "The project knows the account: number %(number)s, “%(name)s” of %(country)s. This is a full key, with which "
        "the account can be changed."
    ),
    gettext_noop(
        "The project knows the account: number %(number)s, “%(name)s”. This is a full key, with which the account can "
        "be changed."
    ),
    gettext_noop("The project knows the account: number %(number)s, “%(name)s” of %(country)s."),
    gettext_noop("The project knows the account: number %(number)s, “%(name)s”."),
    gettext_noop("The page at its master URL does not name a scheduler."),
    gettext_noop("The scheduler could not be asked: its address on the page at the master URL is not valid."),
    gettext_noop("The scheduler could not be asked: %(why)s"),
    gettext_noop("The scheduler’s answer could not be read: %(fault)s."),
    gettext_noop(
        "The scheduler knows the account “%(name)s” and has created a record for this test’s computer. It says: "
        "%(said)s"
    ),
    gettext_noop("The scheduler knows the account “%(name)s” and has created a record for this test’s computer."),
    gettext_noop("The scheduler does not accept the key. It says: %(said)s"),
    # Of accounting.project_setup.asking
    gettext_noop("%(url)s answered, but not like a BOINC project (%(fault)s)."),
    gettext_noop("%(host)s answered with an error (%(said)s)."),
)
_SENTENCES_WITHIN: Final = ("text", "why")
"""Placeholders that have a sentence of their own."""


def shown(text: str) -> str:
    """An AskFailed or AccountProblem, or what was kept of it or of a trial, in the active language."""
    found = made_of(text, _SENTENCES)
    if found is None:
        return fetch_texts.shown(text)
    template, values = found
    return filled(template, {name: shown(each) if name in _SENTENCES_WITHIN else each for name, each in values.items()})
