"""Public information: volunteers and computers that are published, apps, versions, teams."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from itertools import groupby

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import AppVersion, ExportConsent, HostCredit, Membership, Team, UserCredit
from credit.models.grants import Credit
from credit.statistics.facts import rules_of
from credit.teams import reads as teams
from credit.teams.reads import TeamSums
from portal.clients.asked import Asked, NotFound, owner
from portal.clients.messages import ClientReply
from portal.models import Host, User
from portal.wire import credentials
from scheduler.web_rpcs.documents import Element, reply

TEAMS_AT_ONCE = 100


def user_cpid(user: User) -> str:
    """Return the cross-project id under which the account is published."""
    return credentials.external_cpid(user.cross_project_id, user.email)


def show_user(asked: Asked, now: dt.datetime) -> ClientReply:
    """Return a published volunteer, or anyone with their own key in ``auth``, and their computers."""
    if asked.given.get("auth", "").strip():
        user = owner(asked, "auth").user
        hosts = Host.objects.filter(owner=user, merged_into=None).order_by("pk")
        more: list[Element] = [("venue", ""), *(("host", host_elements(host, now)) for host in hosts)]
        return reply("user", user_elements(user, now) + more)
    consents = ExportConsent.objects.select_related("user").filter(user=asked.number("userid"), exports_statistics=True)
    consent = consents.filter(user__deletion_asked_at=None).first()
    if consent is None:
        raise NotFound("volunteer")
    return reply("user", user_elements(consent.user, now))


def user_elements(user: User, now: dt.datetime) -> list[Element]:
    member = Membership.objects.filter(user=user).first()
    return [
        ("id", user.pk),
        ("cpid", user_cpid(user)),
        ("create_time", int(user.created_at.timestamp())),
        ("name", user.name or "Anonymous"),
        ("country", ""),
        *_credit(UserCredit.objects.filter(user=user).first(), now),
        ("teamid", member.team_id if member else 0),
        ("url", ""),
        ("has_profile", 0),
    ]


def show_host(asked: Asked, now: dt.datetime) -> ClientReply:
    """Return a published computer."""
    hosts = Host.objects.select_related("owner").filter(
        pk=asked.number("hostid"),
        merged_into=None,
        owner__deletion_asked_at=None,
        owner__export_consent__exports_statistics=True,
        owner__export_consent__shows_hosts=True,
    )
    host = hosts.first()
    if host is None:
        raise NotFound("computer")
    return reply("host", [("userid", host.owner_id), *host_elements(host, now)])


def host_elements(host: Host, now: dt.datetime) -> list[Element]:
    return [
        ("id", host.pk),
        ("create_time", int(host.created_at.timestamp())),
        ("rpc_time", int(host.last_contact_at.timestamp())),
        ("timezone", host.timezone_secs or 0),
        *_credit(HostCredit.objects.filter(host=host).first(), now),
        *((name, getattr(host, name)) for name in ("p_vendor", "p_model", "os_name", "os_version", "ncpus")),
        *(
            (name, getattr(host, name) or 0)
            for name in ("p_fpops", "p_iops", "p_membw", "m_nbytes", "m_cache", "m_swap", "d_total")
        ),
        ("host_cpid", _published_cpid(host)),
    ]


def _published_cpid(host: Host) -> str:
    if not host.host_cpid and host.published_cpid:
        return host.published_cpid
    return credentials.external_cpid(host.host_cpid or host.token, host.owner.email)


def apps(_asked: Asked, _now: dt.datetime) -> ClientReply:
    """List apps and their programs for volunteers, in the format of apps.php?xml=1."""
    versions = AppVersion.objects.filter(is_deprecated=False, app__is_deprecated=False)
    in_order = versions.order_by("app_id", "platform__name", "plan_class", "-version_num")
    rows = in_order.select_related("app", "platform", "beta_test")
    elements: list[Element] = []
    for app, group in groupby(rows, lambda version: version.app):
        names: list[Element] = [("user_friendly_name", app.user_friendly_name), ("name", app.name), ("id", app.pk)]
        elements.append(("application", [*names, *_newest(group)]))
    return reply("app_versions", elements)


def _newest(versions: Iterable[AppVersion]) -> Iterable[Element]:
    """Yield the newest version of each platform and plan class, and a newer one that only testers get."""
    seen = set()
    for version in versions:
        is_tested = hasattr(version, "beta_test")
        kind = version.platform_id, version.plan_class
        if kind in seen or (*kind, is_tested) in seen:
            continue
        seen.add((*kind, True) if is_tested else kind)
        yield (
            "version",
            [
                ("platform_short", version.platform.name),
                ("platform_long", str(version.platform)),
                ("version_num", version.version_num),
                ("plan_class", version.plan_class),
                ("date", f"{version.created_at:%-d %b %Y, %-H:%M:%S} UTC"),
                ("date_unix", int(version.created_at.timestamp())),
                ("beta", is_tested),
            ],
        )


def app_versions(_asked: Asked, now: dt.datetime) -> ClientReply:
    """List all versions with their statistics, from which a central server averages factors over projects."""
    rows = AppVersion.objects.select_related("app", "platform").filter(is_deprecated=False).order_by("pk")
    return reply("app_versions", [("app_version", _version(version, now)) for version in rows])


def _version(version: AppVersion, now: dt.datetime) -> list[Element]:
    at = version.expavg_at.timestamp() if version.expavg_at else None
    return [
        ("id", version.pk),
        ("create_time", int(version.created_at.timestamp())),
        ("platform", version.platform.name),
        ("app_name", version.app.name),
        ("version_num", version.version_num),
        ("plan_class", version.plan_class),
        ("pfc_n", version.pfc_n),
        ("pfc_avg", version.pfc_avg or 0),
        # 0 before there is a factor, as BOINC has it
        ("pfc_scale", version.pfc_scale or 0),
        # Not in BOINC's reply: needed by anyone who averages factors over projects
        ("processor_type", version.processor_type),
        ("sample_threshold", rules_of(version.app).min_version_samples),
        ("pfc_scale_received", version.is_scale_received),
        ("expavg_credit", decayed(version.expavg_credit, at, now.timestamp(), Rules.published())),
        ("expavg_time", now.timestamp()),
    ]


def team_lookup(asked: Asked, now: dt.datetime) -> ClientReply:
    """Return a team by number, up to a hundred by their numbers, or those whose names contain these words."""
    if "team_ids" in asked.given:
        numbers = [
            int(number) for number in asked.given["team_ids"].split(",") if number.isdecimal() and len(number) <= 18
        ]
        return reply("teams", _teams(Team.objects.filter(pk__in=numbers[:TEAMS_AT_ONCE]).order_by("pk"), now))
    if "team_name" in asked.given:
        return reply("teams", _teams(teams.search(asked.given["team_name"]), now))
    matching = _teams(Team.objects.filter(pk=asked.number("team_id")), now)
    if not matching:
        raise NotFound("team")
    elements = matching[0][1]
    assert isinstance(elements, list)  # of `_teams`
    return reply("team", elements)


def _teams(matching: Iterable[Team], now: dt.datetime) -> list[Element]:
    """Render teams with their sums. The founder's number is included if they are published."""
    rows = list(matching)
    sums = teams.sums(rows)
    founders = ExportConsent.objects.filter(user__in=[team.founder_id for team in rows], exports_statistics=True)
    public = set(founders.filter(user__deletion_asked_at=None).values_list("user", flat=True))
    return [("team", _team(team, sums.get(team.pk, TeamSums()), team.founder_id in public, now)) for team in rows]


def _team(team: Team, sums: TeamSums, is_founder_public: bool, now: dt.datetime) -> list[Element]:
    return [
        ("id", team.pk),
        ("create_time", int(team.created_at.timestamp())),
        ("userid", team.founder_id if is_founder_public else 0),
        ("name", team.name),
        ("url", team.url),
        ("type", team.type),
        ("country", team.country or "None"),
        ("nusers", sums.nmembers),
        ("total_credit", sums.total_credit),
        ("expavg_credit", sums.expavg_credit),
        ("expavg_time", now.timestamp()),
    ]


def _credit(row: Credit | None, now: dt.datetime) -> list[Element]:
    at = row.expavg_at.timestamp() if row is not None and row.expavg_at else None
    return [
        ("total_credit", row.total_credit if row else 0),
        ("expavg_credit", decayed(row.expavg_credit, at, now.timestamp(), Rules.published()) if row else 0),
        ("expavg_time", now.timestamp()),
    ]
