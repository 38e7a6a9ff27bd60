"""The scheduler RPC as HTTP messages; see `scheduler.rpc.answer` for their meaning."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import psycopg
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from portal.clients.effects import LONG_NBYTES, Steps, parsed
from portal.clients.messages import ClientReply, ClientRequest, document, xml_reply
from portal.clients.web_rpc import site_config
from portal.people.accounts import AccountBlocked, ClientAuthError
from portal.wire.boinc_errors import ERR_PROJECT_DOWN
from portal.wire.scanner import ProtocolError
from scheduler.engine.facts import Version
from scheduler.programs import catalogue
from scheduler.rpc import answer as rpc_answer
from scheduler.rpc import identify
from scheduler.wire.replies import WRONG_KEY_WAIT_SECS, render_refusal
from scheduler.wire.requests import authenticator_of, parse_request


def answer(request: ClientRequest) -> ClientReply | Steps[ClientReply]:
    """Answer POST scheduler (BOINC protocol, scheduler request and reply)."""
    if request.method == "GET":
        return xml_reply(render_refusal("This address is for BOINC clients, which POST their requests."))
    return _answer(request)


async def _answer(request: ClientRequest) -> ClientReply:
    try:
        if len(request.body) > LONG_NBYTES:
            await identify.check_key(authenticator_of(request.body[:LONG_NBYTES]))
        # The raw body, whatever its content type: clients call it a form, newer ones XML.
        message = await parsed(partial(parse_request, request.body, is_cut=request.is_cut), len(request.body))
        message.address = request.address
        return xml_reply(await rpc_answer.answer(message, now=timezone.now()))
    # Clients accept no error numbers here: they get a notice to show, and a time to wait.
    except AccountBlocked as refused:
        # No other key helps.
        return xml_reply(render_refusal(str(refused)), refused.error_num)
    except ClientAuthError as refused:
        # The account manager may give it another key at any time.
        return xml_reply(render_refusal(str(refused), WRONG_KEY_WAIT_SECS), refused.error_num)
    except ProtocolError as refused:
        return xml_reply(render_refusal(str(refused)), refused.error_num)


async def project_config(_request: ClientRequest) -> ClientReply:
    """Answer the BOINC Manager's question when somebody chooses this project; also without a database."""
    versions: Iterable[Version] = ()
    error_num = None
    try:
        programs = await catalogue.fresh()
        versions = [version for app in programs.apps for version in programs.versions_by_app.get(app, ())]
    except (DatabaseError, psycopg.Error):
        # While the database is down, the Manager is told what this project is, and that it is down.
        error_num = ERR_PROJECT_DOWN
    elements = site_config() | {
        "error_num": error_num,
        "master_url": settings.PROJECT_URL,
        "web_rpc_url_base": settings.PROJECT_URL,
        "account_manager": False,
    }
    platforms = _platforms(versions)
    return xml_reply(document("project_config", elements).replace("</project_config>", platforms + "</project_config>"))


def _platforms(versions: Iterable[Version]) -> str:
    """Render an entry for each platform and plan class with a program for all computers, not only for testers."""
    rows = sorted({(v.platform, v.plan_class) for v in versions if not v.is_deprecated and v.testers is None})
    lines = [
        f"<platform><platform_name>{platform}</platform_name>"
        f"{f'<plan_class>{plan_class}</plan_class>' if plan_class else ''}</platform>\n"
        for platform, plan_class in rows
    ]
    return f"<platforms>\n{''.join(lines)}</platforms>\n"
