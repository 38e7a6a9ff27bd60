"""What tests of extras start from, as those of the kernel apps that they add to do."""

from tests.accounting.conftest import key_folder, projects, signing_keys

__all__ = ["key_folder", "projects", "signing_keys"]
