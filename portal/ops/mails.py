"""Mails that volunteers chose, each with a link that unsubscribes in one click without signing in.

Mails about the account's security (password, address, two-factor login, deletion) are always sent, by django-allauth.
"""

from __future__ import annotations

from smtplib import SMTPException
from typing import Any, Final

import structlog
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.core.mail import EmailMessage
from django.db.models import Exists, OuterRef, QuerySet
from django.template.loader import render_to_string
from django.urls import reverse

from portal.languages.recipients import written_for
from portal.models import User
from portal.ops.mail_choices import Mail, claim, release
from portal.wire.mail_refusals import Refusal, refusal_of

log = structlog.get_logger("mails")

_SALT: Final = "portal.mails.unsubscribe"
MAX_TOKEN_CHARS: Final = 200


class MailServerDown(Exception):
    """The mail server accepts no mails; the subject of this one counts as not mailed."""


def recipients() -> QuerySet[User]:
    """The people who may be mailed: their address is confirmed, and their account neither closed nor about to be."""
    confirmed = EmailAddress.objects.filter(user=OuterRef("pk"), email=OuterRef("email"), verified=True)
    return User.objects.filter(Exists(confirmed), is_active=True, deletion_asked_at=None)


def send_once(user: User, kind: Mail, template: str, told: dict[str, Any]) -> bool:
    """Mail the user what they were not mailed about before; False if there is nothing new, or the mail is refused.

    ``told``: the things to mail about, by the key that each is stored under; the template gets the new ones as
    ``lines``. A mail refused for good counts as sent; one refused for now is tried again by the next run. Neither stops
    other people's mails. Raises MailServerDown.
    """
    keys = claim(user, kind, list(told))
    if not keys:
        return False
    try:
        compose(user, kind, template, {"lines": [told[key] for key in keys]}).send()
    except (OSError, SMTPException) as error:
        refusal = refusal_of(error)
        if refusal is not Refusal.FOR_GOOD:
            release(user, kind, keys)
        reason = type(error).__name__ if refusal is Refusal.NONE else f"refused {refusal.value}"
        log.error("mail_failed", kind=kind.value, user=user.pk, reason=reason)
        if refusal is Refusal.NONE:
            raise MailServerDown from error
        return False
    log.info("mail_sent", kind=kind.value, user=user.pk)
    return True


def compose(user: User, kind: Mail, template: str, context: dict[str, Any]) -> EmailMessage:
    """A mail of this kind in its reader's language, with its unsubscribe address.

    The first line of its template is the subject. Words in ``context`` must be in that language, too.
    """
    leave_url = unsubscribe_url(user.pk, kind)
    words = {
        **context,
        "name": user.display_name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "leave_url": leave_url,
    }
    with written_for(user):
        text = render_to_string(f"{template}.txt", words)
    subject, _, body = text.strip().partition("\n")
    return EmailMessage(
        f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{' '.join(subject.split())}",
        body.strip() + "\n",
        to=[user.email],
        headers={
            "List-Unsubscribe": f"<{leave_url}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )


def unsubscribe_url(user_id: int, kind: Mail) -> str:
    """The unsubscribe address for one kind of mail. It gives no other access."""
    token = signing.dumps([user_id, kind.value], salt=_SALT)
    return f"{settings.SITE_URL.rstrip('/')}{reverse('unsubscribe', args=[token])}"


def read_token(token: str) -> tuple[int, Mail] | None:
    """The user and kind of mail of an unsubscribe token; None for a token that is not ours. Tokens never expire."""
    if len(token) > MAX_TOKEN_CHARS:
        return None
    try:
        user_id, kind = signing.loads(token, salt=_SALT)
        return int(user_id), Mail(kind)
    except (signing.BadSignature, ValueError, TypeError):
        return None
