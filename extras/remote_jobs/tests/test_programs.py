"""create_work, stage_file and cancel_jobs as scripts call them: the real program, in place of BOINC's commands."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from credit.models import App, Batch, Workunit
from extras.remote_jobs.models import JobTemplate
from extras.remote_jobs.programs import boinc_jobs
from extras.remote_jobs.tests.conftest import OUTPUT_TEMPLATE
from extras.remote_jobs.tests.test_jobs import ONE_INPUT
from scheduler.models import StoredFile

pytestmark = pytest.mark.django_db


class Commands:
    """The program by each of its names, with the site's own views for the network."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.setattr("urllib.request.urlopen", self._open)

    def run(self, name: str, *words: object, stdin: str = "") -> str:
        """Return the output."""
        self._monkeypatch.setattr("sys.argv", [f"/project/bin/{name}", *map(str, words)])
        self._monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        self._capsys.readouterr()
        boinc_jobs.main()
        return self._capsys.readouterr().out

    def refused(self, name: str, *words: object, stdin: str = "") -> str:
        with pytest.raises(SystemExit) as ended:
            self.run(name, *words, stdin=stdin)
        assert isinstance(ended.value.code, str)  # so that the exit code is 1
        return ended.value.code

    @staticmethod
    def _open(request: Any, timeout: float) -> io.BytesIO:
        path = request.full_url.removeprefix("https://portal.example.org")
        return io.BytesIO(Client().post(path, request.data, request.headers["Content-type"]).content)


