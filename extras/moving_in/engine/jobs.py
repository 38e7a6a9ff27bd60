"""Workunits, results and app versions of a BOINC project: what their XML says, as our columns have it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extras.moving_in.engine import blobs
from extras.moving_in.engine.values import BrokenRow

MAX_NAME_CHARS: Final = 191
MAX_FILES: Final = 100
_NAME: Final = re.compile(r"[!-~]+")
_UNSAFE: Final = re.compile(r"[<>&\"'/\\]|\.\.|^-|^\.$")
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_OUTFILE: Final = re.compile(r"<OUTFILE_(\d+)\s*/>")


def checked_name(name: str, what: str, most: int = MAX_NAME_CHARS) -> str:
    """The name, if it can be one in paths, addresses and XML as it is; BrokenRow if not."""
    if not _NAME.fullmatch(name) or _UNSAFE.search(name):
        raise BrokenRow(f"{what}: a name with characters that paths or XML cannot have")
    if len(name) > most:
        raise BrokenRow(f"{what}: a name of more than {most} characters")
    return name


def folder_of(name: str, fanout: int) -> str:
    """The folder over which BOINC's server spreads a file, with a slash; empty without a fan-out."""
    if fanout <= 0:
        return ""
    return f"{int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[1:8], 16) % fanout:x}/"


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file of an app version; ``signature``: hex lines as clients get them."""

    name: str
    nbytes: int
    signature: str
    is_executable: bool
    open_name: str
    is_main_program: bool
    is_copied: bool


@dataclass(frozen=True, slots=True)
class Program:
    """``flags``: those of `WRAPPER_FLAGS` that are on; ``unknown``: the names of elements that have no place here."""

    api_version: str
    flags: Sequence[str]
    file_prefix: str
    files: Sequence[ProgramFile]
    unknown: Sequence[str]


WRAPPER_FLAGS: Final = ("is_wrapper", "needs_network", "dont_throttle")
_KNOWN_OF_VERSION: Final = frozenset(
    {"app_name", "version_num", "api_version", "file_ref", "platform", "plan_class", *WRAPPER_FLAGS}
)


def program(xml: str) -> Program:
    """Of app_version.xml_doc. BrokenRow if it has no main program, or a file that it does not describe."""
    infos = {info.get("name", ""): info for info in blobs.sections(xml, "file_info")}
    version = next((each.inside for each in blobs.elements(xml) if each.tag == "app_version"), "")
    files = []
    for ref in blobs.sections(version, "file_ref"):
        name = checked_name(ref.get("file_name", ""), "file of an app version")
        if name not in infos:
            raise BrokenRow("app version: a file that its XML does not describe")
        info = infos[name]
        files.append(
            ProgramFile(
                name,
                int(blobs.number(info, "nbytes")),
                info.get("file_signature", "").strip(),
                blobs.is_on(info, "executable"),
                ref.get("open_name", ""),
                blobs.is_on(ref, "main_program"),
                blobs.is_on(ref, "copy_file"),
            )
        )
    if sum(file.is_main_program for file in files) != 1:
        raise BrokenRow("app version: not exactly one main program")
    said = blobs.fields(version)
    api_version = said.get("api_version", "")
    if not re.fullmatch(r"([0-9]{1,3}(\.[0-9]{1,3}){2})?", api_version):
        api_version = ""
    unknown = [name for name in said if name not in _KNOWN_OF_VERSION and blobs.is_on(said, name)]
    file_prefix = said.get("file_prefix", "").strip("/")
    if re.fullmatch(r"[A-Za-z0-9_-]{1,16}", file_prefix):
        unknown = [name for name in unknown if name != "file_prefix"]
    else:
        file_prefix = ""
    flags = [name for name in WRAPPER_FLAGS if blobs.is_on(said, name)]
    return Program(api_version, flags, file_prefix, files, unknown)


@dataclass(frozen=True, slots=True)
class JobInput:
    """``files``: as `Workunit.input_files` has them; those without ``url`` are to be had from the project itself."""

    command_line: str
    files: Sequence[dict[str, Any]]


def job_input(xml: str, download_url: str) -> JobInput:
    """Of workunit.xml_doc; ``download_url``: the project's, empty if it is not known."""
    infos = {info.get("name", ""): (info, _urls(inside)) for info, inside in _infos(xml)}
    workunit = next((each.inside for each in blobs.elements(xml) if each.tag == "workunit"), "")
    files = []
    for ref in blobs.sections(workunit, "file_ref"):
        name = checked_name(ref.get("file_name", ""), "input file", 200)
        if name not in infos:
            raise BrokenRow("workunit: an input file that its XML does not describe")
        info, urls = infos[name]
        md5 = info.get("md5_cksum", "").lower()
        if not _MD5.fullmatch(md5):
            raise BrokenRow("workunit: an input file without MD5")
        file: dict[str, Any] = {"name": name, "open_name": ref.get("open_name", "")}
        file |= {"nbytes": int(blobs.number(info, "nbytes")), "md5": md5}
        if urls and download_url and not any(url.startswith(download_url) for url in urls):
            file["urls"] = urls
        if blobs.is_on(info, "sticky"):
            file["sticky"] = True
        files.append(file)
    if len(files) > MAX_FILES:
        raise BrokenRow(f"workunit: more than {MAX_FILES} input files")
    return JobInput(blobs.fields(workunit).get("command_line", ""), files)


