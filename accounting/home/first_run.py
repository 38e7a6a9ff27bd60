"""The first run: choose subjects, connect a computer, see its first contact. Shown until the first credit counts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

from accounting.models import AccountSettings, UserProject
from portal.models import Host, User

SYSTEMS: Final = {"windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android"}
"""Systems with a BOINC client, by the name in the address."""
# Tokens of user agents. Android's contain Linux, too, and iPads' and iPhones' contain Mac OS X.
_TOKENS: Final = (("android", "android"), ("windows", "windows"), ("macintosh", "macos"), ("linux", "linux"))


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A new volunteer's progress. ``arrived``: the computer that reported last."""

    has_chosen: bool
    arrived: Host | None


def read_first_run(user: User, hosts: list[Host]) -> FirstRun:
    """Read the progress; three statements at most; ``hosts``: the volunteer's, the one that reported last first."""
    settings = AccountSettings.objects.filter(user=user).first()
    has_answers = settings is not None and bool(settings.keywords_yes or settings.keywords_no)
    has_chosen = has_answers or UserProject.objects.filter(user=user, is_chosen=True).exists()
    return FirstRun(has_chosen, next((host for host in hosts if host.last_contact_at is not None), None))


def system_of(chosen: str, user_agent: str) -> str:
    """Return the system that the visitor chose, or that their browser runs on; Windows if that has no BOINC client."""
    if chosen in SYSTEMS:
        return chosen
    return next((system for token, system in _TOKENS if token in user_agent.lower()), "windows")


def attach_command(site_url: str, email: str) -> str:
    """Return the command that attaches a client in a terminal. It prompts for the password, to keep it out of shell
    history.
    """
    attach = f'boinccmd --acct_mgr attach {site_url} {shlex.quote(email)} "$password"'
    return f'read -rsp "Password: " password && {attach}; unset password'
