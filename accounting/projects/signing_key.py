"""The account manager's signing key: creating it once, reading it, signing the addresses of projects.

Clients refuse any other key for ever, so nothing here replaces it. The private part may be on another machine. Then
signatures are made there and pasted in the admin.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from portal.wire import signing
from portal.wire.key_files import make_pair_if_missing
from portal.wire.purposes import Purpose, content_of, sign


def make_if_missing() -> bool:
    """Create the pair of keys if neither part exists; return True if it was created."""
    return make_pair_if_missing(Path(settings.AM_SIGNING_KEY), Path(settings.AM_SIGNING_KEY_PUBLIC))


def public_key() -> signing.PublicKey:
    return signing.parse_public_key(Path(settings.AM_SIGNING_KEY_PUBLIC).read_text(encoding="ascii"))


def is_here() -> bool:
    """Whether this server has the private key."""
    return Path(settings.AM_SIGNING_KEY).exists()


def sign_url(url: str) -> str | None:
    """Sign a project's URL; None where the private key is elsewhere.

    Raises SigningError if it is no URL as clients store it.
    """
    if not is_here():
        return None
    private = Path(settings.AM_SIGNING_KEY).read_text(encoding="ascii")
    return sign(Purpose.PROJECT_URL, content_of(url.encode()), signing.parse_private_key(private))


def is_signed(url: str, signature: str) -> bool:
    """Whether clients will accept this signature of this URL."""
    return signing.verify(url.encode(), signature, public_key())
