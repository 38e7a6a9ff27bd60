"""What jobs in containers may not contain, because it would run on the computer itself."""

from __future__ import annotations

import tomllib

import pytest

from scheduler.wire.container_jobs import check, command_fault, read_settings, render_settings
from scheduler.wire.job_fields import InputFile, JobError, RemoteContent, SubmittedJob


@pytest.mark.parametrize(
    ("command_line", "may_be"),
    [
        ("", True),
        ("--from 1 --to 'a b' *.csv ; | & > <", True),
        ("--configuration x", True),
        ("$(touch /tmp/x)", False),
        ("`id`", False),
        ('a" ; id ; "', False),
        ("a\\", False),
        ("--config other.toml", False),
        ("x --dockerfile other", False),
        ("--sporadic", False),
        # The client takes the quotes off.
        ("'--config' other.toml", False),
        ("'a''--dockerfile' other", False),
        ("--from 'x'--sporadic", False),
        ("é" * 451, False),
    ],
)
def test_a_command_line_stays_between_the_wrappers_quotes(command_line: str, may_be: bool) -> None:
    assert (command_fault(command_line) is None) is may_be


@pytest.mark.parametrize(
    "text",
    [
        'create_args = "--privileged"',
        'build_args = "x; id"',
        'mount = ["/:/host"]',
        'portmap = ["80:80"]',
        'project_dir_mount = "/project"',
        'image_name = "x"',
        'workdir = "/app; id"',
        'workdir = "app"',
        'workdir = "/a/../b"',
        "use_gpu = 1",
        "verbose = true",
        "verbose = 3",
        "workdir = ",
        "# " + "x" * 2000,
        "[mount]",
        "a = " + "[" * 1500,
    ],
)
def test_settings_that_leave_the_container_are_refused_by_name(text: str) -> None:
    with pytest.raises(JobError, match=r"^job\.toml"):
        read_settings(text)


def test_settings_are_written_as_they_were_read() -> None:
    given = {"workdir": "/data/in", "use_gpu": True, "verbose": 2}
    assert tomllib.loads(render_settings(read_settings(render_settings(given)))) == given


def test_jobs_are_told_by_their_place() -> None:
    def job(command_line: str, *inputs: InputFile) -> SubmittedJob:
        return SubmittedJob("x", {"command_line": command_line}, inputs)

    remote = RemoteContent(("https://example.org/x",), 1, "0" * 32)
    jobs = [
        job("--from 1", InputFile("job.toml", content='workdir = "/app"')),
        job("$x", InputFile("JOB.toml", "stored")),
        job("", InputFile("job.toml", remote=remote)),
    ]
    faults = [error.field for error in check(jobs, {"stored": b'mount = ["/:/x"]'}.__getitem__)]
    assert faults == [
        "jobs[1].command_line",
        "jobs[1].input_files, job.toml, mount",
        "jobs[2].input_files, job.toml",
    ]


def test_no_job_behind_the_first_fault_is_looked_at() -> None:
    read: list[str] = []

    def stored(name: str) -> bytes:
        read.append(name)
        return b"mount = 1"

    jobs = [SubmittedJob("x", {"command_line": ""}, (InputFile("job.toml", name),)) for name in ("a", "b")]
    next(check(jobs, stored))
    assert read == ["a"]
