"""The operators' view of people, computers and client keys. Signing in goes through the site's own login."""

from portal.admin import changes, confirmations, joining, people, upkeep
from portal.admin.base import ReadOnlyAdmin, SecretLookups

__all__ = ["ReadOnlyAdmin", "SecretLookups", "changes", "confirmations", "joining", "people", "upkeep"]
