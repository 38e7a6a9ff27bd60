"""Fixtures for tests of extras, the same as those for the core apps."""

from tests.accounting.conftest import key_folder, projects, signing_keys

__all__ = ["key_folder", "projects", "signing_keys"]
