"""The log of support in the reader's language. It is stored in English; reasons stay as they were written."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext, gettext_noop

from portal.languages.stored import filled, made_of

LOOKED: Final = gettext_noop("Looked at the account: %(reason)s")
SEARCHED: Final = gettext_noop("Searched for %(what)s. Accounts found: %(count)s.")
SOMETHING: Final = gettext_noop("a name, or the beginning of an address or a key")
SEARCHED_FOR: Final = {
    "email": gettext_noop("an e-mail address"),
    "number": gettext_noop("a number"),
    "token": gettext_noop("an API token"),
    "id": gettext_noop("a host id or CPID"),
}
_HELPED: Final = "%(help)s: %(reason)s"
_OWN_WORDS: Final = ("reason", "count")


def helped(title: str, reason: str) -> str:
    """The entry for one of support's helps; ``title`` in English."""
    return _HELPED % {"help": title, "reason": reason}


def log_text(stored: str) -> str:
    """An entry in the active language; one that is not of support as it is."""
    found = made_of(stored, (LOOKED, SEARCHED, _HELPED))
    if found is None:
        return stored
    template, values = found
    return filled(template, {name: each if name in _OWN_WORDS else gettext(each) for name, each in values.items()})
