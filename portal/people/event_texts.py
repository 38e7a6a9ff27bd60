"""What security events say of themselves, in the reader's language. Stored in English; people's own words stay."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

from portal.languages.stored import translated
from portal.models import SecurityEvent

Kind = SecurityEvent.Kind

ALL_KEYS: Final = gettext_noop("all keys")
ALL_TOKENS: Final = gettext_noop("all tokens")
RIGHTS_ALLOWED: Final = gettext_noop("allowed after the password was reset")
RIGHTS_HELD: Final = gettext_noop("held, as the password was reset without a second factor")
FACTOR_MADE_ANEW: Final = gettext_noop("%(factor)s, made anew")
_KEY: Final = "%(hint)s…, %(origin)s"

_TEXTS: Final = {
    Kind.KEY_MADE: (_KEY,),
    Kind.KEY_REVOKED: (ALL_KEYS,),
    Kind.TOKEN_REVOKED: (ALL_TOKENS,),
    Kind.JOIN_TOKEN_REVOKED: (ALL_TOKENS,),
    Kind.RIGHTS_CHANGED: (RIGHTS_ALLOWED, RIGHTS_HELD, "%(fields)s"),
    Kind.FACTOR_ADDED: (FACTOR_MADE_ANEW, "%(factor)s"),
    Kind.FACTOR_REMOVED: ("%(factor)s",),
}


def key_detail(hint: str, origin: str) -> str:
    """Which client key was made, and how; both are stored as given."""
    return _KEY % {"hint": hint, "origin": origin}


def detail_text(event: SecurityEvent) -> str:
    """The event's detail in the active language; reasons of support and names of tokens are people's own words."""
    return translated(event.detail, _TEXTS.get(Kind(event.kind), ()))
