"""Web RPCs of BOINC clients: describe this site, look up an account, open one.

Query strings carry the value that clients log in with: nothing here logs them. Source: BOINC protocol, web RPCs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.contrib.auth.password_validation import MinimumLengthValidator, get_default_password_validators
from django.core.exceptions import TooManyFieldsSent
from django.db import transaction
from django.http import QueryDict

from portal import __version__
from portal.clients.effects import in_thread
from portal.clients.messages import ClientReply, ClientRequest, document, xml_reply
from portal.models import ClientKey, User
from portal.people import accounts
from portal.people.key_mails import tell_of_key
from portal.people.security_events import Source
from portal.wire import boinc_errors
from portal.wire.scanner import ProtocolError

MAX_PARAMETER_CHARS: Final = 1000
# Older clients do not send the totals that credit is estimated from (BOINC protocol, get_project_config.php).
MIN_CLIENT_VERSION: Final = 70701


def project_config(_request: ClientRequest) -> ClientReply:
    """Answers the BOINC Manager's question when somebody chooses this site. Needs no database."""
    return xml_reply(document("project_config", site_config() | {"account_manager": True}))


def site_config() -> dict[str, str | int | bool | None]:
    """The part that the account manager and the project have in common."""
    return {
        "name": settings.SITE_NAME,
        "master_url": settings.SITE_URL,
        "web_rpc_url_base": settings.SITE_URL,
        "min_passwd_length": _min_password_chars(),
        "account_creation_disabled": not (settings.SIGNUP_OPEN or settings.CLIENT_SIGNUP_OPEN),
        # Where the Manager asks for a user name, it knows no address to open an account with.
        "client_account_creation_disabled": not settings.CLIENT_SIGNUP_OPEN or settings.LOGIN_BY_USER_NAME,
        "uses_username": settings.LOGIN_BY_USER_NAME or None,
        "web_stopped": 0,
        "sched_stopped": 0,
        "min_client_version": MIN_CLIENT_VERSION,
        # The software's version; BOINC's clients skip elements that they do not know.
        "cobblestone_version": __version__,
        "terms_of_use": settings.TERMS_OF_USE or None,
    }


async def look_up_account(request: ClientRequest) -> ClientReply:
    """Returns a fresh client key for an account and its password; without a password, whether the account exists."""
    given = parameters(request)
    email = _email(given)
    if "passwd_hash" not in given:
        await in_thread(accounts.account_exists, email, address=request.address)
        return xml_reply(document("account_out", {"success": True}))
    return await in_thread(_log_in, email, given["passwd_hash"], request)


def _log_in(email: str, password_hash: str, request: ClientRequest) -> ClientReply:
    return _key_for(accounts.authenticate_client(email, password_hash, address=request.address), request)


async def create_account(request: ClientRequest) -> ClientReply:
    """Opens an account and returns its first client key; the same request again returns another key."""
    given = parameters(request)
    return await in_thread(_open_account, _email(given), given, request)


def _open_account(email: str, given: Mapping[str, str], request: ClientRequest) -> ClientReply:
    user = accounts.create_account(
        email,
        given.get("passwd_hash", ""),
        given.get("user_name", ""),
        address=request.address,
        accepts_terms=given.get("consent_flag") == "1",
    )
    return _key_for(user, request)


def _key_for(user: User, request: ClientRequest) -> ClientReply:
    if request.path.startswith("/project/"):
        # A project's key gives access to work; an account manager gives access to work separately.
        accounts.demand_confirmed_address(user.pk)
    with transaction.atomic():
        key = accounts.issue_client_key(user, ClientKey.Origin.LOOKUP, source=Source(request.address))
        tell_of_key(user, request.address)
    return xml_reply(document("account_out", {"authenticator": key}))


def parameters(request: ClientRequest, max_chars: int = MAX_PARAMETER_CHARS) -> dict[str, str]:
    """The parameters of the query or, of a form that was sent, of its body, each of limited length.

    Raises ProtocolError.
    """
    try:
        given = QueryDict(request.query, mutable=True)
        given.update(QueryDict(request.body))
    except TooManyFieldsSent as error:
        limit = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        raise ProtocolError("request", f"more than {limit} parameters", boinc_errors.ERR_GENERIC) from error
    for name, value in given.items():
        if len(value) > max_chars:
            raise ProtocolError(name[:40], f"longer than the limit of {max_chars} characters", boinc_errors.ERR_GENERIC)
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _email(given: dict[str, str]) -> str:
    email = given.get("email_addr", "")
    if not email.strip():
        raise accounts.ClientAuthError(
            boinc_errors.ERR_BAD_EMAIL, "The e-mail address is missing. Enter yours and try again."
        )
    return email


def _min_password_chars() -> int:
    validators = get_default_password_validators()
    return max([v.min_length for v in validators if isinstance(v, MinimumLengthValidator)], default=1)
