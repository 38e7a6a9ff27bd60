"""Which addresses the site may connect to."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from portal.fetch.addresses import is_allowed

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    # Stand for 8.8.8.8
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]
NOT_PUBLIC = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "64:ff9b:1::1",
    # Stand for addresses that are not public
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "2002:7f00:1::1",
    "2002:c0a8:101::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_asked(text: str) -> None:
    assert is_allowed(ip_address(text), [])


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_addresses_inside_networks_may_not(text: str) -> None:
    assert not is_allowed(ip_address(text), [])


@pytest.mark.parametrize("text", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1", "fd00::5"])
def test_networks_that_the_operator_named_may_be_asked(text: str) -> None:
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/16")]
    assert is_allowed(ip_address(text), allowed)
    assert not is_allowed(ip_address("10.2.0.1"), allowed)
    assert not is_allowed(ip_address("fd01::1"), allowed)
