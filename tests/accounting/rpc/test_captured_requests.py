"""Requests of real clients, as captured, are answered alike on the event loop and under plain Django."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import Client

from accounting.models import HostLedger, HostProject, Project
from accounting.rpc import catalogue
from portal.models import ClientKey, User
from portal.wire import credentials
from tests.support import asgi_exchange
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import Reply

pytestmark = pytest.mark.django_db(transaction=True)
CAPTURES = Path(__file__).parents[2] / "data" / "protocol"
KEY = "c" * 32
PASSWORD_HASH = credentials.client_password_hash("alice's secret", "alice@example.org")


def by_django(message: bytes) -> Reply:
    return Reply(Client().post("/rpc.php", message, content_type="text/xml").content)


def on_loop(message: bytes) -> Reply:
    (reply,) = asgi_exchange.ask(asgi_exchange.post(message))
    assert reply.status_code == 200
    return Reply(reply.content)


@pytest.fixture
def project(alice: User, signing_keys: None) -> Iterator[Project]:
    """The project that the captured clients were attached to, Alice's, and her key."""
    ClientKey.objects.create(user=alice, origin=ClientKey.Origin.LOOKUP, key_hash=credentials.key_hash(KEY))
    made = make_project(name="Test Project", master_url="http://127.0.0.1:8202/", account_key="1_77")
    catalogue.forget()
    yield made
    catalogue.forget()


def of_alice(capture: bytes) -> bytes:
    """The captured request with the key, or e-mail address and password, of this site's Alice."""
    capture = re.sub(rb"<authenticator>.*?<", f"<authenticator>{KEY}<".encode(), capture)
    capture = re.sub(rb"(<acct_mgr_request>\s*<name>).*?<", rb"\1alice@example.org<", capture)
    return re.sub(rb"<password_hash>.*?<", f"<password_hash>{PASSWORD_HASH}<".encode(), capture)


def with_id(message: bytes, token: str) -> bytes:
    """The message as the same client sends it once it has our id."""
    message = re.sub(rb"<opaque>.*?</opaque>\s*", b"", message, flags=re.DOTALL)
    return message.replace(
        b"</acct_mgr_request>", f"<opaque>\n<host>{token}</host>\n</opaque>\n</acct_mgr_request>".encode()
    )


@pytest.mark.parametrize("way", [by_django, on_loop])
@pytest.mark.parametrize("capture", sorted(CAPTURES.glob("am_request_*.xml")), ids=lambda path: path.stem)
def test_a_captured_request_is_answered(
    capture: Path, way: Callable[[bytes], Reply], alice: User, project: Project
) -> None:
    message = of_alice(capture.read_bytes())
    if attached := re.search(rb"<project>\s*<url>(.*?)</url>", message):
        Project.objects.update(master_url=attached[1].decode())
        catalogue.forget()
    first = way(message)
    assert first.error == (0, "")
    assert first.repeat_secs > 0
    host = alice.hosts.get()
    assert host.domain_name == "testhost"
    # Once more, as the computer that the site now knows: nothing is counted twice.
    again = with_id(message if b"<authenticator>" in message else _with_key(message, first), host.token)
    assert way(again).accounts.keys() == first.accounts.keys()
    assert HostLedger.objects.get(host=host).contacts == 2
    nlisted = HostProject.objects.filter(host=host, project=project, listed=True).count()
    assert nlisted == message.count(b"<project>")


def _with_key(message: bytes, reply: Reply) -> bytes:
    key = reply.text("authenticator")
    assert key
    return re.sub(
        rb"<name>alice.*?</password_hash>", f"<authenticator>{key}</authenticator>".encode(), message, flags=re.DOTALL
    )
