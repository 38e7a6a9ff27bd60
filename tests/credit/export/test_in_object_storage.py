"""The statistics export in a real S3 server: published whole, read as from a folder, and what failed exports leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from pytest_django import Settings

from credit.export import files, run
from credit.models import StatisticsExport
from portal.object_storage.backend import ObjectStorage
from portal.object_storage.errors import StorageError
from tests.support.s3_server import FaultyProxy, S3Server, keys, options

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def proxy(s3_server: S3Server, settings: Settings) -> Iterator[FaultyProxy]:
    """In front of an S3 server with the site's files."""
    proxy = FaultyProxy(s3_server.url)
    entry = options(proxy.url, s3_server.new_bucket()).as_storage()
    settings.STORAGES = {**settings.STORAGES, "default": entry}
    yield proxy
    assert isinstance(default_storage, ObjectStorage)
    default_storage.close()
    proxy.close()


def get(name: str, **headers: str) -> Any:
    return Client().get(f"/project/stats/{name}", headers=headers)


def test_a_set_is_published_whole_and_stays_so_when_the_next_one_fails(proxy: FaultyProxy) -> None:
    assert get("tables.xml").status_code == 404
    first = run.export()
    assert first is not None and isinstance(default_storage, ObjectStorage)
    reply = get("tables.xml")
    content = reply.getvalue()
    assert b"<tables>" in content and int(reply.headers["Content-Length"]) == len(content)
    assert get("tables.xml", if_none_match=reply.headers["ETag"]).status_code == 304

    with proxy.broken("refuse"), pytest.raises(StorageError):
        run.export()
    assert get("tables.xml").getvalue() == content
    assert "cannot be used" in StatisticsExport.objects.latest("pk").failure

    # A reader who began before gets to the end.
    published = files.find_published("user.gz")
    assert published is not None
    with published.open() as opened:
        second = run.export()
        assert second is not None and len(opened.read()) == published.nbytes
    assert get("tables.xml").headers["ETag"] != reply.headers["ETag"]
    assert {key.rsplit("/", 1)[0] for key in keys(default_storage)} == {first.folder, second.folder}
    third = run.export()
    assert third is not None
    assert {key.rsplit("/", 1)[0] for key in keys(default_storage)} == {second.folder, third.folder}
    assert list(StatisticsExport.objects.filter(is_in_storage=True)) == [third, second]
