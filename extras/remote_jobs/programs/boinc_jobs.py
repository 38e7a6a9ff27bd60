#!/usr/bin/env python3
"""create_work, stage_file, cancel_jobs, create_batch, submit_batch: as scripts of a BOINC project call them.

Copy or link this file to where they expect the commands, each under its name; or name the command first:
``boinc_jobs.py create_work …``. It needs Python 3.9 and nothing else. Beside it, or where JOBS_CONFIG points, a JSON
file ``boinc_jobs.json`` has the ``key`` (or ``key_file``), and either ``url``, the project's, or ``manage``, the
command of manage.py as a list, to work in place.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Iterable, NoReturn, Sequence
from xml.etree import ElementTree
from xml.sax.saxutils import escape

SECS = 300
MAX_LINE_BYTES = 4096
NUMBERS = [
    "rsc_fpops_est",
    "rsc_fpops_bound",
    "rsc_memory_bound",
    "rsc_disk_bound",
    "delay_bound",
    "min_quorum",
    "target_nresults",
    "max_error_results",
    "max_total_results",
    "max_success_results",
]
# Number of values of each option
OPTIONS = {name: 1 for name in [*NUMBERS, "appname", "batch", "command_line", "credit", "priority", "wu_name"]}
OPTIONS.update(wu_template=1, result_template=1, remote_file=3, stdin=0, app_version_num=1)
TARGETS = ("target_host", "target_user", "target_team")
OPTIONS.update(dict.fromkeys([*TARGETS, "size_class"], 1))
LINE_OPTIONS = {name: 1 for name in ("command_line", "wu_name", "wu_template", "result_template", "priority", *TARGETS)}
LINE_OPTIONS.update(remote_file=3, size_class=1)
PASSED_OVER = {"config_dir": 1, "d": 1, "verbose": 0, "continue_on_error": 0}
NOT_SERVED = [
    "broadcast",
    "broadcast_team",
    "broadcast_user",
    "hr_class",
    "keywords",
    "sub_appname",
    "wu_id",
]
TEMPLATES = (("wu_template", "in", "input_template"), ("result_template", "out", "output_template"))
File = tuple[str, ...]


def fail(message: str) -> NoReturn:
    sys.exit(f"{command_name()}: {message}")


def command_name() -> str:
    return Path(sys.argv[0]).name


# --- requests ------------------------------------------------------------------------------------------------


class Project:
    """The server that requests go to."""

    def __init__(self) -> None:
        path = Path(os.environ.get("JOBS_CONFIG") or Path(__file__).resolve().with_name("boinc_jobs.json"))
        try:
            self._config: dict[str, Any] = json.loads(path.read_text())
            self._key = self._config.get("key") or Path(self._config["key_file"]).read_text().strip()
        except (OSError, ValueError, KeyError) as error:
            fail(f"{path}: cannot be read ({type(error).__name__}: {error})")
        if "url" not in self._config and "manage" not in self._config:
            fail(f"{path}: needs url or manage")

    def ask(self, operation: str, inside: str, files: Sequence[Path] | None = None) -> ElementTree.Element:
        """Send a request and return the reply; exits with the error if there is one."""
        text = f"<{operation}><authenticator>{escape(self._key)}</authenticator>{inside}</{operation}>"
        try:
            raw = self._in_place(text, files) if "manage" in self._config else self._by_http(text, files)
            reply = ElementTree.fromstring(raw)
        except (OSError, ElementTree.ParseError, subprocess.SubprocessError) as error:
            fail(f"no answer that can be read: {error}")
        fault = reply.find("error") if reply.tag != "error" else reply
        if fault is not None:
            fail(fault.findtext("error_msg") or "refused")
        return reply

    def _in_place(self, text: str, files: Sequence[Path] | None) -> bytes:
        command = [*self._config["manage"], "submit_rpc"]
        if files is not None:
            command += ["--files", *(str(path.resolve()) for path in files)]
        return subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, timeout=SECS, check=True).stdout

    def _by_http(self, text: str, files: Sequence[Path] | None) -> bytes:
        boundary = secrets.token_hex(16)
        parts = [(b'form-data; name="request"', text.encode())]
        for number, path in enumerate(files or ()):
            parts.append((f'form-data; name="file_{number}"; filename="{number}"'.encode(), path.read_bytes()))
        mark = f"--{boundary}".encode()
        body = b"".join(
            b"%s\r\nContent-Disposition: %s\r\n\r\n%s\r\n" % (mark, head, content) for head, content in parts
        )
        page = "submit_rpc_handler.php" if files is None else "job_file.php"
        request = urllib.request.Request(
            f"{self._config['url'].rstrip('/')}/{page}",
            body + mark + b"--\r\n",
            {"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )
        with urllib.request.urlopen(request, timeout=SECS) as reply:
            return bytes(reply.read())


# --- options -------------------------------------------------------------------------------------------------


def read_options(words: Sequence[str], known: dict[str, int]) -> tuple[dict[str, list[str]], list[File]]:
    """Return options with their values, and the files in order. BOINC's tools take one dash or two."""
    options: dict[str, list[str]] = {}
    files: list[File] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word.lstrip("-")
        if not word.startswith("-"):
            files.append((word,))
            continue
        if name in NOT_SERVED:
            fail(f"--{name}: this project has no such jobs")
        if name not in known and name not in PASSED_OVER:
            fail(f"unknown option {word}")
        count = known.get(name, PASSED_OVER.get(name, 0))
        if len(rest) < count:
            fail(f"{word} needs {count} value(s)")
        values, rest = rest[:count], rest[count:]
        if name == "remote_file":
            files.append(tuple(values))
        else:
            options[name] = values
    return options, files


