"""Versions through the REST API: prepared, signed elsewhere, tested, released, withdrawn and rolled back."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.models import AppVersion
from portal.audit import two_persons
from portal.models import ApiToken, Change, ConfirmationRequest, User
from scheduler.models import BetaTest, ReleaseDraft
from scheduler.releases.rollout import state_of
from tests.support.credit_factories import make_app, make_version
from tests.support.releases import LINUX, MAIN
from tests.support.rest_api import bearer
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
API = "/api/v1/"
FIELDS = {"app": "alpine", "version_num": 101, "platform": LINUX, "new_app": {"user_friendly_name": "Alpine"}}


@pytest.fixture
def ask(operator: User) -> Callable[..., Any]:
    headers = bearer(operator, ApiToken.Scope.PROJECT)

    def asked(method: str, path: str, body: object = None, status: int = 200) -> Any:
        content = body if isinstance(body, bytes) else json.dumps(body) if body is not None else ""
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        reply = Client().generic(method, API + path, content, kind, headers=headers)
        assert reply.status_code == status, reply.content.decode()
        return json.loads(reply.content) if reply.content else None

    return asked


@pytest.fixture
def sign(tmp_path: Path, settings: Settings) -> Callable[[dict[str, Any]], dict[str, str]]:
    """Sign a manifest on a machine that has the key and its own copies of the files; the site has no private key."""
    private, folder = settings.CODE_SIGNING_KEY, tmp_path / "own"
    settings.CODE_SIGNING_KEY = tmp_path / "none"
    folder.mkdir()
    (folder / "main.sh").write_bytes(MAIN)

    def signed(manifest: dict[str, Any]) -> dict[str, str]:
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        out = StringIO()
        settings.CODE_SIGNING_KEY = private
        try:
            call_command("sign_manifest", tmp_path / "manifest.json", folder, stdout=out)
        finally:
            settings.CODE_SIGNING_KEY = tmp_path / "none"
        made: dict[str, str] = json.loads(out.getvalue())["signatures"]
        return made

    return signed


def test_a_program_prepares_signs_tests_and_releases_a_version(ask: Callable[..., Any], sign: Any) -> None:
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
    assert "files" in draft["fault"] and draft["manifest"] is None
    path = f"app-version-drafts/{draft['id']}/"
    assert "not a name" in json.dumps(ask("PUT", f"{path}files/a b/", MAIN, 400))
    ask("PUT", f"{path}files/other/", b"x")
    ask("DELETE", f"{path}files/other/", status=204)
    ready = ask("PUT", f"{path}files/main.sh/?main_program=true", MAIN)
    assert (ready["fault"], ready["unsigned"]) == ("", ["main.sh"])
    assert "is not signed yet" in json.dumps(ask("POST", f"{path}release/", {"action": "test"}, 400))
    made = sign(ready["manifest"])
    ask("PATCH", path, {"signatures": {"main.sh": "00"}}, 400)
    assert ask("PATCH", path, {"signatures": made})["unsigned"] == []
    stored = ask("POST", f"{path}release/", {"action": "test", "with_volunteers": True})
    assert ask("POST", f"{path}release/", {"action": "test"}) == stored
    assert BetaTest.objects.get().with_volunteers
    [version] = ask("GET", "app-versions/")["results"]
    assert (version["id"], version["state"], version["actions"]) == (stored["version"], "beta", ["release", "withdraw"])
    ask("POST", f"app-versions/{version['id']}/steps/", {"action": "release"})
    ask("POST", f"app-versions/{version['id']}/steps/", {"action": "release"}, 409)
    ask("DELETE", path, status=204)
    assert not ReleaseDraft.objects.exists()
    assert state_of(AppVersion.objects.get()).name == "RELEASED"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({**FIELDS, "version_num": "1"}, "version_num: '1' is not of type int"),
        ({**FIELDS, "gpu_usage": 1}, "gpu_usage: more than 0 for a GPU type"),
        ({**FIELDS, "files": []}, "files: they are uploaded one by one"),
        ({"app": "alpine"}, "version_num: missing"),
        ({**FIELDS, "wings": 2}, "wings: unknown"),
        ({**FIELDS, "avg_ncpus": 10**400}, "avg_ncpus"),
        ({**FIELDS, "new_app": {"user_friendly_name": "A" * 101}}, "new_app, user_friendly_name: "),
        ({**FIELDS, "new_app": {"description": "A\0"}}, "new_app, description: "),
        ({**FIELDS, "new_app": {"description": "\ud800"}}, "new_app, description: "),
        ({**FIELDS, "\ud800": 1}, "?: unknown"),
    ],
)
def test_a_version_that_could_never_be_released_is_refused_with_the_field(
    ask: Callable[..., Any], fields: dict[str, Any], said: str
) -> None:
    assert said in json.dumps(ask("POST", "app-version-drafts/", {"version": fields}, 400))
    assert not ReleaseDraft.objects.exists()


def test_what_may_change_credit_needs_a_reason_which_is_kept(ask: Callable[..., Any], operator: User) -> None:
    app = make_app()
    old, new = make_version(app, 100), make_version(app, 101)
    rows = {row["id"]: row for row in ask("GET", "app-versions/?limit=2")["results"]}
    assert (rows[new.pk]["rolls_back_to"], rows[old.pk]["rolls_back_to"]) == (old.pk, None)
    path = f"app-versions/{new.pk}/steps/"
    assert "reason" in json.dumps(ask("POST", path, {"action": "roll_back"}, 400))
    assert ask("POST", path, {"action": "roll_back", "reason": "It crashes."})["version"] == old.pk
    change = Change.objects.get_for_object(new).latest("pk")
    assert (change.actor, change.reason) == (operator, "It crashes.")
    ask("POST", f"app-versions/{old.pk}/steps/", {"action": "roll_back", "reason": "x"}, 409)


def test_a_release_to_all_waits_for_a_second_person_where_that_is_wanted(
    ask: Callable[..., Any], sign: Any, settings: Settings
) -> None:
    settings.TWO_PERSONS = True
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
    path = f"app-version-drafts/{draft['id']}/"
    ready = ask("PUT", f"{path}files/main.sh/?main_program=true", MAIN)
    ask("PATCH", path, {"signatures": sign(ready["manifest"])})
    assert ask("POST", f"{path}release/", {"action": "release"}, 202)["waits_for_confirmation"]
    request = ConfirmationRequest.objects.get()
    assert not AppVersion.objects.exists()
    second = User.objects.create(email="second@example.org", is_superuser=True)
    two_persons.confirm(request.pk, second, timezone.now())
    done = {"version": AppVersion.objects.get().pk, "waits_for_confirmation": False}
    assert ask("POST", f"{path}release/", {"action": "release"}) == done
    assert ConfirmationRequest.objects.count() == 1
    version = make_version(make_app(name="other"), 100, is_deprecated=True)
    steps = f"app-versions/{version.pk}/steps/"
    assert ask("POST", steps, {"action": "release", "reason": "x"}, 202)["waits_for_confirmation"]
    newer = make_version(version.app, 101)
    ask("POST", f"app-versions/{newer.pk}/steps/", {"action": "roll_back", "reason": "x"}, 409)
    version.refresh_from_db()
    assert version.is_deprecated


def test_each_draft_of_a_list_costs_only_a_look_at_the_key_in_force(ask: Callable[..., Any]) -> None:
    def prepare() -> int:
        draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
        ask("PUT", f"app-version-drafts/{draft['id']}/files/main.sh/?main_program=true", MAIN)
        return statements(lambda: ask("GET", "app-version-drafts/"))

    assert prepare() + 1 == prepare()


def test_a_draft_can_be_seen_before_there_is_a_key(ask: Callable[..., Any], settings: Settings, tmp_path: Path) -> None:
    settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "none"
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
    ready = ask("PUT", f"app-version-drafts/{draft['id']}/files/main.sh/?main_program=true", MAIN)
    assert "no code-signing key yet" in ready["fault"] and ready["manifest"] is None


def test_a_file_beyond_the_limit_is_not_read(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILE_NBYTES", 10)
    ask("PUT", f"app-version-drafts/{draft['id']}/files/main.sh/", b"x" * 11, 413)


def test_a_draft_that_is_discarded_during_an_upload_is_not_found(operator: User, ask: Callable[..., Any]) -> None:
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)

    class Upload(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            ReleaseDraft.objects.all().delete()
            return super().read(size)

    path = f"{API}app-version-drafts/{draft['id']}/files/main.sh/"
    headers = bearer(operator, ApiToken.Scope.PROJECT)
    upload: dict[str, Any] = {"CONTENT_LENGTH": str(len(MAIN)), "wsgi.input": Upload(MAIN)}
    reply = Client(**upload).put(path, content_type="application/octet-stream", headers=headers)
    assert reply.status_code == 404


def test_a_name_that_no_file_can_have_is_none_to_forget(ask: Callable[..., Any]) -> None:
    draft = ask("POST", "app-version-drafts/", {"version": FIELDS}, 201)
    ask("DELETE", f"app-version-drafts/{draft['id']}/files/a%00b/", status=204)


@pytest.mark.parametrize("path", ["app-versions/", "app-version-drafts/", "blocks/", "reserved-jobs/"])
def test_a_token_of_somebody_without_the_right_reads_nothing(alice: User, path: str) -> None:
    headers = bearer(alice, ApiToken.Scope.PROJECT)
    assert Client().get(API + path, headers=headers).status_code == 403
