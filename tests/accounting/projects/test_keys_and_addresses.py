"""A stored account key stays with the server that it was entered for."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounting.models import Project, ProjectProfile, UserProject
from accounting.project_setup import steps
from accounting.rpc import account_keys
from portal.audit.carry_out import carry_out
from portal.audit.undo import proposal_of
from portal.models import Change, User
from tests.support.accounting_factories import make_project
from tests.support.fake_project import FakeProject
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
KEY = "42_0123456789abcdef0123456789abcdef"


@pytest.fixture
def project(alice: User) -> Project:
    """With a key that a superuser entered, and Alice's own."""
    project = make_project("Alpha", KEY, master_url="https://alpha.example.org/science/")
    UserProject.objects.create(user=alice, project=project, account_key=account_keys.seal_own(alice.pk, project, KEY))
    return project


def form_of(project: Project, **changed: str) -> dict[str, str]:
    return {
        "name": project.name,
        "master_url": project.master_url,
        "default_share": "100",
        "account_mode": project.account_mode,
        "is_active": "on",
        "keywords-TOTAL_FORMS": "0",
        "keywords-INITIAL_FORMS": "0",
        "versions-TOTAL_FORMS": "0",
        "versions-INITIAL_FORMS": "0",
        "addresses-TOTAL_FORMS": "0",
        "addresses-INITIAL_FORMS": "0",
        **changed,
    }


def test_who_points_a_project_to_a_server_of_their_own_is_sent_no_key(
    client: Client, project: Project, signing_keys: None
) -> None:
    """A role that must not read keys changes the URL and presses “Test”."""
    sign_in_lately(client, make_person("Account manager operator"))
    with FakeProject("127.0.0.3") as thiefs:
        address = reverse("admin:accounting_project_change", args=[project.pk])
        page = client.post(address, form_of(project, master_url=thiefs.url), follow=True).content.decode()
        assert "so the account key was removed" in page
        for what in ("account", "scheduler"):
            tried = client.post(reverse("admin:accounting_project_try", args=[project.pk]), {what: "1"}, follow=True)
            assert "There is no account key to test." in tried.content.decode()
        assert KEY not in str(thiefs.requests)
    project.refresh_from_db()
    assert project.shared_account_key is None
    assert not UserProject.objects.exclude(account_key=None).exists()
    # Back to the old address: the key does not come back either.
    created = Change.objects.filter(content_type__model="project").first()
    assert created is not None
    undo = proposal_of(created, project)
    assert undo is not None
    carry_out(undo, None, "")
    project.refresh_from_db()
    assert (project.master_url, project.shared_account_key) == ("https://alpha.example.org/science/", None)


@pytest.mark.parametrize(
    "url", ["https://beta.example.org/science/", "http://alpha.example.org/science/", "https://alpha.example.org:8443/"]
)
def test_a_key_that_stays_in_the_row_cannot_be_read_for_another_server(project: Project, alice: User, url: str) -> None:
    """Not even by anyone who writes to the database."""
    Project.objects.filter(pk=project.pk).update(master_url=url)
    project.refresh_from_db()
    assert project.shared_account_key
    with pytest.raises(steps.StepRefused, match="cannot be read"):
        steps.account_key(project, alice)
    Project.objects.filter(pk=project.pk).update(account_mode=Project.Account.PER_USER)
    project.refresh_from_db()
    with pytest.raises(steps.StepRefused, match="cannot be read"):
        steps.account_key(project, alice)


def test_a_key_that_was_copied_to_another_row_cannot_be_read(project: Project, alice: User, bob: User) -> None:
    other = make_project("Other", master_url="https://alpha.example.org/other/")
    Project.objects.filter(pk=other.pk).update(shared_account_key=project.shared_account_key)
    other.refresh_from_db()
    with pytest.raises(account_keys.UnreadableAccountKey):
        account_keys.shared(other)
    alices = UserProject.objects.get(user=alice)
    with pytest.raises(account_keys.UnreadableAccountKey):
        account_keys.own(bob.pk, project.pk, project.master_url, bytes(alices.account_key or b""))


def test_a_new_path_on_the_same_server_keeps_the_key(project: Project, alice: User) -> None:
    project.master_url = "https://alpha.example.org/other/"
    project.save()
    project.refresh_from_db()
    assert account_keys.shared(project) == KEY
    assert UserProject.objects.exclude(account_key=None).count() == 1


def test_a_key_that_is_entered_with_the_new_address_is_for_it(
    desk: Client, project: Project, signing_keys: None
) -> None:
    moved = form_of(project, master_url="https://beta.example.org/", new_account_key="43_other")
    assert desk.post(reverse("admin:accounting_project_change", args=[project.pk]), moved).status_code == 302
    project.refresh_from_db()
    assert account_keys.shared(project) == "43_other"


def test_what_was_seen_of_another_server_does_not_say_where_keys_go(project: Project) -> None:
    """A role has the site ask a server of its own, presses “seen”, and sets the address back."""
    project.master_url = "https://evil.example.org/"
    project.save()
    seen = {"web_rpc_url_base": "https://evil.example.org/"}
    ProjectProfile.objects.update_or_create(
        project=project, defaults={"said": seen, "seen": seen, "code_key_seen": "e"}
    )
    project.master_url = "https://alpha.example.org/science/"
    project.save()
    profile = ProjectProfile.objects.get(project=project)
    assert (profile.said, profile.seen, profile.code_key_seen) == ({}, {}, "")
