"""Read what a volunteer may be alerted about: present troubles, and recent events."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from accounting.choosing.texts import types_text
from accounting.computers.attention import Attention, Concern, read_attention
from accounting.engine.choice.facts import TroubleKind
from accounting.models import HostProject, ProjectTrouble
from accounting.news.reads import public
from extras.alerts.rules import AlertKind, Observation
from portal.languages.sentences import sentence
from portal.models import Host, SecurityEvent, User
from portal.ops.mail_choices import silent_after
from portal.people.access import own_hosts
from portal.people.security_events import FAILURES
from portal.sign_in.browsers import browser_name

MAX_EVENTS: Final = 200
"""The most events of one volunteer that are considered together."""
_KINDS: Final = {
    Concern.SILENT: AlertKind.SILENT,
    Concern.FAILING_JOBS: AlertKind.FAILING,
    Concern.NO_WORK: AlertKind.PROJECT,
}


def read_observations(user: User, now: dt.datetime, events_since: dt.datetime) -> list[Observation]:
    """Read all observations; twelve statements at most, however many computers there are."""
    hosts = list(own_hosts(user).filter(retired_at=None))
    return [
        *_of_computers(read_attention(user, hosts, now, silent_after(user))),
        *_of_projects(hosts),
        *_of_account(user, now, events_since),
        *_news(now, events_since),
    ]


def events_of_alerts() -> Q:
    """Return the security events that are reported. Wrong passwords are not: anyone who knows an address could cause
    any number.
    """
    return ~Q(kind__in=FAILURES)


def _of_computers(concerns: Iterable[Attention]) -> Iterator[Observation]:
    for attention in concerns:
        if (kind := _KINDS.get(attention.concern)) is not None:
            key = f"{kind} computer {attention.host_id} {attention.about}".rstrip()
            yield Observation(
                kind, key, f"{attention.host_name} {attention.text}", reverse("host", args=[attention.host_id])
            )


def _of_projects(hosts: Sequence[Host]) -> Iterator[Observation]:
    """Return the troubles that most volunteers' computers report about this one's projects."""
    theirs = HostProject.objects.filter(host__in=[host.pk for host in hosts], listed=True).values("project_id")
    for row in ProjectTrouble.objects.filter(project__in=theirs).select_related("project"):
        name = row.project.name
        if row.kind == TroubleKind.NO_WORK:
            types = types_text((row.processor_type,)) if row.processor_type else _("any processors")
            text = _("%(project)s has no work for %(types)s.") % {"project": name, "types": types}
        elif row.kind == TroubleKind.ENDED:
            text = _("%(project)s says that it has ended.") % {"project": name}
        else:
            text = _("%(project)s does not answer.") % {"project": name}
        key = f"project {row.project_id} {row.kind} {row.processor_type}".rstrip()
        yield Observation(AlertKind.PROJECT, key, text, reverse("project", args=[row.project_id]))


def _of_account(user: User, now: dt.datetime, since: dt.datetime) -> Iterator[Observation]:
    rows = SecurityEvent.objects.filter(events_of_alerts(), user=user, at__range=(since, now))
    for row in rows.order_by("-at", "-pk")[:MAX_EVENTS]:
        words = {
            "what": row.get_kind_display() + (f" ({sentence(row.detail)})" if row.detail else ""),
            "when": f"{row.at:%Y-%m-%d %H:%M} UTC",
            "browser": browser_name(row.user_agent),
        }
        text = _("%(when)s: %(what)s, in %(browser)s.") if row.user_agent else _("%(when)s: %(what)s.")
        yield Observation(AlertKind.SECURITY, f"security {row.pk}", text % words, reverse("security_events"))


def _news(now: dt.datetime, since: dt.datetime) -> Iterator[Observation]:
    for row in public(now).filter(published_at__gte=since)[:MAX_EVENTS]:
        yield Observation(AlertKind.NEWS, f"news {row.pk}", row.title, f"{reverse('news')}#announcement-{row.pk}")
