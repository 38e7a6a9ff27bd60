"""Logs in a freshly installed client by the login token in its installer's name."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from credit.teams.reads import team_of
from portal.clients.asked import Asked
from portal.clients.messages import ClientReply
from portal.models import ClientKey, User
from portal.people import login_tokens
from portal.people.accounts import ClientAuthError, demand_confirmed_address, issue_client_key
from portal.people.key_mails import tell_of_key
from portal.people.security_events import Source
from portal.sign_in import throttle
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR, ERR_GENERIC
from portal.wire.credentials import client_password_hash
from scheduler.web_rpcs.documents import reply


def look_up(asked: Asked, now: dt.datetime) -> ClientReply:
    """Return a client key for the token. Raises ClientAuthError; wrong tokens are counted by address."""
    try:
        throttle.admit_key(asked.address)
    except throttle.Throttled as error:
        message = f"There were too many wrong tokens from your address. Try again after {error.until:%H:%M:%S} UTC."
        raise ClientAuthError(ERR_GENERIC, message) from error
    # Locks the user's row, as creating keys does; then the token.
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=asked.number("user_id"), is_active=True).first()
        if user is not None and _is_right(user, asked.given.get("token", ""), now):
            # A refusal undoes the use of the token.
            demand_confirmed_address(user.pk)
            key = issue_client_key(user, ClientKey.Origin.ATTACH, source=Source(asked.address))
            tell_of_key(user, asked.address)
        else:
            user = None
    if user is None:
        throttle.count_wrong_key(asked.address)
        raise ClientAuthError(
            ERR_BAD_AUTHENTICATOR, "The login token is no longer valid. Log in with e-mail address and password."
        )
    team = team_of(user)
    return reply(
        "login_token_reply",
        [("authenticator", key), ("user_name", user.name or "Anonymous"), ("team_name", team.name if team else None)],
    )


def _is_right(user: User, token: str, now: dt.datetime) -> bool:
    return login_tokens.use(user, client_password_hash(token, user.email), now)
