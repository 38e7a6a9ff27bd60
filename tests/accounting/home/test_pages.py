"""Landing, connecting a computer, and home."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
from html import unescape
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.utils import timezone
from django.views.defaults import server_error
from pytest_django import Settings

from accounting.home.first_run import attach_command
from accounting.home.reads import read_overview
from accounting.models import Project, ProjectDay
from accounting.projects import public
from portal.models import ClientKey, Host, User
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
CREDIT, SEC = 1_000_000, 1_000_000
THIN, NBSP = "\u202f", "\u00a0"


def words(client: Client, address: str) -> str:
    return page_of(client, address).words


def seen(host: Host, ago: dt.timedelta, now: dt.datetime = NOW) -> None:
    Host.objects.filter(pk=host.pk).update(last_contact_at=now - ago)


# --- landing --------------------------------------------------------------------------------------------


def test_the_front_door_is_open_to_anybody_and_any_client(client: Client, settings: Settings) -> None:
    settings.SITE_URL = "https://stones.example.org/"
    reply = client.get("/", headers={"User-Agent": "BOINC client (x86_64-pc-linux-gnu 7.20.5)", "Accept": ""})
    assert reply.status_code == 200
    text = reply.content.decode()
    assert '<code id="copy-url">https://stones.example.org/</code>' in text
    assert "boinccmd --acct_mgr attach https://stones.example.org/ EMAIL &quot;$password&quot;" in text


def test_the_front_door_writes_days_as_its_visitor_does(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public, "LEAST_PEOPLE", 0)
    yesterday = timezone.now().date() - dt.timedelta(days=1)
    cache.clear()
    row = {"day": yesterday, "rolled_up_at": timezone.now(), "cpu_time": 3600 * SEC, "njobs_success": 1}
    ProjectDay.objects.create(project=make_project("Alpha"), **row)
    landing_page = client.get("/", headers={"Accept-Language": "de"}).content.decode()
    assert f"<td>{yesterday:%d.%m.%Y}</td>" in landing_page and str(yesterday) not in landing_page


def test_whoever_is_signed_in_goes_home(signed_in: Client) -> None:
    assert signed_in.get("/").headers["Location"] == "/home/"


def test_a_closed_site_does_not_offer_an_account(client: Client, settings: Settings) -> None:
    assert "Create an account" in words(client, "/")
    settings.SIGNUP_OPEN = False
    assert "Create an account" not in words(client, "/")


# --- connect --------------------------------------------------------------------------------------------


def test_the_steps_have_the_visitors_address_filled_in(signed_in: Client) -> None:
    assert 'alice@example.org "$password"' in unescape(words(signed_in, "/connect/?system=linux"))


@pytest.mark.parametrize(
    ("agent", "system", "step"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64)", "Windows", "Download BOINC for Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)", "macOS", "Download BOINC for macOS"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0)", "Linux", "sudo apt install boinc-client boinc-manager"),
        ("Mozilla/5.0 (Linux; Android 14)", "Android", "Install the BOINC app"),
        # There is no client for it: Windows, which most have at home.
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X)", "Windows", "Download BOINC for Windows"),
        ("", "Windows", "Download BOINC for Windows"),
    ],
)
def test_the_steps_are_those_of_the_visitors_system(signed_in: Client, agent: str, system: str, step: str) -> None:
    def landing_page(query: str) -> str:
        body = signed_in.get(f"/connect/{query}", headers={"User-Agent": agent}).content.decode()
        [name] = re.findall(r'aria-current="true">(\w+)</a>', body)
        assert (step in body) is (name == system)
        return str(name)

    assert landing_page("") == landing_page("?system=none") == system
    assert landing_page("?system=android") == "Android"


@pytest.mark.system
def test_the_command_asks_for_the_password_and_takes_any_address() -> None:
    """Run by a real shell, with a program in the place of boinccmd that shows its arguments."""
    email = "o'neill+$HOME`x`@example.org"
    command = attach_command("https://stones.example.org/", email)
    script = 'boinccmd() { printf "%s\\n" "$@"; }\n' + command
    done = subprocess.run(["bash", "-c", script], input="secret \\ $x\n", text=True, capture_output=True, check=True)
    assert done.stdout.splitlines() == ["--acct_mgr", "attach", "https://stones.example.org/", email, "secret \\ $x"]
    assert "secret" not in command


def test_no_page_has_a_password_in_a_command(signed_in: Client) -> None:
    for system in ("windows", "macos", "linux", "android"):
        text = words(signed_in, f"/connect/?system={system}")
        assert "PASSWORD" not in text and "login token" in text
    assert "PASSWORD" not in words(signed_in, "/account/keys/")


# --- the first run ---------------------------------------------------------------------------------------


def test_a_new_volunteer_is_led_through_three_steps(signed_in: Client, alice: User, projects: list[Project]) -> None:
    assert "Three steps to take part" in words(signed_in, "/home/")
    assert words(signed_in, "/home/").count("done") == 0
    # The first step leads to the second.
    assert signed_in.post("/projects/keywords/", {"k1": "yes"}).headers["Location"] == "/connect/"
    assert words(signed_in, "/home/").count("done") == 1
    host = make_host(alice, "studio")
    seen(host, dt.timedelta(minutes=1), timezone.now())
    text = words(signed_in, "/home/")
    assert "Your first computer is connected" in text and "First contact received" in text and "studio" in text
    assert signed_in.post("/projects/keywords/", {"k1": "yes"}).headers["Location"] == "/projects/keywords/"
    # Until the first day counts
    credit(host, projects[0], timezone.now().date().isoformat(), (CREDIT, 0, SEC, 0, 1, 0))
    assert "first-run" not in signed_in.get("/home/").content.decode()


def test_the_wait_goes_on_until_a_computer_reports(signed_in: Client, studio: Host) -> None:
    now = timezone.now()
    address = f"/connect/status/?since={quote(now.isoformat())}"
    # A computer that was attached before keeps reporting.
    seen(studio, dt.timedelta(seconds=-1), now)
    waiting = signed_in.get(address).content.decode()
    assert "Waiting for another computer" in waiting and "hx-get" in waiting
    ClientKey.objects.create(user=studio.owner, host=studio, origin=ClientKey.Origin.ATTACH, key_hash=b"k" * 32)
    over = signed_in.get(address).content.decode()
    assert "studio" in over and "hx-get" not in over


def test_another_users_computer_does_not_end_the_wait(signed_in: Client, bob: User) -> None:
    since = timezone.now() - dt.timedelta(minutes=1)
    host = make_host(bob, "bobs")
    ClientKey.objects.create(user=bob, host=host, origin=ClientKey.Origin.ATTACH, key_hash=b"k" * 32)
    text = signed_in.get(f"/connect/status/?since={quote(since.isoformat())}").content.decode()
    assert "Waiting" in text and "bobs" not in text


@pytest.mark.parametrize(
    "since", ["", "x", "9999-99-99T00:00:00Z", "2026-03-10", "2999-01-01T00:00:00+00:00", "0001-01-01T00:00:00+23:59"]
)
def test_any_since_is_survived(signed_in: Client, since: str) -> None:
    assert signed_in.get("/connect/status/", {"since": since}).status_code == 200


def test_a_poll_after_signing_out_never_swaps_in_the_sign_in_page(client: Client) -> None:
    reply = client.get("/connect/status/")
    assert (reply.status_code, reply.headers["HX-Refresh"], reply.content) == (403, "true", b"")


# --- home -----------------------------------------------------------------------------------------------


def test_an_empty_account_is_told_what_to_do(signed_in: Client) -> None:
    text = words(signed_in, "/home/")
    assert "No computer is connected yet" in text and "Connect a computer" in text


def test_home_adds_up_the_last_24_hours_week_month_and_ever(studio: Host) -> None:
    alpha, beta = make_project("Alpha"), make_project("Beta")
    # One row a day, with as many credits as the day is far back, plus one: 1 today, 2 yesterday …
    for back in (0, 1, 6, 7, 29, 30):
        day = str((NOW - dt.timedelta(days=back)).date())
        credit(studio, alpha, day, ((back + 1) * CREDIT, 0, 60 * SEC, 0, 1, 0))
    credit(studio, beta, str(NOW.date()), (0, 3 * CREDIT, 0, 30 * SEC, 2, 1))
    overview = read_overview(studio.owner, NOW)
    assert overview.week.ec == (1 + 2 + 7 + 3) * CREDIT
    assert overview.month.ec == (1 + 2 + 7 + 8 + 30 + 3) * CREDIT
    assert overview.total_ec == (1 + 2 + 7 + 8 + 30 + 31 + 3) * CREDIT
    # At noon, half of yesterday is within the last 24 hours.
    work = overview.recent.work
    assert (work.ec, work.cpu_time, work.gpu_time) == (5 * CREDIT, (60 + 30) * SEC, 30 * SEC)
    assert (overview.month.succeeded, overview.month.failed) == (5 + 2, 1)
    assert [(part.name, part.ec) for part in overview.projects] == [("Alpha", 10 * CREDIT), ("Beta", 3 * CREDIT)]
    assert overview.projects[0].fraction == 10 / 13
    (line,) = overview.hosts
    assert (line.recent_ec, line.week_ec) == (5 * CREDIT, 13 * CREDIT)
    assert len(overview.days) == 30 and overview.days[-1] == (NOW.date(), 4 * CREDIT)


def test_the_usual_day_is_the_median_of_the_days_that_are_over(studio: Host) -> None:
    project = make_project()
    for back, credits in ((0, 1000), (1, 4), (2, 0), (3, 10), (4, 6)):
        if credits:
            day = str((NOW - dt.timedelta(days=back)).date())
            credit(studio, project, day, (credits * CREDIT, 0, 0, 0, 0, 0))
    # Days 1 to 4 back: 4, 0, 10, 6; the median is (4 + 6) / 2. Today does not count, nor what was before.
    assert read_overview(studio.owner, NOW).usual_day_ec == 5 * CREDIT


def test_a_computer_silent_for_three_days_wants_attention(studio: Host) -> None:
    seen(studio, dt.timedelta(days=3) - dt.timedelta(seconds=1))
    assert read_overview(studio.owner, NOW).attention == []
    seen(studio, dt.timedelta(days=3))
    (line,) = read_overview(studio.owner, NOW).attention
    assert (line.host_name, line.since) == ("studio", NOW - dt.timedelta(days=3))


def test_what_needs_attention_stands_above_the_figures(signed_in: Client, studio: Host) -> None:
    credit(studio, make_project("Alpha"), str(timezone.now().date()), (CREDIT, 0, 0, 0, 1, 0))
    seen(studio, dt.timedelta(days=4), timezone.now())
    text = words(signed_in, "/home/")
    assert 0 < text.index("What can I do?") < text.index("credits in the last 24 hours") < text.index("Total")


def test_a_computer_that_reported_today_is_contributing(studio: Host) -> None:
    seen(studio, dt.timedelta(hours=23))
    assert read_overview(studio.owner, NOW).hosts_active == 1
    seen(studio, dt.timedelta(hours=25))
    assert read_overview(studio.owner, NOW).hosts_active == 0


def test_work_that_does_not_count_wants_attention_for_a_week(studio: Host) -> None:
    seen(studio, dt.timedelta(0))
    make_note(studio, "dropped", "2026-03-04", detail="cpu_ec")
    make_note(studio, "reset", "2026-03-10")
    make_note(studio, "dropped", "2026-03-03", detail="gpu_ec")
    (line,) = read_overview(studio.owner, NOW).attention
    # The one of 3 March is seven days old, and a reset loses nothing.
    assert line.host_name == "studio" and "1 note)" in line.text


def test_retired_and_merged_computers_are_left_out_but_their_credit_stays(studio: Host) -> None:
    old = make_host(studio.owner, "old", retired_at=NOW)
    credit(old, make_project(), "2026-03-10", (5 * CREDIT, 0, 0, 0, 0, 0))
    make_host(studio.owner, "gone", merged_into=studio)
    overview = read_overview(studio.owner, NOW)
    assert [line.host.name for line in overview.hosts] == ["studio"]
    assert overview.week.ec == overview.total_ec == 5 * CREDIT


def test_home_shows_the_last_24_hours_whatever_the_hour(signed_in: Client, studio: Host) -> None:
    today, alpha = timezone.now().date(), make_project("Alpha")
    Host.objects.filter(pk=studio.pk).update(last_contact_at=timezone.now())
    credit(studio, alpha, str(today), (3 * CREDIT, 0, 60 * SEC, 0, 1, 0))
    text = words(signed_in, "/home/")
    assert "3 credits in the last 24 hours" in text and "more will be reported" not in text
    Host.objects.filter(pk=studio.pk).update(last_contact_at=timezone.now() - dt.timedelta(hours=6))
    # 3 credits in the 18 hours before the last report: 3 / 18 x 6 = 1 in those since.
    assert "About 1 more will be reported" in words(signed_in, "/home/")


def test_of_many_computers_home_shows_those_that_need_attention(studio: Host, alice: User) -> None:
    for number in range(60):
        make_host(alice, f"node-{number}", last=str(NOW.date()))
    seen(studio, dt.timedelta(days=4))
    first, *_others = read_overview(alice, NOW).hosts
    assert (first.host.name, first.needs_attention) == ("studio", True)


def test_tasks_that_fail_at_several_projects_are_one_line_for_their_computer(studio: Host, alice: User) -> None:
    seen(studio, dt.timedelta(0))
    for name, nfailed in (("Alpha", 4), ("Beta", 9)):
        credit(studio, make_project(name), "2026-03-10", (0, 0, 0, 0, 1, nfailed))
    (line,) = read_overview(alice, NOW).attention
    assert "9 of 10 tasks of Beta" in line.text


def test_home_shows_the_computers_and_where_it_went(signed_in: Client, studio: Host) -> None:
    credit(studio, make_project("Alpha"), str(timezone.now().date()), (1234 * CREDIT, 0, 7200 * SEC, 0, 1, 0))
    text = words(signed_in, "/home/")
    assert "Contributing now · 1 of 1 computer" in text
    assert f"1{THIN}234 credits in the last 24 hours" in text
    assert f"2{NBSP}h CPU" in text
    assert f"Alpha 1{THIN}234 · 100{THIN}%" in text


@pytest.mark.parametrize("address", ["/home/", "/connect/"])
def test_strangers_are_sent_to_sign_in(client: Client, address: str) -> None:
    assert client.get(address).headers["Location"] == f"/account/login/?next={address}"


@pytest.mark.parametrize("address", ["/", "/home/", "/history/", "/connect/", "/connect/status/"])
def test_pages_only_answer_reads(signed_in: Client, address: str) -> None:
    assert signed_in.post(address).status_code == 405


# --- pages about mishaps --------------------------------------------------------------------------------


def test_an_unknown_address_gets_a_page_that_says_so(signed_in: Client) -> None:
    reply = signed_in.get("/no/such/page/")
    assert reply.status_code == 404
    assert "There is no such page" in reply.content.decode()


def test_a_form_without_its_mark_is_refused_kindly(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    reply = client.post("/account/login/", {"login": alice.email, "password": "x"})
    assert reply.status_code == 403
    assert "Nothing was changed" in reply.content.decode()


def test_a_fault_of_ours_gets_a_page_without_the_database(rf: RequestFactory) -> None:
    reply = server_error(rf.get("/home/"))
    assert reply.status_code == 500
    assert "What your computers reported is safe" in reply.content.decode()
