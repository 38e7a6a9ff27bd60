"""Certificates: their content, their visibility, and their check."""

from __future__ import annotations

import datetime as dt
import subprocess
from base64 import b64decode
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.translation import override
from pytest_django import Settings

from accounting.ledger.months import close_months
from accounting.models import Project, UserProject
from extras.badges.models import Badge, BadgeAward
from extras.badges.rules import BadgeKind
from extras.badges.texts import kept_rule
from extras.certificates import registry
from extras.certificates.models import Certificate
from extras.certificates.texts import certificate_text
from portal.models import User
from tests.support.accounting_factories import credit, granted, make_host, make_project
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db
CREDIT, HOUR = 1_000_000, 3600 * 1_000_000
ALL_FACTS = ["credit", "run_time", "tasks", "computers", "since", "badges"]


@pytest.fixture
def alpha(alice: User) -> Project:
    """Two computers at two projects: in closed months and in the present one."""
    alpha, beta = make_project("Straße"), make_project("Beta")
    studio, attic = make_host(alice, "studio"), make_host(alice, "attic")
    credit(studio, alpha, "2026-01-31", (100 * CREDIT + 999_999, 0, 10 * HOUR, 0, 3, 0))
    credit(studio, alpha, "2026-02-10", (0, 200 * CREDIT, 0, 2 * HOUR + 1, 4, 1))
    credit(attic, beta, "2026-02-11", (50 * CREDIT, 0, HOUR, 0, 5, 0))
    credit(attic, beta, str(timezone.now().date()), (7 * CREDIT, 0, HOUR, 0, 1, 0))
    granted(studio, alpha, 1, {"2026-02-12": 260 * CREDIT})
    for project in (alpha, beta):
        UserProject.objects.create(user=alice, project=project, total_ec=CREDIT)
    alpha.keywords.create(keyword=3, weight=1)  # pulsars, which is part of astronomy
    close_months(timezone.now())
    return alpha


def ask(**more: str | list[str]) -> dict[str, str | list[str]]:
    return {"first": "2026-01-01", "last": "2026-02-28", "about": "all", "shows": ALL_FACTS, **more}


def made(client: Client, alice: User, **more: str | list[str]) -> Certificate:
    client.force_login(alice)
    response = client.post("/history/certificates/new/", ask(**more))
    assert response.status_code == 302, response.content.decode()
    return Certificate.objects.latest("pk")


def test_it_says_what_the_ledger_has_rounded_down(client: Client, alice: User, alpha: Project) -> None:
    # 100.999999 + 200 + 50 credits; 10 + 1 h CPU; a little over 2 h GPU; 3 + 4 + 5 tasks.
    assert made(client, alice).statement["facts"] == {
        "estimated_credits": 350,
        "granted_credits": 260,
        "cpu_hours": 11,
        "gpu_hours": 2,
        "tasks": 12,
        "computers": 2,
        "since": "2026-01-31",
        "badges": [],
    }


def test_days_in_the_middle_of_months_are_read_as_days(client: Client, alice: User, alpha: Project) -> None:
    facts = made(client, alice, first="2026-01-31", last="2026-02-10").statement["facts"]
    assert (facts["estimated_credits"], facts["tasks"], facts["computers"]) == (300, 7, 1)
    today = str(timezone.now().date())
    assert made(client, alice, last=today).statement["facts"]["estimated_credits"] == 357


@pytest.mark.parametrize(("about", "credits"), [("project:{}", 300), ("subject:3", 300), ("subject:1", 300)])
def test_it_can_be_about_a_project_or_a_subject(
    client: Client, alice: User, alpha: Project, about: str, credits: int
) -> None:
    statement = made(client, alice, about=about.format(alpha.pk)).statement
    assert statement["facts"]["estimated_credits"] == credits


def test_since_is_the_first_day_of_what_it_is_about(client: Client, alice: User, alpha: Project) -> None:
    beta = Project.objects.get(name="Beta")
    assert made(client, alice, about=f"project:{beta.pk}").statement["facts"]["since"] == "2026-02-11"


