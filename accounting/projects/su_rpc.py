"""Science United's web RPCs: a volunteer's keywords, and the numbers of their computers at projects."""

from __future__ import annotations

import datetime as dt
from typing import Final
from xml.sax.saxutils import escape

from accounting.choosing.choices import choose_keywords
from accounting.models import AccountSettings, HostProject
from portal.clients.asked import Asked, answer, owner
from portal.clients.effects import Steps
from portal.clients.messages import XML_HEAD, ClientReply, ClientRequest, xml_reply
from portal.models import Host, User
from portal.people.accounts import ClientAuthError
from portal.wire.boinc_errors import ERR_GENERIC
from portal.wire.keywords import KEYWORDS

_YES: Final = "1"
_NO: Final = "-1"


def keywords(request: ClientRequest) -> Steps[ClientReply]:
    """Answer su_rpc.php."""
    return answer(_keywords, request)


def host_ids(request: ClientRequest) -> Steps[ClientReply]:
    """Answer su_host_ids.php."""
    return answer(_host_ids, request)


def _keywords(asked: Asked, _now: dt.datetime) -> ClientReply:
    user = owner(asked, "auth").user
    action = asked.given.get("action")
    if action == "get_keywords":
        return _chosen(user)
    if action != "set_keywords":
        raise ClientAuthError(ERR_GENERIC, "The action is missing or not valid: give get_keywords or set_keywords.")
    answers = {name: value for name, value in asked.given.items() if name.isascii() and name.isdecimal()}
    for name, value in answers.items():
        if name not in map(str, KEYWORDS):
            raise ClientAuthError(ERR_GENERIC, f"There is no keyword with the number {name[:20]}.")
        if value not in (_YES, _NO):
            raise ClientAuthError(ERR_GENERIC, f"The value of keyword {name} is neither 1 (yes) nor -1 (no).")
    yes, no = ([int(name) for name, value in answers.items() if value == answer] for answer in (_YES, _NO))
    choose_keywords(user, yes, no)
    return xml_reply(f"{XML_HEAD}<success/>\n")


def _chosen(user: User) -> ClientReply:
    row = AccountSettings.objects.filter(user=user).first() or AccountSettings()
    answers = [*((id_, _YES) for id_ in row.keywords_yes), *((id_, _NO) for id_ in row.keywords_no)]
    lines = (
        f"    <keyword>\n        <id>{id_}</id>\n        <yesno>{yesno}</yesno>\n    </keyword>\n"
        for id_, yesno in answers
    )
    return xml_reply(f"{XML_HEAD}<keywords>\n{''.join(lines)}</keywords>\n")


def _host_ids(asked: Asked, _now: dt.datetime) -> ClientReply:
    hosts = Host.objects.filter(owner=owner(asked, "auth").user, merged_into=None).order_by("pk")
    projects: dict[int, list[str]] = {}
    for row in HostProject.objects.filter(host__in=hosts).select_related("project").order_by("project_id"):
        if number := int(row.state.get("hostid") or 0):
            text = f"<url>{escape(row.project.master_url)}</url>\n<host_id>{number}</host_id>\n"
            projects.setdefault(row.host_id, []).append(f"<project>\n{text}</project>\n")
    lines = (
        f"<host>\n<create_time>{int(host.created_at.timestamp())}</create_time>\n"
        f"<rpc_time>{int(host.last_contact_at.timestamp())}</rpc_time>\n<su_host_id>{host.pk}</su_host_id>\n"
        f"<projects>\n{''.join(projects[host.pk])}</projects>\n</host>\n"
        for host in hosts
        if host.pk in projects
    )
    return xml_reply(f"{XML_HEAD}<hosts>\n{''.join(lines)}</hosts>\n")
