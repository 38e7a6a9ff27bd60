"""Downloads of files in a real S3 server: by presigned addresses, or through the site."""

from __future__ import annotations

import hashlib
import re
import urllib.request
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.test import Client
from pytest_django import Settings

from credit.models import Batch
from portal.models import User
from portal.object_storage.backend import ObjectStorage
from scheduler.files.store import store_file
from scheduler.files.views import PRIVATE_URL_SECS
from scheduler.models import KeptOutput, StoredFile
from tests.support.credit_factories import make_app
from tests.support.s3_server import FaultyProxy

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 2000
ADDRESS = "/project/download/table_1.bin"


@pytest.fixture
def file(bucket: ObjectStorage) -> StoredFile:
    return store_file("table_1.bin", ContentFile(CONTENT))


def get(**headers: str) -> Any:
    return Client(raise_request_exception=False).get(ADDRESS, headers=headers)


def test_a_client_is_sent_to_the_storage_which_sends_the_range_it_asks_for(file: StoredFile) -> None:
    reply = get(Range="bytes=500000-")
    assert (reply.status_code, reply.headers["Cache-Control"]) == (302, "private, no-store")
    assert parse_qs(urlsplit(reply.url).query)["X-Amz-Expires"] == ["3600"]
    asked = urllib.request.Request(reply.url, headers={"Range": "bytes=500000-"})
    with urllib.request.urlopen(asked) as sent:
        assert (sent.status, sent.read()) == (206, CONTENT[500_000:])


def test_how_long_it_is_the_site_says_itself(file: StoredFile) -> None:
    reply = Client().head(ADDRESS)
    assert (reply.status_code, reply.headers["Content-Length"]) == (200, "512000")


def test_the_address_for_clients_may_be_another_than_the_sites_own(
    file: StoredFile, bucket: ObjectStorage, settings: Settings
) -> None:
    public = replace(bucket.options, public_endpoint="https://files.example.org")
    settings.STORAGES = {**settings.STORAGES, "default": public.as_storage()}
    assert get().url.startswith(f"https://files.example.org/{bucket.bucket_name}/{file.path}?")


def test_a_researchers_output_has_an_address_for_a_minute_and_nobody_else_gets_one(
    bucket: ObjectStorage, alice: User, bob: User
) -> None:
    for user in (alice, bob):
        user.user_permissions.add(Permission.objects.get(codename="add_batch"))
    batch = Batch.objects.create(app=make_app("a"), owner=alice, name="b")
    path = bucket.save("outputs/x", ContentFile(b"42"))
    output = KeptOutput.objects.create(
        batch=batch,
        workunit_name="w",
        number=0,
        name="out",
        path=path,
        nbytes=2,
        md5=hashlib.md5(b"42").hexdigest(),
    )
    address = f"/project/batches/{batch.pk}/outputs/{output.pk}/"
    replies: dict[str, Any] = {}
    for user in (alice, bob):
        client = Client()
        client.force_login(user)
        replies[user.name] = client.get(address)
    assert replies["Alice"].status_code == 302
    match = re.search(r"X-Amz-Expires=(\d+)", replies["Alice"].url)
    assert match and int(match[1]) == PRIVATE_URL_SECS
    assert replies["Bob"].status_code in (403, 404)


@pytest.mark.parametrize(("wanted", "status", "content"), [("", 200, CONTENT), ("bytes=10-19", 206, CONTENT[10:20])])
def test_the_site_may_send_it_itself(
    file: StoredFile, settings: Settings, wanted: str, status: int, content: bytes
) -> None:
    settings.FILES_S3_DOWNLOADS = "site"
    reply = get(Range=wanted)
    assert (reply.status_code, reply.getvalue()) == (status, content)


@pytest.mark.parametrize("fault", ["refuse", "error"])
def test_while_the_storage_has_a_fault_the_client_is_told_to_come_again(
    file: StoredFile, settings: Settings, s3_proxy: FaultyProxy, fault: str
) -> None:
    settings.FILES_S3_DOWNLOADS = "site"
    with s3_proxy.broken(fault):
        reply = get()
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "60")
        assert b"Nothing was changed" in reply.content
    assert get().getvalue() == CONTENT


def test_a_file_that_the_storage_lost_is_not_there(file: StoredFile, bucket: ObjectStorage, settings: Settings) -> None:
    settings.FILES_S3_DOWNLOADS = "site"
    bucket.delete(file.path)
    assert get().status_code == 404
