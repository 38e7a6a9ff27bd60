"""Why something could not be fetched, in the reader's language. The errors themselves, and rows, have it in English."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop

from portal.languages.stored import made_of, translated

REASONS: Final = (
    # Of portal.fetch, after the host and a colon
    gettext_noop("an address can have at most %(limit)s characters"),
    gettext_noop("this is not a web address"),
    gettext_noop("an address must begin with http:// or https:// and a host name"),
    gettext_noop("an address must not contain a user name or password"),
    gettext_noop("0 is not a valid port"),
    gettext_noop("has the address %(address)s, which is not public and not in FETCH_ALLOWED_NETWORKS"),
    gettext_noop("the host name has no address"),
    gettext_noop("no connection could be made"),
    gettext_noop("no connection within the limit of %(secs)s s"),
    gettext_noop("took longer than the limit of %(secs)s s"),
    gettext_noop("sent nothing for longer than the limit of %(secs)s s"),
    gettext_noop("no encrypted connection could be made"),
    gettext_noop("its certificate is not valid (%(why)s)"),
    gettext_noop("the connection broke, or the answer is not HTTP"),
    gettext_noop("redirects more than %(limit)s times"),
    gettext_noop("redirects a POST request"),
    gettext_noop("redirects to something that is not a web address"),
    gettext_noop("redirects from https to http"),
    gettext_noop("answered with status %(status)s"),
    gettext_noop("sent more than the limit of %(limit)s bytes"),
    gettext_noop("transferred more than the limit of %(limit)s bytes"),
    gettext_noop("sent a different part of the file than requested"),
    gettext_noop("its answer is compressed with a method that was not requested"),
    gettext_noop("its compressed answer is damaged"),
    gettext_noop("its answer was cut off"),
    gettext_noop("its answer could not be stored here: %(why)s"),
)


def shown(text: str, *more: str) -> str:
    """``text``, a FetchError or what was kept of it, in the active language; as it is if it is none.

    ``more``: marked texts of other errors that a row may have instead: reasons of the same form, or whole sentences.
    """
    known = (*REASONS, *more)
    place, colon, reason = text.partition(": ")
    for before, rest in ((f"{place}{colon}", reason), ("", text)):
        for end in ("", "."):
            if rest.endswith(end) and made_of(rest.removesuffix(end), known):
                return before + translated(rest.removesuffix(end), known) + end
    return text
