"""The web RPCs as HTTP messages; each is limited by address, and nothing logs its parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from django.utils import timezone

from portal.clients.effects import Steps, in_thread
from portal.clients.messages import ClientReply, ClientRequest
from portal.clients.web_rpc import parameters
from portal.people.accounts import ClientAuthError
from portal.sign_in import throttle
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.web_rpcs import accounts, login_tokens, public, results
from scheduler.web_rpcs.asked import Asked

UseCase = Callable[[Asked, dt.datetime], ClientReply]


def am_get_info(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(accounts.get_info, request)


def am_set_info(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(accounts.set_info, request)


def am_set_host_info(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(accounts.set_host_info, request)


def show_user(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(public.show_user, request)


def show_host_detail(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(public.show_host, request)


def apps(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(public.apps, request)


def app_versions(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(public.app_versions, request)


def team_lookup(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(public.team_lookup, request)


def login_token_lookup(request: ClientRequest) -> Steps[ClientReply]:
    return _answer(login_tokens.look_up, request)


async def result_status(request: ClientRequest) -> ClientReply:
    given = parameters(request, results.MAX_NAMES_CHARS)
    return await in_thread(_run, results.status, Asked(given, request.address))


async def _answer(use_case: UseCase, request: ClientRequest) -> ClientReply:
    return await in_thread(_run, use_case, Asked(parameters(request), request.address))


def _run(use_case: UseCase, asked: Asked) -> ClientReply:
    try:
        throttle.admit_web_rpc(asked.address)
    except throttle.Throttled as error:
        message = f"Too many requests from your address. Try again after {error.until:%H:%M:%S} UTC."
        raise ClientAuthError(ERR_GENERIC, message) from error
    return use_case(asked, timezone.now())
