"""The address of the account-manager RPC: parses the message; accounting/rpc/answer.py answers it."""

from __future__ import annotations

from functools import partial

from django.utils import timezone

from accounting.rpc import answer as rpc_answer
from accounting.wire.requests import credentials_of, parse_request
from portal.clients.effects import LONG_NBYTES, Steps, in_thread, parsed
from portal.clients.messages import ClientReply, ClientRequest, refusal, xml_reply
from portal.wire.boinc_errors import ERR_GENERIC


def answer(request: ClientRequest) -> ClientReply | Steps[ClientReply]:
    """POST rpc.php (BOINC protocol, account manager RPC)."""
    if request.method == "GET":
        return refusal("acct_mgr_reply", ERR_GENERIC, "This address is for BOINC clients, which POST their requests.")
    return _answer(request)


async def _answer(request: ClientRequest) -> ClientReply:
    caller = None
    if len(request.body) > LONG_NBYTES:
        first = credentials_of(request.body[:LONG_NBYTES])
        caller = await in_thread(rpc_answer.find_caller, first, request.address)
    # The raw body, whatever its content type: older clients call it a form, newer ones XML.
    message = await parsed(partial(parse_request, request.body), len(request.body))
    reply = await rpc_answer.answer(message, now=timezone.now(), address=request.address, caller=caller)
    return xml_reply(reply)
