"""Who may do what: every address of the site, as its owner, another volunteer, an operator and a stranger.

A new address needs a line in `MATRIX` (`tests/support/access_matrix.py`), else a test here fails; a view that changes
something needs one for POST. Whatever is answered to anybody but Alice, nothing of hers may be in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection, transaction
from django.http import HttpResponseBase
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from portal.models import User
from portal.web.middleware import PROBES
from tests.support.access_matrix import LOGIN, MATRIX, ON, WHO, Answer, Line
from tests.support.routes import routes
from tests.support.site_world import World

PARTS: Final = 4
"""Of the matrix; each makes the world once."""
SECRETS: Final = (b"alices-own-computer", b"alice@example.org", b"Alice the owner")


def ask(world: World, line: Line, who: str) -> HttpResponseBase:
    path = "/" + (line.path or line.route).format(**world.ids)
    if line.method != "POST":
        return world.clients[who].generic(line.method, path)
    return world.clients[who].post(path, {name: text.format(**world.ids) for name, text in line.data.items()})


def answer_of(response: HttpResponseBase) -> Answer:
    if response.status_code == 302:
        return LOGIN if response.headers["Location"].startswith("/account/login/") else ON
    return response.status_code


def body_of(response: HttpResponseBase) -> bytes:
    chunks: Iterator[bytes] = iter(response)
    return b"".join(chunks)


@pytest.mark.parametrize("part", range(PARTS))
def test_everybody_gets_what_the_matrix_says(world: World, part: int) -> None:
    wrong, told = [], []
    for line in MATRIX[part::PARTS]:
        for who in WHO:
            answer, body = _ask_apart(world, line, who)
            if answer != getattr(line, who):
                wrong.append(f"{who}: {line}: {answer}")
            if who != "owner" and not (who == "staff" and line.staff_sees):
                told += [f"{who}: {line}: {secret.decode()}" for secret in SECRETS if secret in body]
    assert (wrong, told) == ([], []), "answers, and what is Alice's and was seen by somebody else"


def _ask_apart(world: World, line: Line, who: str) -> tuple[Answer, bytes]:
    """Each request finds the world as it was, and leaves it so."""
    client = world.clients[who]
    cookies = client.cookies.output(header="")
    with transaction.atomic():
        response = ask(world, line, who)
        answer, body = answer_of(response), body_of(response)
        transaction.set_rollback(True)
    cache.clear()
    client.cookies.clear()
    client.cookies.load(cookies)
    return answer, body


# --- who looks around in the demo account ----------------------------------------------------------------------


WRITES: Final = re.compile(r"\s*(?:WITH\b.*\b)?(INSERT|UPDATE|DELETE)\b", re.IGNORECASE | re.DOTALL)
LIKE_A_STRANGER: Final = (
    "account/login/",
    "account/signup/",
    "account/password/reset/",
    "account/logout/",
    "language/",
)


@pytest.fixture
def visitor(world: World, alice: User, settings: Settings) -> World:
    """The stranger looks around as Alice, who is the demo account."""
    settings.DEMO_ACCOUNT = alice.email
    alice.user_permissions.clear()
    assert answer_of(world.clients["stranger"].post("/look-around/")) == ON
    return world


def test_nothing_can_be_written_while_looking_around(visitor: World) -> None:
    client = visitor.clients["stranger"]
    wrong = []
    for line in MATRIX:
        path = "/" + (line.path or line.route).format(**visitor.ids)
        bare = path.partition("?")[0]
        if bare in {*settings.CLIENT_PATHS, *PROBES} or bare[1:].startswith((*LIKE_A_STRANGER, "look-around/leave/")):
            continue
        for method in ("post", "put", "patch", "delete"):
            with CaptureQueriesContext(connection) as asked:
                status = getattr(client, method)(path).status_code
            if status != 403 or any(WRITES.match(query["sql"]) for query in asked):
                wrong.append(f"{method} {path}: {status}")
    assert wrong == [], "\n".join(wrong)


def test_no_page_writes_while_looking_around(visitor: World) -> None:
    client = visitor.clients["stranger"]
    wrong = []
    for line in MATRIX:
        path = "/" + (line.path or line.route).format(**visitor.ids)
        if path in settings.CLIENT_PATHS or line.method != "GET":
            continue
        with CaptureQueriesContext(connection) as asked:
            body = body_of(client.get(path))
        # A session that is renewed is the visitor's own.
        wrote = [q["sql"][:80] for q in asked if WRITES.match(q["sql"]) and "portal_session" not in q["sql"]]
        if wrote:
            wrong.append(f"{path}: {wrote}")
        if b"alice@example.org" in body:
            wrong.append(f"{path} shows the address of the demo account")
    assert wrong == [], "\n".join(wrong)


def test_the_pages_of_the_account_itself_are_not_shown_while_looking_around(visitor: World) -> None:
    client = visitor.clients["stranger"]
    for path in ("home/", "history/", "computers/", "tasks/", "account/preferences/"):
        assert client.get(f"/{path}").status_code == 200, path
    for path in ("account/keys/", "account/tokens/", "account/events/", "account/sessions/", "account/data/"):
        assert answer_of(client.get(f"/{path}")) == LOGIN, path


# --- no address is left out -----------------------------------------------------------------------------------


def test_every_address_has_a_line() -> None:
    there = {route for route, _ in routes() if not route.startswith("admin/")}
    assert there - {line.route for line in MATRIX} == set(), "add lines to MATRIX"
    assert {line.route for line in MATRIX} - there == set(), "lines of addresses that are gone"


ADMIN_PATHS: Final = ["admin/", "admin/portal/user/", "admin/portal/host/", "admin/accounting/project/add/"]


@pytest.mark.parametrize("path", ADMIN_PATHS)
def test_operators_pages_are_for_operators(world: World, path: str) -> None:
    line = Line(path, 0, 0, 0, 0)
    assert answer_of(ask(world, line, "staff")) == 200
    for who in ("owner", "other", "stranger"):
        assert ask(world, line, who).status_code in (302, 403), who


def test_no_operators_page_opens_for_anybody_else(world: World) -> None:
    """Whatever the address is about: who may not is sent away before anything is looked up."""
    opened = []
    for route, pattern in routes():
        if not route.startswith("admin/") or pattern.name in ("login", "logout", "jsi18n"):
            continue
        path = "/" + route.replace("<path:object_id>", "1").replace("<int:content_type_id>", "1")
        path = path.replace("<path:object_id>", "1").replace("(?P<url>.*)$", "x/").replace("<id>", "1")
        for who in ("other", "stranger"):
            status = world.clients[who].get(path).status_code
            if status == 200:
                opened.append((who, path))
    assert opened == []
