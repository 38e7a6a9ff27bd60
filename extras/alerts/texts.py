"""The words of alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from extras.alerts.rules import AlertKind
from portal.fetch.errors import AddressRefused, FetchError

KIND_LABELS: Final[Mapping[AlertKind, Promise | str]] = {
    AlertKind.SILENT: gettext_lazy("A computer is silent"),
    AlertKind.FAILING: gettext_lazy("Tasks fail on a computer"),
    AlertKind.PROJECT: gettext_lazy("A project has no work, does not answer or has ended"),
    AlertKind.SECURITY: gettext_lazy("Someone signs in, or something that protects your account changes"),
    AlertKind.NEWS: gettext_lazy("The operators publish news"),
}


def title_of(kind: AlertKind, count: int, *, is_over: bool) -> str:
    """Return the first line of a message about this many things of a kind."""
    title = _title(kind, count)
    return _("Over: %(title)s") % {"title": title} if is_over else title


def _title(kind: AlertKind, count: int) -> str:
    words: dict[str, Any] = {"count": count, "site": settings.SITE_NAME}
    if kind is AlertKind.SILENT:
        return ngettext("A computer is silent", "%(count)d computers are silent", count) % words
    if kind is AlertKind.FAILING:
        return ngettext("Tasks fail on a computer", "Tasks fail on several computers or from several projects", count)
    if kind is AlertKind.PROJECT:
        return ngettext("Problem with a project", "%(count)d problems with projects", count) % words
    if kind is AlertKind.SECURITY:
        return ngettext("Your account at %(site)s", "Your account at %(site)s: %(count)d events", count) % words
    return _("News from %(site)s") % words


def lines_of(texts: Sequence[str], most: int) -> list[str]:
    """Return a line each, as far as there is room."""
    if len(texts) <= most:
        return list(texts)
    left = len(texts) - most + 1
    return [*texts[: most - 1], ngettext("and %(count)d more", "and %(count)d more", left) % {"count": left}]


def test_title() -> str:
    return _("A test from %(site)s") % {"site": settings.SITE_NAME}


def test_line() -> str:
    return _("You asked for this message on the Alerts page. If you can read it, alerts will arrive here.")


def answer_text(status: int) -> str:
    """Explain a server's answer to the owner of the channel."""
    if 200 <= status < 300:
        return _("The message was accepted (status %(status)d).") % {"status": status}
    if status in (404, 410):
        return _("This address no longer exists (status %(status)d).") % {"status": status}
    if status in (401, 403):
        return _(
            "The server did not accept the token, or does not allow this site to send messages (status %(status)d)."
        ) % {"status": status}
    if status == 413:
        return _("The server says that the message is too long (status 413).")
    if status == 429:
        return _("The server says that it is getting too many messages (status 429).")
    if 300 <= status < 400:
        return _("The address redirects to another one (status %(status)d). Enter the other one instead.") % {
            "status": status
        }
    if status >= 500:
        return _("The server reported an internal error (status %(status)d).") % {"status": status}
    return _("The server refused the message (status %(status)d).") % {"status": status}


def error_text(error: FetchError) -> str:
    """Explain why there was no answer, without revealing anything inside this site's network."""
    if isinstance(error, AddressRefused):
        return not_public_text()
    return _("The server could not be reached, or did not answer in time.")


def not_public_text() -> str:
    return _("This address cannot be used: alerts are only sent to public addresses on the internet.")
