"""Versions released in the browser: each step, what it refuses, and who gets the version then."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from credit.models import App, AppVersion
from credit.statistics.feeder import feed
from portal.benchmarks.statements import statements
from portal.models import User
from portal.wire import signing
from scheduler.engine.facts import Version
from scheduler.engine.release_states import ReleaseAction, ReleaseState
from scheduler.models import BetaTest, BetaTester, DraftFile, ReleaseDraft, StoredFile, VersionFile
from scheduler.programs import catalogue, code_signing
from scheduler.releases import rollout
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, gpu
from tests.support.sessions import sign_in_lately
from tests.support.settings_changes import STEP, last_change, save, undo

pytestmark = pytest.mark.django_db
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


@pytest.fixture
def browser(client: Client, operator: User) -> Client:
    sign_in_lately(client, operator)
    return client


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


@pytest.fixture
def offline(tmp_path: Path, settings: Settings) -> Callable[[Client, ReleaseDraft], str]:
    """Signs a draft's manifest on another machine: what that prints. The site itself has no private key."""
    private, folder = settings.CODE_SIGNING_KEY, tmp_path / "own"
    settings.CODE_SIGNING_KEY = tmp_path / "none"
    folder.mkdir()
    (folder / "main.sh").write_bytes(MAIN)
    (folder / "table.txt").write_bytes(b"1 2 3\n")

    def sign(browser: Client, draft: ReleaseDraft) -> str:
        (tmp_path / "manifest.json").write_bytes(browser.get(f"{BASE}{draft.pk}/manifest.json").content)
        out = StringIO()
        settings.CODE_SIGNING_KEY = private
        try:
            call_command("sign_manifest", tmp_path / "manifest.json", folder, stdout=out)
        finally:
            settings.CODE_SIGNING_KEY = tmp_path / "none"
        return out.getvalue()

    return sign


# --- the steps --------------------------------------------------------------------------------------------------------


def test_a_version_is_released_step_by_step_with_signatures_made_elsewhere(
    browser: Client,
    offline: Callable[[Client, ReleaseDraft], str],
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[object]],
) -> None:
    draft = prepared(browser)
    assert "2 files are" in said(browser.get(f"{BASE}{draft.pk}/change/")).replace("\u00a0", " ")
    assert "is not signed yet" in store(browser, draft)
    assert not StoredFile.objects.exists() and not App.objects.exists()
    signatures = offline(browser, draft)
    reply = browser.post(f"{BASE}{draft.pk}/signatures/", {"text": signatures}, follow=True)
    assert "The signatures are right" in said(reply)
    with django_capture_on_commit_callbacks(execute=True):
        store(browser, draft, "release")
    version = AppVersion.objects.get()
    assert (str(version), state(version)) == (f"Alpine 1.01 {LINUX}", ReleaseState.RELEASED)
    main, table = VersionFile.objects.order_by("-is_main_program").select_related("file")
    assert (main.file.name, main.file.is_executable) == (f"alpine_101_{LINUX}_main.sh", True)
    assert (table.open_name, table.is_copied, table.file.is_executable) == ("table", True, False)
    public = signing.parse_public_key(code_signing.code_signing_key_text())
    with default_storage.open(main.file.path) as stored:
        assert signing.verify(stored.read(), main.file.signature, public)
    # Asked again it does nothing, and what was uploaded is gone.
    store(browser, draft, "release")
    assert AppVersion.objects.count() == 1 and not DraftFile.objects.exists()
    assert default_storage.listdir(f"drafts/releases/{draft.pk}")[1] == []


def test_it_is_the_same_version_as_the_command_makes(browser: Client, tmp_path: Path) -> None:
    signed_version(browser, "release")
    (tmp_path / "main.sh").write_bytes(MAIN)
    (tmp_path / "table.txt").write_bytes(b"1 2 3\n")
    files = [{"path": "main.sh", "main_program": True}, {"path": "table.txt", "open_name": "table"}]
    version = {"app": "alpine", "version_num": 101, "platform": LINUX, "files": files}
    (tmp_path / "version.json").write_text(json.dumps(version))
    out = StringIO()
    call_command("release_app_version", tmp_path, stdout=out)
    assert "was released before: nothing to do" in out.getvalue()


