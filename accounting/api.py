"""The account-manager RPC over HTTP: a message in, a message out; what it means is in accounting/rpc.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any, cast

from django.utils import timezone
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounting import rpc
from accounting.protocol import AccountManagerRequest, parse_request
from portal.protocol_views import ProtocolView, xml_reply


class AccountManagerParser(BaseParser):
    """Takes the raw body whatever its label: clients call it a form, newer ones XML."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Mapping[str, AccountManagerRequest]:
        if parser_context is None:
            raise TypeError("the parser needs the request")
        # Not the stream: it is reading the body that checks its size.
        return {"message": parse_request(parser_context["request"].body)}


class AccountManagerView(ProtocolView):
    """POST rpc.php (BOINC protocol, account manager RPC)."""

    root = "acct_mgr_reply"
    parser_classes = (AccountManagerParser,)

    def post(self, request: Request) -> Response:
        address = request.META.get("REMOTE_ADDR", "")
        message: AccountManagerRequest = cast("dict[str, AccountManagerRequest]", request.data)["message"]
        return xml_reply(rpc.answer(message, now=timezone.now(), address=address))
