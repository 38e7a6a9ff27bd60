"""What the views of the BOINC client protocols share: DRF without its negotiation, logins, or forms.

Clients ask for "any" type, for text/html, or for nothing, and label XML bodies as forms; every reply is XML, and
nothing of the request is parsed before the view asks for it. A refusal is an ordinary reply with status 200.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final
from xml.sax.saxutils import escape

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.accounts import ClientAuthError
from portal.boinc_errors import ERR_GENERIC
from portal.scanner import ProtocolError

XML_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" ?>\n'
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class XmlRenderer(BaseRenderer):
    """Passes on a reply that the view has already made."""

    media_type = "text/xml"
    format = "xml"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return data if isinstance(data, bytes) else str(data).encode()


class OnlyXml(BaseContentNegotiation):
    """Whatever the client says it sends and accepts, it is answered in XML."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        return next(iter(parsers), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class ProtocolView(APIView):
    """A view for BOINC clients: no session, no CSRF, no permission classes; it authenticates by its own protocol.

    ``root`` is the element that an error reply has at its root. Handlers return `xml_reply`, and raise ProtocolError
    or ClientAuthError to refuse.
    """

    root: ClassVar[str] = "error"
    schema = None
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    parser_classes: Sequence[type[BaseParser]] = ()
    renderer_classes = (XmlRenderer,)
    content_negotiation_class = OnlyXml

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """DRF's own, without what is empty here: negotiation, authentication, permissions, throttles, versions."""
        self.request = Request(request, negotiator=_ONLY_XML)
        try:
            # The middleware lets GET and POST through alone.
            handler = getattr(self, "post" if request.method == "POST" else "get", self.http_method_not_allowed)
            response: HttpResponseBase = handler(self.request, *args, **kwargs)
        except ClientAuthError as error:
            return self.refusal(error.error_num, error.message)
        except ProtocolError as error:
            return self.refusal(error.error_num, str(error))
        except APIException as error:
            # DRF's own, such as that the view does not know the method.
            return self.refusal(ERR_GENERIC, str(error.detail))
        return response

    def refusal(self, error_num: int, message: str) -> HttpResponse:
        """How this protocol says no."""
        return error_reply(self.root, error_num, message)


_ONLY_XML: Final = OnlyXml()


def xml_reply(body: bytes | str) -> HttpResponse:
    """A reply that is ready to send."""
    return HttpResponse(body, content_type="text/xml; charset=utf-8")


def error_reply(root: str, error_num: int, message: str) -> HttpResponse:
    """A refusal: BOINC's error number, and a sentence that clients show."""
    response = xml_reply(document(root, {"error_num": error_num, "error_msg": message}))
    # The middleware counts and logs refusals by their number.
    response.error_num = error_num  # type: ignore[attr-defined]
    return response


def document(root: str, elements: Mapping[str, str | int | bool | None]) -> str:
    """One level of XML as BOINC clients read it: True is an empty element, None and False are left out."""
    lines = [_element(name, value) for name, value in elements.items() if value is not None and value is not False]
    return f"{XML_HEAD}<{root}>\n{''.join(lines)}</{root}>\n"


def _element(name: str, value: str | int | bool) -> str:
    if value is True:
        return f"    <{name}/>\n"
    return f"    <{name}>{escape(_NOT_XML.sub('', str(value)))}</{name}>\n"
