"""The project's web RPCs, each as programs ask for it (docs/reference/web-rpcs.md)."""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from django.conf import settings as site_settings
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.wire.project_config import parse_project_config
from accounting.wire.project_replies import parse_account_info
from credit.export import consent
from credit.models import AppVersion, HostCredit, Team, UserCredit
from credit.teams import membership
from portal.models import ClientKey, Host, LoginToken, User
from portal.people import login_tokens
from portal.people.accounts import issue_client_key, weak_key
from portal.people.recovery import reset_password
from portal.people.security_events import NOWHERE
from portal.wire import credentials
from portal.wire.boinc_errors import (
    ERR_ACCOUNT_NOT_FOUND,
    ERR_BAD_AUTHENTICATOR,
    ERR_BAD_USER_NAME,
    ERR_GENERIC,
    ERR_PROJECT_DOWN,
)
from scheduler.models import BetaTest, UserPreferences
from tests.support.credit_factories import make_app, make_version
from tests.support.sessions import sign_in_lately
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db

Reply = TypeVar("Reply")
ROOT = Path(__file__).resolve().parents[3]


def raw(name: str, method: str = "GET", /, **given: object) -> bytes:
    query = urlencode({key: str(value) for key, value in given.items()})
    if method == "GET":
        reply = Client().get(f"/project/{name}.php?{query}")
    else:
        reply = Client().post(f"/project/{name}.php", query, content_type="application/x-www-form-urlencoded")
    assert reply.status_code == 200 and reply["Content-Type"].startswith("text/xml")
    return bytes(reply.content)


def ask(name: str, method: str = "GET", /, **given: object) -> ElementTree.Element:
    return ElementTree.fromstring(raw(name, method, **given))


def error(name: str, method: str = "GET", /, **given: object) -> int:
    reply = ask(name, method, **given)
    assert reply.tag == "error" and len(reply.findtext("error_msg", "")) > 20
    return int(reply.findtext("error_num", "0"))


def closing(work: Callable[..., Reply]) -> Callable[..., Reply]:
    """The same in another thread, whose connection ends with it."""

    def run(*args: object, **given: object) -> Reply:
        try:
            return work(*args, **given)
        finally:
            connection.close()

    return run


@pytest.fixture
def key(alice: User) -> str:
    return issue_client_key(alice, ClientKey.Origin.ATTACH)


@pytest.fixture
def published(alice: User, studio: Host) -> User:
    UserCredit.objects.create(user=alice, total_credit=1234.5)
    HostCredit.objects.create(host=studio, total_credit=1000)
    consent.save(alice, exports_statistics=True, shows_hosts=True, now=timezone.now())
    return alice


def test_am_get_info_describes_the_account(alice: User, key: str) -> None:
    User.objects.filter(pk=alice.pk).update(name="Zoë & 名")
    UserPreferences.objects.create(user=alice, mod_time=1, text="<run_on_batteries>1</run_on_batteries>")
    team = membership.found(alice, Team(name="Peaks"))
    content = raw("am_get_info", account_key=key)
    # Where Science United has it, too
    assert Client().get("/am_get_info.php", {"account_key": key}).content == content
    # As this site's own account manager reads it of any project
    info = parse_account_info(content)
    assert (info.id, info.name) == (alice.pk, "Zoë & 名")
    assert info.weak_key == weak_key(alice.pk, credentials.key_hash(key))
    reply = ElementTree.fromstring(content)
    assert reply.find("success") is not None and reply.find("teamfounder") is not None
    assert reply.findtext("cpid") == hashlib.md5(f"{alice.cross_project_id}{alice.email}".encode()).hexdigest()
    assert reply.findtext("teamid") == str(team.pk) and reply.findtext("show_hosts") == "0"
    # Elements, as BOINC has it
    assert reply.findtext("global_prefs/global_preferences/run_on_batteries") == "1"


