"""Where clients find the parts of the project server.

All addresses are below the master URL, so that a proxy can route them. `settings.CLIENT_PATHS` declares those that
clients post to.
"""

from __future__ import annotations

from urllib.parse import quote

from django.conf import settings


def scheduler_url() -> str:
    return _client_url("scheduler_reply")


def upload_url() -> str:
    """Return the URL for uploads.

    Clients treat a URL without "file_upload_handler" as a download (BOINC protocol, job description).
    """
    return _client_url("data_server_reply")


def _client_url(root: str) -> str:
    """Return the address whose replies have this root element."""
    (path,) = [client_path.path for client_path in settings.CLIENT_PATHS.values() if client_path.root == root]
    return f"{settings.PROJECT_URL}{path.removeprefix('/project/')}"


def gui_urls() -> list[tuple[str, str, str]]:
    """Return the links that the BOINC Manager shows with the project: name, purpose, address."""
    links = [
        ("Your tasks", "What your computers got, and the credit for it", "tasks/"),
        ("Your preferences", "Which tasks of this project your computers get", "project/preferences/"),
        ("Your account", "Your name, e-mail address and password", "account/profile/"),
    ]
    if "account_manager" in settings.ROOMS:
        links.append(("Your computers", "What they have and what they are told to do", "computers/"))
    return [(name, text, f"{settings.SITE_URL}{path}") for name, text, path in links]


def download_url(name: str) -> str:
    """Return the address of a stored file by its name."""
    return f"{settings.PROJECT_URL}download/{quote(name)}"
