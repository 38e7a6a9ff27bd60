"""What an operator's browser does to prepare and release a version."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from credit.models import AppVersion
from scheduler.engine.release_states import ReleaseState
from scheduler.models import ReleaseDraft
from scheduler.releases import rollout
from tests.support.settings_changes import STEP

BASE = "/admin/scheduler/releasedraft/"
LINUX = "x86_64-pc-linux-gnu"
MAIN = b"#!/bin/sh\necho 0 > boinc_finish_called\n"
FIELDS: dict[str, Any] = {
    "app": "alpine",
    "app_name": "Alpine",
    "version_num": 101,
    "platform": LINUX,
    "plan_class": "",
    "processor_type": "CPU",
    "avg_ncpus": "1",
    "gpu_usage": "0",
    "min_gpu_ram_bytes": "0",
    "one_result_per_user": "on",
}


def begin(browser: Client, **fields: Any) -> ReleaseDraft:
    reply = browser.post(f"{BASE}add/", {**FIELDS, **fields})
    assert reply.status_code == 302, reply.content.decode()
    return ReleaseDraft.objects.latest("pk")


def add_file(browser: Client, draft: ReleaseDraft, name: str = "main.sh", content: bytes = MAIN, **uses: Any) -> str:
    """What is said then."""
    data = {"file": SimpleUploadedFile(name, content), **uses}
    return said(browser.post(f"{BASE}{draft.pk}/files/", data, follow=True))


def said(reply: Any) -> str:
    return str(reply.content.decode())


def prepared(browser: Client, **fields: Any) -> ReleaseDraft:
    """A draft with a main program and a table, not signed."""
    draft = begin(browser, **fields)
    for name, content, uses in (
        ("main.sh", MAIN, {"is_main_program": "on"}),
        ("table.txt", b"1 2 3\n", {"open_name": "table"}),
    ):
        # What is said then costs a page, and is looked at elsewhere.
        data = {"file": SimpleUploadedFile(name, content), **uses}
        assert browser.post(f"{BASE}{draft.pk}/files/", data).status_code == 302
    return draft


def store(browser: Client, draft: ReleaseDraft, action: str = "test", **fields: Any) -> str:
    return said(browser.post(f"{BASE}{draft.pk}/store/", {"action": action, **fields}, follow=True))


def signed_version(browser: Client, action: str, **fields: Any) -> AppVersion:
    draft = prepared(browser, **fields)
    browser.post(f"{BASE}{draft.pk}/sign/")
    browser.post(f"{BASE}{draft.pk}/store/", {"action": action})
    draft.refresh_from_db()
    assert draft.app_version is not None
    return draft.app_version


def do(browser: Client, version: AppVersion, action: str, **fields: Any) -> str:
    """Through the step, where there is one."""
    reply = browser.post(f"{BASE}versions/{version.pk}/{action}/", fields)
    assert reply.status_code == 302
    if reply["Location"].startswith(STEP):
        return said(browser.post(reply["Location"], {"do": "save", "reason": "a test"}, follow=True))
    return said(browser.get(reply["Location"]))


def state(version: AppVersion) -> ReleaseState:
    return rollout.state_of(AppVersion.objects.select_related("beta_test").get(pk=version.pk))