def test_it_begins_with_the_first_day_of_work(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice, first="1980-01-01", shows=["badges"])
    assert (certificate.statement["first"], certificate.statement["last"]) == ("2026-01-31", "2026-02-28")


def test_badges_that_come_with_the_site_are_named_in_the_readers_language(
    client: Client, alice: User, alpha: Project
) -> None:
    # The migrations' own row is gone after a test that emptied all tables.
    values = {"kind": BadgeKind.TASKS.value, "threshold": 1}
    badge, _ = Badge.objects.get_or_create(title="First task", defaults=values)
    BadgeAward.objects.create(user=alice, badge=badge, day="2026-01-31", rule=kept_rule(badge))
    certificate = made(client, alice, shows=["badges"])
    assert certificate.statement["facts"]["badges"] == ["First task"]
    with override("de"):
        assert ("Abzeichen", "Erste Aufgabe") in certificate_text(certificate.statement).lines


@pytest.mark.parametrize(
    "more",
    [
        {"first": "1990-01-01", "last": "1999-12-31"},
        {"first": "2026-03-01", "last": "2026-03-31"},
        {"about": "project:{}", "first": "2026-01-01", "last": "2026-01-31"},
    ],
)
@pytest.mark.parametrize("shows", [["credit"], ["since", "badges"]])
def test_days_without_work_are_not_certified(
    client: Client, alice: User, alpha: Project, more: dict[str, str], shows: list[str]
) -> None:
    client.force_login(alice)
    beta = Project.objects.get(name="Beta")
    asked = ask() | more | {"about": more.get("about", "all").format(beta.pk), "shows": shows}
    for answer in (client.get("/history/certificates/new/", asked), client.post("/history/certificates/new/", asked)):
        assert "did no such work" in answer.content.decode()
    assert not Certificate.objects.exists()


def test_what_was_not_chosen_is_nowhere(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice, shows=["tasks"])
    assert certificate.statement["facts"] == {"tasks": 12}
    page = Client().get(f"/certificates/{certificate.code}/").content.decode()
    assert "350" not in page and alice.email not in page and "name" not in certificate.statement


def test_its_facts_are_frozen(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice)
    credit(make_host(alice, "third"), alpha, "2026-02-20", (1000 * CREDIT, 0, 0, 0, 0, 0))
    assert "350" in Client().get(f"/certificates/{certificate.code}/").content.decode()


def test_the_preview_makes_nothing(client: Client, alice: User, alpha: Project) -> None:
    client.force_login(alice)
    page = client.get("/history/certificates/new/", ask(name="Mara Straße")).content.decode()
    assert "Mara Straße" in page and "350" in page
    assert not Certificate.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shows": []}, "Choose at least one item"),
        ({"first": "2026-03-01"}, "The first day is after the last one"),
        ({"last": "2999-01-01"}, "This day is in the future"),
        ({"first": "0001-01-01"}, "at most 50 years"),
        ({"name": "x" * 61}, "at most 60 characters"),
        ({"name": "\u202eevil"}, "invisible character"),
        ({"about": "project:999999999"}, "not one of the available choices"),
        ({"about": "subject:1'"}, "not one of the available choices"),
    ],
)
def test_what_cannot_be_is_said(client: Client, alice: User, alpha: Project, wrong: dict[str, str], said: str) -> None:
    client.force_login(alice)
    assert said in client.post("/history/certificates/new/", ask(**wrong)).content.decode()
    assert not Certificate.objects.exists()


def test_a_form_that_is_sent_twice_makes_one(client: Client, alice: User, alpha: Project) -> None:
    client.force_login(alice)
    preview = page_of(client, "/history/certificates/new/", ask())
    key = preview.one("input", name="form_key").attributes["value"]
    replies = [client.post("/history/certificates/new/", ask(form_key=key)) for _ in range(2)]
    assert len({reply.headers["Location"] for reply in replies}) == 1 and Certificate.objects.count() == 1
    again = page_of(client, "/history/certificates/new/", ask())
    other = again.one("input", name="form_key").attributes["value"]
    client.post("/history/certificates/new/", ask(form_key=other))
    client.post("/history/certificates/new/", ask(form_key="none"))
    assert Certificate.objects.count() == 3


