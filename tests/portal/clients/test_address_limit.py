"""One address has a limited number of requests under way; an IPv6 network (/64) counts as one."""

from __future__ import annotations

import pytest
from django.core.handlers.wsgi import WSGIHandler

from portal.clients.address_limit import AddressLimit
from portal.clients.application import TOO_MANY
from portal.clients.messages import refusal
from portal.clients.pages import Pages
from portal.wire.boinc_errors import ERR_GENERIC
from tests.support.asgi_exchange import Asked, Reply, ask

pytestmark = pytest.mark.django_db(transaction=True)
UPLOAD = "/project/file_upload_handler"


def slow(address: str, path: str = UPLOAD) -> Asked:
    """A request of which a byte comes, and then nothing."""
    return Asked(path=path, parts=[b"x", None], headers={"content-length": "100"}, address=address)


def is_refused(reply: Reply, path: str = UPLOAD) -> bool:
    root = "data_server_reply" if path == UPLOAD else "acct_mgr_reply"
    return reply.content in (refusal(root, ERR_GENERIC, TOO_MANY).body, TOO_MANY.encode())


def asked(*addresses: str, path: str = UPLOAD) -> list[bool]:
    """Which of these are refused, if they come at once and two of each address are answered."""
    replies = ask(*[slow(address, path) for address in addresses], body_secs=0.2, most_per_address=2)
    return [is_refused(reply, path) for reply in replies]


def test_an_address_has_a_limit_and_others_are_answered() -> None:
    assert asked("192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2") == [False, False, True, False]


def test_a_network_of_ipv6_counts_as_one() -> None:
    addresses = ["2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2:ffff::3", "2001:db8:1:3::1"]
    assert asked(*addresses) == [False, False, True, False]


def test_an_ipv4_address_in_the_form_of_ipv6_is_the_same() -> None:
    assert asked("192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201") == [False, False, True]


def test_this_machine_has_no_limit() -> None:
    assert asked(*["127.0.0.1"] * 3, *["::1"] * 3, *[""] * 3) == [False] * 9


def test_other_addresses_of_clients_are_limited_in_their_own_words() -> None:
    assert asked(*["192.0.2.1"] * 3, path="/rpc.php") == [False, False, True]


def test_pages_are_limited_too() -> None:
    pages = [slow("192.0.2.1", "/account/login/")] * 2
    health = [Asked("GET", "/healthz", address=address) for address in ("192.0.2.1", "192.0.2.9")]
    replies = ask(*pages, *health, most_per_address=2, pages=Pages(WSGIHandler(), body_secs=0.2))
    assert [reply.status_code for reply in replies[2:]] == [429, 200]


def test_what_is_over_counts_no_more() -> None:
    limit = AddressLimit(1)
    for _ in range(3):
        with limit.slot("192.0.2.1") as first, limit.slot("192.0.2.1") as second:
            assert (first, second) == (True, False)
    assert not limit._under_way
