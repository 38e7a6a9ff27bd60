"""A project's answer in words, and its changes since an operator looked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.engine.addresses import address_key
from accounting.models import ProjectProfile, processor_name
from accounting.wire.project_config import ProjectConfig, from_json
from accounting.wire.requests import URLError, canonical_url
from accounting.wire.server_status import ServerStatus
from portal.languages.sentences import sentence
from portal.templatetags.display import count, percent
from portal.wire.boinc_errors import ERR_PROJECT_DOWN
from portal.wire.keywords import KEYWORDS as ALL_KEYWORDS

NAME: Final = "name"
VERSIONS: Final = "versions"
KEYWORDS: Final = "keywords"
CODE_KEY: Final = "code_key"
# What this site copies. A new master URL is not among them: an operator has to see it, as it is signed.
TAKEN_OVER: Final = frozenset({NAME, VERSIONS, KEYWORDS})
# States that come and go are shown as they are, not as changes.
_LABELS: Final = {
    NAME: _("Name"),
    "master_url": _("Master URL"),
    "web_rpc_url_base": _("Address for web RPCs"),
    VERSIONS: _("Platforms"),
    KEYWORDS: _("Keywords"),
    "min_passwd_length": _("Minimum password length"),
    "account_creation_disabled": _("New accounts"),
    "client_account_creation_disabled": _("New accounts from within BOINC"),
    "invite_code_required": _("Invitation code required"),
    "uses_username": _("Sign-in by user name instead of e-mail address"),
    "ldap_auth": _("Sign-in by LDAP"),
    "account_manager": _("Account manager"),
    "min_client_version": _("Minimum client version"),
    "terms_of_use": _("Terms of use"),
    "account_ownership_public_key": _("Key for proofs of account ownership"),
}
# Labels of changes noted when projects are asked and tested; stored in English, and translated when displayed.
CODE_KEY_LABEL: Final = _("Key for signing programs")
ANSWERS: Final = _("Answers")
DAEMONS_STOPPED: Final = _("Stopped daemons")
STATE: Final = _("State reported by the project")
OTHER_ADDRESS: Final = _("Other address, reported by computers")
_LONG: Final = frozenset({"terms_of_use", "account_ownership_public_key"})
_NEGATED: Final = frozenset({"account_creation_disabled", "client_account_creation_disabled"})


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A field of a project's configuration, before and now, in words."""

    field: str
    label: str
    before: str
    now: str

    @property
    def can_be_taken_over(self) -> bool:
        return self.field in TAKEN_OVER


def changes(seen: dict[str, Any], config: dict[str, Any]) -> list[ConfigChange]:
    """Return the changes between two stored answers."""
    if not seen or not config:
        return []
    before, now = from_json(seen), from_json(config)
    return [
        ConfigChange(field, label, in_words(before, field), in_words(now, field))
        for field, label in _LABELS.items()
        if getattr(before, field) != getattr(now, field)
    ]


def unseen(profile: ProjectProfile) -> list[ConfigChange]:
    """Return all changes at a project since an operator looked."""
    unseen_changes = changes(profile.seen, profile.said)
    if profile.code_key != profile.code_key_seen:
        unseen_changes.append(ConfigChange(CODE_KEY, CODE_KEY_LABEL, profile.code_key_seen, profile.code_key))
    return unseen_changes


def fingerprint(profile: ProjectProfile) -> str:
    """Return a digest of a project's last answer, so that a form can say which answer it is about."""
    parts = [profile.said, profile.code_key]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def described(config: ProjectConfig) -> list[tuple[str, str]]:
    """Return the whole answer, by label; empty fields are left out."""
    rows = [(label, in_words(config, field)) for field, label in _LABELS.items()]
    return [(gettext(label), text) for label, text in rows if text]


def in_words(config: ProjectConfig, field: str) -> str:
    value = getattr(config, field)
    if field == VERSIONS:
        return ", ".join(version_text(platform, type_) for platform, type_ in value)
    if field == KEYWORDS:
        return ", ".join(keyword_text(id_, part) for id_, part in value.items())
    if field in _LONG and len(value) > 300:
        # Two texts may have the same beginning and length.
        digest = hashlib.sha256(value.encode()).hexdigest()[:16]
        text = gettext("%(start)s… (%(number)s characters, SHA-256 %(digest)s)")
        return text % {"start": value[:300], "number": count(len(value)), "digest": digest}
    if isinstance(value, bool):
        return gettext("yes") if value != (field in _NEGATED) else gettext("no")
    return str(value or "")


def version_text(platform: str, processor_type: str) -> str:
    return f"{platform or gettext('all platforms')} ({processor_name(processor_type)})"


def keyword_text(id_: int, part: float) -> str:
    name = (
        ALL_KEYWORDS[id_].name
        if id_ in ALL_KEYWORDS
        else gettext("No. %(number)s (unknown to BOINC)") % {"number": id_}
    )
    return name if part == 1 else f"{name} ({percent(part)})"


def is_down(config: ProjectConfig) -> bool:
    """Whether the project says that it is stopped, as for maintenance."""
    return config.web_stopped or config.sched_stopped or config.error_num == ERR_PROJECT_DOWN


def states(config: ProjectConfig, status: ServerStatus | None = None) -> list[str]:
    """Return temporary obstacles, as the project reports them."""
    shown_states = []
    if status is not None and status.stopped:
        names = ", ".join((*status.stopped[:10], *(["…"] if len(status.stopped) > 10 else [])))
        shown_states.append(gettext("Some of its daemons are not running: %(names)s.") % {"names": names})
    if config.error_num or config.error_msg:
        error = config.error_msg or gettext("No. %(number)s") % {"number": config.error_num}
        shown_states.append(gettext("It answers with an error: %(error)s.") % {"error": error})
    if config.web_stopped:
        shown_states.append(gettext("Its website is stopped."))
    if config.sched_stopped:
        shown_states.append(gettext("Its scheduler is stopped, so it sends no work."))
    if config.account_manager:
        shown_states.append(gettext("It is an account manager, not a project."))
    return shown_states


def master_url_problem(here: str, config: ProjectConfig) -> str:
    """Return what is wrong with the master URL used here; empty if the project confirms it."""
    if not config.master_url:
        return gettext("The project does not state its master URL.")
    try:
        reported = canonical_url(config.master_url)
    except URLError as error:
        text = gettext("The project states %(url)s as its master URL, which clients would refuse: %(error)s.")
        return text % {"url": config.master_url, "error": sentence(error.message)}
    if address_key(reported) == address_key(here):
        return ""
    text = gettext(
        "The project states %(said)s as its master URL, not %(here)s. Computers that have it at either address are "
        "recognised. If the project has moved, change its master URL here, so that new computers attach to the new one."
    )
    return text % {"said": reported, "here": here}
