"""Web RPCs: their parameters, the owner of an account key in them, and their answers, with limits by address."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.utils import timezone

from portal.clients.effects import in_thread
from portal.clients.messages import ClientReply, ClientRequest
from portal.clients.web_rpc import MAX_PARAMETER_CHARS, parameters
from portal.models import ClientKey, User
from portal.people.accounts import ClientAuthError, refuse_key_if_blocked
from portal.sign_in import throttle
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_ACCOUNT_NOT_FOUND, ERR_BAD_AUTHENTICATOR, ERR_GENERIC

_MAX_DIGITS = 18
_WRONG = "The account key is missing or not valid, or it is a weak one."


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of a web RPC by name, and the address that they came from."""

    given: Mapping[str, str]
    address: str

    def number(self, name: str) -> int:
        """A parameter that is a whole number; 0 if it is missing or not one."""
        text = self.given.get(name, "").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0


@dataclass(frozen=True, slots=True)
class Owner:
    """The account of a strong key."""

    user: User
    key_hash: bytes


class NotFound(ClientAuthError):
    """Nothing has this number, or only its owner may see it: the answer is the same for both."""

    def __init__(self, what: str) -> None:
        super().__init__(ERR_ACCOUNT_NOT_FOUND, f"There is no public {what} with this number.")


def owner(asked: Asked, name: str) -> Owner:
    """The account of the strong key in this parameter. Raises ClientAuthError, and counts wrong keys by address."""
    key = asked.given.get(name, "").strip()
    if not key:
        # A request without a key is not a guess.
        raise ClientAuthError(ERR_BAD_AUTHENTICATOR, _WRONG)
    try:
        throttle.admit_key(asked.address)
    except throttle.Throttled as error:
        message = f"There were too many wrong keys from your address. Try again after {error.until:%H:%M:%S} UTC."
        raise ClientAuthError(ERR_GENERIC, message) from error
    hash_of_key = credentials.key_hash(key)
    # A weak key from before an account manager moved here is stored with the hash of a strong one.
    usable = ClientKey.objects.none() if "_" in key else ClientKey.objects.filter(revoked_at=None)
    client_key = usable.select_related("user").filter(key_hash=hash_of_key).first()
    if client_key is None or not client_key.user.is_active:
        refuse_key_if_blocked(hash_of_key)
        throttle.count_wrong_key(asked.address)
        raise ClientAuthError(ERR_BAD_AUTHENTICATOR, _WRONG)
    return Owner(client_key.user, hash_of_key)


UseCase = Callable[[Asked, dt.datetime], ClientReply]


async def answer(use_case: UseCase, request: ClientRequest, max_chars: int = MAX_PARAMETER_CHARS) -> ClientReply:
    """Run the use case and return its reply. Logs no parameters. Raises ClientAuthError for too many requests."""
    return await in_thread(_run, use_case, Asked(parameters(request, max_chars), request.address))


def _run(use_case: UseCase, asked: Asked) -> ClientReply:
    try:
        throttle.admit_web_rpc(asked.address)
    except throttle.Throttled as error:
        message = f"Too many requests from your address. Try again after {error.until:%H:%M:%S} UTC."
        raise ClientAuthError(ERR_GENERIC, message) from error
    return use_case(asked, timezone.now())