def test_the_number_of_certificates_is_limited(
    client: Client, alice: User, alpha: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MAX_CERTIFICATES", 1)
    certificate = made(client, alice)
    assert "which is the limit" in client.post("/history/certificates/new/", ask()).content.decode()
    path = f"/history/certificates/{certificate.pk}/change/"
    client.post(path, {"delete": ""})  # not before it is revoked
    assert Certificate.objects.count() == 1
    client.post(path, {"revoke": ""})
    client.post(path, {"delete": ""})
    assert not Certificate.objects.exists()


def test_a_revoked_one_says_so_and_shows_nothing(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice, name="Mara")
    client.post(f"/history/certificates/{certificate.pk}/change/", {"revoke": ""})
    for path in ("", "statement.json"):
        answer = Client().get(f"/certificates/{certificate.code}/{path}")
        assert b"revoked" in answer.content and b"Mara" not in answer.content and b"350" not in answer.content


@pytest.mark.parametrize("change", [{"is_active": False}, {"deletion_asked_at": timezone.now()}])
def test_those_of_accounts_that_are_blocked_or_being_deleted_are_unknown(
    client: Client, alice: User, alpha: Project, change: dict[str, object]
) -> None:
    certificate = made(client, alice)
    User.objects.filter(pk=alice.pk).update(**change)
    assert Client().get(f"/certificates/{certificate.code}/").status_code == 404


def test_a_statement_that_was_changed_is_not_confirmed(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice)
    certificate.statement["facts"]["estimated_credits"] = 9_999
    certificate.save()
    page = Client().get(f"/certificates/{certificate.code}/").content.decode()
    assert "cannot be confirmed" in page and "9\u202f999" not in page


def test_another_secret_confirms_nothing(client: Client, alice: User, alpha: Project, settings: Settings) -> None:
    certificate = made(client, alice)
    settings.CERTIFICATE_SECRET = "another"
    assert registry.check(certificate.code).verdict is registry.Verdict.BROKEN


@pytest.mark.system
def test_openssl_confirms_the_signature(client: Client, alice: User, alpha: Project, tmp_path: Path) -> None:
    certificate = made(client, alice, name="Ελένη")
    content = Client().get(f"/certificates/{certificate.code}/statement.json").json()
    (tmp_path / "key.pem").write_bytes(Client().get("/certificates/key.pem").content)
    (tmp_path / "signed").write_bytes(content["signed"].encode())
    (tmp_path / "signature").write_bytes(b64decode(content["signature"]))
    command = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in signed -sigfile signature"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)


def test_a_code_that_is_typed_finds_its_certificate(client: Client, alice: User, alpha: Project) -> None:
    certificate = made(client, alice)
    typed = "-".join(certificate.code.lower()[place : place + 4] for place in range(0, 16, 4))
    assert "is valid" in Client().get("/certificates/", {"code": typed}, follow=True).content.decode()
    assert "This is not a certificate code" in Client().get("/certificates/", {"code": "7KQ4"}).content.decode()


def test_making_one_takes_the_same_statements_for_a_long_history(client: Client, alice: User, alpha: Project) -> None:
    made(client, alice)
    with CaptureQueriesContext(connection) as short:
        made(client, alice)
    for month in range(1, 13):
        credit(make_host(alice, f"h{month}"), make_project(), f"2025-{month:02}-07", (CREDIT, 0, 0, 0, 0, 0))
    close_months(timezone.now(), since=dt.date(2025, 1, 1))
    with CaptureQueriesContext(connection) as long:
        certificate = made(client, alice, first="2025-01-01")
    assert certificate.statement["facts"]["computers"] == 14
    assert len(long) == len(short)
