"""Validates a submission of jobs: from JSON to typed values. Pure.

A job uses the batch's defaults for fields that it does not set. Limits are those of the table of workunits, so that a
mistake is reported with its position (``jobs[17].fpops_bound``) before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from credit.engine.rules import MAX_CREDIT
from portal.languages.messages import Message
from scheduler.engine.choice.variants import ANY, CPU_KINDS
from scheduler.engine.lanes import Lane, LaneKind, Requirement
from scheduler.engine.limits import (
    MAX_FILE_NBYTES,
    MAX_FILES_PER_JOB,
    MAX_JOB_NAME_CHARS,
    MAX_JOBS_PER_SUBMISSION,
    is_job_name,
    is_name,
    is_open_name,
    job_name_rule,
    name_rule,
)
from scheduler.engine.submission.inputs import (
    MAX_URL_CHARS,
    MAX_URLS,
    fault_of_names,
    host_of,
    is_file_url,
    is_host_allowed,
)

MAX_FLOPS_COUNT: Final = 1e25
MAX_TARGET_ID: Final = 2**59
MAX_RESULTS: Final = 100
LEAST_PRIORITY: Final = -30_000
MOST_PRIORITY: Final = 30_000
MAX_CONTENT_CHARS: Final = 1_000_000
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_REMOTE_FIELDS: Final = ("url", "nbytes", "md5", "gzipped_url", "gzipped_nbytes")
OUTPUT_FLAGS: Final = ("no_validate", "gzip_when_done", "sticky")
"""Flags of an output: it is not compared, it is sent packed, computers keep it."""
MAX_PLAN_CLASS_CHARS: Final = 64
MAX_NAME_END_CHARS: Final = 40
"""The length of a name that is prefixed with the app and the batch's number."""

# Whole numbers: their minimum and maximum.
_COUNTS: Final[dict[str, tuple[int, int]]] = {
    "memory_bound_bytes": (0, 2**50),
    "disk_bound_bytes": (0, 2**50),
    "delay_bound_secs": (1, 10 * 366 * 86_400),
    "min_quorum": (1, MAX_RESULTS),
    "target_nresults": (1, MAX_RESULTS),
    "max_error_results": (1, MAX_RESULTS),
    "max_total_results": (1, MAX_RESULTS),
    "max_success_results": (1, MAX_RESULTS),
    "priority": (LEAST_PRIORITY, MOST_PRIORITY),
    "size_class": (0, 32_767),
    "app_version_num": (0, 100_000_000),
    "target_host": (0, MAX_TARGET_ID),
    "target_user": (0, MAX_TARGET_ID),
    "target_team": (0, MAX_TARGET_ID),
}
TARGETS: Final = {
    "target_host": LaneKind.COMPUTER,
    "target_user": LaneKind.PERSON,
    "target_team": LaneKind.TEAM,
}
_FLOPS: Final = ("fpops_est", "fpops_bound")
FIELDS: Final = (
    *(*_FLOPS, *_COUNTS, "broadcast", "credit", "command_line", "input_files", "program_files", "output_files", "name"),
)


