"""A Docker image on 500 inputs: from one form to the scheduler's replies, and refusals on the way."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from credit.engine.states import FileDeleteState
from credit.models import App, Batch
from extras.containers import images
from extras.containers.images import ImageError, Variant
from extras.containers.models import Image
from extras.containers.tasks import delete_unused_files
from extras.containers.tests.conftest import LINUX, MAC
from portal.models import User
from scheduler.models import StoredFile, SubmissionDraft
from scheduler.submission import drafts
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.support.scheduler_clients import Computer, computer_of, gpu, messages, names, value

pytestmark = pytest.mark.django_db
RUN = "/project/batches/containers/"
# As a client 8.2.8 writes it
DOCKER = "<docker_version>27.3.1</docker_version>\n<docker_type>1</docker_type>\n"
CLIENT = {"core_client_major_version": 8, "core_client_minor_version": 2, "core_client_release": 8}
FORM: dict[str, Any] = {
    "image_name": "wordcount",
    "base": "debian:stable-slim",
    "command": "wc -w < in > out $ARGS",
    "output_files": "out:1000",
    "hours": "0.5",
    "min_quorum": "1",
    "open_name": "in",
}


def zipped(*names: str, content: bytes = b"a b c\n") -> SimpleUploadedFile:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content + name.encode())
    return SimpleUploadedFile("inputs.zip", buffer.getvalue())


def run(browser: Client, app: App, **fields: Any) -> Any:
    given = {**FORM, "app": app.pk, "file": zipped("1.txt", "2.txt"), **fields}
    return browser.post(RUN, {name: value for name, value in given.items() if value is not None}, follow=True)


def computer(user: User, platform: str = LINUX, **fields: Any) -> Computer:
    os_name = "Darwin" if platform == MAC else "Linux Debian"
    return computer_of(user, platform=platform, hardware=DOCKER, os_name=os_name, **fields)


def inputs(reply: str) -> dict[str, str]:
    """Return the names under which the job's program sees its inputs, and their names on the computer."""
    (workunit,) = re.findall("<workunit>(.*?)</workunit>", reply, re.DOTALL)
    refs = re.findall(r"<file_name>(.*?)</file_name>\n<open_name>(.*?)</open_name>\n<copy_file/>", workunit)
    return {open_name: name for name, open_name in refs}


def content_of(name: str) -> str:
    with default_storage.open(StoredFile.objects.get(name=name).path) as content:
        return str(content.read().decode())