def test_preferences_that_are_no_xml_are_left_out(alice: User, key: str) -> None:
    UserPreferences.objects.create(user=alice, mod_time=1, text="</global_preferences><id>1</id>")
    reply = ask("am_get_info", account_key=key)
    assert reply.findtext("global_prefs") == "" and len(reply.findall("id")) == 1


@pytest.mark.parametrize("name", ["am_get_info", "am_set_info", "am_set_host_info"])
def test_only_the_strong_key_of_the_account_opens_it(name: str, alice: User, key: str) -> None:
    weak = weak_key(alice.pk, credentials.key_hash(key))
    for wrong in ("", "0" * 32, weak, key + "0"):
        assert error(name, account_key=wrong, name="Mallory") == ERR_BAD_AUTHENTICATOR
    ClientKey.objects.update(revoked_at=timezone.now())
    assert error(name, account_key=key, name="Mallory") == ERR_BAD_AUTHENTICATOR
    assert User.objects.get().name == "Alice"


def test_am_set_info_changes_name_team_and_what_is_shown(published: User, key: str, bob: User) -> None:
    team = membership.found(bob, Team(name="Peaks"))
    reply = ask("am_set_info", "POST", account_key=key, name="Alice B.", teamid=team.pk, show_hosts=0, country="France")
    assert reply.tag == "am_set_info_reply" and reply.find("success") is not None
    assert User.objects.get(pk=published.pk).name == "Alice B."
    assert published.membership.team == team and not consent.read(published).shows_hosts
    ask("am_set_info", account_key=key, teamid=0)
    assert Team.objects.get().memberships.count() == 1


def test_am_set_info_changes_nothing_that_a_key_must_not(alice: User, key: str) -> None:
    for name in ("email_addr", "password_hash"):
        assert error("am_set_info", account_key=key, name="Mallory", **{name: "x"}) == ERR_GENERIC
    for name in ("two\nlines", "Mara\u200bx"):
        assert error("am_set_info", account_key=key, name=name) == ERR_BAD_USER_NAME
    assert error("am_set_info", account_key=key, name="Mallory", teamid=77) == ERR_ACCOUNT_NOT_FOUND
    assert User.objects.get().name == "Alice"


@pytest.mark.parametrize("number", ["", "x", "-1", "1.5", "9" * 30])
def test_a_team_number_that_is_none_changes_nothing(number: str, alice: User, key: str) -> None:
    team = membership.found(alice, Team(name="Peaks"))
    assert error("am_set_info", account_key=key, name="Alice B.", teamid=number) == ERR_GENERIC
    assert alice.membership.team == team and User.objects.get().name == "Alice"


def test_am_set_host_info_sets_the_venue_of_ones_own_computer(key: str, studio: Host, bob: User) -> None:
    assert ask("am_set_host_info", account_key=key, hostid=studio.pk, venue="work").find("success") is not None
    assert Host.objects.get().venue == "work"
    assert error("am_set_host_info", account_key=key, hostid=studio.pk, venue="moon") == ERR_GENERIC
    theirs = issue_client_key(bob, ClientKey.Origin.ATTACH)
    assert error("am_set_host_info", account_key=theirs, hostid=studio.pk, venue="") == ERR_ACCOUNT_NOT_FOUND
    assert Host.objects.get().venue == "work"


