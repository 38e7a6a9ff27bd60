"""Upload certificates: a client must send one to upload a file, and a key to ask how much of it has arrived.

Only this site reads them, so they are keyed hashes instead of signatures: a microsecond each, in the form that clients
expect of a signature.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings

from portal.clients.database.settings_cache import cached_setting


def upload_certificate(name: str, max_nbytes: int) -> str:
    """Return the certificate for a file of this name and at most this size: a hex line and a dot."""
    return f"{_keyed_hash(f'<name>{name}</name><max_nbytes>{max_nbytes}</max_nbytes>')}\n.\n"


def size_key(name: str) -> str:
    """Return the query string of the address at which a client uploads a file of this name.

    When a client asks how much has arrived, it sends no certificate, but uses the address that it was given.
    """
    return _keyed_hash(f"<get_file_size>{name}</get_file_size>")[:32]


def is_size_key(name: str, key: str) -> bool:
    return hmac.compare_digest(key.encode(), size_key(name).encode())


def _keyed_hash(text: str) -> str:
    """Hash with BLAKE2b, which has its own key, so it costs a third of an HMAC."""
    return hashlib.blake2b(text.encode(), digest_size=32, key=_key()).hexdigest()


@cached_setting
def _key() -> bytes:
    return hashlib.sha256(settings.UPLOAD_SECRET.encode()).digest()


def is_certified(name: str, max_nbytes: int, certificate: str) -> bool:
    """Whether this certificate was made by `upload_certificate`; blanks around its lines do not matter."""
    lines = certificate.split()
    return hmac.compare_digest("".join(lines).encode(), "".join(upload_certificate(name, max_nbytes).split()).encode())
