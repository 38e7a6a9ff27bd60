"""Where addresses of BOINC's web site and of Science United lead: the whole table, and what none of them may do."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from django.conf import settings as site_settings
from django.test import Client
from pytest_django import Settings

from portal.models import User
from portal.public_pages.boinc_addresses import BOINC_PAGES, NoCounterpart

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]

LEADS: Final = {
    "account_finish.php?auth=SECRET": "/account/profile/",
    "get_passwd.php": "/account/password/reset/",
    "home.php": "/home/",
    "results.php": "/tasks/",
    "results.php?hostid=7&offset=20&state=4": "/tasks/?host=7",
    "results.php?userid={me}": "/tasks/",
    "team_display.php?teamid=7": "/project/teams/7/",
    "team_display.php": "/project/teams/",
    "login_form.php?next_url=https://elsewhere.example/": "/account/login/",
    "login_action.php?id=1&t=2&h=SECRET": "/account/login/",
    "logout.php": "/account/logout/",
    "join.php": "/account/signup/",
    "signup.php": "/account/signup/",
    "create_account_form.php": "/account/signup/",
    "welcome.php": "/connect/",
    "download.php": "/connect/",
    "download_software.php": "/connect/",
    "mail_passwd.php": "/account/password/reset/",
    "recover_email.php": "/account/email/",
    "validate_email_addr.php?validate=1&u=1&x=SECRET": "/account/email/",
    "edit_email_form.php": "/account/email/",
    "edit_passwd_form.php": "/account/password/change/",
    "edit_user_info_form.php": "/account/profile/",
    "edit_forum_preferences_form.php": "/account/email-preferences/",
    "opt_out.php?code=SECRET&userid=7": "/account/email-preferences/",
    "weak_auth.php": "/account/keys/",
    "delete_account_request.php": "/account/delete/",
    "delete_account_confirm.php?id=1&token=SECRET": "/account/delete/",
    "prefs.php?subset=global": "/account/preferences/",
    "prefs_edit.php?subset=global": "/account/preferences/",
    "prefs_default.php": "/account/preferences/",
    "add_venue.php?venue=home": "/account/preferences/",
    "kw_prefs.php": "/projects/keywords/",
    "cert1.php": "/history/certificates/",
    "cert_all.php": "/history/certificates/",
    "show_user.php?userid={me}": "/home/",
    "show_user.php?userid=7&format=xml": "/project/show_user.php?userid=7&format=xml",
    "show_user.php?auth=SECRET&format=xml": "/project/show_user.php?format=xml",
    "userw.php?id={me}": "/home/",
    "view_profile.php?userid={me}": "/home/",
    "hosts_user.php": "/computers/",
    "hosts_user.php?userid={me}": "/computers/",
    "show_host_detail.php?hostid=7": "/computers/7/",
    "show_host_detail.php?hostid=7&format=xml": "/project/show_host_detail.php?hostid=7&format=xml",
    "host_app_versions.php?hostid=7": "/computers/7/",
    "host_edit_form.php?hostid=7": "/computers/7/",
    "host_delete.php?hostid=7": "/computers/7/",
    "merge_by_name.php": "/computers/",
    "explain_state.php?field=result_outcome": "/tasks/",
    "submit.php?action=status": "/project/batches/",
    "sandbox.php": "/project/batches/",
    "result.php?resultid=7": "/tasks/7/",
    "workunit.php?wuid=7": "/workunits/7/",
    "team.php?teamid=7": "/project/teams/7/",
    "team_members.php?teamid=7&offset=20": "/project/teams/7/",
    "team_join_form.php?id=7&teamid=7": "/project/teams/7/",
    "team_edit_form.php?teamid=7": "/project/teams/7/",
    "team_manage.php?teamid=7": "/project/teams/7/",
    "team_admins.php?teamid=7": "/project/teams/7/",
    "team_quit_form.php?teamid=7": "/project/teams/7/",
    "team_change_founder_form.php?teamid=7": "/project/teams/7/",
    "team_search.php": "/project/teams/",
    "team_create_form.php": "/project/teams/new/",
    "top_users.php?sort_by=total_credit": "/project/top/",
    "top_teams.php": "/project/top/teams/",
    "index.php": "/",
    "info.php": "/about/",
    "apps.php": "/apps/",
    "apps.php?xml=1": "/project/apps.php?format=xml",
    "stats.php": "/project/stats/",
    "server_status.php": "/status/",
    "rss_main.php?ndays=30": "/notices.rss",
    "notify_rss.php?userid=1&auth=SECRET": "/notices.rss",
    "all_news.php": "/news/",
    "old_news.php": "/news/",
    "su_home.php": "/home/",
    "su_show_user.php?userid={me}": "/home/",
    "su_hosts.php": "/computers/",
    "su_hosts.php?action=su_info&host_id=7": "/computers/7/",
    "su_hosts.php?action=su_info&user_id={me}&host_id=7": "/computers/7/",
    "su_prefs.php": "/projects/keywords/",
    "su_compute_prefs.php": "/account/preferences/",
    "su_email_prefs.php": "/account/email-preferences/",
    "su_unsubscribe.php?code=SECRET&userid=7": "/account/email-preferences/",
    "su_user_projects.php": "/projects/",
    "su_user_accounting.php": "/history/",
    "su_graph.php": "/history/",
    "su_graph2.php?userid={me}&what=ec": "/history/",
    "su_connect.php?id=7": "/projects/",
    "su_show_project.php?id=7": "/projects/",
    "su_projects_acct.php": "/projects/",
    "su_join.php": "/account/signup/",
    "su_welcome.php": "/connect/",
    "su_download.php": "/connect/",
    "su_cert.php": "/history/certificates/",
    "su_lb.php?sort=ec": "/project/top/",
    "su_lb_intro.php": "/project/top/choice/",
    "su_account_settings.php": "/account/profile/",
    "su_help.php": "/about/",
    "su_about.php": "/about/",
    "su_intro.php": "/about/",
    "su_science.php": "/projects/",
    "su_privacy.php": "/privacy/",
    "su_auth_login.php": "/account/login/",
    "intro.php": "/about/",
}
GONE: Final = sorted(name for name, page in BOINC_PAGES.items() if isinstance(page, NoCounterpart))
ABOUT_ONESELF: Final = ("results.php?userid=", "hosts_user.php?userid=", "su_hosts.php?user_id=")
ABOUT_A_PERSON: Final = ("show_user.php?userid=", "view_profile.php?userid=", "userw.php?id=")


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def main_of(content: bytes) -> str:
    """What a page says; the rest has tokens that differ each time."""
    return content.decode().partition("<main")[2].partition("</main>")[0]


@pytest.mark.parametrize("address", LEADS)
def test_an_address_leads_to_our_page_with_the_numbers_it_names(signed_in: Client, alice: User, address: str) -> None:
    at_root = signed_in.get("/" + address.format(me=alice.pk))
    assert (at_root.status_code, at_root.headers["Location"]) == (302, LEADS[address])
    assert at_root.headers["Referrer-Policy"] == "no-referrer" or address.startswith("server_status")


@pytest.mark.parametrize("address", [a for a in LEADS if "format=xml" not in a and "?xml" not in a])
def test_it_leads_there_from_below_the_project_too(signed_in: Client, alice: User, address: str) -> None:
    path = "/project/" + address.format(me=alice.pk)
    reply = signed_in.get(path)
    if path.partition("?")[0] in site_settings.CLIENT_PATHS:
        # Programs ask there: browsers come by the address at the root.
        assert reply.headers["Location"] == path.removeprefix("/project")
        reply = signed_in.get(reply.headers["Location"])
    assert reply.headers["Location"] == LEADS[address]


def test_the_table_is_whole_and_documented() -> None:
    text = (ROOT / "docs" / "reference" / "boinc-addresses.md").read_text()
    tested = {address.partition(".php")[0] for address in LEADS} | {*GONE}
    assert tested == {*BOINC_PAGES}
    assert {*re.findall(r"`(\w+)\.php", text)} >= tested


@pytest.mark.parametrize("name", GONE)
def test_what_has_no_counterpart_says_so_and_leads_on(client: Client, name: str) -> None:
    reply = client.get(f"/project/{name}.php?id=7")
    words = reply.content.decode()
    assert reply.status_code == 410
    assert "This site has no" in words and 'href="/account/login/"' in words


def test_bare_slashes_of_the_android_app_are_no_other_site(client: Client) -> None:
    assert client.get("/project//get_passwd.php").headers["Location"] == "/account/password/reset/"
    assert client.get("http://testserver//get_passwd.php").headers["Location"] == "/account/password/reset/"


def test_other_php_pages_are_not_there(client: Client) -> None:
    assert client.get("/wp_login.php").status_code == 404
    assert client.post("/get_passwd.php").status_code == 405


# --- What no address may do ----------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ABOUT_ONESELF)
def test_pages_of_ones_own_ask_strangers_to_sign_in_and_bring_them_back(
    client: Client, bob: User, address: str
) -> None:
    reply = client.get(f"/{address}{bob.pk}&auth=SECRET&next_url=//elsewhere.example")
    assert reply.headers["Location"] == f"/account/login/?next={quote(f'/{address}{bob.pk}')}"


@pytest.mark.parametrize("address", (*ABOUT_ONESELF, *ABOUT_A_PERSON))
def test_somebody_elses_page_is_nobody_elses(signed_in: Client, bob: User, address: str) -> None:
    there, not_there = (signed_in.get(f"/{address}{number}") for number in (bob.pk, 10**9))
    assert there.status_code == not_there.status_code == 404
    assert main_of(there.content) == main_of(not_there.content) and bob.name not in there.content.decode()


@pytest.mark.parametrize("address", ABOUT_A_PERSON)
def test_strangers_learn_that_volunteers_have_no_public_page(client: Client, alice: User, address: str) -> None:
    reply = client.get(f"/{address}{alice.pk}")
    assert reply.status_code == 404
    assert "no public page" in reply.content.decode() and alice.name not in reply.content.decode()


HOSTILE: Final = ("//elsewhere.example/", "https://elsewhere.example/", "7/../../x", "%0d%0aX: y", "9" * 30, "-1", "٣")


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_leads_to_another_site_or_is_passed_on(signed_in: Client, value: str) -> None:
    for name in BOINC_PAGES:
        names = "userid id user_id hostid host_id teamid resultid wuid next_url url auth"
        query = "&".join(f"{parameter}={quote(value)}" for parameter in names.split())
        reply = signed_in.get(f"/{name}.php?{query}")
        where = reply.headers.get("Location", "/")
        assert re.fullmatch(r"/([a-z][\w./-]*)?", where) and "elsewhere" not in where, name


def test_the_manager_comes_to_the_page_for_the_name_and_its_key_goes_nowhere(
    client: Client, alice: User, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The key does not sign in, and is not looked up: so no address tells whether a key is one."""
    with caplog.at_level(logging.DEBUG):
        reply = client.get("/project/account_finish.php?auth=SECRET", follow=True)
    assert [where for where, _ in reply.redirect_chain] == [
        "/account/profile/",
        "/account/login/?next=/account/profile/",
    ]
    assert "Your computer is attached." in reply.content.decode()
    told = caplog.text + "".join(capfd.readouterr()) + "".join(str(vars(record)) for record in caplog.records)
    assert "SECRET" not in told + reply.content.decode()
    client.force_login(alice)
    assert (
        client.get("/project/account_finish.php?auth=SECRET", follow=True).redirect_chain[-1][0] == "/account/profile/"
    )


def test_a_page_that_this_installation_lacks_says_so(client: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.portal.public_pages.urls_without_extras"
    reply = client.get("/top_users.php")
    assert reply.status_code == 404 and "not in use here" in reply.content.decode()
