"""A program for BOINC's server submits jobs here, two real clients compute them, and it fetches what they found."""

from __future__ import annotations

import hashlib
import secrets
import urllib.parse
import urllib.request
from xml.etree import ElementTree

from django.contrib.auth.models import Permission
from playwright.sync_api import Page

from credit.models import App, Workunit
from extras.remote_jobs.models import JobTemplate
from portal.models import User
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.own_project import Manage, ask_until, attach
from tests.support.site_process import Site

INPUT_TEMPLATE = """<input_template>
<file_info/>
<workunit>
  <file_ref><open_name>data/map.txt</open_name><copy_file/></file_ref>
  <rsc_fpops_est>2e9</rsc_fpops_est><rsc_fpops_bound>2e13</rsc_fpops_bound><min_quorum>2</min_quorum>
</workunit>
</input_template>"""
OUTPUT_TEMPLATE = """<output_template>
<file_info>
  <name><OUTFILE_0/></name><generated_locally/><upload_when_present/><max_nbytes>100000</max_nbytes><url><UPLOAD_URL/></url>
</file_info>
<result><file_ref><file_name><OUTFILE_0/></file_name><open_name>out</open_name><copy_file/></file_ref></result>
</output_template>"""
MAP = b"1 2 3\n"


class Program:
    """What a program sends with its key, and reads."""

    def __init__(self, project: str, key: str) -> None:
        self._project, self._key = project, key

    def ask(self, operation: str, inside: str) -> ElementTree.Element:
        """By a form, as Python programs do."""
        body = urllib.parse.urlencode({"request": self._request(operation, inside)}).encode()
        return self._reply(urllib.request.Request(f"{self._project}submit_rpc_handler.php", body))

    def upload(self, inside: str, content: bytes) -> None:
        """In parts, as HTCondor does."""
        boundary = secrets.token_hex(8)
        parts = (
            ('name="request"', self._request("upload_files", inside).encode()),
            ('name="file_0"; filename="map"', content),
        )
        body = b"".join(
            f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + part + b"\r\n"
            for head, part in parts
        )
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        whole = body + f"--{boundary}--\r\n".encode()
        reply = self._reply(urllib.request.Request(f"{self._project}job_file.php", whole, headers))
        assert reply.find("success") is not None

    def output(self, instance: str) -> bytes:
        digest = hashlib.md5(f"{self._key}{instance}".encode(), usedforsecurity=False).hexdigest()
        query = {"cmd": "result_file", "result_name": instance, "file_num": 0, "auth_str": digest}
        with urllib.request.urlopen(f"{self._project}get_output.php?{urllib.parse.urlencode(query)}") as reply:
            return bytes(reply.read())

    def _request(self, operation: str, inside: str) -> str:
        return f"<{operation}>\n<authenticator>{self._key}</authenticator>\n{inside}\n</{operation}>"

    @staticmethod
    def _reply(request: urllib.request.Request) -> ElementTree.Element:
        with urllib.request.urlopen(request) as reply:
            root = ElementTree.fromstring(reply.read())
        assert root.find("error") is None, root.findtext("error/error_msg")
        return root


def make_key(page: Page, site: Site, user: User) -> str:
    user.user_permissions.add(Permission.objects.get(codename="add_batch"))
    sign_in(page.context, site, user)
    page.goto("/project/batches/keys/")
    page.get_by_label("What is it for?").fill("Condor")
    page.get_by_label("Collatz").check()
    page.get_by_role("button", name="Create a key").click()
    return page.locator("#new-key").inner_text()


def test_a_program_for_boincs_server_has_its_jobs_computed_and_fetches_them(
    page: Page,
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    clients: dict[str, BoincClient],
    alice: User,
) -> None:
    app = App.objects.get(name="collatz")
    for kind, text in (("in", INPUT_TEMPLATE), ("out", OUTPUT_TEMPLATE)):
        JobTemplate.objects.create(app=app, kind=kind, name=f"collatz_{kind}", text=text)
    for name, client in clients.items():
        attach(client, site, f"{name}@example.org", project)
    program = Program(project, make_key(page, site, alice))

    batch = program.ask("create_batch", "<app_name>collatz</app_name><batch_name>condor#node3@lab</batch_name>")
    number = batch.findtext("batch_id")
    program.upload(f"<batch_id>{number}</batch_id><phys_name>#map@home</phys_name>", MAP)
    file = "<input_file><mode>local_staged</mode><source>#map@home</source></input_file>"
    jobs = "".join(
        f"<job><name>condor#node3@lab#{n}.0</name><command_line>{10**12 + n} 60000 </command_line>{file}</job>"
        for n in range(2)
    )
    program.ask("submit_batch", f"<batch><batch_id>{number}</batch_id><app_name>collatz</app_name>{jobs}</batch>")

    def statuses() -> dict[str | None, str | None]:
        reply = program.ask("query_batch2", "<min_mod_time>0</min_mod_time><batch_name>condor#node3@lab</batch_name>")
        return {job.findtext("job_name"): job.findtext("status") for job in reply.iter("job")}

    done = {f"condor#node3@lab#{n}.0": "DONE" for n in range(2)}
    ask_until(lambda: statuses() == done, "both jobs to be done", clients.values(), project, site)
    for name in done:
        instance = Workunit.objects.get(name=name).canonical_result
        assert instance is not None
        completed = program.ask("query_completed_job", f"<job_name>{name}</job_name>")
        assert completed.findtext("completed_job/canonical_resultid") == str(instance.pk)
        assert program.output(instance.name).strip()
    details = program.ask("query_batch", f"<batch_id>{number}</batch_id><get_job_details>1</get_job_details>")
    assert (details.findtext("state"), details.findtext("fraction_done")) == ("2", "1.0")
    program.ask("retire_batch", f"<batch_id>{number}</batch_id>")
    # The file had come to the clients under the name that the program gave it.
    assert any((client.directory / "projects").glob("*/#map@home") for client in clients.values())
