"""Submitting jobs: what is written, in how many statements, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from credit.engine.states import AssimilateState, Outcome
from credit.models import App, Batch, Membership, Result, ServerState, Team, Workunit
from portal.models import Host, User
from scheduler.engine.lanes import Lane, LaneKind
from scheduler.engine.limits import is_made_up
from scheduler.engine.submission.inputs import host_of, is_host_allowed
from scheduler.examples import demo
from scheduler.files.store import store_file, store_gzipped
from scheduler.models import ArchivedWorkunit, HostRecord, StoredFile
from scheduler.submission.batches import cancel, disown, read_progress
from scheduler.submission.retry import retry_failed
from scheduler.submission.submit import RequestIdUsed, check, submit
from scheduler.wire.job_fields import JobError, read_jobs
from tests.support.credit_factories import NOON, make_app

pytestmark = pytest.mark.django_db

DEFAULTS: dict[str, Any] = {"fpops_est": 1e12, "output_files": [{"open_name": "out", "max_nbytes": 1000}]}


@pytest.fixture
def app(db: None, settings: Settings) -> App:
    settings.REMOTE_INPUT_HOSTS = ["data.example.org"]
    return make_app()


def text(open_name: str) -> dict[str, str]:
    """An input of three bytes."""
    return {"open_name": open_name, "content": "abc"}


def send(app: App, jobs: Any, defaults: Any = DEFAULTS, **options: Any) -> Batch:
    return submit(app, defaults, jobs, **{"owner": None, "now": NOON, **options})[0]


def test_a_job_has_the_defaults_and_its_own_fields(app: App) -> None:
    own = {"command_line": "--seed 1", "fpops_est": 2e12, "min_quorum": 3, "target_nresults": 4, "priority": -5}
    batch = send(app, [own, {}])
    first, second = batch.workunits.order_by("id")
    assert (first.name, second.name) == (f"alpine_{batch.pk}_0", f"alpine_{batch.pk}_1")
    assert (first.command_line, first.fpops_est, first.fpops_bound) == ("--seed 1", 2e12, 2e14)
    assert (first.min_quorum, first.target_nresults, first.results.count()) == (3, 4, 4)
    assert (second.fpops_est, second.min_quorum, second.results.count()) == (1e12, 2, 2)
    assert second.output_files == [{"open_name": "out", "max_nbytes": 1000, "optional": False}]
    assert {r.priority for r in first.results.all()} == {-5}
    assert {r.server_state for r in Result.objects.all()} == {ServerState.UNSENT}


def test_what_is_copied_is_as_django_would_write_it(app: App) -> None:
    [copied] = send(app, [{}]).workunits.all()
    single = Workunit.objects.create(
        app=app, name="by_hand", fpops_est=1e12, fpops_bound=1e14, output_files=copied.output_files, created_at=NOON
    )
    single.refresh_from_db()
    different = {
        field.name
        for field in Workunit._meta.concrete_fields
        if getattr(copied, field.attname) != getattr(single, field.attname)
    }
    assert different == {"id", "name", "batch"}


def test_two_thousand_jobs_take_as_many_statements_as_one(app: App) -> None:
    counts = []
    for count in (1, 2_000):
        with CaptureQueriesContext(connection) as captured:
            batch = send(app, [{"command_line": str(n)} for n in range(count)])
        counts.append(len([q for q in captured if "SAVEPOINT" not in q["sql"]]))
        assert batch.workunits.count() == count
        assert Result.objects.filter(workunit__batch=batch).count() == 2 * count
    # The batch, the lock, whether the app runs in containers, the named stored files, the new workunits' ids, their
    # results; the COPY is not counted.
    assert counts == [6, 6]


def searches_of_results() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'credit_result'")
        return int(cursor.fetchone()[0])


def test_a_hundred_jobs_measure_the_queue_as_often_as_one(app: App) -> None:
    # Measured for each job, a queue leads through all jobs that the statement has made by then.
    searches = []
    for njobs in (1, 100):
        before = searches_of_results()
        send(app, [{}] * njobs)
        searches.append(searches_of_results() - before)
    # At most one for each of 99 further jobs: whether it has results.
    assert searches[1] - searches[0] <= 99


def test_fifty_inputs_of_their_own_take_as_many_statements_as_two(app: App) -> None:
    counts = []
    for count in (2, 50):
        with CaptureQueriesContext(connection) as captured:
            batch = send(app, [{"input_files": [{"open_name": "in", "content": f"{n}\n"}]} for n in range(count)])
        counts.append(len([q for q in captured if "SAVEPOINT" not in q["sql"]]))
        for number, workunit in enumerate(batch.workunits.order_by("id")):
            [said] = workunit.input_files
            file = batch.files.get(name=said["name"])
            with default_storage.open(file.path) as content:
                assert content.read() == f"{number}\n".encode()
            assert (said["nbytes"], said["md5"]) == (file.nbytes, file.md5)
        assert batch.files.count() == count
    # As without any, and one for all of the files.
    assert counts == [7, 7]


def test_a_submission_that_fails_leaves_no_files(app: App) -> None:
    job = {"input_files": [{"open_name": "in", "content": "1\n"}]}
    batch = send(app, [job])
    stored_path = batch.files.get().path
    # Names are unique: the next batch's workunit has this one already.
    Workunit.objects.create(app=app, name=f"alpine_{batch.pk + 1}_0", fpops_est=1e12, fpops_bound=1e14)
    with pytest.raises(JobError, match=rf"jobs: alpine_{batch.pk + 1}_0 is the name of an earlier job"):
        send(app, [job])
    assert default_storage.exists(stored_path)
    folder = Path(default_storage.path("files"))
    assert not list(folder.glob(f"*/alpine_{batch.pk + 1}_in_*"))
    assert StoredFile.objects.count() == 1


def test_a_repeated_request_finds_its_batch(app: App, alice: User, bob: User) -> None:
    first, is_new = submit(app, DEFAULTS, [{}], owner=alice, request_id="r1", now=NOON)
    again, is_new_again = submit(app, DEFAULTS, [{}], owner=alice, request_id="r1", now=NOON)
    assert (again, is_new, is_new_again) == (first, True, False)
    assert Workunit.objects.count() == 1
    others: list[dict[str, Any]] = [
        {"jobs": [{}, {}]},
        {"jobs": [{"command_line": "--corrected"}]},
        {"defaults": {**DEFAULTS, "fpops_est": 2e12}},
        {"app": make_app("beta")},
        {"name": "Another name"},
    ]
    for other in others:
        given: dict[str, Any] = {"app": app, "defaults": DEFAULTS, "jobs": [{}], **other}
        with pytest.raises(
            RequestIdUsed, match="request_id: was used for another submission; give this one a different id"
        ):
            submit(**given, owner=alice, request_id="r1", now=NOON)
    assert Workunit.objects.count() == 1


def test_a_request_id_is_its_submitters_own(app: App, alice: User, bob: User) -> None:
    batches = [
        submit(app, DEFAULTS, [{}], owner=owner, request_id="r1", now=NOON)[0] for owner in (alice, bob, None, None)
    ]
    assert len({batch.pk for batch in batches}) == 3
    for user in (alice, bob):
        disown(user.pk)
        user.delete()
    assert not Batch.objects.exclude(owner=None).exists()
    assert list(Batch.objects.order_by("pk").values_list("request_id", flat=True)) == ["", "", "r1"]


def test_inputs_are_stored_files_or_contents_of_the_batch(app: App) -> None:
    shared = store_file("table.csv", ContentFile(b"1,2\n"))
    jobs: list[Any] = [
        {"input_files": [{"open_name": "in", "content": text}, {"open_name": "table", "name": "table.csv"}]}
        for text in ("a\n", "b\n", "a\n")
    ]
    batch = send(app, jobs)
    inputs = [workunit.input_files for workunit in batch.workunits.order_by("id")]
    assert inputs[0] == inputs[2] != inputs[1]
    assert inputs[0][1] == {"name": "table.csv", "open_name": "table", "nbytes": 4, "md5": shared.md5}
    own = StoredFile.objects.get(name=inputs[1][0]["name"])
    assert (own.batch, shared.batch) == (batch, None)
    with default_storage.open(own.path) as file:
        assert file.read() == b"b\n"
    assert StoredFile.objects.count() == 3


def test_a_batch_may_be_made_before_its_jobs(app: App) -> None:
    batch = Batch.objects.create(app=app, name="Empty")
    assert not read_progress([batch])[0].is_finished
    one = {"input_files": [{"open_name": "in", "content": "1\n"}]}
    for names in (["a", "b"], ["c"]):
        submit(
            app, DEFAULTS, [{"name": name, **one} for name in names], owner=None, into=batch, exact_names=True, now=NOON
        )
    batch.refresh_from_db()
    assert batch.nworkunits == 3
    assert list(Result.objects.order_by("name").values_list("name", flat=True)) == [
        f"{name}_{number}" for name in "abc" for number in (0, 1)
    ]
    cancel(batch, NOON)
    with pytest.raises(JobError, match=f"batch {batch.pk} is cancelled or retired, and takes no more jobs"):
        submit(app, DEFAULTS, [{"name": "d"}], owner=None, into=batch, exact_names=True, now=NOON)


def test_files_say_how_they_travel(app: App) -> None:
    far = {"open_name": "far", "url": "https://data.example.org/m1", "nbytes": 4, "md5": "a" * 32, "sticky": True}
    out = {"open_name": "out", "max_nbytes": 9, "gzip_when_done": True, "sticky": False}
    [workunit] = send(app, [{"input_files": [far], "output_files": [out]}]).workunits.all()
    sticky_input = {"open_name": "far", "urls": [far["url"]], "nbytes": 4, "md5": "a" * 32, "sticky": True}
    assert workunit.input_files == [{**sticky_input, "name": workunit.input_files[0]["name"]}]
    assert workunit.output_files == [{"open_name": "out", "max_nbytes": 9, "optional": False, "gzip_when_done": True}]
    assert not StoredFile.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"url": "https://data.example.org/dead"},
        {"url": ["https://data.example.org/m1", "https://data.example.org/m2"]},
        {"nbytes": 5},
        {"md5": "b" * 32},
        {"gzipped_url": "https://data.example.org/m1.gz", "gzipped_nbytes": 3},
        {"executable": True},
    ],
)
def test_files_of_other_servers_share_a_name_only_if_all_that_is_said_of_them_is_the_same(
    app: App, alice: User, change: dict[str, Any]
) -> None:
    # Clients take the addresses that a name came with last.
    far = {"open_name": "far", "url": "https://data.example.org/m1", "nbytes": 4, "md5": "a" * 32}
    send(app, [{"input_files": [far]}])
    send(app, [{"input_files": [{**far, "open_name": "other"}]}, {"input_files": [{**far, **change}]}], owner=alice)
    first, same, other = (workunit.input_files[0]["name"] for workunit in Workunit.objects.order_by("id"))
    assert first == same != other
    assert is_made_up(first) and is_made_up(other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "ftp://data.example.org/m1"}, r"input_files\[0\].url: not an http or https address of at most 500"),
        ({"url": "https://data.example.org/?a=1&b=2"}, r"input_files\[0\].url: not an http"),
        ({"md5": "A" * 32}, r"input_files\[0\].md5: not 32 lower-case hexadecimal digits"),
        ({"nbytes": -1}, r"input_files\[0\].nbytes: not a whole number"),
        ({"name": "x"}, r"input_files\[0\]: give either the name of a stored file, a content, or a url"),
        ({"url": []}, r"input_files\[0\].url: not an http .* or a list of at most 8"),
        ({"url": ["https://data.example.org/m1"] * 9}, r"input_files\[0\].url: not an http"),
        ({"url": "https://other.example.org/"}, r"input_files\[0\].url: computers may not fetch files from other\.ex"),
        ({"url": "https://data.example.org@evil.org/"}, r"input_files\[0\].url: not an http"),
        ({"url": "https://evil.org\\@data.example.org/"}, r"input_files\[0\].url: not an http"),
        ({"gzipped_nbytes": 3}, r"input_files\[0\].gzipped_url: not an http"),
        ({"gzipped_url": "https://data.example.org/m1.gz"}, r"input_files\[0\].gzipped_nbytes: not a whole number"),
        (
            {"gzipped_url": "https://192.168.1.1/reboot", "gzipped_nbytes": 9},
            r"input_files\[0\].url: computers may not fetch files from 192\.168\.1\.1",
        ),
        ({"gzip": True}, r"input_files\[0\].gzip: only for a stored file"),
    ],
)
def test_a_file_elsewhere_is_described_in_full(app: App, change: dict[str, Any], message: str) -> None:
    far = {"open_name": "far", "url": "https://data.example.org/m1", "nbytes": 4, "md5": "a" * 32}
    with pytest.raises(JobError, match=message):
        send(app, [{"input_files": [far | change]}])


def test_a_file_may_be_at_several_servers_and_packed(app: App) -> None:
    store_file("table.csv", ContentFile(b"1,2\n" * 100))
    near = {"open_name": "shared/near", "name": "table.csv", "gzip": True}
    urls = [f"https://data.example.org:8443/m{n}" for n in (1, 2)]
    far = {"open_name": "shared/far", "url": urls, "nbytes": 4, "md5": "a" * 32}
    far |= {"gzipped_url": f"{urls[0]}.gz", "gzipped_nbytes": 3}
    with pytest.raises(JobError, match=r"there is no stored file table\.csv\.gz"):
        send(app, [{"input_files": [near, far]}])
    packed = store_gzipped("table.csv", BytesIO(b"1,2\n" * 100))
    first = send(app, [{"input_files": [near, far], "max_error_results": 1}])
    [workunit] = first.workunits.all()
    assert [file.get("urls") for file in workunit.input_files] == [None, urls]
    assert [file["gzipped_nbytes"] for file in workunit.input_files] == [packed.nbytes, 3]
    # Failed jobs are submitted again with the same.
    Workunit.objects.update(error_mask=2, assimilate_state=AssimilateState.DONE)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.DIDNT_NEED)
    [again] = retry_failed(first, NOON).workunits.all()
    assert again.input_files == workunit.input_files


def test_a_job_for_one_volunteer_needs_one_result_unless_they_may_have_more(app: App, alice: User) -> None:
    [workunit] = send(app, [{"target_user": alice.pk}]).workunits.all()
    assert (workunit.min_quorum, workunit.target_nresults) == (1, 1)
    two = [{"target_user": alice.pk, "min_quorum": 2}]
    with pytest.raises(JobError, match=r"jobs\[0\].min_quorum: more than 1, but"):
        send(app, two)
    app.one_result_per_user = False
    assert send(app, two).workunits.get().min_quorum == 2


def test_who_does_not_see_all_tasks_reaches_only_what_is_theirs(app: App, alice: User, bob: User) -> None:
    theirs, others = Host.objects.create(owner=alice), Host.objects.create(owner=bob)
    own_team, other_team = (Team.objects.create(name=name) for name in ("Peaks", "Valleys"))
    Membership.objects.create(user=alice, team=own_team)
    Membership.objects.create(user=bob, team=other_team)
    allowed = [{"target_host": theirs.pk}, {"target_user": alice.pk}, {"target_team": own_team.pk}]
    assert set(send(app, allowed, owner=alice).workunits.values_list("is_own", flat=True)) == {True}
    for name, number in (("host", others.pk), ("user", bob.pk), ("team", other_team.pk), ("host", 98765)):
        job = {f"target_{name}": number}
        with pytest.raises(JobError, match=rf"jobs\[0\].target_{name}: there is no .* with the number {number}"):
            send(app, [job], owner=alice)
        assert [fault.field for fault in check(app, DEFAULTS, [job], owner=alice)[1]] == [f"jobs[0].target_{name}"]
    alice.user_permissions.add(Permission.objects.get(codename="view_result"))
    again = User.objects.get(pk=alice.pk)
    batch = send(
        app, [{"target_host": others.pk}, {"target_user": bob.pk}, {"target_host": theirs.pk}, {}], owner=again
    )
    assert list(batch.workunits.order_by("pk").values_list("is_own", flat=True)) == [False, False, True, False]


def test_a_broadcast_is_a_job_for_each_active_computer_whose_name_does_not_say_which(app: App, alice: User) -> None:
    hosts = [Host.objects.create(owner=alice, token=str(number)) for number in range(3)]
    for host, ndays in zip(hosts, (0, 29, 31), strict=True):
        HostRecord.objects.create(host=host, last_rpc_at=NOON - dt.timedelta(days=ndays))
    batch = send(app, [{"name": "census", "broadcast": True, "target_user": alice.pk}])
    lanes = {Lane(LaneKind.COMPUTER, host.pk).number for host in hosts[:2]}
    assert set(batch.workunits.values_list("lane", flat=True)) == lanes
    assert {name.rpartition("_")[2] for name in batch.workunits.values_list("name", flat=True)} == {"c1", "c2"}


def test_of_a_broadcast_only_jobs_for_the_submitters_own_computers_bring_nothing(
    app: App, alice: User, bob: User
) -> None:
    hosts = [Host.objects.create(owner=owner) for owner in (alice, bob)]
    HostRecord.objects.bulk_create(HostRecord(host=host, last_rpc_at=NOON) for host in hosts)
    workunits = send(app, [{"broadcast": True}], owner=alice).workunits
    assert {w.lane: w.is_own for w in workunits.all()} == {
        Lane(LaneKind.COMPUTER, host.pk).number: host.owner == alice for host in hosts
    }


def test_a_broadcast_to_the_submitters_team_brings_nothing_as_a_job_for_it(app: App, alice: User, bob: User) -> None:
    team = Team.objects.create(name="Peaks")
    Membership.objects.bulk_create(Membership(user=user, team=team) for user in (alice, bob))
    hosts = [Host.objects.create(owner=owner) for owner in (alice, bob)]
    HostRecord.objects.bulk_create(HostRecord(host=host, last_rpc_at=NOON) for host in hosts)
    workunits = send(app, [{"broadcast": True, "target_team": team.pk}], owner=alice).workunits
    assert list(workunits.values_list("is_own", flat=True)) == [True, True]


def test_failed_jobs_for_who_is_gone_are_not_submitted_again(app: App, alice: User, bob: User) -> None:
    first = send(app, [{"target_user": alice.pk}, {"target_user": bob.pk}, {}])
    Workunit.objects.update(error_mask=2, assimilate_state=AssimilateState.DONE)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.COULD_NOT_SEND)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    lanes = retry_failed(first, NOON).workunits.values_list("lane", flat=True)
    assert sorted(lanes) == [0, Lane(LaneKind.PERSON, alice.pk).number]


@pytest.mark.parametrize(
    ("allowed", "host", "is_allowed"),
    [
        ([], "data.example.org", False),
        (["*"], "data.example.org", True),
        (["Data.example.org"], "data.example.org", True),
        (["*.example.org"], "data.example.org", True),
        (["*.example.org"], "example.org", False),
        (["*.example.org"], "dataexample.org", False),
        (["example.org"], "data.example.org", False),
    ],
)
def test_operators_say_from_which_servers_inputs_come(allowed: list[str], host: str, is_allowed: bool) -> None:
    assert is_host_allowed(host_of(f"http://{host.upper()}.:8000/a"), allowed) is is_allowed


@pytest.mark.parametrize("name", ["sky_0_0", "sky_12_3", "sky_0_r0065fd1a_1"])
def test_no_input_is_called_as_an_output_of_a_job_is(app: App, name: str) -> None:
    """A client would confuse the two, and upload the input as the output."""
    stored = store_file(name, ContentFile(b"1"))
    job = {"name": "sky"}
    with pytest.raises(JobError, match=rf"jobs\[1\].name: {name}: outputs of the job sky have such names"):
        send(app, [{}, job], exact_names=True)
    StoredFile.objects.filter(pk=stored.pk).update(deleted_at=NOON)
    send(app, [job], exact_names=True)
    StoredFile.objects.update(deleted_at=None)
    with pytest.raises(JobError, match=f"input_files: {name}: outputs of the job sky have such names"):
        send(app, [{"input_files": [{"open_name": "in", "name": name}]}])
    store_file("sky_2026_map", ContentFile(b"1"))
    send(app, [{"input_files": [{"open_name": "in", "name": "sky_2026_map"}]}])


def test_the_inputs_of_a_job_fit_into_its_disk_space(app: App) -> None:
    store_file("big.bin", ContentFile(b"x" * 1000))
    far = {"open_name": "far", "url": "https://data.example.org/m1", "nbytes": 2**27, "md5": "a" * 32}
    job = {"input_files": [far, {"open_name": "in", "name": "big.bin"}, text("own")]}
    # 2^27 by default; 2^27 + 1000 + 3 of inputs
    with pytest.raises(JobError, match=r"jobs\[0\].disk_bound_bytes: 134,217,728 bytes, but .* alone have 134,218,731"):
        send(app, [job])
    assert check(app, DEFAULTS, [job], owner=None)[1][0].field == "jobs[0].disk_bound_bytes"
    [workunit] = send(app, [job | {"disk_bound_bytes": 2**27 + 1003}]).workunits.all()
    assert workunit.disk_bound_bytes == 134_218_731


def test_names_are_kept_exactly_where_that_is_asked(app: App) -> None:
    names = ["condor#submit-1@example#alpine#1795000000#17.0", "_first", ".hidden", "x" * 191]
    store_file("#table@home", ContentFile(b"1\n"))
    file = {"open_name": "data/table", "name": "#table@home"}
    batch = send(app, [*({"name": name, "input_files": [file]} for name in names), {}], exact_names=True)
    workunits = list(batch.workunits.order_by("id"))
    assert [workunit.name for workunit in workunits] == [*names, f"alpine_{batch.pk}_4"]
    assert workunits[0].input_files[0]["name"] == "#table@home"
    assert set(workunits[3].results.values_list("name", flat=True)) == {"x" * 191 + "_0", "x" * 191 + "_1"}


@pytest.mark.parametrize("name", ["", "-first", "a b", "a/b", "a..b", "x" * 192, "."])
def test_a_name_that_would_lead_elsewhere_is_refused(app: App, name: str) -> None:
    with pytest.raises(JobError, match=r"jobs\[1\].name: not a name of at most 191 letters"):
        send(app, [{}, {"name": name}], exact_names=True)


def test_the_name_of_an_earlier_job_is_refused_by_its_place(app: App) -> None:
    send(app, [{"name": "low"}, {"name": "high"}], exact_names=True)
    ArchivedWorkunit.objects.create(id=10**6, app=app, name="old", error_mask=0, facts={}, archived_at=NOON)
    for name in ("high", "old"):
        with pytest.raises(JobError, match=rf"jobs\[1\].name: {name} is the name of an earlier job"):
            send(app, [{}, {"name": name}], exact_names=True)
    assert Batch.objects.count() == 1


def test_a_job_may_say_its_credit(app: App) -> None:
    batch = send(app, [{"credit": 12.5}, {"credit": 0}, {}])
    assert list(batch.workunits.order_by("id").values_list("credit", flat=True)) == [12.5, 0.0, None]


def test_an_app_that_trusts_reliable_computers_sends_single_results() -> None:
    batch = send(make_app(adaptive_replication=True), [{}])
    assert [(w.min_quorum, w.results.count()) for w in batch.workunits.all()] == [(1, 1)]


@pytest.mark.parametrize(
    ("job", "field", "message"),
    [
        ({"fpops_est": float("nan")}, "fpops_est", "not a number from 1"),
        ({"fpops_est": float("inf")}, "fpops_est", "not a number from 1"),
        ({"fpops_est": 1e304}, "fpops_est", "not a number from 1"),
        ({"fpops_est": 10**400}, "fpops_est", "not a number from 1"),
        ({"fpops_est": -1}, "fpops_est", "not a number from 1"),
        ({"fpops_est": True}, "fpops_est", "not a number from 1"),
        ({"fpops_bound": 1e9}, "fpops_bound", "1e+09 is less than fpops_est, 1e+12"),
        ({"min_quorum": 3, "target_nresults": 2}, "target_nresults", "2 is less than min_quorum, 3"),
        ({"target_nresults": 11}, "max_total_results", "10 is less than target_nresults, 11"),
        ({"max_total_results": 101}, "max_total_results", "not a whole number from 1 to 100"),
        ({"max_success_results": 1}, "max_success_results", "1 is less than min_quorum, 2"),
        ({"max_error_results": 0}, "max_error_results", "not a whole number from 1 to 100"),
        ({"delay_bound_secs": 0}, "delay_bound_secs", "not a whole number from 1"),
        ({"delay_bound_secs": 1.5}, "delay_bound_secs", "not a whole number from 1"),
        ({"memory_bound_bytes": -1}, "memory_bound_bytes", "not a whole number from 0"),
        ({"priority": 40_000}, "priority", "not a whole number from -30,000"),
        ({"credit": -1}, "credit", "not a number from 0 to 1e+15"),
        ({"credit": float("inf")}, "credit", "not a number from 0 to 1e+15"),
        ({"command_line": "a\0b"}, "command_line", "not a line of at most 2000"),
        ({"command_line": "x" * 2001}, "command_line", "not a line of at most 2000"),
        ({"speed": 1}, "speed", "unknown. Known: fpops_est"),
        ({"input_files": [{"open_name": "../in", "name": "t"}]}, "input_files[0].open_name", "not a name of at"),
        ({"input_files": [{"open_name": "in"}]}, "input_files[0]", "give either"),
        ({"input_files": [{}] * 101}, "input_files", "not a list of at most 100 files"),
        ({"output_files": [{"open_name": "out"}]}, "output_files[0].max_nbytes", "not a whole number from 1"),
        ({"output_files": [{"open_name": "o", "max_nbytes": 2**41}]}, "output_files[0].max_nbytes", "not a whole"),
        ({"output_files": ["out"]}, "output_files[0]", "not a table of gzip_when_done, max_nbytes"),
        ({"input_files": [text("in"), text("in")]}, "input_files[1].open_name", "in: the job also has the file in,"),
        ({"input_files": [text("in"), text("IN")]}, "input_files[1].open_name", "IN: the job also has the file in,"),
        ({"input_files": [text("out")]}, "output_files[0].open_name", "out: the job also has the file out,"),
        (
            {"input_files": [text("shared"), text("shared/a")]},
            "input_files[1].open_name",
            "shared/a: the job also has the",
        ),
        ({"input_files": [text("a/b/c"), text("a/b")]}, "input_files[1].open_name", "a/b: the job also has the file"),
        ({"input_files": [text("init_data.xml")]}, "input_files[0].open_name", "init_data.xml: BOINC has its own file"),
        ({"input_files": [text("/etc/passwd")]}, "input_files[0].open_name", "not a name of"),
        ({"input_files": [text("shared//a")]}, "input_files[0].open_name", "not a name of"),
        ({"input_files": [text("C:\\a")]}, "input_files[0].open_name", "not a name of"),
        ({"input_files": [text("in") | {"md5": "a" * 32}]}, "input_files[0].md5", "only for a file that has a url"),
        (
            {"input_files": [text("in")], "disk_bound_bytes": 2},
            "disk_bound_bytes",
            "2 bytes, but the input files alone",
        ),
    ],
)
def test_a_job_without_sense_is_refused_by_its_field(app: App, job: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(JobError) as caught:
        send(app, [{}, job])
    assert caught.value.field == f"jobs[1].{field}"
    assert str(caught.value.message).startswith(message)
    assert not Batch.objects.exists()


def test_a_stored_file_that_is_not_there_is_named(app: App) -> None:
    with pytest.raises(JobError, match=r"there is no stored file table\.csv"):
        send(app, [{"input_files": [{"open_name": "in", "name": "table.csv"}]}])
    assert not Batch.objects.exists()
    # Nor one that goes with another batch.
    send(app, [{"input_files": [{"open_name": "in", "content": "1"}]}])
    with pytest.raises(JobError, match=r"there is no stored file alpine_"):
        send(app, [{"input_files": [{"open_name": "in", "name": StoredFile.objects.get().name}]}])


def test_sizes_and_kinds_of_submissions_are_limited(app: App) -> None:
    unusable: list[Any] = [[], {}, None, "jobs", [{}] * 100_001]
    for jobs in unusable:
        with pytest.raises(JobError, match="jobs: a list of 1 to 100,000 jobs"):
            send(app, jobs)
    app.is_deprecated = True
    with pytest.raises(JobError, match="alpine takes no more jobs"):
        send(app, [{}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["fpops_est", "min_quorum", "input_files", "output_files", "command_line", "priority"])


@given(JSON | st.dictionaries(NAMES, JSON), st.lists(JSON | st.dictionaries(NAMES, JSON), max_size=3))
def test_no_submission_makes_the_reading_fail(defaults: Any, jobs: Any) -> None:
    base = {"min_quorum": 1, "max_total_results": 1, "max_success_results": 1}
    made, faults = read_jobs(defaults, jobs, base, most_faults=10)
    assert len(made) + len(faults) == len(jobs) or faults
    assert all(fault.field and fault.message for fault in faults)


# --- commands ---------------------------------------------------------------------------------------------------------


def command(*arguments: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_the_command_submits_once_per_request_id(app: App, alice: User, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"defaults": DEFAULTS, "jobs": [{"command_line": "--from {n}00"}]}))
    arguments = ("submit_jobs", "alpine", file, "--copies", "3", "--request-id", "x", "--owner", alice.email)
    output = command(*arguments)
    batch = Batch.objects.get()
    assert output == f"Batch {batch.pk}: 3 jobs.\n"
    assert command(*arguments) == f"Batch {batch.pk}: 3 jobs, submitted before.\n"
    assert [w.command_line for w in batch.workunits.order_by("id")] == ["--from 000", "--from 100", "--from 200"]
    assert batch.owner == alice
    assert "3 workunits, 0 done, 0 failed, 3 open; results: 6 unsent, 0 out" in command("batch", batch.pk)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("alpine", "missing.json"), "No such file"),
        (("beta", "{file}"), "There is no app beta"),
        (("alpine", "{file}", "--owner", "x@example.org"), "There is no account x@example.org"),
        (("alpine", "{file}"), "jobs: a list of"),
    ],
)
def test_the_command_refuses_in_a_sentence(app: App, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    file = tmp_path / "jobs.json"
    file.write_text('{"jobs": []}')
    with pytest.raises(CommandError, match=message):
        command("submit_jobs", *(argument.replace("{file}", str(file)) for argument in arguments))


def test_a_file_is_stored_once_and_never_changes(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("1\n")
    for _ in range(2):
        assert command("store_file", file) == "table.csv: 2 bytes, MD5 b026324c6904b2a9cb4b88d6d61c81d1.\n"
    file.write_text("2\n")
    with pytest.raises(CommandError, match="stored before, with other content"):
        command("store_file", file)


# --- the demo ---------------------------------------------------------------------------------------------------------


def test_the_demo_keeps_a_few_jobs_waiting_each_with_its_own_numbers() -> None:
    assert demo.top_up(NOON) == 0  # nothing is released
    demo.release_examples()
    assert [demo.top_up(NOON), demo.top_up(NOON)] == [10, 0]
    Result.objects.update(server_state=ServerState.OVER, outcome=5)
    assert demo.top_up(NOON + dt.timedelta(minutes=1)) == 10
    lines = list(Workunit.objects.order_by("id").values_list("command_line", flat=True))
    assert lines[0] == "1000000000000 2000000"
    assert lines[-1] == "1000038000000 2000000"  # 10^12 + 19 × 2 × 10^6
    assert len(set(lines)) == 20
