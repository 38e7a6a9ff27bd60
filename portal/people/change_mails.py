"""Mails about changes of an account, as somebody other than its owner may have made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models import User
from portal.people.key_mails import send_words
from portal.people.security_events import BY_OPERATOR, Source

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def tell_of_change(user: User, what: StrOrPromise, source: Source, *other_addresses: str) -> None:
    """Mail the account's address and these others, once the caller's transaction has committed."""
    words = {**_words(user, what), "address": source.address, "by_operator": source is BY_OPERATOR}
    addresses = dict.fromkeys([user.email, *other_addresses])

    def send() -> None:
        for address in addresses:
            send_words(user, _("Your account was changed"), "account_changed", words, address)

    transaction.on_commit(send)


def tell_of_rights(user: User, what: StrOrPromise, source: Source) -> None:
    """Mail the person whose rights were changed, and all superusers."""
    tell_of_change(user, what, source)
    words = _words(user, what)

    def send() -> None:
        for superuser in User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk):
            send_words(superuser, _("The rights of an account were changed"), "rights_changed", words)

    transaction.on_commit(send)


def _words(user: User, what: StrOrPromise) -> dict[str, object]:
    return {
        "name": user.display_name,
        "account": user.email,
        "what": what,
        "at": timezone.now(),
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
    }
