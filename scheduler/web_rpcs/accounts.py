"""What an account manager elsewhere reads and changes in an account here, by its strong key."""

from __future__ import annotations

import datetime as dt
from urllib.parse import quote_plus

from credit.export import consent
from credit.models import Membership
from credit.teams import membership
from credit.teams.membership import TeamRefused
from portal.clients.asked import Asked, NotFound, owner
from portal.clients.messages import ClientReply
from portal.computers.host_changes import HostChangeRefused, set_venue
from portal.models import ConsentEvent, Host, User
from portal.people.accounts import ClientAuthError, check_name, weak_key
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.models import UserPreferences
from scheduler.web_rpcs.documents import Markup, markup, reply
from scheduler.web_rpcs.public import user_cpid

NOT_HERE = ("email_addr", "password_hash", "global_prefs", "project_prefs")
"""Fields that a key alone must not change, or that this site takes only from clients."""


def get_info(asked: Asked, now: dt.datetime) -> ClientReply:
    """Return the account; name, country and url are URL-encoded."""
    account = owner(asked, "account_key")
    user = account.user
    member = Membership.objects.select_related("team").filter(user=user).first()
    return reply(
        "am_get_info_reply",
        [
            ("success", True),
            ("id", user.pk),
            ("name", quote_plus(user.name)),
            ("country", ""),
            ("weak_auth", weak_key(user.pk, account.key_hash)),
            ("cpid", user_cpid(user)),
            ("has_profile", 0),
            ("create_time", int(user.created_at.timestamp())),
            ("global_prefs", _preferences(user) or ""),
            ("project_prefs", ""),
            ("url", ""),
            ("send_email", 0),
            ("show_hosts", int(consent.read(user).shows_hosts)),
            ("teamid", member.team_id if member else 0),
            ("venue", ""),
            ("teamfounder", member is not None and member.team.founder_id == user.pk),
        ],
    )


def _preferences(user: User) -> Markup | None:
    """Return the global preferences; None if there are none, or if a client sent invalid XML."""
    preferences = UserPreferences.objects.filter(user=user).first()
    return (
        markup(f"<global_preferences>\n{preferences.text}\n</global_preferences>") if preferences is not None else None
    )


def set_info(asked: Asked, now: dt.datetime) -> ClientReply:
    """Change name, team and whether computers are shown. Fields that this site does not have are ignored.

    Each change is a separate transaction. Everything that can be refused is checked first, so all or nothing is
    changed.
    """
    user = owner(asked, "account_key").user
    given = asked.given
    if refused := [name for name in NOT_HERE if given.get(name)]:
        raise ClientAuthError(ERR_GENERIC, f"{', '.join(refused)} cannot be changed here. Nothing was changed.")
    if "name" in given:
        check_name(given["name"].strip())
    if given.get("teamid", "0").strip() != "0" and not asked.number("teamid"):
        raise ClientAuthError(ERR_GENERIC, "The value of teamid is not the number of a team. Nothing was changed.")
    if "teamid" in given:
        _set_team(user, asked.number("teamid"))
    if "name" in given:
        User.objects.filter(pk=user.pk).update(name=given["name"].strip())
    if given.get("show_hosts") in ("0", "1"):
        consent.save(user, shows_hosts=given["show_hosts"] == "1", now=now, origin=ConsentEvent.Origin.ACCOUNT_MANAGER)
    return reply("am_set_info_reply", [("success", True)])


def _set_team(user: User, team_id: int) -> None:
    if not team_id:
        membership.leave(user)
        return
    try:
        membership.join(user, team_id)
    except TeamRefused as error:
        raise NotFound("team") from error


def set_host_info(asked: Asked, now: dt.datetime) -> ClientReply:
    """Set the venue of one of the account's computers."""
    user = owner(asked, "account_key").user
    host = Host.objects.filter(pk=asked.number("hostid"), owner=user, merged_into=None).first()
    if host is None:
        raise NotFound("computer")
    try:
        set_venue(host, asked.given.get("venue", ""))
    except HostChangeRefused as error:
        raise ClientAuthError(ERR_GENERIC, str(error)) from error
    return reply("am_set_host_info_reply", [("success", True)])
