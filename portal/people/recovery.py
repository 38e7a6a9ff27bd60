"""Ends all access that a stranger could have set up, when the owner takes an account back."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.utils import timezone

from portal.languages.messages import Message
from portal.models import CLIENT_PASSWORD_FIELDS, User
from portal.people.accounts import revoke_all_client_keys
from portal.people.api_tokens import revoke_all_tokens
from portal.people.join_tokens import revoke_all_join_tokens
from portal.people.security_events import Kind, Source, record
from portal.people.staff import is_operator, lacks_second_factor
from portal.sign_in.sessions import end_sessions


def revoke_access(user: User, source: Source) -> None:
    """Revoke all client keys, API tokens and join tokens, and cancel an unconfirmed change of address.

    For somebody whose password was just set, so that the clients' value for the present address exists.
    """
    user.expect_email(None, "")
    user.awaited_email_at = None
    user.save(update_fields=["awaited_email_at", *CLIENT_PASSWORD_FIELDS])
    EmailAddress.objects.filter(user=user).exclude(email=user.email).delete()
    revoke_all_client_keys(user, source)
    revoke_all_tokens(user, source)
    revoke_all_join_tokens(user, source)


def reset_password(user: User, password: str, source: Source, *, session_key: str | None) -> None:
    """Set the password of somebody who proved by a mail that the address is theirs, and end all other access.

    Keys, tokens, logins and an unconfirmed change of address end: anyone who opened the account or knew the password
    could have made them. ``session_key``: the cookie of the requesting session, which goes on. Second factors and
    passkeys stay if the address was confirmed before, as a mailbox alone must not be enough to take over such an
    account. If it was not, they may not be those of the address's owner. An operator's stay in any case:
    `createsuperuser` makes an account without a confirmed address, and a superuser can remove a lost factor. The rights
    of an operator without a factor, if one is required, are withheld until somebody restores them
    (portal/people/staff.py). Locks the user's row, then those of keys, tokens and sessions.
    """
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        locked.set_password(password)
        if lacks_second_factor(locked):
            locked.rights_held_at = timezone.now()
            record(locked, Kind.RIGHTS_CHANGED, source, Message("event_rights_held"))
        locked.save(update_fields=["password", "rights_held_at", *CLIENT_PASSWORD_FIELDS])
        verified = EmailAddress.objects.filter(user=locked, email=locked.email, verified=True)
        if not is_operator(locked) and not verified.exists():
            Authenticator.objects.filter(user=locked).delete()
        EmailAddress.objects.update_or_create(
            user=locked, email=locked.email, defaults={"verified": True, "primary": True}
        )
        revoke_access(locked, source)
        end_sessions(locked, but=session_key)
    user.refresh_from_db()