def test_the_servers_key_signs_where_there_is_one(browser: Client, settings: Settings, tmp_path: Path) -> None:
    draft = prepared(browser)
    page = said(browser.get(f"{BASE}{draft.pk}/change/"))
    assert "Sign with this server" in page
    settings.CODE_SIGNING_KEY = tmp_path / "none"
    assert "Sign with this server" not in said(browser.get(f"{BASE}{draft.pk}/change/"))
    assert "not on this machine" in said(browser.post(f"{BASE}{draft.pk}/sign/", follow=True))


def test_without_any_key_the_pages_say_so(browser: Client, settings: Settings, tmp_path: Path) -> None:
    draft = prepared(browser)
    settings.CODE_SIGNING_KEY_PUBLIC = settings.CODE_SIGNING_KEY = tmp_path / "none"
    assert "no code-signing key yet" in said(browser.get(f"{BASE}{draft.pk}/manifest.json", follow=True))
    given = {"text": json.dumps({"signatures": {"main.sh": "0"}})}
    assert "no code-signing key yet" in said(browser.post(f"{BASE}{draft.pk}/signatures/", given, follow=True))


def test_wrong_signatures_are_refused_by_the_file_and_none_is_kept(browser: Client) -> None:
    draft = prepared(browser)
    main = draft.files.get(name="main.sh")
    foreign = signing.sign(MAIN, signing.generate_key())
    right = code_signing.sign_code_md5(main.md5)
    for given, message in [
        ({"main.sh": foreign}, "main.sh: not the signature of this file"),
        ({"main.sh": right, "table.txt": right}, "table.txt: not the signature of this file"),
        ({"main.sh": "zz"}, "is not a hexadecimal digit"),
        ({"other.sh": right}, "other.sh: this draft has no such file"),
        (["x"], "not what sign_manifest writes"),
    ]:
        text = json.dumps({"signatures": given})
        reply = browser.post(f"{BASE}{draft.pk}/signatures/", {"text": text}, follow=True)
        assert message in said(reply).replace("&#x27;", "'")
    assert "not what sign_manifest writes" in said(
        browser.post(f"{BASE}{draft.pk}/signatures/", {"text": "[" * 100_000}, follow=True)
    )
    assert not draft.files.exclude(signature="").exists()
    # A file for each works as well, and one that is uploaded anew has to be signed anew.
    sig = SimpleUploadedFile(f"alpine_101_{LINUX}_main.sh.sig", (right or "").encode())
    browser.post(f"{BASE}{draft.pk}/signatures/", {"file": sig})
    assert draft.files.exclude(signature="").get() == main
    add_file(browser, draft, content=MAIN + b"#", is_main_program="on")
    assert not draft.files.exclude(signature="").exists()


def test_a_machine_with_the_key_signs_only_files_that_it_has(
    browser: Client, offline: Callable[[Client, ReleaseDraft], str]
) -> None:
    """Who has broken into the site cannot get a program of theirs signed."""
    draft = prepared(browser)
    add_file(browser, draft, content=MAIN + b"curl evil\n", is_main_program="on")
    with pytest.raises(CommandError, match=r"main\.sh: the site has another file than this one\. Nothing is signed"):
        offline(browser, draft)
    DraftFile.objects.filter(name="main.sh").update(md5="0" * 32)
    with pytest.raises(CommandError, match="the site has another file"):
        offline(browser, draft)


@pytest.mark.parametrize("name", [".hidden", "a b", "a..b", "\N{SNOWMAN}.sh", "-x"])
def test_hostile_names_of_files_are_refused(browser: Client, name: str) -> None:
    draft = begin(browser)
    assert "is no name of at most 200" in add_file(browser, draft, name)
    assert not DraftFile.objects.exists()


def test_a_path_in_a_files_name_counts_for_nothing(browser: Client) -> None:
    draft = begin(browser)
    add_file(browser, draft, "../../etc/passwd")
    assert DraftFile.objects.get().name == "passwd"


@pytest.mark.parametrize("name", ["version.json", "version.toml"])
def test_a_file_cannot_stand_for_the_description(browser: Client, name: str) -> None:
    draft = prepared(browser)
    assert "a program file cannot have this name" in add_file(browser, draft, name, b"{}")
    assert draft.files.count() == 2


