"""What everybody may read, and the demo account to look around in."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.contrib.staticfiles import finders
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from portal.models import SiteText, User
from portal.public_pages.about import note_about
from portal.public_pages.look_around import SESSION_KEY
from tests.support.roles import give_role


def page(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def test_the_operators_texts_replace_those_of_the_software(db: None, client: Client) -> None:
    assert "have not written about themselves" in page(client, "/about/")
    SiteText.objects.create(page="about", text="## We are a club\n\n<script>x</script>")
    said = page(client, "/about/")
    assert "<h2>We are a club</h2>" in said and "&lt;script&gt;x" in said
    assert "have not written about themselves" not in said


def test_an_empty_about_is_not_linked(
    db: None, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    link = '<a href="/about/">About</a>'
    note_about()
    with django_assert_num_queries(0):
        assert link not in page(client, "/account/login/") and "/about/" not in page(client, "/sitemap.xml")
    SiteText.objects.create(page="about", text="We are a club")
    # Reading it is enough
    page(client, "/about/")
    with django_assert_num_queries(0):
        assert link in page(client, "/account/login/") and "/about/" in page(client, "/sitemap.xml")


def test_the_terms_are_those_that_are_shown_before_sign_up(db: None, client: Client, settings: Settings) -> None:
    settings.TERMS_OF_USE = "Be <kind>."
    assert "Be &lt;kind&gt;." in page(client, "/terms/")


@pytest.mark.parametrize(
    "path",
    ["/", "/projects/", "/apps/", "/emulator/", "/status/", "/news/", "/about/", "/privacy/", "/terms/"],
)
def test_everybody_reads_these_pages_and_links_to_them_show_what_they_are(
    db: None, client: Client, path: str, settings: Settings
) -> None:
    reply = client.get(path)
    assert reply.status_code == 200
    text = reply.content.decode()
    assert text.count("Days are UTC days.") == 1, "it is explained once"
    tags = dict(re.findall(r'<meta property="og:([\w:]+)" content="([^"]+)"', text))
    assert tags["site_name"] == settings.SITE_NAME and settings.SITE_NAME in tags["title"]
    assert tags["description"].startswith("Your computer works on research tasks")
    assert re.match(r"https?://[^/]+/static/portal/preview.*png", tags["image"])
    file = finders.find("portal/preview.png")
    assert file is not None
    # As the file's own header says
    width, height = struct.unpack(">II", Path(file).read_bytes()[16:24])
    assert (tags["image:width"], tags["image:height"]) == (str(width), str(height)) == ("1200", "630")


def test_nobody_looks_around_unless_the_operator_named_an_account(alice: User, client: Client) -> None:
    assert client.post("/look-around/").status_code == 404


def test_a_visitor_looks_around_and_leaves(alice: User, client: Client, settings: Settings) -> None:
    settings.DEMO_ACCOUNT = alice.email
    before = User.objects.values_list("last_login").get(pk=alice.pk)
    assert "Look around" in page(client, "/")
    assert client.post("/look-around/").headers["Location"] == "/home/"
    response = client.get("/home/")
    assert "You are looking around in a demo account" in response.content.decode()
    assert response.headers["Cache-Control"] == "private, no-store"
    # Nobody signed in.
    assert User.objects.values_list("last_login").get(pk=alice.pk) == before
    assert client.post("/account/preferences/", {"preset": "usual"}).status_code == 403
    assert client.post("/look-around/leave/", {"join": "1"}).headers["Location"] == "/account/signup/"
    assert client.get("/home/").headers["Location"].startswith("/account/login/")


def test_who_looks_around_loses_it_with_the_setting(alice: User, client: Client, settings: Settings) -> None:
    settings.DEMO_ACCOUNT = alice.email
    client.post("/look-around/")
    settings.DEMO_ACCOUNT = ""
    assert client.get("/home/").status_code == 302


@pytest.mark.parametrize("change", [{"is_staff": True}, {"is_superuser": True}, {"is_active": False}])
def test_the_demo_account_is_a_mere_volunteers(
    alice: User, client: Client, settings: Settings, change: dict[str, bool]
) -> None:
    settings.DEMO_ACCOUNT = alice.email
    client.post("/look-around/")
    User.objects.filter(pk=alice.pk).update(**change)
    assert client.get("/home/").status_code == 302
    assert SESSION_KEY not in client.session
    assert client.post("/look-around/").status_code == 404


def test_a_demo_account_with_rights_is_none(alice: User, client: Client, settings: Settings) -> None:
    settings.DEMO_ACCOUNT = alice.email
    give_role(alice, "Support")
    # Of the role, only the group: staff are none anyway.
    User.objects.filter(pk=alice.pk).update(is_staff=False)
    assert client.post("/look-around/").status_code == 404
    alice.groups.clear()
    alice.user_permissions.add(Permission.objects.get(codename="view_result"))
    assert client.post("/look-around/").status_code == 404


def test_who_looked_around_may_sign_up(alice: User, client: Client, settings: Settings) -> None:
    settings.DEMO_ACCOUNT = alice.email
    client.post("/look-around/")
    assert client.get("/account/signup/").status_code == 200