def test_files_of_replaced_variants_go_once_no_job_needs_them(
    app: App, alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    def put(image: Image, text: str) -> StoredFile:
        with django_capture_on_commit_callbacks(execute=True):
            images.put_variant(image, Variant(f"FROM {text}\n"))
        return image.files.get().file

    def is_here(file: StoredFile) -> bool:
        file.refresh_from_db()
        assert default_storage.exists(file.path) is (file.deleted_at is None)
        return file.deleted_at is None

    image = images.make(alice, app, "wc", Variant("FROM a\n"))
    first, second = image.files.get().file, put(image, "b")
    assert (is_here(first), is_here(second)) == (False, True)
    job = {"program_files": image.program_files(), "output_files": [], "fpops_est": 1e12}
    batch, _ = submit(app, {}, [job], owner=None, now=timezone.now())
    third = put(image, "c")
    # A job needs it.
    assert is_here(second)
    batch.workunits.update(file_delete_state=FileDeleteState.DONE)
    delete_unused_files()
    assert (is_here(second), is_here(third)) == (False, True)
    # The same content can be stored again, though its name was used.
    assert put(image, "a").pk == first.pk
    assert is_here(first)
    with django_capture_on_commit_callbacks(execute=True):
        images.remove_variant(image, "", "")
    assert not is_here(first)


def test_the_images_of_a_person_have_a_limit(app: App, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    image = images.make(alice, app, "wc", Variant("FROM a\n"))
    monkeypatch.setattr(images, "MAX_IMAGES_NBYTES", 14)
    images.put_variant(image, Variant("FROM b\n"))
    images.put_variant(image, Variant("FROM b\n", cpu="arm"))
    with pytest.raises(ImageError, match="15 bytes"):
        images.put_variant(image, Variant("FROM bb\n"))
    assert image.files.count() == 2


def test_an_image_is_run_on_five_hundred_inputs_of_one_archive(browser: Client, app: App, alice: User) -> None:
    preview = run(browser, app, file=zipped(*(f"{number}.txt" for number in range(500))), settings="verbose = 1")
    assert "Submit 500 jobs" in preview.content.decode()
    assert "Too few results" in preview.content.decode()
    browser.post(f"/project/batches/drafts/{SubmissionDraft.objects.get().pk}/submit/")
    batch = Batch.objects.get()
    assert (batch.nworkunits, batch.name) == (500, "wordcount")
    # Half an hour at 4.3 GFLOPS
    assert batch.workunits.earliest("pk").fpops_est == 0.5 * 3600 * 4.3e9

    reply = computer(alice).ask(1, **CLIENT)
    files = inputs(reply)
    assert set(files) == {"in", "Dockerfile", "job.toml"}
    assert content_of(files["Dockerfile"]) == "FROM debian:stable-slim\nWORKDIR /app\nCMD wc -w < in > out $ARGS\n"
    assert content_of(files["job.toml"]) == "verbose = 1\n"
    assert set(files.values()) <= set(names(reply, "file_info"))
    assert value(reply, "plan_class") == "docker"


def test_a_computer_gets_the_variant_for_it(browser: Client, app: App, submitter: User, alice: User) -> None:
    run(browser, app)
    image = Image.objects.get()
    page = f"/project/batches/images/{image.pk}/"
    arm = {"plan_class": "docker", "cpu": "arm", "dockerfile": "FROM arm64v8/debian\n"}
    script = SimpleUploadedFile("count.sh", b"#!/bin/sh\nwc -w < in > out\n")
    assert browser.post(page, {**arm, "more_files": script}).status_code == 302
    graphics = {"plan_class": "docker_nvidia", "cpu": "", "dockerfile": "FROM nvidia/cuda\n"}
    assert browser.post(page, {**graphics, "settings": "use_gpu = true"}).status_code == 302
    assert b"ARM (64 bits)" in browser.get(page).content
    run(browser, app, image=image.pk, image_name=None, base=None, command=None, file=zipped(*map(str, range(9))))
    drafts.submit_draft(SubmissionDraft.objects.latest("pk"), timezone.now())

    reply = computer(alice, MAC).ask(1, **CLIENT)
    assert content_of(inputs(reply)["Dockerfile"]) == "FROM arm64v8/debian\n"
    assert f"{inputs(reply)['count.sh']}</name>" in reply and "<executable/>" in reply
    reply = computer(alice).ask(1, **CLIENT)
    assert not messages(reply)
    assert content_of(inputs(reply)["Dockerfile"]).startswith("FROM debian")
    assert "count.sh" not in inputs(reply)
    reply = computer(alice, coprocs=gpu(secs=1)).ask(0, **CLIENT)
    assert content_of(inputs(reply)["Dockerfile"]) == "FROM nvidia/cuda\n"
    assert (value(reply, "plan_class"), value(reply, "count")) == ("docker_nvidia", "1")

    assert browser.post(f"{page}remove/", {"plan_class": "\0", "cpu": "x" * 99}).status_code == 302
    # Submitted jobs have their files, though the image has been deleted since.
    for variant in (("", ""), ("docker", "arm"), ("docker_nvidia", "")):
        browser.post(f"{page}remove/", dict(zip(("plan_class", "cpu"), variant, strict=True)))
    assert not Image.objects.exists()
    reply = computer(alice).ask(1, **CLIENT)
    assert content_of(inputs(reply)["Dockerfile"]).startswith("FROM debian")


def test_jobs_without_a_variant_for_a_computer_stay_here_and_its_owner_is_told(
    app: App, submitter: User, alice: User
) -> None:
    files = [{"open_name": "Dockerfile", "content": "FROM x\n", "cpu": "arm"}]
    job = {"fpops_est": 1e9, "output_files": [], "program_files": files}
    submit(app, job, [{}], owner=submitter, now=timezone.now())
    lonely = computer(alice)
    assert "run in containers that are not made for this kind of processor" in messages(lonely.ask(1, **CLIENT))[0]
    # Without Docker the sentence is different, and on ARM it runs.
    assert "need Docker" in messages(computer_of(alice).ask(1, **CLIENT))[0]
    reader = computer(alice, MAC)
    reply = reader.ask(1, **CLIENT)
    assert set(inputs(reply)) == {"Dockerfile"}
    # The reply was lost: the job comes again, with its files.
    again = reader.ask(1, others=[], **CLIENT)
    assert inputs(again) == inputs(reply)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"image_name": "Word Count"}, "Use a–z"),
        ({"image_name": "../etc"}, "Use a–z"),
        ({"image_name": None}, "Give the new image a name"),
        ({"base": None, "command": None}, "Enter a base image and a command, or a Dockerfile"),
        ({"dockerfile": "FROM x"}, "Enter a base image and a command, or a Dockerfile"),
        ({"base": "debian\nRUN id"}, "base image is not a name"),
        ({"base": "debian AS x"}, "base image is not a name"),
        ({"command": "wc \\"}, "ends in a backslash"),
        ({"command": ""}, "not one line"),
        ({"base": None, "command": None, "dockerfile": "RUN id"}, "The Dockerfile has no FROM"),
        ({"base": None, "command": None, "dockerfile": "FROM x\n" + "#" * 70_000}, "at most 65536 characters"),
        ({"settings": 'mount = ["/:/host"]'}, "it could leave the container"),
        ({"command_line": "$(id)"}, "would not reach the container"),
        ({"hours": "nan"}, "Enter a number"),
        ({"hours": "0"}, "greater than or equal to 0.001"),
        ({"most_hours": "0.1"}, "This is less than a job takes"),
        ({"output_files": ""}, "This field is required"),
        ({"file": None}, "Either enter the jobs here or choose a file"),
    ],
)
def test_what_no_image_can_be_run_with_is_told_beside_its_field(
    browser: Client, app: App, fields: dict[str, Any], said: str
) -> None:
    assert said in run(browser, app, **fields).content.decode().replace("&#x27;", "'")
    assert not Image.objects.exists() and not SubmissionDraft.objects.exists()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (zipped("../up.txt"), "its path leads out of the archive"),
        (zipped("a b.txt"), "not a path of at most"),
        (zipped("big", content=b"\0" * (65 * 2**20)), "the limit is"),
        (SimpleUploadedFile("x.zip", b"PK\3\4broken"), "not a readable ZIP archive"),
        (SimpleUploadedFile("x.csv", b"command_line\n`id`\n"), "would not reach the container"),
        (SimpleUploadedFile("x.csv", b"command_line\n" + b"1\n" * 500_000), "more than 100000 jobs"),
    ],
    ids=["out of it", "blank", "bomb", "broken", "shell", "half a million"],
)
def test_inputs_that_cannot_be_taken_are_told_before_anything_is_submitted(
    browser: Client, app: App, file: SimpleUploadedFile, said: str
) -> None:
    answer = run(browser, app, file=file).content.decode().replace("\u202f", "").replace("\xa0", "")
    assert said in answer
    # The form comes back as it was sent, and the name of its image is free again.
    assert "Nothing was submitted" in answer and 'value="wordcount"' in answer
    assert not Batch.objects.exists() and not Image.objects.exists() and not SubmissionDraft.objects.exists()