@pytest.mark.django_db(transaction=True)
def test_am_set_info_publishes_nobody_who_takes_the_consent_back_just_then(published: User, key: str) -> None:
    consent.save(published, exports_statistics=True, shows_hosts=False, now=timezone.now())
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic(), connection.cursor() as cursor:
            consent.save(published, exports_statistics=False, shows_hosts=False, now=timezone.now())
            cursor.execute("SELECT pg_backend_pid()")
            (own,) = cursor.fetchone()
            asking = other.submit(closing(ask), "am_set_info", account_key=key, show_hosts=1)

            def is_waiting() -> bool:
                cursor.execute("SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [own])
                return cursor.fetchone() is not None

            wait_until(is_waiting, "the web RPC to wait for the consent", 30)
        assert asking.result().tag == "am_set_info_reply"
    now = consent.read(published)
    assert not now.exports_statistics and now.shows_hosts


def test_show_user_shows_who_is_published(published: User, bob: User) -> None:
    user = ask("show_user", userid=published.pk, format="xml")
    assert user.tag == "user" and user.findtext("name") == "Alice" and user.find("host") is None
    assert float(user.findtext("total_credit", "")) == 1234.5
    for number in (bob.pk, 0, "x", "9" * 30):
        assert error("show_user", userid=number, format="xml") == ERR_ACCOUNT_NOT_FOUND


def test_show_user_shows_who_has_the_key_their_computers(alice: User, key: str, studio: Host) -> None:
    user = ask("show_user", auth=key, format="xml")
    assert user.findtext("id") == str(alice.pk)
    assert [host.findtext("id") for host in user.findall("host")] == [str(studio.pk)]
    assert "studio" not in raw("show_user", auth=key).decode()


def test_an_empty_key_is_no_wrong_key(published: User, settings: Settings) -> None:
    """As scripts send it that have none: an address that only does that may go on."""
    settings.CLIENT_LOGIN_FAILURES = 2
    for _ in range(3):
        assert error("am_get_info", account_key="") == ERR_BAD_AUTHENTICATOR
    assert ask("show_user", userid=published.pk, auth="", format="xml").findtext("name") == "Alice"
    assert error("am_get_info", account_key="0" * 32) == ERR_BAD_AUTHENTICATOR


def test_show_host_detail_shows_what_is_published(published: User, studio: Host) -> None:
    host = ask("show_host_detail", hostid=studio.pk, format="xml")
    assert host.tag == "host" and host.findtext("ncpus") == "4" and host.findtext("userid") == str(published.pk)
    assert host.findtext("host_cpid") == hashlib.md5(b"a" * 32 + b"alice@example.org").hexdigest()
    consent.save(published, exports_statistics=True, shows_hosts=False, now=timezone.now())
    assert error("show_host_detail", hostid=studio.pk, format="xml") == ERR_ACCOUNT_NOT_FOUND


def test_apps_names_the_newest_programs_of_each_app() -> None:
    app = make_app("alpine", user_friendly_name="Alpine 名")
    for number in (100, 102, 101):
        make_version(app, number)
    make_version(app, 103, is_deprecated=True)
    make_version(make_app("old", is_deprecated=True))
    (found,) = ask("apps", xml=1).findall("application")
    assert found.findtext("user_friendly_name") == "Alpine 名" and found.findtext("name") == "alpine"
    assert [version.findtext("version_num") for version in found.findall("version")] == ["102"]
    assert found.findtext("version/platform_short") == "x86_64-pc-linux-gnu"


def test_letters_are_valid_in_whatever_encoding_a_reader_assumes() -> None:
    make_version(make_app("alpine", user_friendly_name="Zéta ∆"))
    content = raw("apps", xml=1)
    assert b"Z&#233;ta &#8710;" in content and content.isascii()


def test_apps_marks_what_only_testers_get() -> None:
    app = make_app()
    make_version(app, 100)
    BetaTest.objects.create(app_version=make_version(app, 101))
    versions = ask("apps", xml=1).findall("application/version")
    assert [(version.findtext("version_num"), version.find("beta") is not None) for version in versions] == [
        ("101", True),
        ("100", False),
    ]


def test_app_versions_gives_what_a_central_server_averages() -> None:
    week_ago = timezone.now() - dt.timedelta(days=7)
    version = make_version(
        make_app(), plan_class="cuda", pfc_n=200, pfc_avg=0.5, pfc_scale=1.25, expavg_credit=80, expavg_at=week_ago
    )
    (found,) = ask("app_versions", xml=1).findall("app_version")
    assert found.findtext("id") == str(version.pk) and found.findtext("plan_class") == "cuda"
    numbers = {tag: float(found.findtext(tag, "")) for tag in ("pfc_n", "pfc_avg", "pfc_scale", "expavg_credit")}
    # Half of 80 after the half-life of a week
    assert numbers == {"pfc_n": 200, "pfc_avg": 0.5, "pfc_scale": 1.25, "expavg_credit": pytest.approx(40, rel=1e-3)}


def test_app_versions_tells_what_other_projects_need_to_judge_a_factor() -> None:
    app = make_app(min_version_samples=20)
    gpu = make_version(app, plan_class="x", processor_type="ATI", gpu_usage=1, pfc_scale=0.1)
    AppVersion.objects.filter(pk=gpu.pk).update(is_scale_received=True)
    make_version(make_app("other"))
    computers = [
        [version.findtext(tag) for tag in ("processor_type", "sample_threshold", "pfc_scale_received")]
        for version in ask("app_versions").findall("app_version")
    ]
    # An empty element is true; one that is not there is false.
    assert computers == [["ATI", "20", ""], ["CPU", "100", None]]


def test_team_lookup_finds_teams_by_number_and_name(published: User, bob: User) -> None:
    peaks = membership.found(published, Team(name="Peaks & <valleys>", url="https://example.org/"))
    other = membership.found(bob, Team(name="Other"))
    UserCredit.objects.update(total_credit=1240.5)
    team = ask("team_lookup", team_id=peaks.pk)
    assert team.tag == "team" and team.findtext("name") == "Peaks & <valleys>"
    # 1240.5 - 1234.5, and the founder is published
    assert float(team.findtext("total_credit", "")) == 6 and team.findtext("userid") == str(published.pk)
    several = ask("team_lookup", team_ids=f"{peaks.pk},{other.pk},77,x")
    assert [(each.findtext("id"), each.findtext("userid")) for each in several.findall("team")] == [
        (str(peaks.pk), str(published.pk)),
        (str(other.pk), "0"),
    ]
    assert [each.findtext("id") for each in ask("team_lookup", team_name="peak", format="xml")] == [str(peaks.pk)]
    assert error("team_lookup", team_id=77) == ERR_ACCOUNT_NOT_FOUND
    assert len(ask("team_lookup", team_name="pe\0ak")) == 0


def test_a_client_finds_project_account_and_token_in_its_installers_name(
    client: Client, alice: User, settings: Settings
) -> None:
    """By two underscores and three parts, the first of which is the project's number in BOINC's list."""
    settings.BOINC_LIST_ID = 123
    sign_in_lately(client, alice)
    page = client.post("/account/login-token/").content.decode()
    match = re.search(r"__(\d+)_(\d+)_([0-9a-f]+)<", page)
    assert match is not None and match[1] == "123"
    reply = ask("login_token_lookup", user_id=match[2], token=match[3])
    assert reply.tag == "login_token_reply" and match[2] == str(alice.pk)


def test_an_installers_name_needs_the_number_of_the_project_in_boincs_list(client: Client, alice: User) -> None:
    sign_in_lately(client, alice)
    assert "__" not in client.post("/account/login-token/").content.decode().split("<main", 1)[1].split("</main", 1)[0]


def test_a_login_token_brings_a_key_once(client: Client, alice: User, settings: Settings) -> None:
    settings.BOINC_LIST_ID = 123
    sign_in_lately(client, alice)
    page = client.post("/account/login-token/").content.decode()
    token = login_tokens.make(alice, timezone.now())
    # What the page showed ended with the newer one.
    assert f"{alice.pk}_" in page and f"{alice.pk}_{token}" not in page
    reply = ask("login_token_lookup", user_id=alice.pk, token=token)
    assert reply.tag == "login_token_reply" and reply.findtext("user_name") == "Alice"
    assert ask("am_get_info", account_key=reply.findtext("authenticator")).findtext("id") == str(alice.pk)
    assert error("login_token_lookup", user_id=alice.pk, token=token) == ERR_BAD_AUTHENTICATOR


def test_a_login_token_ends_after_a_day_and_is_one_accounts(alice: User, bob: User) -> None:
    token = login_tokens.make(alice, timezone.now())
    assert error("login_token_lookup", user_id=bob.pk, token=token) == ERR_BAD_AUTHENTICATOR
    LoginToken.objects.update(made_at=timezone.now() - login_tokens.VALID)
    assert error("login_token_lookup", user_id=alice.pk, token=token) == ERR_BAD_AUTHENTICATOR
    assert not ClientKey.objects.exists()


def test_a_new_password_ends_login_tokens(alice: User) -> None:
    """Anyone who opened the account could have had one made."""
    token = login_tokens.make(alice, timezone.now())
    reset_password(alice, "another secret", NOWHERE, session_key=None)
    assert error("login_token_lookup", user_id=alice.pk, token=token) == ERR_BAD_AUTHENTICATOR
    assert not ClientKey.objects.exists()


def test_notices_are_a_feed(db: None) -> None:
    reply = Client().get("/notices.php?userid=1&auth=1_x")
    assert reply.status_code == 200 and b"<rss" in reply.content


@pytest.mark.system
def test_project_config_answers_while_the_database_is_down() -> None:
    """In a process of its own, which looks for its database where nothing listens."""
    program = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "from django.conf import settings; settings.ALLOWED_HOSTS = ['*']\n"
        "print('@' + Client().get('/project/get_project_config.php').content.decode())\n"
    )
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "DJANGO_SETTINGS_MODULE": "portal.settings"}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True
    )
    content = run.stdout.partition("@")[2]
    reply = ElementTree.fromstring(content)
    assert reply.tag == "project_config" and reply.findtext("error_num") == str(ERR_PROJECT_DOWN)
    assert reply.findtext("master_url") == site_settings.PROJECT_URL
    assert parse_project_config(content.encode()).master_url == site_settings.PROJECT_URL


