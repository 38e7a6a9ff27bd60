"""Sessions of browsers: what is stored of them, the list of them, and their end."""

from __future__ import annotations

import base64
import datetime as dt
import zlib
from contextlib import suppress

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.core import signing
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.models import Session, User
from portal.sign_in.sessions import content_of, end_sessions
from tests.support.page_reader import Page

PASSWORD = "alice's secret"
LIST = "/account/sessions/"
COOKIE = "sessionid"


def sign_in(user: User, password: str = PASSWORD, user_agent: str = "a browser") -> Client:
    browser = Client(headers={"user-agent": user_agent})
    browser.post("/account/login/", {"login": user.email, "password": password})
    assert is_signed_in(browser)
    return browser


def is_signed_in(browser: Client) -> bool:
    return browser.get("/account/profile/").status_code == 200


def with_cookie(value: str) -> Client:
    browser = Client()
    browser.cookies[COOKIE] = value
    return browser


def whole_database() -> str:
    """Every row of every table as text, and what the sessions hold beneath their encoding."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(relname) FROM pg_class WHERE relkind IN ('r', 'p') AND relname !~ '^(pg|sql)_'"
        )
        tables = [name for (name,) in cursor.fetchall()]
        assert {"portal_session", "portal_securityevent", "django_admin_log"} <= set(tables)
        rows: list[str] = []
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t")
            rows += [text for (text,) in cursor.fetchall()]
    contents = [content_of(*row) for row in Session.objects.values_list("session_key", "session_data")]
    return "\n".join([*rows, *map(repr, contents)])


def whole_cache() -> str:
    """Every key and value of Valkey's database."""
    valkey = caches["default"].strict._cache.get_client()  # type: ignore[attr-defined]  # Django's, behind ours
    return "\n".join(f"{key!r} {valkey.get(key)!r}" for key in valkey.scan_iter())


def forms_of(value: str) -> list[str]:
    """The value as it could stand in a text column, in a binary one, and encoded."""
    return [value, value.encode().hex(), base64.b64encode(value.encode()).decode().rstrip("=")[:-1]]


def test_no_table_and_no_cache_key_holds_the_value_of_a_cookie(
    alice: User, operator: User, capfd: pytest.CaptureFixture[str]
) -> None:
    browsers = [sign_in(alice), sign_in(alice), sign_in(operator, "operator's secret")]
    values = {browser.cookies[COOKIE].value for browser in browsers}
    browsers[2].get("/admin/")
    browsers[1].get("/account/2fa/totp/activate/")
    new = {"oldpassword": PASSWORD, "password1": "quite another one", "password2": "quite another one"}
    browsers[0].post("/account/password/change/", new)
    browsers[0].get(LIST)
    values |= {morsel.value for browser in browsers for morsel in browser.cookies.values()}
    log = capfd.readouterr()
    stored = {"database": whole_database(), "cache": whole_cache(), "log": log.out + log.err}
    assert all(alice.email in stored["database"] and len(text) > 100 for text in stored.values())
    for value in values - {""}:
        assert [name for name, text in stored.items() if any(form in text for form in forms_of(value))] == [], value


def test_nothing_that_the_table_holds_opens_a_session(alice: User) -> None:
    browser = sign_in(alice)
    cookie = browser.cookies[COOKIE].value
    assert is_signed_in(with_cookie(cookie))
    row = Session.objects.get()
    for value in (row.session_key, row.session_key[:32], row.session_key[:40], row.session_data):
        assert not is_signed_in(with_cookie(value))
    # A row under a cookie's own value, as Django would keep it, opens none either.
    Session.objects.filter(pk=row.pk).update(session_key=cookie)
    assert not is_signed_in(browser)


def readable(text: str) -> str:
    """What can be read in it without a key, also if it is encoded and compressed as Django's sessions are."""
    shown = text
    for part in text.split(":"):
        with suppress(ValueError, zlib.error):
            content = signing.b64_decode(part.lstrip(".").encode())
            shown += (zlib.decompress(content) if part.startswith(".") else content).decode(errors="replace")
    return shown


def test_what_a_session_holds_is_encrypted_such_as_the_secret_of_an_unfinished_second_factor(alice: User) -> None:
    assert "a secret" in readable(signing.dumps({"x": "a secret" * 9}, compress=True))
    browser = sign_in(alice)
    browser.get("/account/2fa/totp/activate/")
    secret = browser.session["mfa.totp.secret"]
    stored = Session.objects.get().session_data
    assert len(secret) == 32 and secret not in readable(stored) and "mfa" not in readable(stored)
    assert secret not in whole_cache()


