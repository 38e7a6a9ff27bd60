"""The scheduler RPC over HTTP: a message in, a message out; what it means is in scheduler/rpc.py."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from portal import web_rpc
from portal.protocol_views import ProtocolView, document, xml_reply
from scheduler import catalogue, rpc
from scheduler.protocol import LIMITS, parse_request
from scheduler.replies import REFUSED_WAIT_SECS, render_refusal


class SchedulerView(ProtocolView):
    """POST scheduler (BOINC protocol, scheduler request and reply)."""

    root = "scheduler_reply"

    def get(self, request: Request) -> HttpResponse:
        return xml_reply(
            render_refusal("This address is for BOINC clients, which POST their requests.", REFUSED_WAIT_SECS)
        )

    def post(self, request: Request) -> HttpResponse:
        # The raw body whatever its label: clients call it a form, newer ones XML.
        body = request.body
        # Of a longer message the middleware has read this much.
        is_cut = len(body) == LIMITS.body_bytes < int(request.META["CONTENT_LENGTH"])
        message = parse_request(body, is_cut=is_cut)
        return xml_reply(rpc.answer(message, now=timezone.now()))

    def refusal(self, error_num: int, message: str) -> HttpResponse:
        """As clients show it, which know no error numbers here: a notice, and a long wait."""
        response = xml_reply(render_refusal(message, REFUSED_WAIT_SECS))
        response.error_num = error_num  # type: ignore[attr-defined]  # counted and logged by the middleware
        return response


class ProjectConfigView(ProtocolView):
    """What the BOINC Manager asks when somebody chooses this project."""

    root = "project_config"

    def get(self, request: Request) -> HttpResponse:
        elements = web_rpc.site_config() | {
            "master_url": settings.PROJECT_URL,
            "web_rpc_url_base": settings.PROJECT_URL,
            "account_manager": False,
        }
        return xml_reply(document(self.root, elements).replace("</project_config>", _platforms() + "</project_config>"))

    post = get


def _platforms() -> str:
    """One entry for each platform and plan class that there is a program for."""
    rows = sorted({(v.platform, v.plan_class) for v in catalogue.current().versions.values()})
    lines = [
        f"<platform><platform_name>{platform}</platform_name>"
        f"{f'<plan_class>{plan_class}</plan_class>' if plan_class else ''}</platform>\n"
        for platform, plan_class in rows
    ]
    return f"<platforms>\n{''.join(lines)}</platforms>\n"
