"""Releasing versions: what is read, signed and stored, and what is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion
from portal.models import SignedEntry
from portal.wire import signing
from scheduler.examples import demo
from scheduler.files.store import store_file
from scheduler.models import PlanClass, StoredFile, VersionFile
from scheduler.programs import code_signing
from scheduler.submission.batches import cancel
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.support.credit_factories import make_app

pytestmark = pytest.mark.django_db

VERSION: dict[str, Any] = {
    "app": "alpine",
    "version_num": 101,
    "platform": "x86_64-pc-linux-gnu",
    "files": [
        {"path": "main.sh", "main_program": True},
        {"path": "table.txt", "open_name": "table"},
    ],
}
MAIN = "alpine_101_x86_64-pc-linux-gnu_main.sh"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "release"
    path.mkdir()
    (path / "main.sh").write_text("#!/bin/sh\necho 0 > boinc_finish_called\n")
    (path / "table.txt").write_text("1 2 3\n")
    describe(path)
    return path


def describe(folder: Path, **fields: Any) -> None:
    (folder / "version.json").write_text(json.dumps({**VERSION, **fields}))


def release(folder: Path, *options: str) -> str:
    out = StringIO()
    call_command("release_app_version", folder, *options, stdout=out)
    return out.getvalue()


def test_a_release_makes_what_the_scheduler_needs(folder: Path) -> None:
    assert release(folder) == "Alpine 1.01 x86_64-pc-linux-gnu is released.\n"
    version = AppVersion.objects.get(app__name="alpine")
    main, table = VersionFile.objects.filter(app_version=version).order_by("-is_main_program").select_related("file")
    assert (main.file.name, main.is_main_program, main.file.is_executable, main.is_copied) == (MAIN, True, True, False)
    assert (table.open_name, table.is_copied, table.file.is_executable) == ("table", True, False)
    for file in (main.file, table.file):
        with default_storage.open(file.path) as stored:
            content = stored.read()
        assert len(content) == file.nbytes
        public = signing.parse_public_key(code_signing.code_signing_key_text())
        assert signing.verify(content, file.signature, public)


def test_a_release_may_be_repeated(folder: Path) -> None:
    release(folder)
    assert "was already released: nothing to do" in release(folder)
    assert (AppVersion.objects.count(), StoredFile.objects.count(), VersionFile.objects.count()) == (1, 2, 2)


def test_a_changed_file_needs_a_new_name(folder: Path) -> None:
    release(folder)
    (folder / "table.txt").write_text("1 2 4\n")
    with pytest.raises(CommandError, match=r"_table.txt: a file of this name was stored before, with other content"):
        release(folder)
    describe(folder, version_num=102)
    release(folder)
    assert StoredFile.objects.count() == 4


def test_a_released_version_does_not_change(folder: Path) -> None:
    release(folder)
    describe(folder, avg_ncpus=2)
    with pytest.raises(CommandError, match="was released before, with other content"):
        release(folder)
    describe(folder, files=[VERSION["files"][0]])
    with pytest.raises(CommandError, match="was released before, with other content"):
        release(folder)


def test_a_release_may_say_how_it_is_started(folder: Path) -> None:
    wrapper = {"is_wrapper": True, "needs_network": True, "dont_throttle": True, "file_prefix": "shared"}
    describe(folder, api_version="7.20.0", cmdline="--threads 2", **wrapper)
    release(folder)
    version = AppVersion.objects.get()
    assert (version.api_version, version.cmdline) == ("7.20.0", "--threads 2")
    assert {name: getattr(version, name) for name in wrapper} == wrapper
    assert "nothing to do" in release(folder)
    for fields in ({"cmdline": "--threads 2"}, {"api_version": "7.20.0"}, {**wrapper, "is_wrapper": False}):
        describe(folder, **fields)
        with pytest.raises(CommandError, match="was released before, with other content"):
            release(folder)


@pytest.mark.parametrize(
    "form", ["7", "7.20", "7..0", "7.20.1000", "7.20.0.0", "7.20.0\n", "\N{ARABIC-INDIC DIGIT SEVEN}.0.0"]
)
def test_the_table_holds_no_other_form_of_the_interfaces_version(folder: Path, form: str) -> None:
    describe(folder, api_version=form)
    with pytest.raises(CommandError, match=r"version.json, api_version: three numbers from 0 to 999 with dots"):
        release(folder)
    describe(folder)
    release(folder)
    with pytest.raises(IntegrityError, match="appversion_api_version_form"), transaction.atomic():
        AppVersion.objects.update(api_version=form)


def test_a_file_may_be_shared_by_versions_under_its_own_name(folder: Path) -> None:
    files = [VERSION["files"][0], {"path": "table.txt", "name": "alpine_table_1", "open_name": "table"}]
    for number in (101, 102):
        describe(folder, version_num=number, files=files)
        release(folder)
    assert StoredFile.objects.get(name="alpine_table_1").versions.count() == 2


def test_a_file_that_came_as_an_input_is_signed_with_its_program(folder: Path) -> None:
    store_file("alpine_table_1", ContentFile((folder / "table.txt").read_bytes()))
    describe(folder, files=[VERSION["files"][0], {"path": "table.txt", "name": "alpine_table_1"}])
    release(folder)
    table = StoredFile.objects.get(name="alpine_table_1")
    assert code_signing.is_signed_md5(table.md5, table.signature)


def test_a_release_is_in_the_signed_log_with_the_sha_256_of_its_files(folder: Path) -> None:
    release(folder)
    release(folder)
    entry = SignedEntry.objects.get()
    assert (entry.kind, entry.content["version"], entry.content["action"]) == (
        "release", "Alpine 1.01 x86_64-pc-linux-gnu", "stored",
    )  # fmt: skip
    table = next(file for file in entry.content["files"] if file["name"] != MAIN)
    assert table["sha256"] == hashlib.sha256(b"1 2 3\n").hexdigest()


def test_signatures_may_be_made_where_the_key_is(folder: Path, tmp_path: Path, settings: Settings) -> None:
    signatures = tmp_path / "signed"
    assert release(folder, "--print-unsigned").splitlines()[0].split()[0] == MAIN
    assert release(folder, "--write-signatures", str(signatures)) == f"2 signatures written to {signatures}.\n"
    assert not AppVersion.objects.exists()
    settings.CODE_SIGNING_KEY = tmp_path / "elsewhere"
    with pytest.raises(CommandError, match="The private key is not on this machine"):
        release(folder)
    assert "is released" in release(folder, "--signatures", str(signatures))


def test_a_data_file_that_is_a_key_is_neither_signed_nor_released(
    folder: Path, tmp_path: Path, settings: Settings
) -> None:
    thiefs = signing.public_key_text(signing.generate_key()).strip().encode()
    (folder / "table.txt").write_bytes(thiefs)
    message = r"table\.txt: clients would take it for a new code-signing key"
    with pytest.raises(CommandError, match=message):
        release(folder)
    with pytest.raises(CommandError, match=message):
        release(folder, "--write-signatures", str(tmp_path / "signed"))
    key = signing.parse_private_key(Path(settings.CODE_SIGNING_KEY).read_text())
    (tmp_path / "signed").mkdir()
    for name, content in ((MAIN, (folder / "main.sh").read_bytes()), (MAIN.replace("main.sh", "table.txt"), thiefs)):
        (tmp_path / "signed" / f"{name}.sig").write_text(signing.sign(content, key))
    with pytest.raises(CommandError, match=message):
        release(folder, "--signatures", str(tmp_path / "signed"))
    assert not AppVersion.objects.exists()


@pytest.mark.system
def test_openssl_makes_the_signature_that_the_document_says(folder: Path, tmp_path: Path, settings: Settings) -> None:
    from cryptography.hazmat.primitives import serialization

    signatures = tmp_path / "signed"
    signatures.mkdir()
    key = signing.parse_private_key(Path(settings.CODE_SIGNING_KEY).read_text())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (tmp_path / "key.pem").write_bytes(pem)
    for line in release(folder, "--print-unsigned").splitlines():
        name, md5, _ = line.split()
        command = ["openssl", "pkeyutl", "-sign", "-inkey", str(tmp_path / "key.pem")]
        made = subprocess.run(command, input=md5.encode(), capture_output=True, check=True).stdout.hex()
        lines = [made[start : start + 64] for start in range(0, 256, 64)]
        (signatures / f"{name}.sig").write_text("\n".join([*lines, ".", ""]))
    settings.CODE_SIGNING_KEY = tmp_path / "elsewhere"
    assert "is released" in release(folder, "--signatures", str(signatures))


def test_a_wrong_or_missing_signature_is_refused(folder: Path, tmp_path: Path) -> None:
    signatures = tmp_path / "signed"
    release(folder, "--write-signatures", str(signatures))
    other = signing.sign(b"something else", signing.generate_key())
    (signatures / f"{MAIN}.sig").write_text(other)
    with pytest.raises(CommandError, match="not the signature of this file"):
        release(folder, "--signatures", str(signatures))
    (signatures / f"{MAIN}.sig").write_text("zz\n.\n")
    with pytest.raises(CommandError, match="not a hexadecimal digit"):
        release(folder, "--signatures", str(signatures))
    (signatures / f"{MAIN}.sig").unlink()
    with pytest.raises(CommandError, match=r"main.sh.sig: missing"):
        release(folder, "--signatures", str(signatures))
    assert not AppVersion.objects.exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"app": "../alpine"}, r"app: '../alpine' is not a name of at most 64 letters \(A to Z, a to z\), digits"),
        ({"app": "a" * 65}, "app: .* is not a name of at most 64 letters"),
        ({"app": "alpine\n"}, "app: 'alpine.n' is not a name of at most 64 letters"),
        ({"version_num": 0}, "version_num: a number from 1 to"),
        (
            {"min_client_version": 80200, "max_client_version": 71600},
            r"max_client_version: less than min_client_version \(80200\), so no computer would get it",
        ),
        ({"version_num": "1"}, "version_num: '1' is not of type int"),
        ({"version_num": True}, "version_num: True is not of type int"),
        ({"avg_ncpus": float("nan")}, "avg_ncpus: nan is not of type float"),
        ({"avg_ncpus": 1e304}, "avg_ncpus: a number from 0 to 1024"),
        ({"processor_type": "TPU"}, "processor_type: one of CPU, NVIDIA"),
        ({"processor_type": "NVIDIA"}, "gpu_usage: more than 0 for a GPU type"),
        ({"gpu_usage": 1}, "gpu_usage: more than 0 for a GPU type"),
        ({"avg_ncpus": 0}, "avg_ncpus: more than 0 if no GPU is used, or the version would never be sent"),
        ({"plan_class": "unheard_of"}, "There is no plan class unheard_of"),
        ({"api_version": 7.2}, "api_version: 7.2 is not of type str"),
        # 47 * 5 = 235 bytes would do: & is sent as &amp;
        ({"cmdline": "&" * 48}, "cmdline: more than 239 bytes"),
        ({"cmdline": "é" * 120}, "cmdline: more than 239 bytes"),
        ({"cmdline": "--a\n--b"}, "cmdline: one line without control characters"),
        ({"cmdline": "--a <b"}, "cmdline: one line without control characters and without <"),
        ({"is_wrapper": "yes"}, "is_wrapper: 'yes' is not of type bool"),
        ({"file_prefix": "a" * 17}, "file_prefix: at most 16 letters"),
        ({"file_prefix": "../up"}, "file_prefix: at most 16 letters"),
        ({"file_prefix": "a\n"}, "file_prefix: at most 16 letters"),
        ({"color": "red"}, "color: unknown"),
        ({"files": []}, "files: 1 to 100"),
        ({"files": [{"path": "main.sh"}]}, "exactly one of them must be the main program"),
        (
            {"files": [{"path": "../release/main.sh/../../secret", "main_program": True}]},
            "is not a file of this folder",
        ),
        ({"files": [{"path": "/etc/passwd", "main_program": True}]}, "is not a file of this folder"),
        ({"files": [{"path": "main.sh", "name": "a/b", "main_program": True}]}, "name: 'a/b' is not a name of"),
        ({"files": [{"path": "main.sh", "name": "a..b", "main_program": True}]}, "without two dots in a row"),
        ({"files": ["main.sh"]}, r"files\[0\]: not a table"),
    ],
)
def test_a_description_without_sense_is_refused(folder: Path, fields: dict[str, Any], message: str) -> None:
    describe(folder, **fields)
    with pytest.raises(CommandError, match=message):
        release(folder)
    assert not App.objects.exists()
    assert not StoredFile.objects.exists()


def test_a_plan_class_is_part_of_the_names(folder: Path) -> None:
    PlanClass.objects.create(name="mt")
    describe(folder, plan_class="mt")
    release(folder)
    assert StoredFile.objects.filter(name="alpine_101_x86_64-pc-linux-gnu__mt_main.sh").exists()


def test_a_folder_without_description_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"neither version.toml / version.json"):
        release(tmp_path)
    (tmp_path / "version.toml").write_text("app = [")
    with pytest.raises(CommandError, match=r"version.toml: "):
        release(tmp_path)


# --- the examples -----------------------------------------------------------------------------------------------------


@pytest.fixture
def docker(db: None) -> App:
    """An app without versions, and a plan class for containers."""
    PlanClass.objects.create(name="docker", needs_docker=True)
    return make_app("alpine")


CONTAINED: dict[str, Any] = {"plan_class": "docker", "files": [{"path": "main.sh", "main_program": True}]}


@pytest.mark.parametrize(
    ("job", "place"),
    [
        ({"command_line": '"; rm -rf ~; "'}, "command_line"),
        ({"input_files": [{"open_name": "Job.toml", "content": 'mount = "/home"\n'}]}, "Job.toml"),
        (
            {"input_files": [{"open_name": "job.toml", "url": "https://a.org/x", "nbytes": 1, "md5": "a" * 32}]},
            "job.toml",
        ),
    ],
)
def test_the_first_version_for_containers_waits_for_open_jobs_that_could_leave_them(
    folder: Path, docker: App, settings: Settings, job: dict[str, Any], place: str
) -> None:
    settings.REMOTE_INPUT_HOSTS = ["a.org"]
    batch, _ = submit(docker, {"fpops_est": 1e12, "output_files": []}, [{}, job], owner=None, now=timezone.now())
    describe(folder, **CONTAINED)
    with pytest.raises(CommandError, match=f"alpine_{batch.pk}_1, {place}: "):
        release(folder)
    assert not AppVersion.objects.exists()
    cancel(batch, timezone.now())
    release(folder)
    # From now on such jobs are refused when they are submitted.
    with pytest.raises(JobError):
        submit(docker, {"fpops_est": 1e12, "output_files": []}, [job], owner=None, now=timezone.now())


def test_jobs_that_stay_in_containers_do_not_keep_a_version_waiting(folder: Path, docker: App) -> None:
    good = {"command_line": "--n 5", "input_files": [{"open_name": "job.toml", "content": 'workdir = "/app"\n'}]}
    submit(docker, {"fpops_est": 1e12, "output_files": []}, [good], owner=None, now=timezone.now())
    describe(folder, **CONTAINED)
    release(folder)
    assert AppVersion.objects.get().plan_class == "docker"


def test_the_examples_are_released_once() -> None:
    assert demo.release_examples() == ["Collatz 1.01 x86_64-pc-linux-gnu", "Primes 1.01 x86_64-pc-linux-gnu"]
    assert demo.release_examples() == []
    # Else a demo with one volunteer would never see a replicated job validated.
    assert set(App.objects.values_list("one_result_per_user", flat=True)) == {False}


def run_example(folder: Path, program: str, *arguments: str) -> int:
    return subprocess.run([demo.EXAMPLES / program, *arguments], cwd=folder, capture_output=True).returncode


@pytest.mark.system
def test_collatz_computes_and_ends_as_clients_want_it(tmp_path: Path) -> None:
    # 1: 0 steps; 2: 1; 3: 3-10-5-16-8-4-2-1 = 7; 4: 2; 5: 5; 6: 8; 7: 16. Sum 39.
    assert run_example(tmp_path, "collatz/collatz.py", "1", "7") == 0
    assert (tmp_path / "out").read_text() == "2 1\n3 7\n6 8\n7 16\nsum 39\n"
    assert (tmp_path / "boinc_finish_called").read_text() == "0\n"


@pytest.mark.system
def test_collatz_fails_with_an_exit_code_on_nonsense(tmp_path: Path) -> None:
    assert run_example(tmp_path, "collatz/collatz.py", "0", "7") == 2
    assert not (tmp_path / "boinc_finish_called").exists()


@pytest.mark.system
def test_primes_computes_and_ends_as_clients_want_it(tmp_path: Path) -> None:
    # 2 3 5 7 11 13 17 19 are 8 primes; 3-5, 5-7, 11-13 and 17-19 are twins.
    (tmp_path / "in").write_text("1 20\n")
    assert run_example(tmp_path, "primes/primes.sh") == 0
    assert (tmp_path / "out").read_text() == "primes 8\ntwins 4\n"
    assert (tmp_path / "boinc_finish_called").read_text() == "0\n"