def test_files_have_limits(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = begin(browser)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILE_NBYTES", 5)
    assert "the limit is 5" in add_file(browser, draft)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILE_NBYTES", 100)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILES_PER_JOB", 1)
    add_file(browser, draft)
    assert "at most 1 files" in add_file(browser, draft, "second.sh")


def test_what_is_still_missing_is_said(browser: Client) -> None:
    draft = begin(browser)
    assert "files: 1 to 100 of them" in said(browser.get(f"{BASE}{draft.pk}/change/"))
    add_file(browser, draft)
    assert "exactly one of them has main_program" in said(browser.get(f"{BASE}{draft.pk}/change/"))
    add_file(browser, draft, is_main_program="on")
    assert "Still missing" not in said(browser.get(f"{BASE}{draft.pk}/change/"))
    browser.post(f"{BASE}{draft.pk}/change/", {**FIELDS, "gpu_usage": "1"})
    assert "gpu_usage: more than 0 for a GPU type" in said(browser.get(f"{BASE}{draft.pk}/change/"))


def test_a_draft_is_discarded_with_its_files(browser: Client) -> None:
    draft = prepared(browser)
    path = draft.files.all()[0].path
    browser.post(f"{BASE}{draft.pk}/discard/")
    assert not ReleaseDraft.objects.exists() and not DraftFile.objects.exists()
    assert path.startswith("drafts/")


def test_a_version_that_was_released_before_is_not_made_again(browser: Client) -> None:
    signed_version(browser, "release")
    draft = prepared(browser)
    browser.post(f"{BASE}{draft.pk}/sign/")
    assert "was released before. Give it another version number" in store(browser, draft)
    assert not BetaTest.objects.exists()


