"""Apps, versions, files and jobs of a project that moves here: what was sent before comes here after."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from credit.engine.explanation import GrantRule
from credit.models import (
    App,
    AppVersion,
    Batch,
    HostAppVersion,
    Outcome,
    Result,
    ServerState,
    UserCredit,
    ValidateState,
    Workunit,
)
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.models import ImportStep
from extras.moving_in.tests.imports import KillAt, Killed, content, import_, rehearse
from extras.moving_in.tests.old_project import T0, OldProject
from extras.moving_in.tests.old_work import APP, VERSION, OldWork, md5_of
from extras.remote_jobs.models import JobTemplate
from portal.models import Host, User
from scheduler.engine.lanes import Lane, LaneKind, Requirement
from scheduler.lifecycle import transitioner
from scheduler.models import (
    ArchivedTask,
    ArchivedWorkunit,
    FormerOutput,
    PlanClass,
    StickyFile,
    StoredFile,
    Trickle,
    Upload,
)
from tests.support.upload_requests import post, upload_body
from tests.support.validator_runs import differences, validate

pytestmark = pytest.mark.django_db
AT = dt.datetime.fromtimestamp(T0, dt.UTC)
OUTPUT = b"forty-two\n"


@pytest.fixture(autouse=True)
def keys(settings: Settings, tmp_path: Path) -> None:
    """A site without a code-signing key of its own yet."""
    settings.CODE_SIGNING_KEY, settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "private", tmp_path / "public"


@pytest.fixture
def work(old_project: OldProject, tmp_path: Path) -> OldWork:
    """Two volunteers with a computer each, and an app without jobs."""
    for number in (7, 8):
        old_project.user(number, total_credit=1000.0 * number, expavg_time=T0)
        old_project.add("host", id=10 * number, userid=number, p_fpops=4e9, p_ncpus=4, domain_name=f"h{number}")
    work = OldWork(old_project, tmp_path / "fold")
    work.make()
    return work


def bring(work: OldWork) -> dict[str, Tally]:
    return import_(work.project, folder=work.folder)


def told(tally: Tally) -> dict[str, list[str]]:
    return {reason: each.examples for reason, each in tally.told.items()}


def left(tallies: dict[str, Tally]) -> dict[str, list[str]]:
    return {reason: each.examples for tally in tallies.values() for reason, each in tally.left.items()}


def test_an_app_comes_with_its_versions_files_keys_and_plan_classes(work: OldWork, settings: Settings) -> None:
    work.version(b"threads", 12, 106, plan_class="mt4", pfc_n=50.0, pfc_avg=0.5, pfc_scale=0.25)
    start = "<is_wrapper/>\n<file_prefix>shared</file_prefix>\n<graphics/>\n"
    work.version(b"box", 13, 107, start, plan_class="vbox64")
    tallies = bring(work)
    app = App.objects.get(pk=APP)
    assert (app.name, app.user_friendly_name, app.max_jobs_per_day_init) == ("fold", "Folding", 400)
    first, threads, box = AppVersion.objects.order_by("pk")
    assert (first.is_wrapper, first.dont_throttle, first.needs_network, first.file_prefix) == (False, True, False, "")
    assert (box.is_wrapper, box.dont_throttle, box.file_prefix) == (True, False, "shared")
    assert "graphics: not supported here" in told(tallies["versions"])
    assert (first.pk, first.version_num, first.is_deprecated) == (VERSION, 105, False)
    assert (threads.plan_class, threads.pfc_n, threads.pfc_avg, threads.pfc_scale) == ("mt4", 50, 0.5, 0.25)
    assert PlanClass.objects.get(name="mt4").max_ncpus == 4
    assert PlanClass.objects.get(name="vbox64").needs_virtualbox
    assert box.is_deprecated  # the minimum version of Android is ignored here
    assert "min_android_version: not supported here, so its versions are imported as withdrawn" in told(
        tallies["plan classes"]
    )
    (file,) = first.files.all()
    with default_storage.open(file.file.path) as content:
        assert content.read() == b"#!/bin/sh\n"
    assert (file.is_main_program, file.file.md5, file.file.is_executable) == (True, md5_of(b"#!/bin/sh\n"), True)
    key = Path(settings.CODE_SIGNING_KEY_PUBLIC).read_text()
    assert key == (work.folder / "keys/code_sign_public").read_text()
    assert JobTemplate.objects.get().name == "fold_out"
    assert "set FORMER_PATHS to" in told(tallies["settings"])


def test_a_program_file_that_is_gone_or_not_signed_withdraws_its_version(work: OldWork) -> None:
    work.version(b"gone", 12, 106)
    work.version(b"other", 13, 107)
    (work.folder / "download" / "fold_106__linux").unlink()
    (work.folder / "download" / "fold_107__linux").write_bytes(b"forged")
    tallies = bring(work)
    assert [*AppVersion.objects.filter(is_deprecated=True).order_by("pk").values_list("pk", flat=True)] == [12, 13]
    assert sorted(told(tallies["versions"])) == [
        "a program file is missing from download/: the version is imported as withdrawn",
        "a program file is not signed with keys/code_sign_public",
    ]


def test_open_jobs_keep_numbers_names_files_and_what_their_computers_were_promised(work: OldWork) -> None:
    work.workunit(1, b"one\n", "--x '1 &lt; 2'", min_quorum=2, target_nresults=2, priority=100_000)
    sent = work.sent(101, 1, host=70, user=7)
    work.result(102, 1, nth=1)
    work.workunit(2)  # no result was made yet
    tallies = bring(work)
    workunit = Workunit.objects.get(pk=1)
    assert (workunit.name, workunit.command_line, workunit.priority) == ("fold_wu_1", "--x '1 < 2'", 32_767)
    assert workunit.input_files == [{"name": "in_1", "open_name": "in", "nbytes": 4, "md5": md5_of(b"one\n")}]
    assert workunit.output_files == [{"open_name": "out", "max_nbytes": 100_000, "optional": False}]
    assert Workunit.objects.get(pk=2).output_files == workunit.output_files
    result = Result.objects.get(pk=101)
    assert (result.name, result.server_state, result.host_id, result.user_id) == (sent, ServerState.IN_PROGRESS, 70, 7)
    assert (result.sent_at, result.deadline_at) == (AT, dt.datetime.fromtimestamp(2_000_000_000, dt.UTC))
    assert (result.app_version_id, result.peak_flops) == (VERSION, 4e9)
    assert Result.objects.get(pk=102).server_state == ServerState.UNSENT
    assert [*FormerOutput.objects.values_list("name", "result", "number")] == [("fold_wu_1_0_r1193428123_0", 101, 0)]
    assert StoredFile.objects.get(name="in_1").md5 == md5_of(b"one\n")
    assert Result.objects.create(workunit=workunit, app=workunit.app, name="fold_wu_1_2").pk > 102
    assert left(tallies) == {}


def test_a_task_that_was_sent_there_is_uploaded_reported_and_credited_here(work: OldWork) -> None:
    work.workunit(1, min_quorum=1)
    name = work.sent(101, 1, host=70, user=7)
    bring(work)
    xml = work.result_xml(name)
    certificate = xml.partition("<xml_signature>\n")[2].partition("</xml_signature>")[0]
    assert post(upload_body(f"{name}_r1193428123_0", OUTPUT, certificate=certificate)) == "0"
    assert Upload.objects.get().name == f"{name}_0"


def test_outputs_that_had_come_there_are_here(work: OldWork) -> None:
    """Of one that its computer has not reported yet, and of one that waits for another to be compared with."""
    work.workunit(1, min_quorum=2, target_nresults=2)
    for number, (nth, make) in enumerate(((0, work.over), (1, work.sent)), 101):
        name = make(number, 1, host=70 + 10 * nth, user=7 + nth, nth=nth)
        work.put("upload", f"{name}_r1193428123_0", OUTPUT)
    bring(work)
    over = Result.objects.get(pk=101)
    assert [(each["name"], each["md5"]) for each in over.outputs] == [("fold_wu_1_0_0", md5_of(OUTPUT))]
    assert over.output_digest is not None
    uploads = Upload.objects.order_by("name")
    assert [(each.name, each.nbytes, each.is_complete) for each in uploads] == [
        ("fold_wu_1_0_0", len(OUTPUT), True),
        ("fold_wu_1_1_0", len(OUTPUT), True),
    ]


def test_what_is_over_goes_into_the_archive_with_its_credit(work: OldWork) -> None:
    work.workunit(1, assimilate_state=2, canonical_resultid=101, canonical_credit=12.5, file_delete_state=2)
    work.over(101, 1, host=70, user=7, validate_state=1, granted_credit=12.5)
    work.result(
        102, 1, nth=1, server_state=5, outcome=3, hostid=80, userid=8, sent_time=T0, received_time=T0, exit_status=195
    )
    bring(work)
    assert (Workunit.objects.count(), Result.objects.count()) == (0, 0)
    assert ArchivedWorkunit.objects.get().name == "fold_wu_1"
    valid, failed = ArchivedTask.objects.order_by("pk")
    assert (valid.user_id, valid.facts["granted_credit"], valid.facts["grant_rule"]) == (
        7,
        12.5,
        GrantRule.CARRIED_OVER,
    )
    assert (failed.facts["outcome"], failed.facts["exit_status"]) == (Outcome.CLIENT_ERROR, 195)
    # It is in the total already.
    assert UserCredit.objects.get(user=7).total_credit == 7000.0
    assert differences() == []


def test_a_task_that_is_late_counts_as_long_as_the_old_server_kept_the_files(work: OldWork) -> None:
    work.workunit(1, assimilate_state=2, canonical_resultid=101, canonical_credit=12.5)
    work.over(101, 1, host=70, user=7, validate_state=1, granted_credit=12.5)
    name = work.sent(102, 1, host=80, user=8, nth=1, server_state=5, outcome=4)
    bring(work)
    assert Result.objects.get(pk=102).outcome == Outcome.NO_REPLY
    assert FormerOutput.objects.filter(name=f"{name}_r1193428123_0").exists()


def test_a_quorum_that_had_its_first_result_there_is_completed_here(work: OldWork) -> None:
    work.workunit(1, min_quorum=1, canonical_resultid=101, canonical_credit=12.5, assimilate_state=2)
    work.over(101, 1, host=70, user=7, validate_state=1, granted_credit=12.5)
    work.sent(102, 1, host=80, user=8, nth=1)
    for nth in range(2):
        work.put("upload", f"fold_wu_1_{nth}_r1193428123_0", OUTPUT)
    bring(work)
    assert differences() == []
    outputs = Result.objects.get(pk=101)
    late = {"server_state": ServerState.OVER, "outcome": Outcome.SUCCESS, "received_at": AT + dt.timedelta(hours=3)}
    values = {"outputs": outputs.outputs, "output_digest": outputs.output_digest, "elapsed_secs": 3600.0}
    Result.objects.filter(pk=102).update(**late, **values)
    Workunit.objects.update(transition_at=AT)
    transitioner.run(timezone.now())
    validate(App.objects.get())
    result = Result.objects.get(pk=102)
    assert (result.validate_state, result.granted_credit) == (ValidateState.VALID, 12.5)
    assert UserCredit.objects.get(user=8).total_credit == 8012.5
    assert differences() == []


def test_odd_rows_are_left_or_told_with_their_reasons(work: OldWork) -> None:
    work.result(100, 999)
    work.workunit(1, appid=44)
    work.workunit(2, name="fold wu 2")
    work.workunit(3, transitioner_flags=1)
    work.result(103, 3)
    work.workunit(7, transitioner_flags=2)
    work.sent(108, 7, host=70, user=7)
    work.workunit(4, rsc_fpops_est=0.0)
    work.workunit(5, b"other\n")
    work.put("download", "in_5", b"changed\n")
    work.result(105, 5, server_state=1)
    work.result(106, 5, nth=1, server_state=5)
    work.workunit(6)
    work.sent(107, 6, host=999, user=999)
    tallies = bring(work)
    assert left(tallies) == {
        "result: its workunit no longer exists": ["100"],
        "result: its workunit was left": ["103"],
        "result: not ready to be sent yet; the transitioner makes another one": ["105"],
        "workunit: its app no longer exists": ["1"],
        "workunit: a name with characters that paths or XML cannot have": ["2"],
        "workunit: broadcast to every computer of a kind, which is not supported here": ["3"],
        "workunit: no estimate of its FLOPs": ["4"],
        "an input file in download/ has not the MD5 that its tasks name": ["in_5"],
    }
    assert "broadcast to every computer of a kind: further copies go to any computer" in told(tallies["workunits"])
    assert Result.objects.get(pk=108).server_state == ServerState.IN_PROGRESS
    assert told(tallies["results"]) == {
        "over without an outcome: taken as not needed": ["106"],
        "its computer or account is missing here: it ends at its deadline": ["107"],
    }
    assert (Result.objects.get(pk=107).host_id, Result.objects.get(pk=106).outcome) == (None, Outcome.DIDNT_NEED)


def test_jobs_for_certain_computers_people_or_versions_stay_theirs(work: OldWork) -> None:
    for number, (kind, target) in enumerate(((1, 70), (2, 8), (3, 5)), 1):
        work.workunit(number, transitioner_flags=2, transition_time=2**31 - 1)
        work.project.add("assignment", create_time=T0, target_type=kind, target_id=target, multi=0, workunitid=number)
    work.workunit(4, app_version_num=105, target_nresults=2)
    work.result(104, 4)
    work.workunit(5, hr_class=322)
    tallies = bring(work)
    lanes = dict(Workunit.objects.values_list("pk", "lane"))
    assert {pk: (Lane.of(lane).kind, Lane.of(lane).target_id) for pk, lane in lanes.items() if pk < 4} == {
        1: (LaneKind.COMPUTER, 70), 2: (LaneKind.PERSON, 8), 3: (LaneKind.TEAM, 5),
    }  # fmt: skip
    assert Lane.of(lanes[4]).requirement == Requirement(105)
    assert told(tallies["workunits"]) == {
        "bound to a class of computers or a version: copies sent from here may go to others": ["5"]
    }
    transitioner.run(timezone.now())
    assert set(Result.objects.filter(workunit__lt=5).values_list("workunit", "lane")) == {
        (pk, lane) for pk, lane in lanes.items() if pk < 5
    }


def test_statistics_of_versions_on_computers_are_in_the_same_units(work: OldWork) -> None:
    record = {"pfc_n": 20.0, "pfc_avg": 0.4, "et_n": 20.0, "et_avg": 2e-10, "et_var": 1e-22, "consecutive_valid": 30}
    work.project.add("host_app_version", host_id=70, app_version_id=VERSION, **record, max_jobs_per_day=100)
    work.project.add("host_app_version", host_id=70, app_version_id=APP * 1_000_000 + 3, et_n=1.0, et_avg=1e-9)
    work.project.add("host_app_version", host_id=70, app_version_id=99)
    tallies = bring(work)
    own, version = HostAppVersion.objects.order_by("app_version")[::-1]
    assert (version.app_version_id, version.pfc_n, version.pfc_avg, version.et_avg) == (VERSION, 20, 0.4, 2e-10)
    # 100 a day of 400, for each of 4 processors
    assert (version.scale_probation, version.clean_pfc_n, version.max_jobs_per_day) == (False, 20, 400)
    assert (own.app_id, own.app_version_id, own.processor_type, own.pfc_avg) == (APP, None, "NVIDIA", None)
    assert left(tallies) == {"statistics of a version that no longer exists": ["70"]}


def test_batches_and_messages_that_nothing_read_yet_come_along(work: OldWork) -> None:
    work.project.add("batch", id=4, user_id=7, create_time=T0, name="first", app_id=APP, njobs=1, state=3)
    work.workunit(1, batch=4)
    name = work.sent(101, 1, host=70, user=7)
    xml = f"<result_name>{name}</result_name>\n<time>1</time>\n<text>half</text>"
    work.project.add("msg_from_host", hostid=70, variety="progress", xml=xml, create_time=T0)
    work.project.add("msg_from_host", hostid=70, variety="progress", xml=xml, handled=1, create_time=T0)
    bring(work)
    batch = Batch.objects.get()
    assert (batch.pk, batch.owner_id, batch.nworkunits, batch.cancelled_at) == (4, 7, 1, AT)
    assert Workunit.objects.get().batch_id == 4
    trickle = Trickle.objects.get()
    assert (trickle.result_id, trickle.variety, trickle.text, trickle.handled_at) == (101, "progress", "half", None)


def test_computers_keep_a_file_of_another_server_for_a_batch_that_comes(work: OldWork) -> None:
    work.project.add("batch", id=4, user_id=7, create_time=T0, name="first", app_id=APP, njobs=2, state=2)
    xml = (
        f"<file_info>\n<name>map</name>\n<url>https://data.example.org/map</url>\n<md5_cksum>{'a' * 32}</md5_cksum>\n"
        "<nbytes>4</nbytes>\n<sticky/>\n</file_info>\n"
        "<workunit>\n<file_ref>\n<file_name>map</file_name>\n<open_name>in</open_name>\n</file_ref>\n</workunit>\n"
    )
    for number in (1, 2, 3):
        work.workunit(number, batch=4 if number < 3 else 0, xml_doc=xml.encode())
    for _ in range(2):
        bring(work)
        assert list(StickyFile.objects.values_list("name", "batch")) == [("map", 4)]


@pytest.fixture
def full(work: OldWork) -> OldWork:
    """Some of everything."""
    for number in range(1, 6):
        work.workunit(number, min_quorum=2, target_nresults=2)
        name = work.over(100 + 2 * number, number, host=70, user=7)
        work.sent(101 + 2 * number, number, host=80, user=8, nth=1)
        work.put("upload", f"{name}_r1193428123_0", OUTPUT)
    work.workunit(6, assimilate_state=2, canonical_resultid=200, canonical_credit=3.0, file_delete_state=2)
    work.over(200, 6, host=70, user=7, validate_state=1, granted_credit=3.0)
    work.project.add("host_app_version", host_id=70, app_version_id=VERSION, pfc_n=3.0, pfc_avg=0.4)
    return work


def test_a_rehearsal_writes_nothing_and_tells_the_same(full: OldWork, settings: Settings) -> None:
    rehearsed = rehearse(full.project, full.folder)
    assert not any(rows for rows in content().values())
    assert not Path(settings.CODE_SIGNING_KEY_PUBLIC).exists()
    imported = bring(full)
    for name, tally in rehearsed.items():
        if name != "outputs":
            assert (name, tally.ntaken) == (name, imported[name].ntaken)


def test_importing_twice_changes_nothing(full: OldWork) -> None:
    bring(full)
    before = content()
    tallies = bring(full)
    assert content() == before
    assert sum(tally.nchanged for tally in tallies.values()) == 0


def test_a_later_import_brings_what_changed_since(full: OldWork) -> None:
    bring(full)
    full.project.run(
        """
