"""The site with each of its extras switched off, and with none: its main pages work and its rooms keep their tasks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings
from django.test import Client
from django.urls import clear_url_caches, get_resolver, reverse
from pytest_django import Settings

from portal import urls
from portal.extras import apps_in_use, site_apps
from portal.models import Host, User

PAGES = (
    "/home/",
    "/history/",
    "/history/years/2026/",
    "/computers/",
    "/computers/{host}/",
    "/projects/",
    "/news/",
    "/privacy/",
    "/account/preferences/",
    "/account/email-preferences/",
    "/account/profile/",
    "/account/data/",
    "/tasks/",
    "/apps/",
    "/project/",
    "/project/stats/",
    "/project/statistics/",
    "/emulator/",
    "/status/",
)
EXTRAS = [app.label for app in site_apps() if app.is_extra]


def test_the_settings_name_each_extra_that_has_a_folder() -> None:
    folders = {path.parent.name for path in Path(settings.BASE_DIR, "extras").glob("*/apps.py")}
    assert set(settings.ALL_EXTRAS) == folders == set(EXTRAS)


@pytest.fixture
def reload_urls() -> Iterator[None]:
    """After the settings are back."""
    yield
    _read_urls()


def _read_urls() -> ModuleType:
    """The addresses of the extras that are in use now; those of the kernel stay as they are."""
    clear_url_caches()
    return importlib.reload(sys.modules[urls.__name__])


@pytest.mark.parametrize("off", [*([extra] for extra in EXTRAS), EXTRAS], ids=lambda off: " ".join(off))
def test_pages_need_no_extra(
    reload_urls: None, off: list[str], client: Client, operator: User, studio: Host, settings: Settings
) -> None:
    addresses = {str(pattern.pattern) for pattern in get_resolver().url_patterns}
    settings.EXTRAS = [extra for extra in EXTRAS if extra not in off]
    _read_urls()
    assert [app.label for app in apps_in_use() if app.is_extra] == settings.EXTRAS
    gone = {str(url.pattern) for app in site_apps() if app.label in off for url in app.urls()}
    assert {str(pattern.pattern) for pattern in get_resolver().url_patterns} == addresses - gone
    client.force_login(studio.owner)
    answers = {page: client.get(page.format(host=studio.pk)).status_code for page in PAGES}
    assert answers == dict.fromkeys(PAGES, 200)
    client.force_login(operator)
    # An extra's own pages need no other extra.
    own = [link.view for app in apps_in_use() if app.is_extra for link in app.links()]
    assert {view: client.get(reverse(view)).status_code for view in own} == dict.fromkeys(own, 200)
    assert client.get("/admin/").status_code == 200
