"""Pages behind the event loop: the bodies that wait for a thread have a limit together."""

from __future__ import annotations

import pytest

from portal.clients import pages
from tests.support.asgi_exchange import ask, post

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/account/login/"


def test_bodies_together_may_have_so_many_bytes_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FILES_NBYTES", 100_000)
    form = "application/x-www-form-urlencoded"
    first, second = ask(*[post(b"login=" + b"x" * 80_000, PAGE, **{"content-type": form})] * 2)
    # The first was read: Django refuses a form without its token.
    assert (first.status_code, second.status_code) == (403, 503)
    assert second.content == pages.BUSY


def test_a_body_that_was_answered_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_FILES_NBYTES", 100_000)
    site = pages.Pages(pages_of_nothing, 5.0)
    for _ in range(3):
        (reply,) = ask(post(b"x" * 80_000, PAGE), pages=site)
        assert reply.status_code == 200


def pages_of_nothing(environ: object, start_response: object) -> list[bytes]:
    start_response("200 OK", [("content-length", "0")])  # type: ignore[operator]  # WSGI's own function
    return [b""]
