"""An operator adds a project by its URL and sets it up, step by step."""

from __future__ import annotations

import html
import re
import subprocess
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Project, ProjectProfile, StatisticsImport, UserProject
from accounting.project_setup import accounts, asking
from accounting.project_setup.adding import AlreadyThere, NewProject, add_project
from accounting.project_setup.forms import FoundForm
from accounting.projects import signing_key
from accounting.rpc import account_keys
from accounting.wire.project_config import ProjectConfig
from portal.models import User
from portal.wire import signing
from tests.support.certificates import make_certificate, server_context
from tests.support.fake_project import EMAIL, PASSWORD, STRONG_KEY, WEAK_KEY, FakeProject


def ask(desk: Client, url: str) -> HttpResponse:
    """Enter the URL of a project; the page that follows."""
    response = desk.post(reverse("admin:accounting_project_add_by_url"), {"url": url}, follow=True)
    assert isinstance(response, HttpResponse)
    return response


def add(desk: Client, fake: FakeProject, **fields: object) -> Project:
    """Add the project as it is found, with other fields where given."""
    page = ask(desk, fake.url)
    form = page.context["form"]  # type: ignore[attr-defined]  # only responses of tests have it
    data = {name: form[name].value() for name in form.fields} | fields
    filled = {name: value for name, value in data.items() if value not in (False, None)}
    response = desk.post(reverse("admin:accounting_project_found"), filled)
    assert response.status_code == 302, response.context["form"].errors
    return Project.objects.get()


def step(desk: Client, project: Project, name: str, **data: object) -> str:
    """Do one step; the text of the page that follows."""
    url = reverse(f"admin:accounting_project_{name}", args=[project.pk])
    return desk.post(url, data, follow=True).content.decode()


def test_a_project_is_added_as_it_says_it_is(desk: Client, fake: FakeProject) -> None:
    page = ask(desk, fake.url).content.decode()
    assert "Fake@Home" in page and "windows_x86_64 (NVIDIA GPU)" in page
    project = add(desk, fake)
    assert (project.name, project.master_url) == ("Fake@Home", fake.url)
    assert signing_key.is_signed(fake.url, project.url_signature)
    assert not project.is_active, "no computer is attached before the last step"
    assert project.takes_platforms
    assert {(row.platform, row.processor_type) for row in project.versions.all()} == {
        ("windows_x86_64", "CPU"),
        ("windows_x86_64", "NVIDIA"),
    }
    assert {row.keyword: row.weight for row in project.keywords.all()} == {2: 0.5, 3: 1.0}
    assert project.profile.said == project.profile.seen != {}


def test_what_was_found_can_be_corrected_before_it_is_added(desk: Client, fake: FakeProject) -> None:
    project = add(
        desk, fake, name="Fake", default_share="50", keywords=["3"], versions=[], account_mode="per_user", summary="S"
    )
    assert (project.name, project.default_share, project.account_mode, project.summary) == ("Fake", 50, "per_user", "S")
    assert [row.keyword for row in project.keywords.all()] == [3] and not project.versions.exists()


def test_another_master_url_than_the_typed_one_is_said(desk: Client, fake: FakeProject) -> None:
    fake.config = fake.config.replace(f"<master_url>{fake.url}", "<master_url>https://www.fake.example.org/x")
    page = ask(desk, fake.url).content.decode()
    assert f"states https://www.fake.example.org/x/ as its master URL, not {fake.url}" in page
    project = add(desk, fake)
    assert project.master_url == "https://www.fake.example.org/x/"
    # Computers may have it where the operator found it.
    assert list(project.addresses.values_list("url", "source")) == [(fake.url, "operator")]
    assert signing_key.is_signed(project.master_url, project.url_signature)


def test_no_other_master_url_can_be_chosen_than_these_two(desk: Client, fake: FakeProject) -> None:
    ask(desk, fake.url)
    data = {"name": "F", "master_url": "https://evil.example.org/", "default_share": 1, "account_mode": "shared"}
    assert desk.post(reverse("admin:accounting_project_found"), data).status_code == 200
    assert not Project.objects.exists()


