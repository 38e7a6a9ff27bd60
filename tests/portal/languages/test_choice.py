"""Which language and time zone a visitor gets, and that what is kept for others is kept apart."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from django.utils import timezone, translation
from pytest_django import Settings

from portal.languages import zones
from portal.languages.recipients import written_for
from portal.models import User, WaitingMail
from portal.ops.mail_choices import Mail
from portal.ops.mails import compose
from portal.people.api_tokens import issue_token
from portal.people.key_mails import send_waiting
from portal.people.security_events import NOWHERE, Kind, record
from portal.templatetags.display import amount, credit, day, moment, moment_text, month, percent, significant
from tests.support.page_text import text_of
from tests.support.sessions import confirm_address, sign_in_lately

pytestmark = pytest.mark.django_db
EVENTS = "/account/events/"
THIN, NBSP = "\u202f", "\u00a0"


def language_of(client: Client, path: str = "/about/", **headers: str) -> str:
    response = client.get(path, headers=headers)
    language = response.headers["Content-Language"]
    assert f'<html lang="{language}"' in response.content.decode()
    return language


def test_a_browser_gets_the_first_of_its_languages_that_the_site_has(client: Client) -> None:
    assert language_of(client) == "en"
    assert language_of(client, accept_language="it, de-AT;q=0.9, en;q=0.8") == "de"
    assert language_of(client, accept_language="it") == "en"


def test_operators_read_english_where_a_language_has_nothing_for_them(desk: Client) -> None:
    assert language_of(desk, accept_language="fr-CA") == "fr"
    assert language_of(desk, "/admin/", accept_language="fr-CA") == "en"
    assert language_of(desk, "/admin/", accept_language="de") == "de"


def test_the_switch_is_kept_in_a_cookie_and_comes_before_the_browsers_wish(client: Client) -> None:
    answer = client.post("/language/", {"language": "de", "next": "/status/?x=1"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/status/?x=1")
    assert language_of(client, accept_language="en") == "de"
    # Nothing that a visitor makes up is taken: neither as a language nor as the page to return to.
    answer = client.post("/language/", {"language": "../x", "next": "https://evil.example/"})
    assert answer.headers["Location"] == "/"
    assert language_of(client) == "de"


def test_the_switch_is_kept_in_the_account_which_comes_before_the_cookie(signed_in: Client, alice: User) -> None:
    signed_in.post("/language/", {"language": "de"})
    alice.refresh_from_db()
    assert alice.language == "de"
    signed_in.cookies[settings.LANGUAGE_COOKIE_NAME] = "en"
    assert language_of(signed_in, accept_language="en") == "de"
    assert language_of(Client(), accept_language="en") == "en"


def test_the_profile_has_language_and_zone_and_refuses_what_is_none(signed_in: Client, alice: User) -> None:
    wanted = {"name": "Alice", "language": "de", "time_zone": "America/St_Johns"}
    assert signed_in.post("/account/profile/", wanted).status_code == 302
    alice.refresh_from_db()
    assert (alice.language, alice.time_zone) == ("de", "America/St_Johns")
    page = signed_in.get("/account/profile/").content.decode()
    assert "Gespeichert." in page and '<option value="America/St_Johns" selected>' in page
    for wrong in ({"language": "it"}, {"time_zone": "../../etc/passwd"}):
        assert signed_in.post("/account/profile/", wanted | wrong).status_code == 422


def test_an_account_with_a_language_that_the_site_lost_gets_the_browsers(signed_in: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(language="xx", time_zone="Nowhere/Land")
    assert language_of(signed_in, accept_language="de") == "de"


def test_visitors_look_around_in_their_own_language(client: Client, alice: User, settings: Settings) -> None:
    settings.DEMO_ACCOUNT = alice.email
    User.objects.filter(pk=alice.pk).update(language="de")
    client.post("/look-around/")
    assert language_of(client, "/home/") == "en"
    client.post("/language/", {"language": "de"})
    assert language_of(client, "/home/") == "de"
    alice.refresh_from_db()
    client.post("/language/", {"language": "en"})
    alice.refresh_from_db()
    assert alice.language == "de"
    refusal = client.post("/account/preferences/", headers={"accept-language": "de"})
    assert refusal.status_code == 403 and "demo account" in refusal.content.decode()


def test_programs_are_answered_in_english(alice: User, client: Client) -> None:
    token = issue_token(alice, name="t", scopes=["read:hosts"], lifetime=None)
    User.objects.filter(pk=alice.pk).update(language="de")
    answer = client.get("/api/v1/hosts/?limit=0", headers={"authorization": f"Bearer {token}", "accept-language": "de"})
    assert "greater than or equal to 1" in answer.content.decode()
    xml = client.get("/server_status.php?xml=1", headers={"accept-language": "de"})
    assert "Accept-Language" not in xml.headers.get("Vary", "") and xml.headers["Cache-Control"].startswith("public")
    assert client.get("/api/v1/", headers={"accept-language": "de"}).headers["Content-Language"] == "de"


def test_whoever_keeps_pages_keeps_them_apart_by_language(client: Client) -> None:
    varies = client.get("/about/").headers["Vary"]
    assert "Accept-Language" in varies and "Cookie" in varies


@pytest.mark.parametrize("where", ["", "&extended=1"])
def test_the_search_of_the_admin_finds_words_of_the_language_that_was_chosen_last(operator: User, where: str) -> None:
    client = Client()
    sign_in_lately(client, operator)
    for language, found, other in (("en", "Computers", "Rechner"), ("de", "Computer", "Computers")):
        client.post("/language/", {"language": language})
        answer = client.get(f"/admin/search/?s=computer{where}")
        shown = text_of(answer)
        assert re.search(rf"\b{found}\b", shown) and not re.search(rf"\b{other}\b", shown), language
        names = [each.title for each in answer.context["results"]]
        assert len(set(names)) == len(names) > 5, "two tables have one name"


def test_texts_of_scripts_are_kept_for_good_under_an_address_of_their_own(client: Client) -> None:
    page = client.get("/about/", headers={"accept-language": "de"}).content.decode()
    address = page.partition('<script src="/script-texts/')[2].partition('"')[0]
    assert address.startswith("de/")
    found = client.get(f"/script-texts/{address}")
    assert "immutable" in found.headers["Cache-Control"] and "gettext" in found.content.decode()
    assert client.get("/script-texts/de/old.js").headers["Cache-Control"] == "no-store"
    assert client.get("/script-texts/it/x.js").status_code == 404


def test_times_are_in_the_zone_of_the_account_or_of_the_browser(signed_in: Client, alice: User) -> None:
    record(alice, Kind.LOGIN, NOWHERE)
    alice.security_events.update(at=dt.datetime(2026, 7, 1, 22, 30, 15, tzinfo=dt.UTC))
    alice.security_events.update(at=timezone.now().replace(hour=22, minute=30, second=15))
    at = alice.security_events.latest("at").at
    utc = f"{at:%Y-%m-%d} 22:30:15 UTC"
    unknown = signed_in.get(EVENTS).content.decode()
    assert "data-local" in unknown and f'title="{utc}">{at.day} {at:%b %Y}, 22:30 UTC</time>' in unknown
    signed_in.cookies[zones.COOKIE] = "Asia/Kolkata"
    tomorrow = at + dt.timedelta(hours=5, minutes=30)
    by_cookie = signed_in.get(EVENTS).content.decode()
    assert f'title="{utc}">{tomorrow.day} {tomorrow:%b %Y}, 04:00</time>' in by_cookie
    assert "data-local" not in by_cookie
    User.objects.filter(pk=alice.pk).update(time_zone="UTC", language="de")
    assert f">{at:%d.%m.%Y}, 22:30</time>" in signed_in.get(EVENTS).content.decode()
    signed_in.cookies[zones.COOKIE] = "../../etc/passwd"
    assert signed_in.get(EVENTS).status_code == 200


def test_numbers_and_dates_follow_the_language() -> None:
    at = dt.datetime(2026, 3, 3, 23, 5, tzinfo=dt.UTC)
    with translation.override("de"):
        assert credit(1_500_001) == '<span title="1,500001 Credits">1,5</span>'
        assert amount(1_284_000_000, "credit") == f"1{THIN}284{NBSP}Credits"
        assert significant(0.1234) == "0,1234" and percent(0.5) == f"50{THIN}%"
        assert (day(at.date()), month(at.date()), moment_text(at)) == (
            "03.03.2026",
            "März 2026",
            "03.03.2026, 23:05 UTC",
        )
        with zones.shown_in(zones.zone_named("Europe/Berlin")):
            # The day of credit stays the UTC day.
            assert (day(at), moment_text(at)) == ("03.03.2026", "04.03.2026, 00:05")
            assert 'title="2026-03-03 23:05:00 UTC"' in moment(at)
    assert (day(at.date()), month(at.date()), significant(0.1234)) == ("3 Mar 2026", "March 2026", "0.1234")


def test_mails_are_in_their_readers_language_and_zone(alice: User) -> None:
    confirm_address(alice)
    at = dt.datetime(2026, 3, 3, 23, 5, 9, tzinfo=dt.UTC)
    facts = {"kind": "new_key", "address": "192.0.2.1", "at": at, "due_at": at}
    WaitingMail.objects.create(user=alice, **facts)
    send_waiting(at)
    User.objects.filter(pk=alice.pk).update(language="de", time_zone="Europe/Berlin")
    WaitingMail.objects.create(user=alice, **facts)
    send_waiting(at)
    english, german = mail.outbox
    assert english.subject == "Cobblestone: A BOINC client has a new key to your account"
    assert "On 3 Mar 2026, 23:05 UTC, a BOINC client" in english.body
    assert german.subject == "Cobblestone: Ein BOINC-Client hat einen neuen Schlüssel zu deinem Konto"
    assert "am 04.03.2026, 00:05 mit deinem Passwort" in german.body


def test_a_mail_that_a_form_sends_is_in_the_language_of_its_reader_or_else_of_the_page(alice: User, bob: User) -> None:
    confirm_address(alice)
    confirm_address(bob)
    User.objects.filter(pk=bob.pk).update(language="en")
    german = Client(headers={"accept-language": "de"})
    for user in (alice, bob):
        german.post("/account/password/reset/", {"email": user.email})
    assert [each.subject for each in mail.outbox] == [
        "Cobblestone: Wähle ein neues Passwort",
        "Cobblestone: Choose a new password",
    ]
    assert all("127.0.0.1" in each.body and "Thank you for using" not in each.body for each in mail.outbox)


def test_who_signs_up_in_german_gets_german_mails(client: Client) -> None:
    client.post(
        "/account/signup/",
        {"email": "dora@example.org", "password1": "seven green boats"},
        headers={"accept-language": "de"},
    )
    assert User.objects.get(email="dora@example.org").language == "de"


def test_the_language_of_a_mail_does_not_outlast_it(alice: User) -> None:
    alice.language, alice.time_zone = "de", "Europe/Berlin"
    with written_for(alice):
        assert (translation.get_language(), str(zones.current_zone())) == ("de", "Europe/Berlin")
    assert (translation.get_language(), zones.current_zone()) == ("en", None)
    compose(alice, Mail.SILENCE, "portal/mails/new_key", {"at": timezone.now()})
    assert (translation.get_language(), zones.current_zone()) == ("en", None)