class JobError(ValueError):
    """A submission that is refused; ``field`` names the position."""

    def __init__(self, field: str, message: Message) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class KeptContent(Protocol):
    """The content of a file that is read only when it is stored: it may be long, and not be text. Hashable."""

    @property
    def nbytes(self) -> int: ...

    def read(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class RemoteContent:
    """A file that computers fetch from other servers, from the first address that works, and verify.

    ``gzipped_urls``: addresses of a gzipped copy, which they prefer, with its size; ``nbytes``, ``md5``: unpacked.
    """

    urls: tuple[str, ...]
    nbytes: int
    md5: str
    gzipped_urls: tuple[str, ...] = ()
    gzipped_nbytes: int = 0


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input: a file that is already stored (``name``), its ``content``, or one on another server.

    ``open_name``: the program's name for it; ``is_sticky``: computers keep it after the job; ``is_gzipped``: they fetch
    the stored file `gzipped_name` instead, and unpack it.
    """

    open_name: str
    name: str = ""
    content: str | KeptContent | None = None
    remote: RemoteContent | None = None
    is_sticky: bool = False
    is_executable: bool = False
    # The variant that it belongs to (`engine.choice.variants`)
    plan_class: str = ""
    cpu: str = ""
    is_gzipped: bool = False

    @property
    def gzipped_name(self) -> str:
        return f"{self.name}.gz"

    @property
    def nbytes(self) -> int:
        """Return the size of the content, here or on another server; 0 for a file that is already stored."""
        if self.remote is not None:
            return self.remote.nbytes
        if self.content is None:
            return 0
        return len(self.content.encode()) if isinstance(self.content, str) else self.content.nbytes


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A workunit to create. ``fields``: columns of the table by name.

    ``name``: the whole name if ``is_whole_name``, else its end. ``is_broadcast``: one is created for each computer of
    the target, or for all computers.
    """

    name: str
    fields: Mapping[str, Any]
    inputs: tuple[InputFile, ...]
    is_whole_name: bool = False
    is_broadcast: bool = False

    @property
    def target(self) -> Lane:
        """Return the only target: a computer, person or team; of the kind SHARED if there is none."""
        return Lane.of(self.fields["lane"])


def read_jobs(
    defaults: object,
    jobs: object,
    base: Mapping[str, Any],
    most_faults: int = 1,
    *,
    exact_names: bool = False,
    remote_hosts: Sequence[str] = (),
) -> tuple[list[SubmittedJob], list[JobError]]:
    """Return the jobs of a submission, and the faults of others: reading stops after this many faults.

    ``base``: counts (except ``target_nresults``) and ``command_line`` if neither the job nor the defaults set them.
    ``exact_names``: jobs' names are used without a prefix. ``remote_hosts``: servers from which computers may fetch
    inputs.
    """
    if not isinstance(jobs, list) or not 1 <= len(jobs) <= MAX_JOBS_PER_SUBMISSION:
        return [], [JobError("jobs", Message("no_list_of_jobs", number=MAX_JOBS_PER_SUBMISSION))]
    try:
        common = _checked(defaults, "defaults")
    except JobError as error:
        return [], [error]
    made: dict[str, SubmittedJob] = {}
    faults: list[JobError] = []
    for n, job in enumerate(jobs):
        if len(faults) >= most_faults:
            break
        try:
            given = _checked(job, f"jobs[{n}]", exact_names=exact_names)
            is_whole_name = exact_names and "name" in given
            one = _job(base, {"name": str(n), **common, **given}, f"jobs[{n}]", is_whole_name=is_whole_name)
            _check_files(one, remote_hosts, f"jobs[{n}]")
            if one.name in made:
                raise JobError(f"jobs[{n}].name", Message("job_name_twice", name=one.name))
            made[one.name] = one
        except JobError as error:
            faults.append(error)
    return list(made.values()), faults


def _job(base: Mapping[str, Any], given: dict[str, Any], where: str, *, is_whole_name: bool) -> SubmittedJob:
    target, is_broadcast = _target(given, where)
    fields = {**base, **given}
    if is_broadcast or target.kind in (LaneKind.COMPUTER, LaneKind.PERSON):
        # There is nobody else to confirm it, unless the app allows a volunteer more than one result.
        fields["min_quorum"] = given.get("min_quorum", 1)
    if is_broadcast or target.kind == LaneKind.COMPUTER:
        for name in ("min_quorum", "target_nresults"):
            if fields.get(name, 1) > 1:
                raise JobError(f"{where}.{name}", Message("one_computer"))
    fields.setdefault("app_version_num", 0)
    size_class = fields.get("size_class")
    if size_class is not None and (other := _chooses_computers(target, is_broadcast, fields)):
        raise JobError(f"{where}.size_class", Message("not_with", name=other))
    requirement = Requirement(fields["app_version_num"])
    fields["lane"] = target.number or Lane(requirement=requirement, size_class=size_class).number
    for name in ("fpops_est", "output_files"):
        if name not in fields:
            raise JobError(f"{where}.{name}", Message("field_missing"))
    # By default BOINC's own tools allow a job a hundred times its estimate.
    fields.setdefault("fpops_bound", max(fields["fpops_est"], min(fields["fpops_est"] * 100, MAX_FLOPS_COUNT / 10)))
    fields.setdefault("target_nresults", fields["min_quorum"])
    for low, high in (
        ("fpops_est", "fpops_bound"),
        ("min_quorum", "target_nresults"),
        ("target_nresults", "max_total_results"),
        ("min_quorum", "max_success_results"),
    ):
        if fields[low] > fields[high]:
            raise JobError(f"{where}.{high}", Message("less_than", value=fields[high], name=low, least=fields[low]))
    inputs = (*fields.pop("input_files", ()), *fields.pop("program_files", ()))
    return SubmittedJob(fields.pop("name"), fields, inputs, is_whole_name, is_broadcast)


def _chooses_computers(target: Lane, is_broadcast: bool, fields: Mapping[str, Any]) -> str:
    """Return the field that already decides which computers a job is for; empty if none does."""
    for name, kind in TARGETS.items():
        if target.kind == kind:
            return name
    if is_broadcast:
        return "broadcast"
    return "app_version_num" if fields["app_version_num"] else ""


def _target(given: dict[str, Any], where: str) -> tuple[Lane, bool]:
    """Remove the target from the fields; return it, and whether the job is for each of its computers."""
    targets = [(name, id_) for name in TARGETS if (id_ := given.pop(name, 0))]
    is_broadcast = given.pop("broadcast", False)
    if len(targets) > 1:
        raise JobError(f"{where}.{targets[1][0]}", Message("target_given", name=targets[0][0]))
    if not targets:
        return Lane(), is_broadcast
    [(name, id_)] = targets
    return Lane(TARGETS[name], id_), is_broadcast


def _check_files(job: SubmittedJob, remote_hosts: Sequence[str], where: str) -> None:
    """Check a job's files against each other, and against what this site allows."""
    inputs = tuple((file.open_name, (file.plan_class, file.cpu)) for file in job.inputs)
    outputs = tuple(file["open_name"] for file in job.fields["output_files"])
    if (fault := _fault_of_names(inputs, outputs)) is not None:
        field, place, message = fault
        raise JobError(f"{where}.{field}[{place}].open_name", message)
    for number, file in enumerate(job.inputs):
        urls = (*file.remote.urls, *file.remote.gzipped_urls) if file.remote is not None else ()
        for host in map(host_of, urls):
            if not is_host_allowed(host, remote_hosts):
                raise JobError(f"{where}.input_files[{number}].url", Message("host_not_allowed", host=host))


@lru_cache(maxsize=64)
def _fault_of_names(
    inputs: tuple[tuple[str, tuple[str, str]], ...], outputs: tuple[str, ...]
) -> tuple[str, int, Message] | None:
    """Cached `fault_of_names` for inputs with variants: it is slow for many of them, and jobs of a batch share them."""
    # A computer gets the files of one variant, and those of none.
    for variant in {variant for _, variant in inputs} or {("", "")}:
        places = [place for place, (_, of) in enumerate(inputs) if of in (("", ""), variant)]
        if (fault := fault_of_names((inputs[place][0] for place in places), outputs)) is not None:
            field, number, message = fault
            return field, places[number] if field == "input_files" else number, message
    return None


def _checked(given: object, where: str, *, exact_names: bool = False) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise JobError(where, Message("no_table_of_fields"))
    return {
        name: _whole_name(value, f"{where}.name")
        if exact_names and name == "name"
        else _value(name, value, f"{where}.{name}")
        for name, value in given.items()
    }


def _whole_name(value: object, where: str) -> str:
    if not isinstance(value, str) or not is_job_name(value, MAX_JOB_NAME_CHARS):
        raise JobError(where, Message("no_name", rule=job_name_rule(MAX_JOB_NAME_CHARS)))
    return value


def _value(name: str, value: object, where: str) -> Any:
    if name in _COUNTS:
        return None if name == "size_class" and value is None else _count(value, *_COUNTS[name], where)
    if name in _FLOPS:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < MAX_FLOPS_COUNT:
            raise JobError(where, Message("no_number_of_flops", most=MAX_FLOPS_COUNT))
        return float(value)
    if name == "broadcast":
        if value not in (0, 1):
            raise JobError(where, Message("no_boolean"))
        return bool(value)
    if name == "credit":
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_CREDIT:
            raise JobError(where, Message("no_credit", most=MAX_CREDIT))
        return float(value)
    if name == "command_line":
        if not isinstance(value, str) or len(value) > 2000 or not value.isprintable():
            raise JobError(where, Message("no_command_line"))
        return value
    if name == "name":
        if not isinstance(value, str) or not is_name(value, MAX_NAME_END_CHARS):
            raise JobError(where, Message("no_name", rule=name_rule(MAX_NAME_END_CHARS)))
        return value
    if name in ("input_files", "program_files"):
        return tuple(_input(file, f"{where}[{n}]") for n, file in enumerate(_files(value, where)))
    if name == "output_files":
        return [_output(file, f"{where}[{n}]") for n, file in enumerate(_files(value, where))]
    raise JobError(ascii(where[:200])[1:-1], Message("unknown_field", names=FIELDS))


def _count(value: object, low: int, high: int, where: str) -> int:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise JobError(where, Message("no_whole_number", low=low, high=high))
    return value


def _files(value: object, where: str) -> list[object]:
    if not isinstance(value, list) or len(value) > MAX_FILES_PER_JOB:
        raise JobError(where, Message("no_list_of_files", number=MAX_FILES_PER_JOB))
    return value


def _table(value: object, names: set[str], where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not set(value) <= names:
        raise JobError(where, Message("no_table_of", names=sorted(names)))
    return value


def _name(table: Mapping[str, Any], field: str, where: str) -> str:
    name = table.get(field)
    fits = is_open_name if field == "open_name" else is_job_name
    if not isinstance(name, str) or not fits(name):
        raise JobError(f"{where}.{field}", Message("no_name", rule=job_name_rule()))
    return name


def _input(value: object, where: str) -> InputFile:
    variant = ("executable", "plan_class", "cpu")
    table = _table(value, {"open_name", "name", "content", "gzip", "sticky", *variant, *_REMOTE_FIELDS}, where)
    if sum(source in table for source in ("name", "content", "url")) != 1:
        raise JobError(where, Message("name_or_content"))
    open_name = _name(table, "open_name", where)
    uses: dict[str, Any] = {
        "is_sticky": _flag(table, "sticky", where),
        "is_executable": _flag(table, "executable", where),
        "plan_class": _plan_class(table, where),
        "cpu": _cpu(table, where),
    }
    if "url" not in table and (field := next(filter(table.__contains__, _REMOTE_FIELDS), None)) is not None:
        raise JobError(f"{where}.{field}", Message("only_with_url"))
    is_gzipped = _flag(table, "gzip", where)
    if is_gzipped and "name" not in table:
        raise JobError(f"{where}.gzip", Message("only_with_name"))
    if "name" in table:
        return InputFile(open_name, _name(table, "name", where), is_gzipped=is_gzipped, **uses)
    if "url" in table:
        remote = _remote(table, where)
        return InputFile(open_name, _remote_name(remote, uses["is_executable"]), remote=remote, **uses)
    return InputFile(open_name, content=_content(table["content"], f"{where}.content"), **uses)


def _plan_class(table: Mapping[str, Any], where: str) -> str:
    name = table.get("plan_class", "")
    if not isinstance(name, str) or (name and not is_name(name, MAX_PLAN_CLASS_CHARS)):
        raise JobError(f"{where}.plan_class", Message("no_name", rule=name_rule(MAX_PLAN_CLASS_CHARS)))
    return name


def _cpu(table: Mapping[str, Any], where: str) -> str:
    kind: str = table.get("cpu", "")
    if kind not in ("", ANY, *CPU_KINDS):
        raise JobError(f"{where}.cpu", Message("no_cpu_kind", names=", ".join((*CPU_KINDS, ANY))))
    return kind


def _remote(table: Mapping[str, Any], where: str) -> RemoteContent:
    urls, md5 = _urls(table["url"], f"{where}.url"), table.get("md5")
    if not isinstance(md5, str) or _MD5.fullmatch(md5) is None:
        raise JobError(f"{where}.md5", Message("no_md5"))
    nbytes = _count(table.get("nbytes"), 0, MAX_FILE_NBYTES, f"{where}.nbytes")
    if "gzipped_url" not in table and "gzipped_nbytes" not in table:
        return RemoteContent(urls, nbytes, md5)
    gzipped_nbytes = _count(table.get("gzipped_nbytes"), 1, MAX_FILE_NBYTES, f"{where}.gzipped_nbytes")
    return RemoteContent(urls, nbytes, md5, _urls(table.get("gzipped_url"), f"{where}.gzipped_url"), gzipped_nbytes)


def _remote_name(remote: RemoteContent, is_executable: bool) -> str:
    """Return the file's name on computers.

    Equal only if everything about it is equal: so no job changes another's file.
    """
    properties = [remote.md5, remote.nbytes, remote.urls, remote.gzipped_nbytes, remote.gzipped_urls, is_executable]
    return f"remote_{hashlib.sha256(json.dumps(properties).encode()).hexdigest()[:32]}"


def _urls(value: object, where: str) -> tuple[str, ...]:
    """Return one or several addresses of the same file."""
    urls = value if isinstance(value, list) else [value]
    if not 1 <= len(urls) <= MAX_URLS or not all(isinstance(url, str) and is_file_url(url) for url in urls):
        raise JobError(where, Message("no_file_url", number=MAX_URL_CHARS, most=MAX_URLS))
    return tuple(urls)


def _content(content: Any, where: str) -> str | KeptContent:
    if callable(getattr(content, "read", None)):  # from an archive; not possible in JSON
        kept: KeptContent = content
        return kept
    if not isinstance(content, str) or len(content) > MAX_CONTENT_CHARS:
        raise JobError(where, Message("no_text", number=MAX_CONTENT_CHARS))
    if not _is_text(content):
        raise JobError(where, Message("half_a_character"))
    return content


def _flag(table: Mapping[str, Any], name: str, where: str) -> bool:
    flag = table.get(name, False)
    if not isinstance(flag, bool):
        raise JobError(f"{where}.{name}", Message("no_boolean"))
    return flag


def _is_text(content: str) -> bool:
    """Whether the text can be stored. JSON may contain a lone surrogate, which no file can."""
    try:
        content.encode()
    except UnicodeEncodeError:
        return False
    return True


def _output(value: object, where: str) -> dict[str, Any]:
    table = _table(value, {"open_name", "max_nbytes", "optional", *OUTPUT_FLAGS}, where)
    return {
        "open_name": _name(table, "open_name", where),
        "max_nbytes": _count(table.get("max_nbytes"), 1, MAX_FILE_NBYTES, f"{where}.max_nbytes"),
        "optional": _flag(table, "optional", where),
        **{flag: True for flag in OUTPUT_FLAGS if _flag(table, flag, where)},
    }
