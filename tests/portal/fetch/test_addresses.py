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
# IANA's registries of special-purpose addresses (RFC 6890), as of 2025-10: block and name.
SPECIAL_4 = {
    "0.0.0.0/8": "this network",
    "0.0.0.0/32": "this host on this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.0.0/29": "IPv4 service continuity",
    "192.0.0.8/32": "dummy address",
    "192.0.0.9/32": "port control protocol anycast",
    "192.0.0.10/32": "TURN anycast",
    "192.0.0.170/32": "NAT64/DNS64 discovery",
    "192.0.0.171/32": "NAT64/DNS64 discovery",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112-v4",
    "192.52.193.0/24": "AMT",
    "192.88.99.0/24": "6to4 relay anycast, deprecated",
    "192.88.99.2/32": "6a44 relay anycast",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "direct delegation AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "240.0.0.0/4": "reserved",
    "255.255.255.255/32": "limited broadcast",
}
SPECIAL_6 = {
    "::1/128": "loopback",
    "::/128": "unspecified",
    "64:ff9b:1::/48": "IPv4-IPv6 translation, local",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/23": "IETF protocol assignments",
    "2001::/32": "Teredo",
    "2001:1::1/128": "port control protocol anycast",
    "2001:1::2/128": "TURN anycast",
    "2001:1::3/128": "DNS-SD service registration anycast",
    "2001:2::/48": "benchmarking",
    "2001:3::/32": "AMT",
    "2001:4:112::/48": "AS112-v6",
    "2001:10::/28": "ORCHID, deprecated",
    "2001:20::/28": "ORCHIDv2",
    "2001:30::/28": "drone remote identification",
    "2001:db8::/32": "documentation",
    "2620:4f:8000::/48": "direct delegation AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
}
# These stand for IPv4 addresses, and may be asked as those may: ::ffff:0:0/96, 64:ff9b::/96 and 2002::/16.
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


@pytest.mark.parametrize("block", [*SPECIAL_4, *SPECIAL_6])
def test_no_address_of_a_special_purpose_network_may(block: str) -> None:
    network = ip_network(block)
    middle = network.network_address + network.num_addresses // 2
    assert [
        str(address)
        for address in (network.network_address, middle, network.broadcast_address)
        if is_allowed(address, [])
    ] == []


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