def _infos(xml: str) -> Iterable[tuple[dict[str, str], str]]:
    return ((blobs.fields(each.inside), each.inside) for each in blobs.elements(xml) if each.tag == "file_info")


def _urls(inside: str) -> list[str]:
    return [each.text for each in blobs.elements(inside) if each.tag in ("url", "download_url")]


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a result delivers. ``name``: what that server called it; ``is_signed``: whether it has certified it.

    ``spec``: as `Workunit.output_files` has it.
    """

    number: int
    name: str
    is_signed: bool
    spec: dict[str, Any] = field(default_factory=dict)


def outputs(xml: str, result_name: str) -> list[Output]:
    """Of result.xml_doc_in, by their numbers."""
    pattern = re.compile(rf"{re.escape(result_name)}_(?:r[0-9]{{1,10}}_)?([0-9]{{1,2}})")
    result = next((each.inside for each in blobs.elements(xml) if each.tag == "result"), "")
    refs = {ref.get("file_name", ""): ref for ref in blobs.sections(result, "file_ref")}
    found: dict[int, Output] = {}
    for info in blobs.sections(xml, "file_info"):
        name = info.get("name", "")
        if not blobs.is_on(info, "upload_when_present"):
            continue
        match = pattern.fullmatch(name)
        if match is None or int(match[1]) in found:
            raise BrokenRow("result: the name of an output file is not the result's with a number")
        ref = refs.get(name, {})
        spec: dict[str, Any] = {
            "open_name": ref.get("open_name", ""),
            "max_nbytes": int(blobs.number(info, "max_nbytes")),
            "optional": blobs.is_on(ref, "optional"),
        }
        spec |= {tag: True for tag in ("gzip_when_done", "sticky") if blobs.is_on(info, tag)}
        spec |= {"no_validate": True} if blobs.is_on(ref, "no_validate") else {}
        found[int(match[1])] = Output(int(match[1]), name, bool(info.get("xml_signature")), spec)
    return [found[number] for number in sorted(found)]


def output_files(found: Iterable[Output]) -> list[dict[str, Any]]:
    """As `Workunit.output_files` has them: the n-th is uploaded as number n. A number that is missing becomes a file
    that nobody has to deliver.
    """
    specs = {output.number: output.spec for output in found}
    unused = {"open_name": "", "max_nbytes": 0, "optional": True, "no_validate": True}
    return [specs.get(number, unused) for number in range(max(specs, default=-1) + 1)]


def of_template(text: str) -> list[Output]:
    """Of an output template, for a workunit that has no result yet."""
    whole = text.replace("<output_template>", "").replace("</output_template>", "")
    return outputs(_OUTFILE.sub(r"template_\1", whole).replace("<UPLOAD_URL/>", ""), "template")
