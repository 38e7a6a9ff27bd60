"""Addresses of the feeds of single computers: the notices that are not for everybody.

The address gives access to those notices only. It is the same in every reply, as clients forget a feed whose address
changes.
"""

from __future__ import annotations

from django.utils.crypto import constant_time_compare, salted_hmac

_SALT = "accounting.notices"
_CHARS = 32


def feed_path(host_id: int) -> str:
    """Return the address of a computer's feed, below the site's."""
    return f"notices/{host_id}-{_mark(host_id)}.rss"


def is_right(host_id: int, mark: str) -> bool:
    """Whether this site made this address."""
    return constant_time_compare(mark, _mark(host_id))


def _mark(host_id: int) -> str:
    return salted_hmac(_SALT, str(host_id), algorithm="sha256").hexdigest()[:_CHARS]
