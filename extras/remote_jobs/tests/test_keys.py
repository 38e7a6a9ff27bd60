"""The page of keys, and the templates in the admin."""

from __future__ import annotations

import hashlib
import re

import pytest
from django.test import Client
from pytest_django import Settings

from credit.models import App
from extras.remote_jobs import keys
from extras.remote_jobs.models import JobsKey, JobTemplate
from extras.remote_jobs.tests.conftest import INPUT_TEMPLATE
from portal.models import User
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
PAGE = "/project/batches/keys/"


def test_a_key_is_shown_once_and_works_until_it_is_revoked(client: Client, submitter: User, app: App) -> None:
    sign_in_lately(client, submitter)
    page = client.post(PAGE, {"name": "Condor", "apps": [app.pk]})
    [key] = re.findall(r"cobble_[\w-]{40,}", page.content.decode())
    assert page.headers["Cache-Control"] == "no-store" and "never used" in page.content.decode()
    assert keys.find_caller(key, "10.0.0.1", names_app=True).app_ids == {app.pk}
    row = JobsKey.objects.get()
    assert key.encode() not in bytes(row.sealed_key) + bytes(row.token.token_hash)
    again = client.get(PAGE).content.decode()
    assert key not in again and "Condor" in again and "for Fold" in again
    # It is not among the tokens of the REST API.
    assert "Condor" not in client.get("/account/tokens/").content.decode()
    assert client.post(f"{PAGE}{row.pk}/revoke/").status_code == 302
    with pytest.raises(keys.KeyRefused, match="bad authenticator"):
        keys.find_caller(key, "10.0.0.1", names_app=True)


def test_another_persons_key_cannot_be_revoked(client: Client, key: str, bob: User) -> None:
    client.force_login(bob)
    bob.user_permissions.set(User.objects.get(api_tokens__jobs_key__isnull=False).user_permissions.all())
    assert client.post(f"{PAGE}{JobsKey.objects.get().pk}/revoke/").status_code == 404


def test_a_sealed_key_that_was_moved_to_another_row_proves_nothing(key: str, submitter: User, app: App) -> None:
    keys.issue(submitter, name="other", apps=[app], lifetime=None)
    first, second = JobsKey.objects.order_by("pk")
    JobsKey.objects.filter(pk=second.pk).update(sealed_key=first.sealed_key)
    JobsKey.objects.filter(pk=first.pk).delete()
    proof = hashlib.md5(f"{key}7".encode(), usedforsecurity=False).hexdigest()
    assert not keys.is_made_with_key_of(submitter, app.pk, "7", proof)


def test_a_template_that_cannot_be_read_is_refused_in_the_admin(admin_client: Client, app: App) -> None:
    address = "/admin/remote_jobs/jobtemplate/add/"
    text = INPUT_TEMPLATE.replace("<open_name>in</open_name>", "")
    given = {"app": app.pk, "kind": "in", "name": "fold_long_in", "text": text}
    page = admin_client.post(address, given).content.decode()
    assert "&lt;file_ref&gt; in line 4: needs an &lt;open_name&gt;" in page
    assert not JobTemplate.objects.filter(name="fold_long_in").exists()


def test_rights_that_are_withheld_open_no_outputs_either(
    submitter: User, app: App, key: str, settings: Settings
) -> None:
    proof = hashlib.md5(f"{key}7".encode(), usedforsecurity=False).hexdigest()
    User.objects.update(is_staff=True)
    assert keys.is_made_with_key_of(User.objects.get(pk=submitter.pk), app.pk, "7", proof)
    settings.STAFF_SECOND_FACTOR = True
    assert not keys.is_made_with_key_of(User.objects.get(pk=submitter.pk), app.pk, "7", proof)
    with pytest.raises(keys.KeyRefused, match="no file access"):
        keys.find_caller(key, "10.0.0.1", names_app=False)


def test_a_program_that_repeats_a_wrong_key_locks_out_no_other(key: str, settings: Settings) -> None:
    settings.CLIENT_LOGIN_FAILURES = 3
    for _ in range(5):
        with pytest.raises(keys.KeyRefused, match="bad authenticator"):
            keys.find_caller("mistyped", "10.0.0.1", names_app=False)
    assert keys.find_caller(key, "10.0.0.1", names_app=False)
    for wrong in ("a", "b"):
        with pytest.raises(keys.KeyRefused):
            keys.find_caller(wrong, "10.0.0.1", names_app=False)
    with pytest.raises(keys.KeyRefused, match="too many wrong keys"):
        keys.find_caller(key, "10.0.0.1", names_app=False)
