"""Why something could not be fetched or read is stored in English, and shown in the reader's language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.utils.translation import override

from accounting.project_setup import texts as setup_texts
from accounting.statistics import texts as statistics_texts
from portal.fetch.errors import StatusError
from portal.languages import fetch_texts
from tests.support.raised_texts import said_by

FETCH_ERRORS = {name: 1 for name in ("FetchError", "AddressRefused", "TimeIsUp", "TooLarge", "NotKept")}
SENDER_ALONE = ("an address begins with ",)
"""Not shown: the form for channels of alerts says it in words of its own."""


@pytest.mark.parametrize(
    ("folder", "raisers", "shown", "count"),
    [
        ("portal/fetch", FETCH_ERRORS, fetch_texts.shown, 20),
        ("accounting/statistics", {"StatisticsError": 1}, statistics_texts.shown, 4),
        ("accounting/wire", {"StatisticsError": 1}, statistics_texts.shown, 15),
        ("accounting/project_setup", {"AccountProblem": 0, "AskFailed": 0}, setup_texts.shown, 5),
    ],
)
def test_every_reason_has_a_translation(
    folder: str, raisers: dict[str, int], shown: Callable[[str], str], count: int
) -> None:
    said = {text for path in sorted((settings.BASE_DIR / Path(folder)).glob("*.py")) for text in said_by(path, raisers)}
    assert len(said) >= count
    with override("de"):
        unknown = [text for text in said if shown(text) == text and shown(f"host: {text}.") == f"host: {text}."]
    assert [text for text in unknown if not text.startswith(SENDER_ALONE)] == []


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        # A place, a reason and a full stop; the reason has the values that were stored.
        (
            "a.example.org: took longer than the limit of 30 s.",
            "a.example.org: hat länger als die erlaubten 30 s gebraucht.",
        ),
        ("this is not a web address.", "das ist keine Webadresse."),
        # A sentence with another one in it, and the one that is longer than another that begins alike.
        (
            "The project could not be asked: a.example.org: its answer was cut off. Some projects provide account "
            "information only for full keys, and this is a weak one. Test the scheduler instead.",
            "Das Projekt konnte nicht abgefragt werden: a.example.org: die Antwort war unvollständig. Manche "
            "Projekte geben Kontodaten nur für volle Schlüssel aus, und dieser ist ein schwacher. Teste stattdessen "
            "den Scheduler.",
        ),
        # What the project itself says stays as it is.
        (
            "a.example.org answered with an error (-1, Go away).",
            "a.example.org hat mit einem Fehler geantwortet (-1, Go away).",
        ),
        ("Something else entirely", "Something else entirely"),
        ("", ""),
    ],
)
def test_what_was_stored_is_shown_in_german(stored: str, shown: str) -> None:
    with override("de"):
        assert setup_texts.shown(stored) == shown
    with override("en"):
        assert setup_texts.shown(stored) == stored


def test_an_error_is_shown_as_it_is_raised() -> None:
    with override("de"):
        assert fetch_texts.shown(str(StatusError("a.example.org", 503))) == "a.example.org: antwortete mit Status 503."
