"""What security events and the log of support say is stored in English, and shown in the reader's language."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils.translation import override

from portal.models import SecurityEvent, User
from portal.operators.log_texts import LOOKED, SEARCHED, SEARCHED_FOR, helped, log_text
from portal.people.event_texts import ALL_KEYS, FACTOR_MADE_ANEW, RIGHTS_HELD, detail_text, key_detail
from portal.people.security_events import Kind, Source, record


@pytest.mark.parametrize(
    ("kind", "detail", "german"),
    [
        (Kind.KEY_REVOKED, ALL_KEYS, "alle Schlüssel"),
        (Kind.RIGHTS_CHANGED, RIGHTS_HELD, "ausgesetzt, weil das Passwort ohne zweiten Faktor zurückgesetzt wurde"),
        (Kind.RIGHTS_CHANGED, "e-mail address, time zone", "E-Mail-Adresse, Zeitzone"),
        (Kind.FACTOR_ADDED, FACTOR_MADE_ANEW % {"factor": "Recovery codes"}, "Wiederherstellungscodes, neu erstellt"),
        (Kind.KEY_MADE, key_detail("3fa8c1", "computer attached"), "3fa8c1…, Computer angebunden"),
        # Words of people stay as they are, even if the site has a text like them.
        (Kind.TOKEN_MADE, "cobble_1…, all keys", "cobble_1…, all keys"),
        (Kind.SUPPORT_LOOKED, "all keys", "all keys"),
        (Kind.LOGIN, "", ""),
    ],
)
def test_the_detail_of_an_event_is_in_the_readers_language(kind: Kind, detail: str, german: str) -> None:
    event = SecurityEvent(kind=kind, detail=detail)
    with override("de"):
        assert detail_text(event) == german
    with override("en"):
        assert detail_text(event) == detail


@pytest.mark.django_db
def test_the_page_of_events_is_german_for_german_readers(signed_in: Client, alice: User) -> None:
    record(alice, Kind.KEY_REVOKED, Source(), ALL_KEYS)
    page = signed_in.get("/account/events/", headers={"accept-language": "de"}).content.decode()
    assert "alle Schlüssel" in page and ALL_KEYS not in page


@pytest.mark.parametrize(
    ("stored", "german"),
    [
        (LOOKED % {"reason": "a number"}, "Konto angesehen: a number"),
        (
            SEARCHED % {"what": SEARCHED_FOR["number"], "count": 3},
            "Gesucht nach: eine Zahl. Gefundene Konten: 3.",
        ),
        (helped("Block the account", "spam: again"), "Konto sperren: spam: again"),
        ("something else", "something else"),
    ],
)
def test_the_log_of_support_is_in_the_readers_language(stored: str, german: str) -> None:
    with override("de"):
        assert log_text(stored) == german