def test_an_account_manager_is_no_project(desk: Client, fake: FakeProject) -> None:
    fake.config += "<account_manager/>"
    page = ask(desk, fake.url).content.decode()
    assert "account manager, not a project" in page and "Add the project" not in page
    desk.post(reverse("admin:accounting_project_found"), {"name": "F", "master_url": fake.url})
    assert not Project.objects.exists()


def test_a_project_that_is_here_already_is_shown(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    response = desk.post(reverse("admin:accounting_project_add_by_url"), {"url": fake.url.rstrip("/")})
    assert response.headers["Location"] == reverse("admin:accounting_project_set_up", args=[project.pk])
    ask(desk, fake.url)
    assert Project.objects.count() == 1


@pytest.mark.parametrize(
    ("inside", "words"),
    [("<html>hello</html>", "not like a BOINC project"), ("x" * 1_200_000, "more than the limit of 1\u202f048")],
)
def test_an_address_that_is_no_project_is_refused(inside: str, words: str, desk: Client, fake: FakeProject) -> None:
    fake._answer = lambda connection, request: connection.sendall(f"HTTP/1.1 200 OK\r\n\r\n{inside}".encode())
    assert words in ask(desk, fake.url).content.decode()
    assert not Project.objects.exists()


def test_an_address_inside_the_network_is_refused(desk: Client, fake: FakeProject, settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("10.0.0.0/8")]
    assert "not public and not in FETCH_ALLOWED_NETWORKS" in ask(desk, fake.url).content.decode()
    assert fake.requests == []


def test_what_a_project_says_is_never_html_here(desk: Client, fake: FakeProject) -> None:
    fake.config = fake.config.replace("Fake@Home", "&lt;script&gt;alert(1)&lt;/script&gt;")
    fake.config += f"<terms_of_use>&lt;img src=x onerror=y&gt;{'t' * 400}</terms_of_use>"
    page = ask(desk, fake.url).content.decode()
    assert "&lt;script&gt;alert(1)" in page and "<script>alert(1)" not in page and "<img src=x" not in page


def test_a_project_that_was_added_meanwhile_is_not_added_twice(desk: Client, fake: FakeProject) -> None:
    """Two operators at once, or a form that is sent twice: both are past the form's own look."""
    add(desk, fake)
    chosen = NewProject("Else", fake.url, fake.url, "", "", 100, "shared", True, [], {})
    with pytest.raises(AlreadyThere):
        add_project(chosen, asking.ask(fake.url), timezone.now())
    assert Project.objects.count() == ProjectProfile.objects.count() == 1


def test_a_form_that_is_sent_twice_at_once_is_answered_in_words(
    desk: Client, fake: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither sees the other's project when the form looks.
    monkeypatch.setattr(FoundForm, "clean_master_url", lambda form: form.cleaned_data["master_url"])
    monkeypatch.setattr(FoundForm, "clean_name", lambda form: form.cleaned_data["name"])
    ask(desk, fake.url)
    Project.objects.create(name="Fake@Home", master_url=fake.url)
    data = {"name": "Else", "master_url": fake.url, "default_share": 1, "account_mode": "shared"}
    response = desk.post(reverse("admin:accounting_project_found"), data)
    assert "has been added in the meantime" in response.content.decode()
    assert Project.objects.count() == 1


def test_a_private_key_that_cannot_be_read_keeps_no_project_from_being_added(
    desk: Client, fake: FakeProject, settings: Settings, tmp_path: Path
) -> None:
    settings.AM_SIGNING_KEY = tmp_path / "private"
    settings.AM_SIGNING_KEY.write_text("damaged")
    project = add(desk, fake)
    assert project.url_signature == ""
    assert "The server’s key cannot be used: private key" in step(desk, project, "sign", here="1")


# --- signing ------------------------------------------------------------------------------------------


@pytest.mark.system
def test_the_command_to_sign_with_is_safe_in_a_shell(desk: Client, fake: FakeProject, settings: Settings) -> None:
    """It is run where the private key is, and the project wrote the URL."""
    settings.AM_SIGNING_KEY = settings.AM_SIGNING_KEY.with_name("not here")
    url = "https://evil.example.org/$(touch${IFS}made)';touch${IFS}made;/"
    project = Project.objects.create(name="Evil", master_url=url)
    page = html.unescape(desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode())
    (command,) = re.findall(r"manage\.py sign_url (.*?)</code>", page)
    assert subprocess.check_output(["sh", "-c", f"printf %s {command}"], text=True) == url


def test_an_offline_signature_is_checked_before_it_is_stored(
    desk: Client, fake: FakeProject, settings: Settings
) -> None:
    private = settings.AM_SIGNING_KEY
    settings.AM_SIGNING_KEY = private.with_name("not here")
    project = add(desk, fake)
    assert project.url_signature == ""
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert f'<code id="text-to-sign" class="break-words">{fake.url}</code>' in page
    key = signing.parse_private_key(private.read_text())
    for wrong in (signing.sign(b"https://other.example.org/", key), "nonsense"):
        page = step(desk, project, "sign", signature=wrong)
        assert "This is not a signature of this URL" in page or "This is not a signature" in page
    assert "private key is not on this server" in step(desk, project, "sign", here="1")
    project.refresh_from_db()
    assert project.url_signature == ""
    right = signing.sign(fake.url.encode(), key)
    assert "The signature is valid" in step(desk, project, "sign", signature=right.replace("\n", "\r\n "))
    project.refresh_from_db()
    assert project.url_signature == right


def test_the_servers_key_signs_where_it_is(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    Project.objects.update(url_signature="")
    assert "The URL is signed." in step(desk, project, "sign", here="1")
    project.refresh_from_db()
    assert signing_key.is_signed(fake.url, project.url_signature)


# --- the account --------------------------------------------------------------------------------------


def stored_bytes() -> bytes:
    """All that the tables of projects hold."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(t::text, '') FROM (SELECT p::text FROM accounting_project p UNION ALL "
            "SELECT f::text FROM accounting_projectprofile f UNION ALL "
            "SELECT l::text FROM django_admin_log l UNION ALL "
            "SELECT s::text FROM portal_session s UNION ALL SELECT u::text FROM accounting_userproject u) t"
        )
        return str(cursor.fetchone()[0]).encode()


def test_a_key_is_looked_up_and_the_weak_one_is_stored_encrypted(
    desk: Client, fake: FakeProject, caplog: pytest.LogCaptureFixture
) -> None:
    project = add(desk, fake)
    page = step(desk, project, "look_up", email=EMAIL.upper(), password=PASSWORD)
    assert f"It ends with …{WEAK_KEY[-4:]}" in page and WEAK_KEY not in page
    # By it the account's computers are found in the project's statistics.
    assert StatisticsImport.objects.get(project=project).account_email == EMAIL
    project.refresh_from_db()
    assert account_keys.shared(project) == WEAK_KEY
    stored = stored_bytes()
    for secret in (PASSWORD, STRONG_KEY, WEAK_KEY):
        assert secret.encode() not in stored and secret not in caplog.text


def test_a_project_with_https_is_never_asked_about_accounts_without() -> None:
    project = Project(name="A", master_url="https://a.example.org/x/")
    for said, wanted in (
        ("http://a.example.org/x/", "https://a.example.org/x/"),
        ("https://b.example.org/rpc", "https://b.example.org/rpc/"),
        ("ftp://b.example.org/", "https://a.example.org/x/"),
        ("", "https://a.example.org/x/"),
    ):
        project.profile = ProjectProfile(seen=ProjectConfig(web_rpc_url_base=said).to_json())
        assert accounts.web_rpc_base(project) == wanted


def test_without_a_weak_key_the_full_one_is_stored(desk: Client, fake: FakeProject) -> None:
    fake.has_account_info = False
    project = add(desk, fake)
    step(desk, project, "look_up", email=EMAIL, password=PASSWORD)
    project.refresh_from_db()
    assert account_keys.shared(project) == STRONG_KEY


def test_a_wrong_password_is_said_in_the_projects_words_and_shown_nowhere(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    page = step(desk, project, "look_up", email=EMAIL, password="wrong one")
    assert "The project refused: the password is wrong (error -206)." in page
    assert "wrong one" not in page and "passwd_hash" not in page
    page = step(desk, project, "look_up", email="", password="typed password")
    assert "typed password" not in page


def test_where_each_volunteer_has_an_account_the_key_is_the_operators_own(
    desk: Client, fake: FakeProject, operator: User
) -> None:
    project = add(desk, fake, account_mode="per_user")
    step(desk, project, "key", account_key=WEAK_KEY)
    project.refresh_from_db()
    assert project.shared_account_key is None
    row = UserProject.objects.get()
    key = account_keys.own(operator.pk, project.pk, project.master_url, bytes(row.account_key or b""))
    assert (row.user, key) == (operator, WEAK_KEY)
    assert "The project knows the account" in step(desk, project, "try", account="1")


# --- the trial ----------------------------------------------------------------------------------------


def test_a_trial_says_whether_the_project_knows_the_account(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    assert "There is no account key to test." in step(desk, project, "try", account="1")
    step(desk, project, "key", account_key=WEAK_KEY)
    assert "The project knows the account: number 7, “Ops Team” of France." in step(desk, project, "try", account="1")
    assert ProjectProfile.objects.get().tried_well is True
    step(desk, project, "key", account_key="7_wrong")
    page = step(desk, project, "try", account="1")
    assert "The project refused: there is no such account (error -136)." in page and "7_wrong" not in page
    assert ProjectProfile.objects.get().tried_well is False


def test_a_trial_with_the_full_key_says_what_it_could_do(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    step(desk, project, "key", account_key=STRONG_KEY)
    assert "with which the account can be changed" in step(desk, project, "try", account="1")


def test_a_project_that_tells_nothing_of_accounts_is_asked_as_a_computer_asks(desk: Client, fake: FakeProject) -> None:
    fake.has_account_info = False
    project = add(desk, fake)
    step(desk, project, "key", account_key=WEAK_KEY)
    assert "Test the scheduler instead" in step(desk, project, "try", account="1")
    assert "The scheduler knows the account “Ops Team”" in step(desk, project, "try", scheduler="1")
    step(desk, project, "try", scheduler="1")
    first, second = fake.asked("/cgi")
    assert first == second, "the same computer each time, for which the project makes one record"
    assert b"<work_req_seconds>0<" in first
    step(desk, project, "key", account_key="7_wrong")
    assert "It says: “Invalid or missing account key.”" in step(desk, project, "try", scheduler="1")


def test_a_project_that_is_down_is_said_so(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    step(desk, project, "key", account_key=WEAK_KEY)
    fake.is_down = True
    for data in ({"account": "1"}, {"scheduler": "1"}):
        assert "could not be asked: 127.0.0.1: " in step(desk, project, "try", **data)


def test_what_a_project_says_of_an_account_is_stored_as_text(desk: Client, fake: FakeProject) -> None:
    """Names come encoded as in addresses, so they can hold what no text of a database can."""
    project = add(desk, fake)
    step(desk, project, "key", account_key=WEAK_KEY)
    fake.account_name = "Ops%00%ff%ED%A0%80Team"
    assert "The project knows the account" in step(desk, project, "try", account="1")


def test_a_key_that_was_entered_for_https_goes_to_no_scheduler_without_encryption(
    desk: Client, fake: FakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with FakeProject("127.0.0.2", server_context(certificate)) as encrypted:
        plain = f"{fake.url}cgi"
        encrypted.scheduler = plain
        project = add(desk, encrypted)
        step(desk, project, "key", account_key=WEAK_KEY)
        page = step(desk, project, "try", scheduler="1")
        assert "Nothing was sent." in page and "its scheduler uses no encryption" in page
        assert fake.requests == [] and ProjectProfile.objects.get().tried_well is False
        encrypted.scheduler = "/cgi"
        assert "The scheduler knows the account" in step(desk, project, "try", scheduler="1")
        assert len(encrypted.asked("/cgi")) == 1


@pytest.mark.parametrize("address", ["http://[", "http://[x]/", "//[::1", "mailto:x@y", "https://a:b/"])
def test_a_scheduler_at_no_address_is_said(address: str, desk: Client, fake: FakeProject) -> None:
    fake.scheduler = address
    project = add(desk, fake)
    step(desk, project, "key", account_key=WEAK_KEY)
    assert "The scheduler could not be asked: " in step(desk, project, "try", scheduler="1")


def test_a_key_that_the_project_repeats_is_not_shown_or_stored(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    step(desk, project, "key", account_key="7_wrong")
    fake.words = "Who is 7_wrong?"
    for data in ({"account": "1"}, {"scheduler": "1"}):
        page = step(desk, project, "try", **data)
        assert "Who is " in page and "7_wrong" not in page
    assert b"7_wrong" not in stored_bytes()


def test_a_page_that_fails_is_not_called_missing(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    fake.status = "500 Oh"
    page = step(desk, project, "look_up", email=EMAIL, password=PASSWORD)
    assert "The project could not be asked: 127.0.0.1: answered with status 500." in page
    fake.status = "404 Not Found"
    page = step(desk, project, "look_up", email=EMAIL, password=PASSWORD)
    assert "The project has no lookup_account.php (127.0.0.1: answered with status 404)." in page


# --- the last step ------------------------------------------------------------------------------------


def test_computers_are_attached_once_nothing_is_missing(desk: Client, fake: FakeProject) -> None:
    project = add(desk, fake)
    assert "There is no account key" in step(desk, project, "activate")
    step(desk, project, "key", account_key=WEAK_KEY)
    Project.objects.update(url_signature="")
    assert "not signed" in step(desk, project, "activate")
    step(desk, project, "sign", here="1")
    assert "Computers may be attached now." in step(desk, project, "activate")
    project.refresh_from_db()
    assert project.is_active
    step(desk, project, "activate", off="1")
    project.refresh_from_db()
    assert not project.is_active


# --- who may ------------------------------------------------------------------------------------------

STEPS = ("ask", "sign", "look_up", "key", "try", "activate", "take_over", "seen")


def test_each_page_needs_its_right(desk: Client, fake: FakeProject, bob: User) -> None:
    project = add(desk, fake)
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    other = Client()
    other.force_login(bob)
    set_up = reverse("admin:accounting_project_set_up", args=[project.pk])
    troubles = reverse("admin:accounting_project_troubles")
    adding = [reverse(f"admin:accounting_project_{name}") for name in ("add_by_url", "found")]
    for url in (*adding, set_up, troubles):
        assert other.get(url).status_code == 403, url
    bob.user_permissions.add(Permission.objects.get(codename="view_project"))
    page = other.get(set_up)
    assert page.status_code == 200 and b'action="/admin/accounting/project' not in page.content
    assert other.get(troubles).status_code == 200
    assert [other.get(url).status_code for url in adding] == [403, 403], "to look is no right to add"
    for name in STEPS:
        url = reverse(f"admin:accounting_project_{name}", args=[project.pk])
        assert other.post(url, {"account_key": "1_x"}).status_code == 403, name
        assert desk.get(url).status_code == 405, name
    project.refresh_from_db()
    assert project.shared_account_key is None
