"""The account-manager RPC over HTTP: a message in, a message out; what it means is in accounting/rpc.py."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from accounting import rpc
from accounting.protocol import parse_request
from portal.boinc_errors import ERR_GENERIC
from portal.protocol_views import ProtocolView, error_reply, xml_reply


class AccountManagerView(ProtocolView):
    """POST rpc.php (BOINC protocol, account manager RPC)."""

    root = "acct_mgr_reply"

    def get(self, request: Request) -> HttpResponse:
        return error_reply(self.root, ERR_GENERIC, "This address is for BOINC clients, which POST their requests.")

    def post(self, request: Request) -> HttpResponse:
        # The raw body whatever its label: clients call it a form, newer ones XML.
        message = parse_request(request.body)
        return xml_reply(rpc.answer(message, now=timezone.now(), address=request.META.get("REMOTE_ADDR", "")))