def one(options: dict[str, list[str]], name: str, default: str = "") -> str:
    return options[name][0] if name in options else default


def element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>" if text else ""


# --- commands ------------------------------------------------------------------------------------------------


def create_work(words: Sequence[str]) -> None:
    """Submit one job or, with --stdin, one for each line."""
    options, files = read_options(words, OPTIONS)
    app = one(options, "appname") or fail("--appname is missing")
    name = one(options, "wu_name") or f"{app}_{os.getpid()}_{int(time.time())}"
    if "stdin" in options:
        lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
        jobs = [line_job(line, f"{name}_{number}", options) for number, line in enumerate(lines)]
    else:
        jobs = [job(app, name, options, files)]
    params = "".join(element(tag, one(options, tag)) for tag in NUMBERS)
    batch = element("batch_name", name)
    if "batch" in options:
        batch = element("batch_id", one(options, "batch")) + "<append/>"
    inside = f"{element('app_name', app)}{batch}"
    inside += "".join(element(tag, one(options, tag)) for tag in ("priority", "app_version_num"))
    Project().ask("submit_batch", f"<batch>{inside}<job_params>{params}</job_params>{''.join(jobs)}</batch>")
    if "wu_name" not in options and "stdin" not in options:
        print(f"workunit name: {name}")


def line_job(line: str, name: str, main: dict[str, list[str]]) -> str:
    """Read a job from --stdin: its options come before those of the command; its command line after the main one."""
    if len(line.encode()) >= MAX_LINE_BYTES:
        fail(f"a line of {len(line.encode())} bytes; the limit is {MAX_LINE_BYTES - 1}")
    try:
        words = shlex.split(line, posix=True)
    except ValueError as error:
        fail(f"{line[:60]}: {error}")
    own, files = read_options(words, LINE_OPTIONS)
    both = " ".join(filter(None, (one(main, "command_line"), one(own, "command_line"))))
    options = {**main, **own, "command_line": [both]}
    return job(one(main, "appname"), one(own, "wu_name", name), options, files)


