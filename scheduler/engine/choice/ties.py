"""Ties between holders of a workunit's copies and a requester: shared traits that suggest the same person. Pure.

A tie is a number that both have. An account's own number is one; the others are negative digests under a secret of the
site, so that the database identifies neither a network nor a machine.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Final

NEW_KEY_SECS: Final = 86_400.0
"""A client key is brand-new for this long. Nothing is known of its user yet: two such keys may be one person's."""
NEW_KEY: Final = -1
_IPV4_BITS: Final = 24
_IPV6_BITS: Final = 56


class Separation(StrEnum):
    """Whether copies of a workunit go to volunteers with ties to a holder of another one."""

    STRICT = "strict"
    PREFER = "prefer"
    OFF = "off"


def ties_of(user_id: int, address: str, host_cpid: str, key_age_secs: float, secret: str) -> list[int]:
    """Return the ties of a requesting computer: its account, its network, the machine, and its key if that is
    brand-new.
    """
    ties = [user_id]
    if network := network_of(address):
        ties.append(_digest(f"network {network}", secret))
    if host_cpid:
        ties.append(_digest(f"machine {host_cpid}", secret))
    if key_age_secs < NEW_KEY_SECS:
        ties.append(NEW_KEY)
    return ties


def network_of(address: str) -> str:
    """Return the block of addresses that a provider assigns to one customer: IPv4 /24, IPv6 /56.

    Empty if the address is missing, private or this machine's own.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if not ip.is_global:
        return ""
    return str(ip_network((ip, _IPV4_BITS if ip.version == 4 else _IPV6_BITS), strict=False))


@lru_cache(maxsize=4096)
def _digest(text: str, secret: str) -> int:
    """Return a digest of 62 bits that is never above -2."""
    key = hashlib.sha256(secret.encode()).digest()
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=key, person=b"ties")
    return -2 - (int.from_bytes(digest.digest()) >> 2)
