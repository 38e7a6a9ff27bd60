"""Each operation as programs know it: request and reply, byte for byte except for white space."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from credit.engine.states import WorkunitError
from credit.models import App, Batch, Result, Workunit
from extras.remote_jobs import keys
from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.tests.conftest import OUTPUT_TEMPLATE
from portal.models import Host, User
from scheduler.files.store import store_file
from scheduler.lifecycle import assimilator, transitioner
from scheduler.models import KeptOutput, StoredFile, Submitter
from tests.support.credit_factories import make_app
from tests.support.finished_jobs import send_and_report, validate

pytestmark = pytest.mark.django_db
EXCHANGES = Path(__file__).parent / "data" / "exchanges.txt"
DECLARATION = '<?xml version="1.0" encoding="ISO-8859-1" ?>\n'


@dataclass(frozen=True)
class Exchange:
    """A request and its reply; ``nbytes``: of an uploaded file, if there is one."""

    address: str
    nbytes: int | None
    request: str
    reply: str


def exchanges(part: str) -> Iterator[Exchange]:
    text = re.split(r"^=== (\w+)\n", EXCHANGES.read_text(), flags=re.MULTILINE)
    lines = dict(zip(text[1::2], text[2::2], strict=True))[part]
    for block in lines.strip().split("\n\n"):
        given = {line[0]: line[2:] for line in block.splitlines()}
        address, _, more = given.get("@", "submit_rpc_handler.php").partition(" with ")
        yield Exchange(address, int(more.split()[0]) if more else None, given[">"], given["<"])


def expected(reply: str, known: dict[str, str]) -> str:
    """Return a regular expression: white space between elements is ignored, and unknown names match the actual ones."""
    pattern = re.escape("".join(reply.split()))
    for name in re.findall(r"\{(\w+)\}", reply):
        value = re.escape(known[name]) if name in known else rf"(?P<{name}>.*?)"
        pattern = pattern.replace(rf"\{{{name}\}}", value, 1)
    return pattern


def exchange(client: Client, part: str, known: dict[str, str]) -> None:
    for each in exchanges(part):
        form: dict[str, str | SimpleUploadedFile] = {"request": each.request.format_map(known)}
        if each.nbytes is not None:
            form["file_0"] = SimpleUploadedFile("params.cfg", b"1 2\n3"[: each.nbytes])
        path = f"/project/{each.address}"
        reply = (
            client.post(path, form["request"], content_type="application/xml")
            if part == "body"
            else client.post(path, form)
        )
        text = reply.content.decode("iso-8859-1")
        assert (reply.status_code, reply.headers["Content-Type"]) == (200, "text/xml")
        assert text.startswith(DECLARATION)
        match = re.fullmatch(expected(each.reply, known), "".join(text.removeprefix(DECLARATION).split()))
        assert match, f"{each.request}\nis answered\n{text}\ninstead of\n{each.reply}"
        known |= match.groupdict()


def test_programs_are_answered_as_by_boincs_server(client: Client, app: App, key: str, studio: Host) -> None:
    make_app("other")
    store_file("#table@home", ContentFile(b"1\n"))
    known = {"key": key, "md5": hashlib.md5(b"1 2\n").hexdigest()}
    exchange(client, "before", known)
    first, second = Workunit.objects.order_by("pk")
    assert (first.priority, first.min_quorum, first.delay_bound_secs, first.fpops_est) == (3, 2, 86_400, 2e12)
    assert (first.command_line, second.command_line, second.priority) == ("--seed 17", "", 5)
    assert [file["open_name"] for file in first.input_files] == ["in", "data/table"]
    assert first.input_files[1]["sticky"]
    assert second.input_files[0]["name"].startswith(f"fold_{known['batch']}_in_")

    for result in first.results.order_by("pk"):
        send_and_report(result, studio)
        Result.objects.filter(pk=result.pk).update(cpu_secs=5310.25, elapsed_secs=5402.5, stderr_text="step 1 <ok>")
    now = timezone.now()
    transitioner.run(now)
    validate(first)
    transitioner.run(now)
    assimilator.run(now)
    exchange(client, "computed", known)
    batch = Batch.objects.get()
    assert batch.retired_at is not None
    assert batch.expires_at == dt.datetime.fromtimestamp(1999000000, dt.UTC)
    assert not KeptOutput.objects.exists()
    assert StoredFile.objects.filter(name=f"{known['md5']}.dat", deleted_at=None).exists()


def test_a_program_that_sends_bodies_and_names_the_app_once_is_answered(client: Client, submitter: User) -> None:
    app = make_app("plain")
    JobTemplate.objects.create(app=app, kind="in", name="plain_in", text="<workunit></workunit>")
    JobTemplate.objects.create(app=app, kind="out", name="plain_out", text=OUTPUT_TEMPLATE)
    Submitter.objects.create(user=submitter)
    exchange(client, "body", {"key": keys.issue(submitter, name="test", apps=[app], lifetime=None)})
    job = Workunit.objects.get()
    assert (job.command_line, job.fpops_est, job.error_mask) == ("fold 17", 1e12, WorkunitError.CANCELLED)