def test_jobs_of_other_ways_cannot_leave_the_container_either(app: App, submitter: User) -> None:
    StoredFile.objects.create(name="settings", path="files/gone", nbytes=1, md5="0" * 32)
    common = {"fpops_est": 1e9, "output_files": []}
    for job, field in (
        ({"command_line": "`id`"}, r"jobs\[0\].command_line"),
        ({"input_files": [{"open_name": "job.toml", "content": 'build_args = ";id"'}]}, r"job.toml, build_args"),
        ({"input_files": [{"open_name": "job.toml", "name": "settings"}]}, "input_files"),
        ({"program_files": [{"open_name": "a", "content": "", "cpu": "sparc"}]}, "cpu"),
        ({"program_files": [{"open_name": "a", "content": "", "plan_class": "../x"}]}, "plan_class"),
    ):
        with pytest.raises(JobError, match=field):
            submit(app, common, [job], owner=submitter, now=timezone.now())
    assert not Batch.objects.exists()


def test_jobs_that_wait_for_a_withdrawn_version_are_checked_too(app: App, submitter: User) -> None:
    app.versions.update(is_deprecated=True)
    job = {"fpops_est": 1e9, "output_files": [], "command_line": "`id`"}
    with pytest.raises(JobError, match="command_line"):
        submit(app, {}, [job], owner=submitter, now=timezone.now())


def test_only_owners_change_images_and_all_submitters_run_them(
    browser: Client, app: App, submitter: User, bob: User
) -> None:
    theirs = images.make(bob, app, "theirs", Variant("FROM x\n"))
    page = f"/project/batches/images/{theirs.pk}/"
    browser.post(page, {"dockerfile": "FROM y\n"})
    assert browser.post(f"{page}remove/", {"plan_class": "", "cpu": ""}).status_code == 404
    assert content_of(theirs.files.get().file.name) == "FROM x\n"
    assert b"Store the variant" not in browser.get(page).content
    assert b"theirs" in browser.get("/project/batches/images/").content
    preview = run(browser, app, image=theirs.pk, image_name=None, base=None, command=None).content.decode()
    assert "Submit 2 jobs" in preview
    assert "already an image called theirs" in run(browser, app, image_name="theirs").content.decode()


@pytest.mark.parametrize(
    ("variant", "code"),
    [
        (Variant("FROM x", plan_class="docker_amd"), "image_plan_class"),
        (Variant("FROM x\0"), "image_dockerfile"),
        (Variant("FROM x", files=[SimpleUploadedFile("Dockerfile", b"")]), "image_file_twice"),
        (Variant("FROM x", files=[SimpleUploadedFile("JOB.toml", b"")]), "image_file_twice"),
        (Variant("FROM x", files=[SimpleUploadedFile("a", b"")] * 2), "image_file_twice"),
        (Variant("FROM x", files=[SimpleUploadedFile("a b", b"")]), "no_name"),
        (Variant("FROM x", files=[SimpleUploadedFile(f"f{n}", b"") for n in range(21)]), "image_files_limit"),
    ],
)
def test_a_variant_without_sense_leaves_the_image_as_it_was(
    app: App, submitter: User, variant: Variant, code: str
) -> None:
    image = images.make(submitter, app, "mine", Variant("FROM mine\n"))
    before = image.program_files()
    with pytest.raises(ImageError) as refused:
        images.put_variant(image, variant)
    assert refused.value.message.code == code
    assert image.program_files() == before
