"""``<input_template>`` and ``<output_template>`` as BOINC's projects write them, as the fields of a job. Pure.

A refusal names the element and its line. Elements without an effect here, or on computers in general, are ignored:
``copy_file`` (files are always copied), ``number``, ``file_number``, ``gzip`` of staged inputs (they are sent plain),
``no_delete`` and the like. Elements whose effect this project cannot provide are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from extras.remote_jobs.wire.xml_tree import Element, XmlError, parse
from scheduler.wire.job_fields import MAX_FLOPS_COUNT

MAX_TEMPLATE_NBYTES: Final = 65_535
"""BOINC's limit."""
MAX_FILES: Final = 100
# Defaults: those of BOINC's own tools.
DEFAULTS: Final[Mapping[str, float]] = {
    "fpops_est": 3.6e12,
    "fpops_bound": 8.64e13,
    "memory_bound_bytes": 500_000_000,
    "disk_bound_bytes": 1_000_000_000,
    "delay_bound_secs": 7 * 86_400,
    "min_quorum": 1,
    "target_nresults": 1,
    "max_error_results": 1,
    "max_total_results": 1,
    "max_success_results": 1,
}
FIELDS: Final[Mapping[str, str]] = {
    "rsc_fpops_est": "fpops_est",
    "rsc_fpops_bound": "fpops_bound",
    "rsc_memory_bound": "memory_bound_bytes",
    "rsc_disk_bound": "disk_bound_bytes",
    "delay_bound": "delay_bound_secs",
    **{name: name for name in DEFAULTS if name.startswith(("min_", "max_", "target_"))},
}
"""Elements of a workunit, and the corresponding fields of a job."""
_BYTES: Final = ("memory_bound_bytes", "disk_bound_bytes", "delay_bound_secs")
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^<>]*\?>")
_NOT_HERE: Final = {
    "buda_app_name": "this project does not support BUDA apps",
    "executable": "input files cannot be programs: release them with the app's version",
}


@dataclass(frozen=True, slots=True)
class TemplateInput:
    """An input of an input template.

    ``physical_name``: of a constant file that was staged before; empty: the next file of the job. ``urls``: the folders
    of a file on other servers, with its size and MD5 and, if it is compressed there, that size.
    """

    open_name: str
    physical_name: str = ""
    urls: tuple[str, ...] = ()
    nbytes: int = 0
    md5: str = ""
    is_sticky: bool = False
    gzipped_nbytes: int = 0


@dataclass(frozen=True, slots=True)
class InputTemplate:
    """``fields``: those of a job that the template sets; they override others."""

    files: tuple[TemplateInput, ...]
    fields: Mapping[str, Any]
    command_line: str | None

    @property
    def njob_files(self) -> int:
        """How many files each job brings."""
        return sum(not file.physical_name for file in self.files)


def read_input(text: str) -> InputTemplate:
    """Parse the template in a file. Raises XmlError."""
    return input_of(_root(text, "input_template"))


def read_output(text: str) -> list[dict[str, Any]]:
    """Parse the output files of a job from the template in a file. Raises XmlError."""
    return output_of(_root(text, "output_template"))


def _root(text: str, tag: str) -> Element:
    """Return the root. The outer element is optional: a file may have only the inner elements."""
    if len(text.encode()) > MAX_TEMPLATE_NBYTES:
        raise XmlError(f"{len(text.encode())} bytes; a template has at most {MAX_TEMPLATE_NBYTES}")
    root = parse(f"<template>{without_declaration(text)}</template>")
    return root.first(tag) or root


def without_declaration(text: str) -> str:
    return _DECLARATION.sub("", text)


def input_of(root: Element) -> InputTemplate:
    """Parse the template in this element. Raises XmlError."""
    workunit = root.first("workunit")
    if workunit is None:
        raise root.wrong("an input template has a <workunit>")
    for element in (workunit, *root.all("file_info")):
        _refuse_what_is_not_here(element)
    infos, refs = list(root.all("file_info")), list(workunit.all("file_ref"))
    _same_number(workunit, infos, refs)
    files = tuple(_input(info, ref) for info, ref in zip(infos, refs, strict=True))
    line = workunit.first("command_line")
    return InputTemplate(files, fields_of(workunit), line.text if line is not None else None)


