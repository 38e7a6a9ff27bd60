"""An account at a project: look up its key by address and password, and try whether the key works.

A password is used for one request and is never stored: the site sends what BOINC clients send for it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from urllib.parse import urlencode, urljoin

from django.conf import settings
from django.db import transaction

from accounting.models import Project, ProjectProfile
from accounting.project_setup import answer_history
from accounting.project_setup.changes import CODE_KEY_LABEL
from accounting.wire.project_config import from_json
from accounting.wire.project_replies import (
    AccountInfo,
    ProjectRefused,
    parse_account_credit,
    parse_account_info,
    parse_account_out,
    parse_scheduler_answer,
    scheduler_request,
    scheduler_urls,
)
from portal.fetch.errors import FetchError, StatusError
from portal.fetch.fetcher import fetch
from portal.languages.messages import Message, MessageError
from portal.wire import credentials
from portal.wire.scanner import ProtocolError

# The page does not exist, or is closed to everybody.
_NOT_THERE: Final = frozenset({403, 404, 405, 410, 501})
# Only in a weak key, which begins with the account's number.
WEAK: Final = "_"
_T = TypeVar("_T")


class AccountProblem(MessageError):
    """The project did not give what was requested. ``status``: HTTP's, if it was the reason; ``error_num``: BOINC's, if
    the project refused.
    """

    def __init__(self, message: Message, status: int = 0, error_num: int = 0) -> None:
        super().__init__(message)
        self.status, self.error_num = status, error_num

    @property
    def is_unreachable(self) -> bool:
        """Whether there was no answer; a later attempt may succeed."""
        return isinstance(self.__cause__, FetchError) and not self.is_not_there

    @property
    def is_not_there(self) -> bool:
        """Whether the project does not have the page, or shows it to nobody."""
        return self.status in _NOT_THERE


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a trial. ``code_key``: digest of the key that programs are signed with, if sent."""

    went_well: bool
    message: Message
    code_key: str = ""


def web_rpc_base(project: Project) -> str:
    """Return where the project wants its web RPCs, unless that is less safe than its master URL.

    Passwords and keys are sent there, so a different address is used only when an operator has seen it.
    """
    profile: ProjectProfile | None = getattr(project, "profile", None)
    stated = from_json(profile.seen).web_rpc_url_base if profile is not None and profile.seen else ""
    is_safe = stated.startswith("https://") or (
        stated.startswith("http://") and project.master_url.startswith("http://")
    )
    base = stated if is_safe else project.master_url
    return base if base.endswith("/") else f"{base}/"


def look_up_key(project: Project, email: str, password: str) -> str:
    """Return the key of an account, the weak one if the project has weak keys. Blocks. Raises AccountProblem."""
    login = email.strip().lower()
    key = find_key(project, login, credentials.client_password_hash(password, login))
    with suppress(AccountProblem):
        # The full key could change the account, and volunteers' computers will get it.
        return account_info(project, key).weak_key or key
    return key


def find_key(project: Project, login: str, passwd_hash: str) -> str:
    """Return the key of the account with this login, in lower case. Blocks. Raises AccountProblem."""
    query = {"email_addr": login, "passwd_hash": passwd_hash}
    return _ask(f"{web_rpc_base(project)}lookup_account.php", query, parse_account_out)


def create_account(project: Project, login: str, passwd_hash: str, name: str, *, has_consented: bool) -> str:
    """Return the key of a new account, or of the existing one with this password. Blocks. Raises AccountProblem."""
    query = {"email_addr": login, "passwd_hash": passwd_hash, "user_name": name}
    if has_consented:
        query |= {"consent_flag": "1", "source": settings.SITE_NAME}
    return _ask(f"{web_rpc_base(project)}create_account.php", query, parse_account_out)


def account_info(project: Project, key: str) -> AccountInfo:
    """Return the project's description of the account with this key. Blocks. Raises AccountProblem."""
    return _ask(f"{web_rpc_base(project)}am_get_info.php", {"account_key": key}, parse_account_info)


def account_credit(project: Project, number: int) -> tuple[float, float] | None:
    """Return the account's total and recent average as the project publishes them; None: not published. Blocks.

    Raises AccountProblem if the project cannot be asked.
    """
    if number <= 0:
        return None
    try:
        query = {"userid": str(number), "format": "xml"}
        return _ask(f"{web_rpc_base(project)}show_user.php", query, parse_account_credit)
    except AccountProblem as error:
        if error.is_unreachable:
            raise
        return None