@pytest.fixture
def commands(
    key: str, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    JobTemplate.objects.filter(kind="in").update(text=ONE_INPUT)
    (tmp_path / "key").write_text(f"{key}\n")
    config = {"url": "https://portal.example.org/project/", "key_file": str(tmp_path / "key")}
    (tmp_path / "boinc_jobs.json").write_text(json.dumps(config))
    monkeypatch.setenv("JOBS_CONFIG", str(tmp_path / "boinc_jobs.json"))
    monkeypatch.chdir(tmp_path)
    return Commands(monkeypatch, capsys)


def test_a_script_stages_a_file_and_makes_work_of_it(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "in_1").write_text("1 2\n")
    commands.run("stage_file", "--copy", "in_1")
    commands.run("stage_file", "in_1")  # safe to repeat
    assert StoredFile.objects.get().name == "in_1" and not (tmp_path / "in_1").exists()
    words = ("--appname", "fold", "-wu_name", "#fold_1@home", "--command_line", "a <b>", "--min_quorum", 2, "in_1")
    assert commands.run("create_work", *words, "--delay_bound", 3600, "--credit", 7) == ""
    workunit = Workunit.objects.get()
    assert (workunit.name, workunit.command_line, workunit.min_quorum) == ("#fold_1@home", "a <b>", 2)
    assert (workunit.delay_bound_secs, workunit.credit) == (3600, 7)
    printed = commands.run("create_work", "--appname", "fold", "in_1")
    assert re.fullmatch(r"workunit name: fold_\d+_\d+\n", printed)
    assert Workunit.objects.filter(name=printed.split()[2]).exists()


def test_jobs_of_standard_input_go_into_the_batch_that_was_made_before(commands: Commands, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        commands.run("stage_file", name)
    number = commands.run("create_batch", "--appname", "fold", "--batch_name", "sweep").strip()
    lines = "--command_line '--seed 1' a\n\n--wu_name last --priority 7 b\n"
    for stem in ("x", "y"):
        words = ("--appname", "fold", "--batch", number, "--wu_name", stem, "--command_line", "--fast", "--stdin")
        commands.run("create_work", *words, stdin=lines.replace("last", f"last_{stem}"))
    jobs = Workunit.objects.order_by("pk").values_list("name", "command_line", "priority")
    fast = "--fast --seed 1"
    assert list(jobs) == [("x_0", fast, 0), ("last_x", "--fast", 7), ("y_0", fast, 0), ("last_y", "--fast", 7)]
    assert Batch.objects.get(name="sweep").nworkunits == 4


def test_templates_beside_the_script_go_with_its_jobs(commands: Commands, tmp_path: Path, settings: Settings) -> None:
    settings.REMOTE_INPUT_HOSTS = ["*.example.org"]
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "fold_out").write_text(OUTPUT_TEMPLATE.replace(">out<", ">other<"))
    (tmp_path / "two_in").write_text("<file_info/><workunit><file_ref><open_name>x</open_name></file_ref></workunit>")
    far = ("--remote_file", "https://data.example.org/m", 4, "a" * 32)
    commands.run("create_work", "--appname", "fold", "--wu_template", "two_in", *far)
    workunit = Workunit.objects.get()
    assert (workunit.input_files[0]["open_name"], workunit.output_files[0]["open_name"]) == ("x", "other")
    assert workunit.input_files[0]["urls"] == ["https://data.example.org/m"]


def test_a_folder_becomes_a_batch_and_its_jobs_are_cancelled_by_number(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    for name in ("1.dat", "2.dat", "3.dat"):
        (tmp_path / "sweep" / name).write_text(name)
    number = commands.run("submit_batch", 7, "fold", "sweep").strip()
    ids = list(Workunit.objects.filter(batch=int(number)).order_by("pk").values_list("pk", flat=True))
    assert len(ids) == 3
    commands.run("cancel_jobs", ids[0], ids[1])
    commands.run("cancel_jobs", "--name", Workunit.objects.get(pk=ids[1]).name)
    assert [Workunit.objects.get(pk=id_).error_mask for id_ in ids] == [16, 16, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create_work", "a"), "create_work: --appname is missing"),
        (("create_work", "--appname", "fold", "--wu_id", 7), "--wu_id: this project has no such jobs"),
        (("create_work", "--appname", "fold", "--wish", 7), "create_work: unknown option --wish"),
        (("create_work", "--appname"), "create_work: --appname needs 1 value(s)"),
        (("create_work", "--appname", "none"), "create_work: app not found: none"),
        (("create_work", "--appname", "fold", "no.dat"), "there is no stored file no.dat"),
        (("create_work", "--appname", "fold", "--wu_template", "no"), "no: No such file or directory"),
        (("stage_file", "no.dat"), "stage_file: no.dat: no such file"),
        (("cancel_jobs", "--name", "none"), "cancel_jobs: no job none"),
        (("dance",), "dance: one of create_work, stage_file"),
    ],
)
def test_what_goes_wrong_ends_the_command_with_a_line(commands: Commands, words: tuple[str, ...], message: str) -> None:
    assert message in commands.refused(*words)


def test_a_request_is_answered_in_place(key: str, app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answer(text: str, *words: str) -> str:
        out = io.StringIO()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        call_command("submit_rpc", *words, stdout=out)
        return out.getvalue()

    (tmp_path / "in_1").write_text("1\n")
    upload = f"<upload_files><authenticator>{key}</authenticator><phys_name>in_1</phys_name></upload_files>"
    assert "<success/>" in answer(upload, "--files", str(tmp_path / "in_1"))
    assert StoredFile.objects.get().name == "in_1"
    assert "bad authenticator" in answer("<query_batches><authenticator>x</authenticator></query_batches>")


def test_a_folder_of_templates_is_stored_at_once(app: App, tmp_path: Path) -> None:
    (tmp_path / "fold_in").write_text(ONE_INPUT)
    (tmp_path / "fold_long_out").write_text(OUTPUT_TEMPLATE)
    (tmp_path / "other_in").write_text(ONE_INPUT)
    out = io.StringIO()
    call_command("load_templates", tmp_path, stdout=out)
    assert "other_in: passed over" in out.getvalue() and "2 templates stored" in out.getvalue()
    assert set(JobTemplate.objects.values_list("name", "kind")) == {
        ("fold_in", "in"),
        ("fold_long_out", "out"),
        ("fold_out", "out"),
    }
    (tmp_path / "fold_bad_in").write_text("<workunit><min_quorum>x</min_quorum></workunit>")
    with pytest.raises(CommandError, match="fold_bad_in: <min_quorum> in line 1: not a number"):
        call_command("load_templates", tmp_path, stdout=out)