def test_wrong_keys_of_an_address_are_counted(alice: User, key: str, settings: Settings) -> None:
    settings.CLIENT_LOGIN_FAILURES = 2
    for _ in range(2):
        assert error("am_get_info", account_key="0" * 32) == ERR_BAD_AUTHENTICATOR
    assert error("am_get_info", account_key=key) == ERR_GENERIC
    assert error("login_token_lookup", user_id=alice.pk, token="x") == ERR_GENERIC


def test_an_address_has_a_limit(settings: Settings) -> None:
    settings.WEB_RPCS_PER_MINUTE = 3
    for _ in range(3):
        assert ask("apps", xml=1).tag == "app_versions"
    assert error("apps", xml=1) == ERR_GENERIC
    assert error("am_get_info", account_key="0" * 32) == ERR_GENERIC


def test_no_key_comes_into_the_log(
    key: str, alice: User, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    token = login_tokens.make(alice, timezone.now())
    with caplog.at_level(logging.DEBUG):
        for name in ("am_get_info", "am_set_info", "am_set_host_info"):
            raw(name, account_key=key)
            raw(name, "POST", account_key=key)
        raw("show_user", auth=key)
        raw("login_token_lookup", user_id=alice.pk, token=token)
    logged = caplog.text + "".join(capfd.readouterr()) + "".join(str(vars(record)) for record in caplog.records)
    assert "am_get_info.php" in logged and key not in logged and token not in logged


def test_every_address_of_the_table_is_there_and_has_its_line() -> None:
    text = (ROOT / "docs" / "reference" / "web-rpcs.md").read_text()
    ours = {path for path, route in site_settings.CLIENT_PATHS.items() if "web_rpcs" in route.handler}
    assert ours and all(f"`{path}`" in text for path in ours)