def test_the_content_of_another_session_is_none_of_this_one(alice: User, bob: User) -> None:
    mine, theirs = sign_in(bob, "bob's secret"), sign_in(alice)
    content = Session.objects.get(user=alice).session_data
    Session.objects.filter(user=bob).update(session_data=content, user=alice)
    assert is_signed_in(theirs) and not is_signed_in(mine)


def test_another_secret_key_ends_all_sessions(alice: User, settings: Settings) -> None:
    browser = sign_in(alice)
    settings.SECRET_KEY = "another key " * 5
    assert not is_signed_in(browser)


def test_the_list_shows_the_browsers_of_this_account_that_are_signed_in(alice: User, bob: User) -> None:
    sign_in(alice, user_agent="an old one")
    Session.objects.update(expire_date=timezone.now() - dt.timedelta(seconds=1))
    sign_in(bob, "bob's secret", user_agent="another's")
    sign_in(alice, user_agent="the first")
    words = Page(sign_in(alice, user_agent="the second").get(LIST).content.decode()).words
    assert "the first" in words and "the second this one" in words
    assert "an old one" not in words and "another's" not in words


def test_all_others_are_signed_out_and_this_one_stays(alice: User, bob: User) -> None:
    others, this, bobs = [sign_in(alice), sign_in(alice)], sign_in(alice), sign_in(bob, "bob's secret")
    shown = this.post(LIST, follow=True).content.decode()
    assert "All other browsers are signed out." in shown
    assert [is_signed_in(browser) for browser in (*others, this, bobs)] == [False, False, True, True]


def test_a_session_that_was_ended_stays_ended_although_its_last_request_still_saves(alice: User) -> None:
    browser = sign_in(alice)
    session = browser.session
    session["something"] = 1
    end_sessions(alice)
    with pytest.raises(UpdateError):
        session.save()
    assert not is_signed_in(browser)


# --- operators who do nothing -------------------------------------------------------------------------


@pytest.fixture
def desk(client: Client, operator: User, settings: Settings) -> Client:
    """An operator's browser, with a limit of ten minutes."""
    settings.STAFF_IDLE_SECS = 600
    client.force_login(operator)
    return client


def idle_for(secs: int) -> None:
    Session.objects.update(active_at=timezone.now() - dt.timedelta(seconds=secs))


def test_an_operator_who_did_nothing_for_too_long_signs_in_again(desk: Client) -> None:
    idle_for(590)
    assert desk.get("/admin/").status_code == 200
    idle_for(610)
    answer = desk.get("/admin/portal/user/")
    assert answer.headers["Location"] == "/account/login/?next=/admin/portal/user/"
    assert not is_signed_in(desk)


def test_each_request_begins_the_time_again_but_a_page_that_refreshes_does_not(desk: Client) -> None:
    refresh = {"HX-Request": "true"}
    idle_for(590)
    desk.get("/admin/operating_figure_panels/", headers=refresh)
    desk.get("/admin/")
    idle = timezone.now() - Session.objects.get().active_at
    assert idle < dt.timedelta(seconds=300)
    idle_for(590)
    desk.get("/account/profile/", headers=refresh)
    assert timezone.now() - Session.objects.get().active_at > dt.timedelta(seconds=589)
    idle_for(610)
    assert desk.get("/account/profile/", headers=refresh).headers["HX-Refresh"] == "true"
    assert not is_signed_in(desk)


def test_what_an_operator_was_about_to_do_survives_a_noted_activity(desk: Client) -> None:
    session = desk.session
    session["form"] = "half filled in"
    session.save()
    idle_for(300)
    desk.get("/admin/")
    assert desk.session["form"] == "half filled in"


def test_volunteers_have_no_such_limit_nor_has_anybody_where_it_is_off(
    alice: User, desk: Client, settings: Settings
) -> None:
    volunteer = sign_in(alice)
    idle_for(86_400)
    assert is_signed_in(volunteer)
    settings.STAFF_IDLE_SECS = 0
    assert is_signed_in(desk)


def test_who_becomes_an_operator_is_measured_from_the_login_on(alice: User, settings: Settings) -> None:
    settings.STAFF_IDLE_SECS = 600
    browser = sign_in(alice)
    idle_for(700)
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    assert not is_signed_in(browser)
    assert is_signed_in(sign_in(alice))
