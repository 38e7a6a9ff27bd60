"""Signs a draft's manifest where the private key is: on a machine that has the program files, and no network.

Only these files are signed. So whoever has broken into the site cannot get a program of theirs signed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from portal.wire import signing
from portal.wire.purposes import read_content
from portal.wire.signing import SigningError
from scheduler.engine.limits import is_name
from scheduler.programs import code_signing
from scheduler.programs.release import ReleaseError, check_program


def sign_manifest(text: str, folder: Path) -> dict[str, Any]:
    """Return the signatures, as a draft takes them. Raises ReleaseError, which names the file."""
    try:
        manifest = json.loads(text)
        files = [(str(file["name"]), str(file["file"]), str(file["md5"])) for file in manifest["files"]]
        public_key = signing.parse_public_key(manifest["code_signing_key"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ReleaseError(f"This is not the manifest of a new version: {error}") from error
    return {"signatures": {name: _sign(name, file, md5, folder, public_key) for name, file, md5 in files}}


def _sign(name: str, file: str, md5: str, folder: Path, public_key: signing.PublicKey) -> str:
    if not is_name(file) or not (folder / file).is_file():
        raise ReleaseError(f"{file[:200]!r} is not a file in {folder}.")
    with (folder / file).open("rb") as opened:
        own = read_content(opened)
    if own.md5 != md5:
        raise ReleaseError(f"{file}: the site has a different file. Nothing is signed; find out why.")
    check_program(file, own)
    try:
        signature = code_signing.sign_program(own)
    except (SigningError, OSError) as error:
        raise ReleaseError(f"The private key cannot be read: {error}") from error
    if signature is None:
        raise ReleaseError("The private key is not on this machine (CODE_SIGNING_KEY).")
    if not signing.verify_md5(own.md5, signature, public_key):
        raise ReleaseError(f"{name}: the site has a different key in force.")
    return signature
