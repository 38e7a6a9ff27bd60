"""The pictures of README.md are taken by a script from a site with the demo volunteer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import global_settings
from pytest_django import Settings

from credit.models import ValidateState
from portal.dev.demo_login import VOLUNTEER
from portal.models import Host, User
from tests.support.am_rpc import attach
from tests.support.browser_visitor import give_work
from tests.support.credit_factories import NOON, make_app, make_success, make_version, make_workunit
from tests.support.site_process import CHECKOUT, Site
from tools.screenshots import take as screenshots


@pytest.fixture
def demo(site: Site, site_var_dir: Path, settings: Settings) -> User:
    # The site's own: the demo volunteer signs in by the form.
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    user = User.objects.create_user(*VOLUNTEER, name="Mara")
    give_work(user)
    settings.AM_SIGNING_KEY_PUBLIC = site_var_dir / "am_signing_public"
    attach(user, "laptop", password=VOLUNTEER.password)
    app = make_app("alpine")
    studio = Host.objects.get(owner=user, domain_name="studio")
    make_success(
        make_workunit(app), studio, app_version=make_version(app), validate_state=ValidateState.VALID,
        granted_credit=10.0, granted_at=NOON,
    )  # fmt: skip
    return user


@pytest.mark.long
@pytest.mark.usefixtures("chromium", "worker", "four_projects", "demo")
def test_every_picture_of_the_readme_is_taken(site: Site, tmp_path: Path) -> None:
    shown = set(re.findall(r"docs/images/(\w+\.png)", (CHECKOUT / "README.md").read_text()))
    taken = screenshots.take(site.url, tmp_path)
    assert {path.name for path in taken} == shown
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in taken)
    assert all((screenshots.FOLDER / name).is_file() for name in shown)
