"""Upload certificates: a client must send one to upload a file.

Nobody but this site reads them, so they are keyed hashes and no signatures: a microsecond each, in the form that
clients expect of a signature.
"""

from __future__ import annotations

import hmac

from django.conf import settings

from portal.clients.settings_cache import once


def upload_certificate(name: str, max_nbytes: int) -> str:
    """The certificate for a file of this name, of that size at most: a hex line and a dot."""
    # The digest of the secret is made once. `hmac.digest` would release the GIL, which costs more than the digest.
    digest = _begun_digest().copy()
    digest.update(f"<name>{name}</name><max_nbytes>{max_nbytes}</max_nbytes>".encode())
    return f"{digest.hexdigest()}\n.\n"


@once
def _begun_digest() -> hmac.HMAC:
    return hmac.new(settings.UPLOAD_SECRET.encode(), digestmod="sha256")


def is_certified(name: str, max_nbytes: int, certificate: str) -> bool:
    """Whether this certificate was made by `upload_certificate`; blanks around its lines do not matter."""
    lines = certificate.split()
    return hmac.compare_digest("".join(lines).encode(), "".join(upload_certificate(name, max_nbytes).split()).encode())
