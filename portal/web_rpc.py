"""Web RPCs of BOINC clients: what this site is, look up an account, open one.

Query strings carry the value that clients log in with: nothing here logs them. Source: BOINC protocol, web RPCs.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.contrib.auth.password_validation import MinimumLengthValidator, get_default_password_validators
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpResponse, QueryDict
from rest_framework.request import Request

from portal import accounts, boinc_errors
from portal.models import ClientKey, User
from portal.protocol_views import ProtocolView, document, xml_reply
from portal.scanner import ProtocolError

MAX_PARAMETER_CHARS: Final = 1000
# Older clients do not send the totals that credit is estimated from (BOINC protocol, get_project_config.php).
MIN_CLIENT_VERSION: Final = 70701


class ProjectConfigView(ProtocolView):
    """What the BOINC Manager asks when somebody chooses this site. Needs no database."""

    root = "project_config"

    def get(self, request: Request) -> HttpResponse:
        return xml_reply(document(self.root, site_config() | {"account_manager": True}))

    post = get


def site_config() -> dict[str, str | int | bool | None]:
    """What is the same whether the site is chosen as an account manager or as a project."""
    return {
        "name": settings.SITE_NAME,
        "master_url": settings.SITE_URL,
        "web_rpc_url_base": settings.SITE_URL,
        "min_passwd_length": _min_password_chars(),
        "account_creation_disabled": not (settings.SIGNUP_OPEN or settings.CLIENT_SIGNUP_OPEN),
        "client_account_creation_disabled": not settings.CLIENT_SIGNUP_OPEN,
        "web_stopped": 0,
        "sched_stopped": 0,
        "min_client_version": MIN_CLIENT_VERSION,
        "terms_of_use": settings.TERMS_OF_USE or None,
    }


class LookUpAccountView(ProtocolView):
    """Hands a fresh client key to who knows an account's password; without a password, tells whether it exists."""

    def get(self, request: Request) -> HttpResponse:
        given = _parameters(request)
        email = _email(given)
        address = request.META.get("REMOTE_ADDR", "")
        if "passwd_hash" not in given:
            accounts.account_exists(email, address=address)
            return xml_reply(document("account_out", {"success": True}))
        return _key_for(accounts.authenticate_client(email, given["passwd_hash"], address=address))

    post = get


class CreateAccountView(ProtocolView):
    """Opens an account and hands out its first client key; the same request again gives another key."""

    def get(self, request: Request) -> HttpResponse:
        given = _parameters(request)
        user = accounts.create_account(
            _email(given),
            given.get("passwd_hash", ""),
            given.get("user_name", ""),
            address=request.META.get("REMOTE_ADDR", ""),
            accepts_terms=given.get("consent_flag") == "1",
        )
        return _key_for(user)

    post = get


def _key_for(user: User) -> HttpResponse:
    key = accounts.issue_client_key(user, ClientKey.Origin.LOOKUP)
    return xml_reply(document("account_out", {"authenticator": key}))


def _parameters(request: Request) -> dict[str, str]:
    """The query's parameters, each of limited length; raises ProtocolError."""
    try:
        given: QueryDict = request.query_params
    except TooManyFieldsSent as error:
        limit = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        raise ProtocolError("request", f"more than {limit} parameters", boinc_errors.ERR_GENERIC) from error
    for name, value in given.items():
        if len(value) > MAX_PARAMETER_CHARS:
            raise ProtocolError(
                name[:40], f"longer than the limit of {MAX_PARAMETER_CHARS} characters", boinc_errors.ERR_GENERIC
            )
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