UPDATE result SET server_state = 5, outcome = 1, received_time = 1700010000, mod_time = '2037-01-01' WHERE id = 103;
UPDATE workunit SET assimilate_state = 2, error_mask = 16, mod_time = '2037-01-01' WHERE id = 2"""
    )
    full.workunit(7)
    full.sent(300, 7, host=70, user=7)
    bring(full)
    assert Result.objects.get(pk=103).outcome == Outcome.SUCCESS
    # A workunit that is here stays: it goes into the archive in our own time.
    assert Workunit.objects.get(pk=2).assimilate_state == 2
    assert Result.objects.get(pk=300).server_state == ServerState.IN_PROGRESS


def test_an_account_that_was_made_here_gets_no_tasks_of_who_had_its_number_there(full: OldWork) -> None:
    User.objects.create_user("operator@example.org", "secret", id=7)
    Host.objects.create(id=70, owner_id=7)
    full.project.add("batch", id=4, user_id=7, app_id=APP, name="b")
    bring(full)
    assert set(Result.objects.filter(pk__in=range(102, 112)).values_list("user", "host")) == {(None, None), (8, 80)}
    assert ArchivedTask.objects.get(pk=200).user_id is None
    assert not HostAppVersion.objects.filter(host=70).exists()
    assert list(Batch.objects.values_list("owner", flat=True)) == [None]


def test_interrupted_at_any_statement_an_import_ends_as_without(
    full: OldWork, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(run, "CHUNK_ROWS", 4)
    with transaction.atomic():
        bring(full)
        expected = content()
        transaction.set_rollback(True)
    Path(settings.CODE_SIGNING_KEY_PUBLIC).unlink()
    draw, nkills = random.Random(7), 0
    while not ImportStep.objects.exists() or ImportStep.objects.filter(finished_at=None).exists():
        try:
            with connection.execute_wrapper(KillAt(draw.randint(20, 150))):
                bring(full)
        except Killed:
            nkills += 1
    assert nkills >= 5
    found = content()
    for table, rows in expected.items():
        assert found[table] == rows, table
    for upload in Upload.objects.all():
        with default_storage.open(upload.path) as file:
            assert file.read() == OUTPUT
    for stored in StoredFile.objects.all():
        with default_storage.open(stored.path) as file:
            assert md5_of(file.read()) == stored.md5
