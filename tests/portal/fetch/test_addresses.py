"""Which addresses the site may connect to."""

from __future__ import annotations

import csv
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from portal.fetch import addresses
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
DATA = Path(__file__).parents[2] / "data/networks"
# These stand for IPv4 addresses, and may be asked as those may.
STAND_FOR_IPV4 = {"::ffff:0:0/96", "64:ff9b::/96", "2002::/16"}
# In neither registry: multicast, and the services of Azure's hosts.
NOT_REGISTERED = {"224.0.0.0/4", "168.63.129.16/32"}
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
    "64:ff9b::a83f:8110",
    # Services of Azure's hosts
    "168.63.129.16",
    "::ffff:168.63.129.16",
    # Hosts inside a site (ISATAP), in anybody's network
    "2606:4700::5efe:10.0.0.1",
    "2606:4700::5efe:8.8.8.8",
    "2606:4700::200:5efe:192.168.1.1",
]
BESIDE = ["168.63.129.15", "168.63.129.17", "2620:4f:7fff::1", "2620:4f:8001::1", "192.31.195.255", "192.175.49.0"]
BESIDE += ["192.52.192.255", "192.52.194.0", "2606:4700::5eff:10.0.0.1", "2001:200::1", "2001:db7::1", "2001:db9::1"]


def registered() -> list[str]:
    """The networks of IANA's registries (tests/data/networks/README.md); footnotes are behind some of them."""
    blocks: list[str] = []
    for path in sorted(DATA.glob("*.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                blocks += [text.split()[0] for text in row["Address Block"].split(", ")]
    assert len(blocks) == 26 + 25
    return blocks


@pytest.mark.parametrize("block", sorted({*registered(), *NOT_REGISTERED} - STAND_FOR_IPV4))
def test_no_address_of_a_special_purpose_network_may(block: str) -> None:
    network = ip_network(block)
    middle = network.network_address + network.num_addresses // 2
    assert [
        str(address)
        for address in (network.network_address, middle, network.broadcast_address)
        if is_allowed(address, [])
    ] == []


def test_no_other_network_is_kept_away() -> None:
    kept_away = {str(network) for network in (*addresses._NOT_PUBLIC_4, *addresses._NOT_PUBLIC_6)}
    assert kept_away - NOT_REGISTERED <= {*registered()}


@pytest.mark.parametrize("text", [*PUBLIC, *BESIDE])
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