def job(app: str, name: str, options: dict[str, list[str]], files: Iterable[File]) -> str:
    """Return the XML of a job. Local template files are sent along; otherwise the project's own are meant."""
    inputs = "".join(
        f"<input_file><mode>local_staged</mode>{element('source', file[0])}</input_file>"
        if len(file) == 1
        else "<input_file><mode>remote</mode>" + "".join(map(element, ("url", "nbytes", "md5"), file)) + "</input_file>"
        for file in files
    )
    templates = "".join(
        template(one(options, option), Path("templates", f"{app}_{kind}"), tag) for option, kind, tag in TEMPLATES
    )
    tags = ("command_line", "priority", "credit", "size_class", *TARGETS)
    simple = "".join(element(tag, one(options, tag)) for tag in tags)
    return f"<job>{element('name', name)}{simple}{templates}{inputs}</job>"


def template(path: str, usual: Path, tag: str) -> str:
    if not path and not usual.exists():
        return ""
    try:
        text = Path(path or usual).read_text().strip()
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    return text if text.startswith(f"<{tag}>") else f"<{tag}>\n{text}\n</{tag}>"


def stage_file(words: Sequence[str]) -> None:
    """Upload a file, or those of a folder; without --copy the local files are then deleted."""
    options, files = read_options(words, {"copy": 0, "gzip": 0})
    if len(files) != 1:
        fail("name one file or folder")
    project = Project()
    for path in paths_in(Path(files[0][0])):
        stage(project, path)
        if "copy" not in options:
            path.unlink()


def paths_in(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file())
    return [path] if path.is_file() else fail(f"{path}: no such file")


def stage(project: Project, path: Path) -> None:
    project.ask("upload_files", element("phys_name", path.name), [path])


def cancel_jobs(words: Sequence[str]) -> None:
    """Cancel the job with a name, or the caller's own jobs with numbers in a range."""
    options, rest = read_options(words, {"name": 1})
    if "name" in options:
        inside = element("job_name", one(options, "name"))
    elif len(rest) == 2:
        inside = element("min_job_id", rest[0][0]) + element("max_job_id", rest[1][0])
    else:
        fail("--name NAME, or the least and the greatest number")
    Project().ask("abort_jobs", inside)


def create_batch(words: Sequence[str]) -> None:
    """Create a batch without jobs, and print its number."""
    options, _ = read_options(words, {"appname": 1, "batch_name": 1, "expire_time": 1})
    names = (("app_name", "appname"), ("batch_name", "batch_name"), ("expire_time", "expire_time"))
    inside = "".join(element(tag, one(options, name)) for tag, name in names)
    print(Project().ask("create_batch", inside).findtext("batch_id"))


def submit_batch(words: Sequence[str]) -> None:
    """Submit a job for each file of a folder: USER_ID APP FOLDER, or APP FOLDER; the submitter is the key's owner."""
    _, rest = read_options(words, {})
    if len(rest) not in (2, 3):
        fail("APP FOLDER")
    app, folder = rest[-2][0], Path(rest[-1][0])
    paths = paths_in(folder)
    project = Project()
    for path in paths:
        stage(project, path)
    stem = f"{app}_{os.getpid()}_{int(time.time())}"
    jobs = "".join(job(app, f"{stem}_{number}", {}, [(path.name,)]) for number, path in enumerate(paths))
    inside = f"{element('app_name', app)}{element('batch_name', folder.resolve().name)}"
    print(project.ask("submit_batch", f"<batch>{inside}{jobs}</batch>").findtext("batch_id"))


COMMANDS = {command.__name__: command for command in (create_work, stage_file, cancel_jobs, create_batch, submit_batch)}


def main() -> None:
    """Run the command: the name that the program was called by, or the first word."""
    words = sys.argv[1:]
    name = command_name()
    if name not in COMMANDS and words:
        name = words.pop(0)
    if name not in COMMANDS:
        fail(f"one of {', '.join(COMMANDS)}")
    COMMANDS[name](words)


if __name__ == "__main__":
    main()
