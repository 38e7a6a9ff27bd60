"""Upload certificates: a client must send one to upload a file, and a key to ask how much of it has arrived.

Nobody but this site reads them, so they are keyed hashes and no signatures: a microsecond each, in the form that
clients expect of a signature.
"""

from __future__ import annotations

import hmac

from django.conf import settings

from portal.clients.settings_cache import cached_setting


def upload_certificate(name: str, max_nbytes: int) -> str:
    """The certificate for a file of this name, of that size at most: a hex line and a dot."""
    # The digest of the secret is made once. `hmac.digest` would release the GIL, which costs more than the digest.
    digest = _begun_digest().copy()
    digest.update(f"<name>{name}</name><max_nbytes>{max_nbytes}</max_nbytes>".encode())
    return f"{digest.hexdigest()}\n.\n"


def size_key(name: str) -> str:
    """The query string of the address at which a client uploads a file of this name.

    A client sends no certificate with the question how much has arrived, but asks at the address that it was given.
    """
    digest = _begun_digest().copy()
    digest.update(f"<get_file_size>{name}</get_file_size>".encode())
    return digest.hexdigest()[:32]


def is_size_key(name: str, key: str) -> bool:
    return hmac.compare_digest(key.encode(), size_key(name).encode())


@cached_setting
def _begun_digest() -> hmac.HMAC:
    return hmac.new(settings.UPLOAD_SECRET.encode(), digestmod="sha256")


def is_certified(name: str, max_nbytes: int, certificate: str) -> bool:
    """Whether this certificate was made by `upload_certificate`; blanks around its lines do not matter."""
    lines = certificate.split()
    return hmac.compare_digest("".join(lines).encode(), "".join(upload_certificate(name, max_nbytes).split()).encode())
