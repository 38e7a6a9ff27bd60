"""The web RPCs as HTTP messages; each is rate-limited by address, and parameters are never logged."""

from __future__ import annotations

from urllib.parse import urlencode

from portal.clients.asked import Asked, UseCase, answer
from portal.clients.effects import Steps
from portal.clients.messages import ClientReply, ClientRequest
from portal.clients.web_rpc import parameters
from scheduler.web_rpcs import accounts, login_tokens, public, results


def am_get_info(request: ClientRequest) -> Steps[ClientReply]:
    return answer(accounts.get_info, request)


def am_set_info(request: ClientRequest) -> Steps[ClientReply]:
    return answer(accounts.set_info, request)


def am_set_host_info(request: ClientRequest) -> Steps[ClientReply]:
    return answer(accounts.set_host_info, request)


def show_user(request: ClientRequest) -> Steps[ClientReply]:
    return _page_or_answer(public.show_user, request)


def show_host_detail(request: ClientRequest) -> Steps[ClientReply]:
    return _page_or_answer(public.show_host, request)


def apps(request: ClientRequest) -> Steps[ClientReply]:
    return _page_or_answer(public.apps, request)


def app_versions(request: ClientRequest) -> Steps[ClientReply]:
    return answer(public.app_versions, request)


def team_lookup(request: ClientRequest) -> Steps[ClientReply]:
    return answer(public.team_lookup, request)


def login_token_lookup(request: ClientRequest) -> Steps[ClientReply]:
    return answer(login_tokens.look_up, request)


def result_status(request: ClientRequest) -> Steps[ClientReply]:
    return answer(results.status, request, results.MAX_NAMES_CHARS)


async def _page_or_answer(use_case: UseCase, request: ClientRequest) -> ClientReply:
    """Answer with XML on request, and to anybody with a key.

    Otherwise redirect to the page, as BOINC does, with only the number.
    """
    asked = Asked(parameters(request), request.address)
    if {"format", "xml", "auth"} & asked.given.keys():
        return await answer(use_case, request)
    numbers = {name: number for name in ("userid", "hostid") if (number := asked.number(name))}
    location = request.path.removeprefix("/project") + (f"?{urlencode(numbers)}" if numbers else "")
    return ClientReply(b"", status=302, content_type="text/plain", headers=(("Location", location),))
