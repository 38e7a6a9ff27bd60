"""The projects and the signing key that the account manager's tests have."""

from tests.accounting.conftest import key_folder, projects, signing_keys

__all__ = ["key_folder", "projects", "signing_keys"]
