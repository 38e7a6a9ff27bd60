"""Which addresses the site may connect to. Pure.

Public addresses are allowed, and networks that the operator named. The lists are IANA's registries of special-purpose
addresses (RFC 6890), including those that are globally reachable: no server that the site asks is there. They are
written out here because Python's own `is_global` differs between versions; a test compares them with IANA's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # In no registry: this public address leads every virtual machine at Azure to its host's services.
        "168.63.129.16/32",
    )
)  # fmt: skip
# All other IPv6 addresses are reserved, local or multicast.
_PUBLIC_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
# The upper half of an interface's identifier, with an IPv4 address in the lower: a host inside a site (RFC 5214).
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the site may connect to it: it is public, or in one of the networks that are ``allowed``.

    An IPv6 address that stands for an IPv4 address is judged as that one.
    """
    if any(address in network for network in allowed):
        return True
    inner = embedded(address)
    if inner is not None:
        return is_allowed(inner, allowed)
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        return False
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that a packet to this IPv6 address reaches (mapped, NAT64, 6to4); None for all others."""
    if isinstance(address, IPv4Address):
        return None
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return None
