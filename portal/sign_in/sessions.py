"""Sessions of browsers. Only the browser has the cookie's value: the table has a keyed hash of it.

So neither a copy of the database nor an injected statement gives anyone a cookie. A session's content, such as the
secret of an authenticator app that is being set up, is encrypted and bound to its row: anyone who can write to the
table cannot give their own session the content of another. Both depend on SECRET_KEY, so that changing it ends all
sessions.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore
from django.contrib.sessions.serializers import JSONSerializer
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.crypto import salted_hmac

from portal.models import Session, User
from portal.wire import sealing

_BROWSER: Final = "browser"
_USER_AGENT_CHARS: Final = 200


def stored_key(cookie: str) -> str:
    """The key under which the cookie's session is stored."""
    return salted_hmac("portal.sign_in.sessions", cookie, algorithm="sha256").hexdigest()


def _place(key: str) -> sealing.Place:
    return ("session", key, "content")


def content_of(key: str, session_data: str) -> dict[str, Any]:
    """The content of the session stored under this key; empty if it cannot be read."""
    try:
        text = sealing.unseal(settings.SECRET_KEY, _place(key), session_data.encode())
    except sealing.UnsealableError:
        return {}
    content: dict[str, Any] = JSONSerializer().loads(text.encode())
    return content


class SessionStore(DatabaseSessionStore):
    """Django's sessions in the database, with their owner, under a key other than the cookie's value.

    As everywhere in Django, ``session_key`` is the cookie's value.
    """

    active_at: dt.datetime | None = None

    def encode(self, session_dict: dict[str, Any]) -> str:
        content = self.serializer().dumps(session_dict).decode()
        return sealing.seal(settings.SECRET_KEY, _place(stored_key(self.session_key or "")), content).decode()

    def decode(self, session_data: str | bytes) -> dict[str, Any]:
        """The stored content; empty if it was stored with another SECRET_KEY, or belongs to another session."""
        return content_of(stored_key(self.session_key or ""), str(session_data))

    @classmethod
    def get_model_class(cls) -> type[Session]:  # type: ignore[override]  # the stubs want a class of Django's own
        return Session

    def _get_session_from_db(self) -> Session | None:
        row = Session.objects.filter(session_key=stored_key(self.session_key or ""), expire_date__gt=Now()).first()
        if row is None:
            self._session_key = None
        else:
            self.active_at = row.active_at
        return row

    def exists(self, session_key: str) -> bool:
        return Session.objects.filter(session_key=stored_key(session_key)).exists()

    def create_model_instance(self, data: dict[str, Any]) -> Session:  # type: ignore[override]  # as above
        self.active_at = self.active_at or timezone.now()
        return Session(
            session_key=stored_key(self.session_key or ""),
            session_data=self.encode(data),
            expire_date=self.get_expiry_date(),
            user_id=data.get(SESSION_KEY),
            active_at=self.active_at,
        )

    def delete(self, session_key: str | None = None) -> None:
        if cookie := session_key or self.session_key:
            Session.objects.filter(session_key=stored_key(cookie)).delete()

    # Run Django's own methods in a thread, in place of its statements for an event loop.
    acreate = SessionBase.acreate
    adelete = SessionBase.adelete
    aexists = SessionBase.aexists
    aload = SessionBase.aload
    asave = SessionBase.asave


def idle_secs(session: SessionBase, now: dt.datetime) -> float:
    """How long ago this session was last known to be used."""
    assert isinstance(session, SessionStore)
    return (now - (session.active_at or now)).total_seconds()


def note_activity(session: SessionBase, now: dt.datetime) -> None:
    """Record that this session is in use, without touching its content, which another request may be changing."""
    assert isinstance(session, SessionStore)
    session.active_at = now
    Session.objects.filter(session_key=stored_key(session.session_key or "")).update(active_at=now)


@dataclass(frozen=True, slots=True)
class SignedInBrowser:
    """A signed-in browser, as it was at its login."""

    key: str
    at: dt.datetime
    address: str
    user_agent: str


def note_browser(session: SessionBase, address: str, user_agent: str) -> None:
    """Store which browser has just signed in, at once, so that ending all sessions ends this one, too."""
    assert isinstance(session, SessionStore)
    session.active_at = timezone.now()
    session[_BROWSER] = {
        "at": session.active_at.isoformat(),
        "address": address,
        "user_agent": user_agent[:_USER_AGENT_CHARS],
    }
    session.save()


def signed_in_browsers(user: User) -> list[SignedInBrowser]:
    """The user's live sessions, oldest login first."""
    rows = Session.objects.filter(user=user, expire_date__gt=Now())
    return sorted((_browser(row) for row in rows), key=lambda browser: browser.at)


def _browser(row: Session) -> SignedInBrowser:
    noted = content_of(row.session_key, row.session_data).get(_BROWSER, {})
    at = dt.datetime.fromisoformat(noted["at"]) if noted else row.active_at
    return SignedInBrowser(row.session_key, at, noted.get("address", ""), noted.get("user_agent", ""))


def end_sessions(user: User, but: str | None = None) -> None:
    """Log the user out on every device; ``but``: the cookie of a session that stays."""
    Session.objects.filter(user=user).exclude(session_key=stored_key(but) if but else "").delete()
