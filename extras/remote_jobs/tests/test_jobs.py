"""Submissions beyond the recorded exchanges: the effect of each element, ownership, speeds."""

from __future__ import annotations

import datetime as dt
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from credit.models import App, Batch, Workunit
from extras.remote_jobs import speeds
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.operations import submitting
from extras.remote_jobs.tests.conftest import OUTPUT_TEMPLATE
from extras.remote_jobs.wire.jobs import read_jobs
from extras.remote_jobs.wire.xml_tree import parse
from portal.models import ApiToken, User
from portal.people.api_tokens import issue_token
from scheduler.models import StoredFile, Submitter
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app, make_version
from tests.support.finished_jobs import DEFAULTS

FORM = "application/x-www-form-urlencoded"
pytestmark = pytest.mark.django_db
REF = "<file_ref><open_name>in</open_name></file_ref>"
ONE_INPUT = f"<input_template><file_info/><workunit>{REF}</workunit></input_template>"
TEXTS = {"in": ONE_INPUT, "out": OUTPUT_TEMPLATE}
INLINE = "<input_file><mode>inline</mode><source>x</source></input_file>"


def ask(client: Client, text: str, **more: Any) -> ElementTree.Element:
    reply = client.post("/project/submit_rpc_handler.php", {"request": text}, **more)
    assert reply.status_code == 200
    return ElementTree.fromstring(reply.content)


def call(client: Client, key: str, operation: str, inside: str = "") -> ElementTree.Element:
    return ask(client, f"<{operation}><authenticator>{key}</authenticator>{inside}</{operation}>")


def submit_batch(client: Client, key: str, inside: str) -> str:
    """Return the batch's number, or the error."""
    return _outcome(call(client, key, "submit_batch", f"<batch>{inside}</batch>"))


def _outcome(reply: ElementTree.Element) -> str:
    return reply.findtext("error/error_msg") or reply.findtext("batch_id") or reply.findtext("success") or ""


@pytest.fixture
def plain(app: App) -> App:
    """Fold, whose jobs have one input of their own."""
    JobTemplate.objects.filter(kind="in").update(text=ONE_INPUT)
    return app


@pytest.mark.parametrize("most", [30_000, 8])
def test_a_jobs_own_values_win_where_their_names_say_so(client: Client, key: str, plain: App, most: int) -> None:
    Submitter.objects.update(max_priority=most)
    own = ONE_INPUT.replace(
        "<workunit>", "<workunit><rsc_memory_bound>7e8</rsc_memory_bound><min_quorum>2</min_quorum>"
    )
    job = (
        f"<job><name>tune_1</name><rsc_fpops_est>4e12</rsc_fpops_est><command_line>a &amp; b</command_line>{own}"
        f"{OUTPUT_TEMPLATE.replace('>out<', '>result.txt<')}<priority>40000</priority>{INLINE}</job>"
    )
    params = "<job_params><rsc_fpops_est>3e12</rsc_fpops_est><rsc_memory_bound>6e8</rsc_memory_bound></job_params>"
    inside = f"<batch_name>run 7</batch_name>{params}{job}<job>{INLINE}</job>"
    number = submit_batch(client, key, f"<app_name>fold</app_name>{inside}")
    first, second = Workunit.objects.filter(batch=int(number)).order_by("pk")
    assert (first.fpops_est, first.memory_bound_bytes, first.min_quorum, first.priority) == (4e12, 7e8, 2, most)
    assert (first.command_line, first.output_files[0]["open_name"]) == ("a & b", "result.txt")
    assert (second.name, second.fpops_est, second.memory_bound_bytes) == (f"fold_{number}_1", 3e12, 6e8)
    assert Batch.objects.get().name == "run 7"


