"""Rows that somebody made up, or that broke, stop no import and get nobody what is another's."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from extras.moving_in.tests.imports import HASHERS, import_
from extras.moving_in.tests.old_project import OldProject
from portal.models import Host

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def hashers(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = HASHERS


@pytest.mark.parametrize(
    "odd",
    [
        {"misc": '{"gpus": [{"type": "nvidia", "model": "A\\u0000B", "count": 1}]}'},
        {"misc": '{"gpus": [{"type": "nvidia", "model": "A\\ud800B", "count": 1}]}'},
        {"misc": '{"client_version": "7\\u0000.24"}'},
        {"misc": '{"client_version": "7\\ud800.24"}'},
        {"misc": '{"gpus": 7, "vbox": []}'},
        {"misc": '{"gpus": [{"type": ["nvidia"]}]}'},
        {"misc": "{" * 60_000},
        {"misc": '{"gpus":' + "[" * 19_000},
        {"host_cpid": "a\0b"},
        {"venue": "\0"},
        {"product_name": "\0\ufeff\u202ex"},
        {"serialnum": "[BOINC|7\0|x][CUDA|a|9e999|-1MB|1]"},
    ],
)
def test_what_a_client_made_up_stops_no_import(old_project: OldProject, odd: dict[str, str]) -> None:
    old_project.user(7)
    old_project.add("host", id=70, userid=7, **odd)
    old_project.add("host", id=71, userid=7)
    import_(old_project)
    assert set(Host.objects.values_list("pk", flat=True)) == {70, 71}


def test_a_row_that_cannot_be_read_is_left_and_listed(old_project: OldProject) -> None:
    """A file's size of 1e999 is no number of bytes."""
    old_project.add("app", id=1, name="fold", user_friendly_name="Fold")
    xml = (
        "<file_info><name>in</name><md5_cksum>{0}</md5_cksum><nbytes>{1}</nbytes></file_info>"
        "<workunit><file_ref><file_name>in</file_name></file_ref></workunit>"
    )
    old_project.add("workunit", id=1, appid=1, name="wu1", xml_doc=xml.format("a" * 32, "1e999"))
    left = import_(old_project)["workunits"].left
    assert left["cannot be read (OverflowError)"].examples == ["1"]
