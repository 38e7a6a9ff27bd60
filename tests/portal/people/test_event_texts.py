"""What security events and the log of support say is stored in English, and shown in the reader's language."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils.translation import override

from portal.languages.messages import VERBATIM, Message, at_place
from portal.languages.sentences import sentence, unpacked
from portal.models import SecurityEvent, User
from portal.people.security_events import Kind, Source, record


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("detail", "english", "german"),
    [
        (Message("event_all_keys"), "all keys", "alle Schlüssel"),
        (
            Message("event_changed_fields", fields=[Message("account_email"), Message("account_groups")]),
            "e-mail address, groups",
            "E-Mail-Adresse, Gruppen",
        ),
        (
            Message("event_factor_again", factor=Message("factor_recovery_codes")),
            "Recovery codes, created again",
            "Wiederherstellungscodes, neu erstellt",
        ),
        (
            Message("event_key", hint="3fa8c1", origin=Message("key_origin_attach")),
            "3fa8c1…, computer attached",
            "3fa8c1…, Computer angebunden",
        ),
        # Words of people stay as they are, even if the site has a text like them.
        ("all keys", "all keys", "all keys"),
        ("", "", ""),
    ],
)
def test_the_detail_of_an_event_is_in_the_readers_language(
    alice: User, detail: Message | str, english: str, german: str
) -> None:
    record(alice, Kind.TOKEN_MADE, Source(), detail)
    stored = SecurityEvent.objects.get().detail
    assert str(stored or "") == english
    with override("de"):
        assert sentence(stored) == german


@pytest.mark.django_db
def test_the_page_of_events_is_german_for_german_readers(signed_in: Client, alice: User) -> None:
    record(alice, Kind.KEY_REVOKED, Source(), Message("event_all_keys"))
    page = signed_in.get("/account/events/", headers={"accept-language": "de"}).content.decode()
    assert "alle Schlüssel" in page and "all keys" not in page


@pytest.mark.parametrize(
    ("stored", "german"),
    [
        (Message("support_looked", reason="a number").packed(), "Konto angesehen: a number"),
        (
            Message("support_searched", what=Message("searched_number"), count=3).packed(),
            "Gesucht nach: eine Zahl. Gefundene Konten: 3.",
        ),
        (
            at_place(Message("support_blocked"), Message(VERBATIM, text="spam: again")).packed(),
            "Konto sperren: spam: again",
        ),
        ("something else", "something else"),
        ('{"code" is not JSON', '{"code" is not JSON'),
    ],
)
def test_the_log_of_support_is_in_the_readers_language(stored: str, german: str) -> None:
    with override("de"):
        assert unpacked(stored) == german
