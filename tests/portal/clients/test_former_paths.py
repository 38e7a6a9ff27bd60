"""Addresses that a project had on BOINC's server lead to ours after it moved here."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from django.conf import settings as site_settings
from django.core.files.base import ContentFile
from django.test import Client
from pytest_django import Settings

from portal import environment
from portal.clients.paths import present_path, with_former
from scheduler.files.store import store_file
from tests.support.settings_of import settings_of

FOLD = ("/fold/", "/fold_cgi/cgi", "/fold_cgi/file_upload_handler")


@pytest.mark.parametrize(
    ("former", "path", "here"),
    [
        (FOLD, "/fold/", "/project/"),
        (FOLD, "/fold_cgi/cgi", "/project/scheduler"),
        (FOLD, "/fold_cgi/file_upload_handler", "/project/file_upload_handler"),
        (FOLD, "/fold/download/236/in_7", "/project/download/236/in_7"),
        (FOLD, "/fold/lookup_account.php", "/project/lookup_account.php"),
        (FOLD, "/fold/scheduler", "/project/scheduler"),
        (FOLD, "/fold/results.php", "/project/results.php"),
        (FOLD, "/folding/", "/folding/"),
        (FOLD, "/fold_cgi/cgi/", "/fold_cgi/cgi/"),
        (FOLD, "/project/scheduler", "/project/scheduler"),
        (FOLD, "/computers/", "/computers/"),
        (("/",), "/scheduler", "/project/scheduler"),
        (("/",), "/download/236/in_7", "/project/download/236/in_7"),
        (("/",), "/show_user.php", "/project/show_user.php"),
        # The site has one of its own there.
        (("/",), "/lookup_account.php", "/lookup_account.php"),
        (("/",), "/computers/", "/computers/"),
        (("/project/",), "/project/scheduler", "/project/scheduler"),
    ],
)
def test_a_former_address_is_one_of_ours(former: Sequence[str], path: str, here: str) -> None:
    assert present_path(path, former, site_settings.CLIENT_PATHS) == here
    routes = with_former(site_settings.CLIENT_PATHS, former)
    assert routes.get(path) == site_settings.CLIENT_PATHS.get(here)


def test_without_former_addresses_there_are_ours_alone() -> None:
    assert with_former(site_settings.CLIENT_PATHS, []) == site_settings.CLIENT_PATHS


@pytest.mark.django_db
def test_files_are_had_at_the_folders_that_the_other_server_spread_them_over(settings: Settings) -> None:
    settings.FORMER_PATHS = [*FOLD]
    store_file("in_7", ContentFile(b"seven"))
    for address in ("/fold/download/236/in_7", "/fold/download/in_7", "/project/download/in_7"):
        reply = Client().get(address)
        assert (reply.status_code, b"".join(reply)) == (200, b"seven"), address
    assert Client().get("/fold/download/236/in_8").status_code == 404
    reply = Client().post("/fold_cgi/cgi", b"<scheduler_request>", content_type="text/xml")
    assert b"<scheduler_reply>" in reply.content


def test_the_projects_address_stays_the_one_that_clients_have() -> None:
    made = settings_of({**SITE, "FORMER_PATHS": ", ".join(FOLD)})
    assert (made["PROJECT_URL"], made["FORMER_PATHS"]) == ("https://p.example.org/fold/", [*FOLD])
    assert settings_of(SITE)["PROJECT_URL"] == "https://p.example.org/project/"
    alone = settings_of({**SITE, "FORMER_PATHS": "/, /fold_cgi/cgi", "ROOMS": "project"})
    assert alone["PROJECT_URL"] == "https://p.example.org/"


@pytest.mark.parametrize("given", ["fold/", "/fold/../", "/a b/", "/fold/?x", "https://p.example.org/fold/", "/"])
def test_what_is_no_path_is_refused(given: str) -> None:
    with pytest.raises(environment.SettingError, match="FORMER_PATHS"):
        settings_of({**SITE, "FORMER_PATHS": given})


SITE = {
    "SITE_URL": "https://p.example.org/",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
    "BROKER_URL": "redis://127.0.0.1:1/0",
    "CACHE_URL": "redis://127.0.0.1:1/1",
}