def _ask(url: str, query: dict[str, str], parse: Callable[[bytes], _T]) -> _T:
    try:
        return parse(fetch(f"{url}?{urlencode(query)}").body)
    except FetchError as error:
        if isinstance(error, StatusError) and error.status in _NOT_THERE:
            page = url.rpartition("/")[2]
            raise AccountProblem(Message("account_no_page", page=page, why=error.message), error.status) from error
        raise AccountProblem(Message("account_not_asked", why=error.message)) from error
    except ProjectRefused as error:
        raise AccountProblem(
            Message("account_refused", words=error, error_num=str(error.error_num)), error_num=error.error_num
        ) from error
    except ProtocolError as error:
        raise AccountProblem(Message("account_answer_unreadable", fault=error.message)) from error


def try_account(project: Project, key: str, now: dt.datetime) -> Trial:
    """Ask the project about the account, which changes nothing there; and note the outcome. Blocks."""
    return _note(project, _ask_about(project, key), key, now)


def _ask_about(project: Project, key: str) -> Trial:
    try:
        info = account_info(project, key)
    except AccountProblem as error:
        if error.is_not_there:
            return Trial(False, Message("trial_no_page"))
        return Trial(False, Message("trial_weak_key", problem=error.message) if WEAK in key else error.message)
    who = {"number": str(info.id), "name": info.name}
    is_full = bool(info.weak_key) and WEAK not in key
    if info.country not in ("", "None", "International"):
        code = "trial_known_of_country_full" if is_full else "trial_known_of_country"
        return Trial(True, Message(code, **who, country=info.country))
    return Trial(True, Message("trial_known_full" if is_full else "trial_known", **who))


def try_scheduler(project: Project, key: str, now: dt.datetime) -> Trial:
    """Ask the scheduler for no jobs, as a computer: the project creates a record of it. Notes the outcome. Blocks.

    A project at https that names a scheduler at http gets no key: it was entered for https.
    """
    return _note(project, _ask_scheduler(project, key), key, now)


def _ask_scheduler(project: Project, key: str) -> Trial:
    identity = hashlib.md5(f"{settings.SITE_URL} tries {project.master_url}".encode(), usedforsecurity=False)
    request = scheduler_request(key, identity.hexdigest(), f"trial by {settings.SITE_NAME}"[:100])
    try:
        schedulers = scheduler_urls(fetch(project.master_url).body)
        if not schedulers:
            return Trial(False, Message("trial_no_scheduler"))
        try:
            url = urljoin(project.master_url, schedulers[0])
        except ValueError:
            return Trial(False, Message("trial_scheduler_address"))
        if project.master_url.startswith("https://") and not url.startswith("https://"):
            return Trial(False, Message("trial_unencrypted", url=url[:200]))
        answer = parse_scheduler_answer(fetch(url, data=request).body)
    except FetchError as error:
        return Trial(False, Message("trial_scheduler_not_asked", why=error.message))
    except ProtocolError as error:
        return Trial(False, Message("trial_scheduler_unreadable", fault=error.message))
    words = " ".join(f"“{message}”" for message in answer.messages)
    if answer.user_name or answer.hostid:
        message = Message("trial_accepted", name=answer.user_name)
        if words:
            message = Message("trial_accepted_with_words", name=answer.user_name, words=words)
        return Trial(True, message, answer.code_key)
    return Trial(False, Message("trial_key_refused", words=words) if words else Message("trial_key_refused_silently"))


@transaction.atomic
def _note(project: Project, trial: Trial, key: str, now: dt.datetime) -> Trial:
    """Note an outcome. Locks the project, then its profile. The project may repeat the key in its answer: it is
    removed.

    The first key of its programs counts as seen. A different one later may be a thief's: it is marked until seen.
    """
    trial = replace(trial, message=without(trial.message, key))
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    profile = ProjectProfile.objects.select_for_update().filter(project=locked).first()
    # Trials are noted for a project that was never asked about itself, too; it is asked from then on.
    profile = profile or ProjectProfile(project=locked)
    profile.tried_at, profile.tried_well, profile.tried_text = now, trial.went_well, trial.message
    if trial.code_key and trial.code_key != profile.code_key:
        if profile.code_key:
            answer_history.add(locked, now, [(CODE_KEY_LABEL, profile.code_key, trial.code_key)])
        profile.code_key = trial.code_key
        profile.code_key_seen = profile.code_key_seen or trial.code_key
    profile.save()
    return trial


def without(message: Message, secret: str) -> Message:
    """Return the message without the secret, which the project may have repeated."""
    return Message.from_json(json.loads(json.dumps(message.to_json(), ensure_ascii=False).replace(secret, "…")))
