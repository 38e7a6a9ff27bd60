"""Upload requests for tests: the captured ones, certified again, and a printer that writes as the client does."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.test import Client

from credit.models import Result
from scheduler.files.certificates import size_key, upload_certificate
from scheduler.models import Upload
from scheduler.wire.uploads import FileUpload, parse_head
from tests.support.credit_factories import make_app, make_result, make_workunit

CAPTURES = Path(__file__).parents[1] / "data" / "protocol"
ADDRESS = "/project/file_upload_handler"


def captured(name: str) -> bytes:
    return (CAPTURES / f"upload_{name}.xml").read_bytes()


def certified(body: bytes) -> bytes:
    """A captured request with this site's certificate instead of that of the server it was sent to."""
    name, max_nbytes = re.search(rb"<name>(.*)</name>", body), re.search(rb"<max_nbytes>(\d+)<", body)
    assert name and max_nbytes
    certificate = upload_certificate(name[1].decode(), int(max_nbytes[1]))
    signature = f"<xml_signature>\n{certificate.rstrip()}</xml_signature>".encode()
    return re.sub(rb"<xml_signature>.*</xml_signature>", signature, body, flags=re.DOTALL)


def upload_body(name: str, content: bytes, *, offset: int = 0, max_nbytes: int = 100_000, **fields: Any) -> bytes:
    """The request that sends ``content`` from ``offset`` on; fields (nbytes, md5, certificate) replace what is true."""
    nbytes = fields.get("nbytes", len(content))
    md5 = fields.get("md5", hashlib.md5(content, usedforsecurity=False).hexdigest())
    certificate = fields.get("certificate", upload_certificate(name, max_nbytes)).rstrip()
    head = f"""<data_server_request>
    <core_client_major_version>7</core_client_major_version>
    <core_client_minor_version>20</core_client_minor_version>
    <core_client_release>5</core_client_release>
<file_upload>
<file_info>
<name>{name}</name>
<xml_signature>
{certificate}</xml_signature>
<max_nbytes>{max_nbytes}</max_nbytes>
</file_info>
<nbytes>{nbytes}</nbytes>
<md5_cksum>{md5}</md5_cksum>
<offset>{offset}</offset>
<data>
"""
    return head.encode() + content[offset:]


def asked_of(body: bytes) -> FileUpload:
    """What such a request asks."""
    asked = parse_head(body.partition(b"<data>\n")[0])
    assert isinstance(asked, FileUpload)
    return asked


def size_query(name: str) -> bytes:
    return f"<data_server_request>\n    <get_file_size>{name}</get_file_size>\n</data_server_request>\n".encode()


def address_of(body: bytes) -> str:
    """The address that clients have for the file of this request: without the key where it has no sane name."""
    name = re.search(rb"<(?:name|get_file_size)>(.*)</", body)
    return f"{ADDRESS}?{size_key(name[1].decode())}" if name else ADDRESS


def post(body: bytes) -> str:
    """The reply's status and message or size, as "0", "-1 too large" or "0 1199300"."""
    reply = Client().post(address_of(body), body, content_type="application/x-www-form-urlencoded")
    assert reply.status_code == 200
    return read_reply(reply.content)


def post_cut(body: bytes, nmissing: int) -> str:
    """The reply when the connection breaks this many bytes before the end."""
    cut: dict[str, Any] = {"wsgi.input": BytesIO(body[:-nmissing]), "CONTENT_LENGTH": str(len(body))}
    return read_reply(Client().generic("POST", ADDRESS, **cut).content)


def read_reply(body: bytes) -> str:
    match = re.fullmatch(
        rb"<data_server_reply>\n    <status>(-?\d)</status>\n"
        rb"(?:    <(message|file_size)>(.*)</\2>\n)?</data_server_reply>\n",
        body,
    )
    assert match, body
    return " ".join(part.decode() for part in (match[1], match[3]) if part)


def make_task(name: str, host: Any, *, max_nbytes: int = 100_000, nfiles: int = 1, **fields: Any) -> Result:
    """A result of this name that is out on the host, with this many output files."""
    files = [{"open_name": f"out{n}", "max_nbytes": max_nbytes, "optional": False} for n in range(nfiles)]
    workunit = make_workunit(fields.pop("app", None) or make_app(f"app_{name}"[:60]), output_files=files)
    return make_result(workunit, host, **{"name": name, **fields})


def stored(name: str) -> bytes:
    """The content of a file whose upload is complete."""
    upload = Upload.objects.get(name=name)
    assert upload.completed_at is not None
    with default_storage.open(upload.path) as file:
        content: bytes = file.read()
    return content