def test_preparing_and_releasing_are_two_rights(client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    rights = ("view_releasedraft", "add_releasedraft", "change_releasedraft")
    alice.user_permissions.set(Permission.objects.filter(codename__in=rights))
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    draft = prepared(client)
    assert client.post(f"{BASE}{draft.pk}/sign/").status_code == 403
    assert client.post(f"{BASE}{draft.pk}/store/", {"action": "release"}).status_code == 403
    version = make_version(make_app("other"))
    assert client.post(f"{BASE}versions/{version.pk}/withdraw/").status_code == 403
    alice.user_permissions.clear()
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    for address in ("", "add/", f"{draft.pk}/change/", f"{draft.pk}/manifest.json"):
        assert client.get(BASE + address).status_code == 403


# --- who gets it ------------------------------------------------------------------------------------------------------


def ready(njobs: int = 30) -> None:
    app = App.objects.get(name="alpine")
    for _ in range(njobs):
        make_result(make_workunit(app, output_files=[]))
    catalogue.forget()


def num_sent(computer: Computer) -> int:
    """The number of the version that came with a job; 0 if none came."""
    catalogue.forget()
    reply = computer.ask(0, 1)
    numbers = [part.split("</version_num>")[0] for part in reply.split("<version_num>")[1:]]
    return int(numbers[-1]) if numbers and "<result>" in reply else 0


def test_a_tested_version_reaches_only_computers_of_chosen_people(
    browser: Client, operator: User, alice: User, bob: User
) -> None:
    BetaTester.objects.create(user=alice)
    version = signed_version(browser, "test")
    ready()
    computers = {user.name: computer_of(user) for user in (operator, alice, bob)}

    def sent() -> dict[str, int]:
        return {name: num_sent(computer) for name, computer in computers.items()}

    assert sent() == {"Operator": 101, "Alice": 0, "Bob": 0}
    do(browser, version, "withdraw")
    assert sent() == {"Operator": 0, "Alice": 0, "Bob": 0}
    do(browser, version, "test", with_volunteers="on")
    assert sent() == {"Operator": 101, "Alice": 101, "Bob": 0}
    do(browser, version, "release")
    assert sent() == {"Operator": 101, "Alice": 101, "Bob": 101}


@pytest.mark.parametrize("ended", ["withdraw", "disagree"])
def test_a_lost_job_does_not_bring_back_what_the_computer_should_not_have(
    browser: Client, alice: User, ended: str
) -> None:
    BetaTester.objects.create(user=alice)
    version = signed_version(browser, "test", with_volunteers="on")
    do(browser, version, "withdraw")
    do(browser, version, "test", with_volunteers="on")
    ready(1)
    computer = computer_of(alice)
    assert num_sent(computer) == 101
    if ended == "withdraw":
        do(browser, version, "withdraw")
    else:
        BetaTester.objects.all().delete()
    computer.jobs.clear()  # the reply never arrived
    assert num_sent(computer) == 0


def test_others_keep_the_version_before_until_the_new_one_is_released(
    browser: Client, operator: User, bob: User
) -> None:
    signed_version(browser, "release")
    second = signed_version(browser, "test", version_num=102)
    ready()
    own, other = computer_of(operator), computer_of(bob)
    assert (num_sent(own), num_sent(other)) == (102, 101)
    do(browser, second, "release")
    assert num_sent(other) == 102


def test_a_roll_back_is_one_step(browser: Client, bob: User) -> None:
    first = signed_version(browser, "release")
    second = signed_version(browser, "release", version_num=102)
    do(browser, first, "withdraw")
    ready()
    computer = computer_of(bob)
    assert num_sent(computer) == 102
    assert "Saved" in do(browser, second, "roll_back")
    assert (state(first), state(second)) == (ReleaseState.RELEASED, ReleaseState.WITHDRAWN)
    assert num_sent(computer) == 101
    assert "no older version to go back to" in do(browser, first, "roll_back")
    assert state(first) == ReleaseState.RELEASED


def test_a_roll_back_does_not_bring_back_what_was_withdrawn_before(browser: Client) -> None:
    first, second, third = (signed_version(browser, "release", version_num=num) for num in (101, 102, 103))
    do(browser, second, "roll_back")
    do(browser, third, "roll_back")
    assert [state(each).name for each in (first, second, third)] == ["RELEASED", "WITHDRAWN", "WITHDRAWN"]


def test_a_roll_back_never_sends_a_test_that_failed_to_all(browser: Client) -> None:
    tested = signed_version(browser, "test")
    do(browser, tested, "withdraw")
    second = signed_version(browser, "release", version_num=102)
    assert "no older version to go back to" in do(browser, second, "roll_back")
    assert (state(tested), state(second)) == (ReleaseState.WITHDRAWN, ReleaseState.RELEASED)


def test_what_is_done_with_a_version_is_in_the_log_of_changes(browser: Client, operator: User) -> None:
    first = signed_version(browser, "release")
    second = signed_version(browser, "test", version_num=102)
    do(browser, second, "release")
    do(browser, second, "test")  # not possible, so not in the log
    do(browser, second, "roll_back")
    log = LogEntry.objects.get(content_type__model="appversion")
    assert (log.user, log.object_id) == (operator, str(second.pk))
    assert log.change_message == f"{second} is released to all computers."
    change = last_change()
    assert (change.actor, change.object_id, change.reason) == (operator, second.pk, "a test")
    assert change.changes == {"is_deprecated": [False, True]}
    assert state(first) == ReleaseState.RELEASED


def test_public_pages_tell_versions_in_test_from_released_ones(browser: Client) -> None:
    signed_version(browser, "release")
    released_at = App.objects.get().versions.get().created_at
    tested = signed_version(browser, "test", version_num=102)
    page = said(browser.get("/apps/alpine/"))
    assert page.count("in test</span>") == 1 and "only computers of testers get it" in page
    assert browser.get("/apps/").context["apps"][0]["released_at"] == released_at
    do(browser, tested, "release")
    assert "in test</span>" not in said(browser.get("/apps/alpine/"))
    assert browser.get("/apps/").context["apps"][0]["released_at"] > released_at


def test_a_tested_version_counts_for_scales_like_any_other_so_its_release_changes_no_credit(operator: User) -> None:
    app = make_app()
    make_version(app, pfc_n=100, pfc_avg=2.0)
    tested = make_version(app, plan_class="mt", pfc_n=300, pfc_avg=4.0)
    BetaTest.objects.create(app_version=tested)
    before = [list(app.versions.order_by("pk").values_list("pfc_scale", flat=True)) for _ in [feed(NOON)]]
    # (100 * 2 + 300 * 4) / 400 = 3.5
    assert before == [[1.75, 0.875]]
    rollout.act(tested, ReleaseAction.RELEASE, operator, NOON)
    feed(NOON)
    assert list(app.versions.order_by("pk").values_list("pfc_scale", flat=True)) == before[0]


# --- the step before what may change credit ---------------------------------------------------------------------------


def to_step(browser: Client, version: AppVersion, action: str, **fields: Any) -> str:
    reply = browser.post(f"{BASE}versions/{version.pk}/{action}/", fields)
    assert reply["Location"].startswith(STEP)
    return str(reply["Location"])


@pytest.mark.parametrize("action", ["withdraw", "roll_back"])
def test_before_a_version_is_withdrawn_a_step_offers_a_preview_and_demands_a_reason(
    browser: Client, action: str
) -> None:
    signed_version(browser, "release")
    second = signed_version(browser, "release", version_num=102)
    step = to_step(browser, second, action)
    assert state(second) == ReleaseState.RELEASED
    page = said(browser.get(step))
    assert "Save without a preview" in page and "Jobs" in page
    # Nothing was granted yet, so there is nothing to preview; that is said by the preview itself.
    assert "No preview" not in said(browser.post(step, {"do": "preview"}, follow=True))
    assert save(browser, step, "").status_code == 200
    assert state(second) == ReleaseState.RELEASED
    assert save(browser, step, "computes nonsense").status_code == 302
    assert state(second) == ReleaseState.WITHDRAWN
    assert last_change().reason == "computes nonsense"


@pytest.mark.parametrize("with_volunteers", [False, True])
def test_what_was_withdrawn_is_sent_again_after_the_same_step(
    browser: Client, operator: User, with_volunteers: bool
) -> None:
    version = signed_version(browser, "release")
    do(browser, version, "withdraw")
    save(browser, to_step(browser, version, "test", **({"with_volunteers": "on"} if with_volunteers else {})))
    test = BetaTest.objects.get()
    assert (state(version), test.begun_by, test.with_volunteers) == (ReleaseState.BETA, operator, with_volunteers)
    do(browser, version, "withdraw")
    save(browser, to_step(browser, version, "release"))
    assert state(version) == ReleaseState.RELEASED


def test_a_withdrawal_is_undone_like_any_change_of_credit(browser: Client) -> None:
    version = signed_version(browser, "test")
    do(browser, version, "withdraw")
    assert undo(browser, last_change()).status_code == 302
    assert state(version) == ReleaseState.BETA


def test_a_roll_back_whose_older_version_is_gone_meanwhile_changes_nothing(browser: Client) -> None:
    first = signed_version(browser, "test")
    do(browser, first, "release")
    second = signed_version(browser, "release", version_num=102)
    step = to_step(browser, second, "roll_back")
    BetaTest.objects.create(app_version=first)  # it is only tested by now
    reply = save(browser, step)
    assert "no older version to go back to" in said(reply)
    assert (state(first), state(second)) == (ReleaseState.BETA, ReleaseState.RELEASED)


@pytest.mark.parametrize(("withdrawn", "nolder"), [(1, 2), (0, 1)])
def test_a_roll_back_that_would_bring_another_version_than_was_shown_changes_nothing(
    browser: Client, withdrawn: int, nolder: int
) -> None:
    *older, last = (signed_version(browser, "release", version_num=101 + n) for n in range(nolder + 1))
    step = to_step(browser, last, "roll_back")
    assert f"Computers get {older[-1]} again" in said(browser.get(step))
    do(browser, older[withdrawn], "withdraw")
    reply = said(save(browser, step))
    assert "this would bring another version than the one that was shown" in reply
    assert [state(each) for each in (older[withdrawn], last)] == [ReleaseState.WITHDRAWN, ReleaseState.RELEASED]
    assert "Saved" in do(browser, last, "roll_back")
    assert (state(older[0]), state(last)) == (ReleaseState.RELEASED, ReleaseState.WITHDRAWN)


def test_who_may_release_and_nothing_else_may_withdraw(client: Client, alice: User) -> None:
    version = make_version(make_app())
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    rights = ("view_releasedraft", "release_appversion")
    alice.user_permissions.set(Permission.objects.filter(codename__in=rights))
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    step = to_step(client, version, "withdraw")
    assert "you may not ask for one" in said(client.get(step))
    assert client.get(client.post(step, {"do": "cancel"})["Location"]).status_code == 200
    save(client, to_step(client, version, "withdraw"))
    assert state(version) == ReleaseState.WITHDRAWN


def test_a_draft_that_was_stored_is_not_said_to_be_released_by_a_second_click(browser: Client) -> None:
    draft = prepared(browser)
    browser.post(f"{BASE}{draft.pk}/sign/")
    store(browser, draft, "test")
    said_now = store(browser, draft, "release")
    assert "is released to all" not in said_now and "was stored already" in said_now
    assert state(AppVersion.objects.get()) == ReleaseState.BETA


def test_the_page_of_all_versions_looks_at_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    for number in range(20):
        make_version(app, version_num=100 + number)
    looked_at: list[int] = []
    facts = catalogue.version_facts

    def look(row: AppVersion) -> Version:
        looked_at.append(row.pk)
        return facts(row)

    monkeypatch.setattr(catalogue, "version_facts", look)
    rows = {row.version.version_num: row.before for row in rollout.read_versions()}
    assert rows[100] is None and all(rows[number].version_num == number - 1 for number in range(101, 120))  # type: ignore[union-attr]  # there is one
    assert len(looked_at) == 20


@pytest.mark.django_db(transaction=True)
def test_no_request_that_has_sent_a_version_is_waited_for(operator: User) -> None:
    """Requests hold the rows of versions that they refer to (FOR KEY SHARE), in an order of their own."""
    version = make_version(make_app())

    def withdraw() -> ReleaseState:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '1s'")
            return rollout.act(version, ReleaseAction.WITHDRAW, operator, NOON)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM credit_appversion WHERE id = %s FOR KEY SHARE", [version.pk])
        assert other.submit(withdraw).result() == ReleaseState.WITHDRAWN


def test_what_a_state_does_not_allow_changes_nothing(browser: Client) -> None:
    version = signed_version(browser, "release")
    assert "the state is released" in do(browser, version, "test")
    assert browser.post(f"{BASE}versions/{version.pk}/explode/").status_code == 404
    assert browser.get(f"{BASE}versions/{version.pk}/withdraw/").status_code == 404
    assert state(version) == ReleaseState.RELEASED


def test_volunteers_agree_on_a_page_of_their_own(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post("/project/testing/", {"agrees": "on"})
    assert BetaTester.objects.get().user == alice
    assert "checked" in said(client.get("/project/testing/"))
    client.post("/project/testing/")
    assert not BetaTester.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_a_tested_version_costs_a_request_no_statement(alice: User) -> None:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    BetaTester.objects.create(user=alice)
    tested = make_version(app, version_num=101)
    BetaTest.objects.create(app_version=tested, with_volunteers=True)
    catalogue.forget()
    for _ in range(30):
        make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice, ncpus=16)
    computer.ask(0, 1)
    computer.ask(1)
    # As without: read; lock computer and jobs, write
    assert statements(lambda: computer.ask(0, 1)) == 3


# --- who would get it -------------------------------------------------------------------------------------------------


def test_the_page_says_how_many_active_computers_fit(browser: Client, operator: User, alice: User, bob: User) -> None:
    BetaTester.objects.create(user=bob)
    card = gpu("coproc_cuda", count=1, totalGlobalMem=2**32, peak_flops=1e12, drvVersion=53504)
    for user, fields in (
        (operator, {"coprocs": card}),
        (alice, {}),
        (bob, {"coprocs": card}),
        (alice, {"platform": "windows_x86_64", "coprocs": card}),
    ):
        computer_of(user, **fields).ask(0)
    computer_of(bob, coprocs=card).ask(0, core_client_major_version=6, core_client_minor_version=2)
    draft = begin(browser, processor_type="NVIDIA", gpu_usage="1", avg_ncpus="0.1", min_gpu_ram_bytes=str(2**31))
    facts = browser.get(f"{BASE}{draft.pk}/change/").context["audience"]
    assert (facts.nactive, facts.nfit, facts.nothers, facts.nunfit, facts.ntoo_old) == (5, 2, 1, 1, 1)
    assert (facts.nown, facts.nvolunteers, facts.clients) == (1, 1, [("7.20", 2)])
    # With more memory than these cards have nobody is left.
    browser.post(
        f"{BASE}{draft.pk}/change/",
        {**FIELDS, "processor_type": "NVIDIA", "gpu_usage": "1", "min_gpu_ram_bytes": str(2**33)},
    )
    assert browser.get(f"{BASE}{draft.pk}/change/").context["audience"].nfit == 0
