"""Encryption of account keys at projects. Clients must be sent them in clear, so they cannot be hashed.

Each key is bound to its row and to the server that it was entered for (scheme, host and port): with another address, or
in another row, it cannot be decrypted. So pointing a project elsewhere sends nobody a key.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from django.conf import settings

from accounting.models import Project
from portal.wire import sealing
from portal.wire.sealing import Place, UnsealableError


class UnreadableAccountKey(Exception):
    """The stored key was encrypted with another ACCOUNT_KEY_SECRET, or for another address."""


def seal_shared(project: Project, account_key: str) -> bytes:
    """Encrypt the key of the shared account, for a stored project."""
    return sealing.seal(settings.ACCOUNT_KEY_SECRET, _shared(project.pk, project.master_url), account_key)


def seal_own(user_id: int, project: Project, account_key: str) -> bytes:
    """Encrypt the key of a volunteer's own account."""
    return sealing.seal(settings.ACCOUNT_KEY_SECRET, _own(user_id, project.pk, project.master_url), account_key)


def shared(project: Project) -> str | None:
    """Decrypt the key of the shared account; None if there is none. Raises UnreadableAccountKey."""
    stored = project.shared_account_key
    return _unsealed(_shared(project.pk, project.master_url), bytes(stored)) if stored else None


def former_shared(project: Project) -> list[str]:
    """Decrypt the former keys of the shared account, leaving out unreadable ones."""
    keys = []
    for stored in project.former_account_keys:
        with suppress(UnreadableAccountKey):
            keys.append(_unsealed(_shared(project.pk, project.master_url), bytes(stored)))
    return keys


def own(user_id: int, project_id: int, master_url: str, stored: bytes) -> str:
    """Decrypt the key of a volunteer's own account. Raises UnreadableAccountKey."""
    return _unsealed(_own(user_id, project_id, master_url), stored)


def seal_reported(host_id: int, project_id: int, master_url: str, account_key: str) -> str:
    """Encrypt the key of its owner's own account that a client reported, until they take it over."""
    return sealing.seal(settings.ACCOUNT_KEY_SECRET, _reported(host_id, project_id, master_url), account_key).decode()


def reported(host_id: int, project: Project, sealed: str) -> str:
    """Decrypt the key that a client reported. Raises UnreadableAccountKey."""
    return _unsealed(_reported(host_id, project.pk, project.master_url), sealed.encode())


def _reported(host_id: int, project_id: int, master_url: str) -> Place:
    return "hostproject", host_id, project_id, "account_key", sealing.origin(master_url)


def _shared(project_id: int, master_url: str) -> Place:
    return "project", project_id, "shared_account_key", sealing.origin(master_url)


def _own(user_id: int, project_id: int, master_url: str) -> Place:
    return "userproject", user_id, project_id, "account_key", sealing.origin(master_url)


# Cached in memory, as every reply repeats them.
@lru_cache(maxsize=10_000)
def _unsealed(place: Place, stored: bytes) -> str:
    try:
        return sealing.unseal(settings.ACCOUNT_KEY_SECRET, place, stored)
    except UnsealableError as error:
        raise UnreadableAccountKey(
            "encrypted with another ACCOUNT_KEY_SECRET, or for another address; enter the account key again"
        ) from error