def test_named_templates_are_those_of_the_app(client: Client, key: str, plain: App) -> None:
    JobTemplate.objects.create(app=plain, kind="in", name="fold_long_in", text=ONE_INPUT.replace(">in<", ">long<"))
    named = "<input_template_filename>fold_long_in</input_template_filename>"
    number = submit_batch(client, key, f"<app_name>fold</app_name>{named}<job>{INLINE}</job>")
    assert Workunit.objects.get(batch=int(number)).input_files[0]["open_name"] == "long"
    refused = submit_batch(client, key, f"<app_name>fold</app_name>{named.replace('long', 'none')}<job>{INLINE}</job>")
    assert refused == "template file missing: fold_none_in"


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            f"<job><target_host>7</target_host>{INLINE}</job>",
            "create_work failed: jobs[0].target_host: there is no computer with the number 7",
        ),
        (
            f"<app_version_num>105</app_version_num><job>{INLINE}</job>",
            "create_work failed: jobs[0].app_version_num: the app has no version with the number 105",
        ),
        ("<job><input_file><mode>ftp</mode></input_file></job>", "unsupported file mode: ftp"),
        (
            "<job><input_file><mode>local</mode><source>/etc/passwd</source></input_file></job>",
            "this server does not read",
        ),
        ("<job><input_file><mode>local_staged</mode><source>x.dat</source></input_file></job>", "no stored file x.dat"),
        (f"<job><rsc_fpops_est>x</rsc_fpops_est>{INLINE}</job>", "<rsc_fpops_est> in line 1: not a number"),
        (f"<job><name>a b</name>{INLINE}</job>", "create_work failed: jobs[0].name: not a name of at most 191"),
        (f"<batch_id>999999999</batch_id><job>{INLINE}</job>", "no batch 999999999"),
        (f"<batch_id>-5</batch_id><job>{INLINE}</job>", "no batch -5"),
        (f"<batch_id>{2**63}</batch_id><job>{INLINE}</job>", "<batch_id> in line 1: not a whole number"),
        (
            f"<batch_name>{'x' * 192}</batch_name><job>{INLINE}</job>",
            "batch_name: not a line of at most 191 characters",
        ),
        (
            f"<job>{ONE_INPUT.replace(REF, f'{REF}<command_line>a</command_line>')}<command_line>b</command_line>"
            f"{INLINE}</job>",
            "job 0: Can't specify command line both",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_words(
    client: Client, key: str, plain: App, inside: str, message: str
) -> None:
    assert message in submit_batch(client, key, f"<app_name>fold</app_name>{inside}")
    assert not Batch.objects.exists()


def test_jobs_of_several_calls_may_go_into_one_batch_where_that_is_asked(client: Client, key: str, plain: App) -> None:
    number = submit_batch(client, key, "<app_name>fold</app_name>")
    assert Batch.objects.get().nworkunits == 0
    for _ in range(2):
        inside = f"<batch_id>{number}</batch_id><append/><app_name>fold</app_name><job>{INLINE}</job>"
        assert submit_batch(client, key, inside) == number
    assert list(Workunit.objects.order_by("pk").values_list("name", flat=True)) == [
        f"fold_{number}_0",
        f"fold_{number}_1",
    ]
    # The input of the first call is a different file from that of the second.
    assert StoredFile.objects.filter(batch=int(number)).count() == 2


def test_of_two_submissions_at_once_the_second_counts_on_from_the_first(
    client: Client, key: str, plain: App, submitter: User
) -> None:
    inside = f"<app_name>fold</app_name><append/><job>{INLINE}</job>"
    number = submit_batch(client, key, "<app_name>fold</app_name>")
    before = Batch.objects.get()
    caller = Caller(submitter, frozenset([plain.pk]))
    for _ in range(2):  # both have read the batch before either has locked it
        element = parse(f"<batch>{inside}</batch>")
        submitting._submit(caller, plain, before, element, read_jobs(element, lambda kind, name: TEXTS[kind]), NOON)
    assert list(Workunit.objects.order_by("pk").values_list("name", flat=True)) == [
        f"fold_{number}_0",
        f"fold_{number}_1",
    ]


def test_a_key_opens_its_owners_batches_of_its_apps_alone(client: Client, key: str, app: App, bob: User) -> None:
    other = make_app("other")
    batches = [
        submit(one, DEFAULTS, [{}], owner=owner, name="run 7", now=NOON)[0]
        for one, owner in ((app, bob), (other, User.objects.get(api_tokens__jobs_key__isnull=False)))
    ]
    for batch in batches:
        for operation in ("query_batch", "retire_batch", "set_expire_time"):
            assert _outcome(call(client, key, operation, f"<batch_id>{batch.pk}</batch_id>")) == "not owner of batch"
        job = batch.workunits.get().name
        assert _outcome(call(client, key, "abort_jobs", f"<job_name>{job}</job_name>")) == "not owner of batch"
        assert not batch.workunits.get().error_mask
    assert _outcome(call(client, key, "query_batch2", "<batch_name>run 7</batch_name>")) == "no batch named run 7"


def test_of_two_batches_of_one_name_the_newest_is_meant(client: Client, key: str, app: App) -> None:
    named = "<batch_name>run 7</batch_name>"
    numbers = [_outcome(call(client, key, "create_batch", f"<app_name>fold</app_name>{named}")) for _ in range(2)]
    found = call(client, key, "query_batch", named)
    assert found.findtext("id") == numbers[1] != numbers[0]


def test_who_may_no_longer_submit_is_refused_and_a_revoked_key_is_unknown(
    client: Client, key: str, submitter: User
) -> None:
    submitter.user_permissions.clear()
    assert _outcome(call(client, key, "query_batches")) == "no file access"
    assert _outcome(call(client, key, "create_batch", "<app_name>fold</app_name>")) == "no submit access"
    submitter.user_permissions.add(Permission.objects.get(codename="add_batch"))
    ApiToken.objects.update(revoked_at=NOON)
    assert _outcome(call(client, key, "query_batches")) == "bad authenticator"


def test_a_token_of_the_rest_api_is_no_key_and_a_key_no_token(client: Client, key: str, submitter: User) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    assert client.get("/api/v1/batches/", headers=headers).status_code == 403
    token = issue_token(submitter, name="REST", scopes=["write:jobs"], lifetime=None)
    assert _outcome(call(client, token, "query_batches")) == "bad authenticator"


def test_no_key_is_logged(client: Client, key: str, app: App, capfd: pytest.CaptureFixture[str]) -> None:
    call(client, key, "query_batch")
    ask(client, f"<x><authenticator>{key}</authenticator></y>")
    client.get(f"/project/get_output.php?cmd=workunit_file&auth_str={key}&wu_name=none&file_num=0")
    out, err = capfd.readouterr()
    assert "submit_rpc_handler" in out + err
    assert key not in out + err


def test_estimates_follow_the_credit_that_was_granted(app: App) -> None:
    assert speeds.flops(NOON, app) == 1e9
    make_version(app, expavg_credit=100_000, expavg_at=NOON)
    make_version(make_app("other"), expavg_credit=10**9, expavg_at=NOON)
    # 100,000 Cobblestones a day are 500 GFLOPS; a week later, half of it.
    assert speeds.flops(NOON, app) == pytest.approx(5e11)
    assert speeds.flops(NOON + dt.timedelta(days=7), app) == pytest.approx(2.5e11)


def test_a_long_request_of_a_stranger_is_not_read_whole(client: Client, key: str, app: App) -> None:
    long = f"<x>{'<y>' * 30_000}"  # with a valid key, it is nested too deep
    assert _outcome_of_root(ask(client, long)) == "no authenticator"
    assert _outcome_of_root(ask(client, f"<authenticator>nobody</authenticator>{long}")) == "bad authenticator"
    known = f"<x><authenticator>{key}</authenticator>{long}"
    assert "nested deeper" in _outcome_of_root(ask(client, known))
    reply = client.post("/project/submit_rpc_handler.php", urlencode({"request": known}), FORM)
    assert b"nested deeper" in reply.content


def _outcome_of_root(reply: ElementTree.Element) -> str:
    return reply.findtext("error_msg") or ""


def test_xml_that_is_none_is_answered_in_xml(client: Client, db: None) -> None:
    for text in ("", "x", "<ping>", "<!DOCTYPE a><ping/>"):
        reply = ask(client, text)
        assert (reply.tag, reply.findtext("error_num")) == ("error", "-1")
        assert (reply.findtext("error_msg") or "").startswith("can't parse request message: ")
    assert ask(client, "<ping> </ping>").findtext("success") == "1"
    assert client.post("/project//submit_rpc_handler.php", b"<ping/>", "text/xml").status_code == 200