def fields_of(element: Element) -> dict[str, Any]:
    """Return the fields of a job that the children of an element set; missing ones and 0 set nothing."""
    fields: dict[str, Any] = {}
    for tag, name in FIELDS.items():
        number = element.number(tag)
        if number < 0:
            raise _child(element, tag).wrong("below 0")
        if number:
            fields[name] = number if name.startswith("fpops") else int(number)
            if name not in _BYTES and fields[name] != number:
                raise _child(element, tag).wrong("not a whole number")
    # BOINC writes -1 for none.
    if element.first("size_class") is not None and (size_class := element.integer("size_class")) >= 0:
        fields["size_class"] = size_class
    return fields


def complete(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with BOINC's defaults, and its way to make numbers of results consistent."""
    whole: dict[str, Any] = {**DEFAULTS, **fields}
    if "fpops_bound" not in fields and whole["fpops_est"] > whole["fpops_bound"]:
        whole["fpops_bound"] = min(100 * whole["fpops_est"], MAX_FLOPS_COUNT / 10)
    whole["target_nresults"] = max(whole["target_nresults"], whole["min_quorum"])
    for name in ("max_total_results", "max_success_results"):
        whole[name] = max(whole[name], whole["target_nresults"])
    return whole


def _input(info: Element, ref: Element) -> TemplateInput:
    physical_name = info.text_of("physical_name")
    open_name = ref.text_of("open_name") or (physical_name if ref.flag("copy_file") else "")
    if not open_name:
        raise ref.wrong("needs an <open_name>")
    urls = () if physical_name else tuple(url.text for url in info.all("url"))
    nbytes, md5 = info.integer("nbytes"), info.text_of("md5_cksum").lower()
    if not physical_name and len({bool(urls), bool(nbytes), bool(md5)}) > 1:
        raise info.wrong("a file at another server has <url>, <md5_cksum> and <nbytes>")
    gzipped_nbytes = info.integer("gzipped_nbytes") if info.flag("gzip") and urls else 0
    if info.flag("gzip") and urls and not gzipped_nbytes:
        raise info.wrong("a file at another server with <gzip> has <gzipped_nbytes>")
    return TemplateInput(open_name, physical_name, urls, nbytes, md5, info.flag("sticky"), gzipped_nbytes)


def output_of(root: Element) -> list[dict[str, Any]]:
    """Parse the output files of a job from the template in this element, in the order of its <file_info>."""
    result = root.first("result")
    if result is None:
        raise root.wrong("an output template has a <result>")
    infos, refs = list(root.all("file_info")), list(result.all("file_ref"))
    _same_number(result, infos, refs)
    by_macro = {_macro(ref, "file_name"): ref for ref in refs}
    return [_output(info, by_macro) for info in infos]


def _output(info: Element, refs: Mapping[str, Element]) -> dict[str, Any]:
    _refuse_what_is_not_here(info)
    macro = _macro(info, "name")
    if macro not in refs:
        raise info.wrong(f"no <file_ref> has <{macro}/>")
    ref = refs[macro]
    if not ref.text_of("open_name"):
        raise ref.wrong("needs an <open_name>")
    max_nbytes = info.number("max_nbytes")
    if max_nbytes < 1:
        raise info.wrong("needs <max_nbytes>, of 1 at least")
    file: dict[str, Any] = {"open_name": ref.text_of("open_name"), "max_nbytes": int(max_nbytes)}
    flags = {"optional": ref, "no_validate": ref, "gzip_when_done": info, "sticky": info}
    return file | {flag: True for flag, element in flags.items() if element.flag(flag)}


def _macro(element: Element, tag: str) -> str:
    """Return the macro that BOINC replaces by the name of the file, as in ``<name><OUTFILE_0/></name>``."""
    child = element.first(tag)
    if child is None or len(child.children) != 1 or not child.children[0].tag.startswith("OUTFILE_"):
        raise (child or element).wrong(f"<{tag}> has a macro such as <OUTFILE_0/>")
    return child.children[0].tag


def _same_number(element: Element, infos: Sequence[Element], refs: Sequence[Element]) -> None:
    if len(infos) != len(refs):
        raise element.wrong(f"{len(refs)} <file_ref> for {len(infos)} <file_info>")
    if len(infos) > MAX_FILES:
        raise element.wrong(f"{len(infos)} files; the limit is {MAX_FILES}")


def _refuse_what_is_not_here(element: Element) -> None:
    for child in element.children:
        if child.tag in _NOT_HERE and child.text != "0":
            raise child.wrong(_NOT_HERE[child.tag])


def _child(element: Element, tag: str) -> Element:
    child = element.first(tag)
    assert child is not None  # it has just been parsed
    return child
