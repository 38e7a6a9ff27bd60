"""The jobs of a ``submit_batch``: from its XML and the templates to the fields that a submission takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from extras.remote_jobs.wire import job_templates
from extras.remote_jobs.wire.job_templates import InputTemplate, TemplateInput
from extras.remote_jobs.wire.xml_tree import Element, XmlError
from scheduler.engine.limits import MAX_JOBS_PER_SUBMISSION

MAX_FILES_PER_SUBMISSION: Final = 500_000
"""Inputs and outputs of all jobs of a submission: a template may give each job a hundred of both."""
LEAST_PRIORITY: Final = -30_000
MOST_PRIORITY: Final = 30_000
_NOT_SERVED: Final = {
    "local": "this server does not read its own paths: stage the file",
    "semilocal": "this server does not fetch addresses for a submission: stage the file, or use the mode remote",
    "sandbox": "this project has no file folders for users: stage the file",
}
_TARGETS: Final = ("target_team", "target_user", "target_host")
"""In BOINC's order: the first one given counts."""


class RequestError(Exception):
    """A submission that cannot be accepted, in BOINC's words where it has some."""


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """``jobs``: fields of each job, as a submission takes them, without a name where none is given.

    ``staged``: names of the files that they need.
    """

    jobs: list[dict[str, Any]]
    staged: frozenset[str]


def read_jobs(batch: Element, template_text: Callable[[str, str], str | None]) -> BatchJobs:
    """Parse the jobs in ``<batch>``. ``template_text``: returns the text of a template by its kind and name ("": the
    app's own), if there is one. Raises RequestError.
    """
    elements = list(batch.all("job"))
    if len(elements) > MAX_JOBS_PER_SUBMISSION:
        raise RequestError(f"{len(elements)} jobs; the limit is {MAX_JOBS_PER_SUBMISSION}")
    reader = _Reader(batch, template_text)
    jobs = [reader.job(number, element) for number, element in enumerate(elements)]
    return BatchJobs(jobs, frozenset(reader.staged))


class _Reader:
    def __init__(self, batch: Element, template_text: Callable[[str, str], str | None]) -> None:
        self.staged: set[str] = set()
        self._batch = batch
        self._nfiles = 0
        self._text = template_text
        self._params = job_templates.fields_of(batch.first("job_params") or Element("job_params", batch.line))
        self._names = batch.text_of("input_template_filename"), batch.text_of("output_template_filename")
        self._priority = batch.integer("priority")
        self._common: dict[str, Any] = {}

    def job(self, number: int, element: Element) -> dict[str, Any]:
        template = self._input_template(element)
        command_line = element.text_of("command_line")
        if template.command_line and command_line:
            raise RequestError(f"job {number}: Can't specify command line both in the input template and in the job")
        outputs = self._output_template(element)
        self._nfiles += len(template.files) + len(outputs)
        if self._nfiles > MAX_FILES_PER_SUBMISSION:
            raise RequestError(
                f"job {number}: the jobs up to here have {self._nfiles} files; the limit is {MAX_FILES_PER_SUBMISSION}"
            )
        fields = job_templates.complete({**self._params, **template.fields, **self._own(element)})
        job = {
            **fields,
            "priority": min(max(element.integer("priority") or self._priority, LEAST_PRIORITY), MOST_PRIORITY),
            "command_line": command_line or template.command_line or "",
            "input_files": list(self._inputs(number, element, template)),
            "output_files": outputs,
        }
        if version_num := self._batch.integer("app_version_num"):
            job["app_version_num"] = version_num
        target = next((name for name in _TARGETS if element.integer(name)), None)
        if target is not None:
            job[target] = element.integer(target)
        if element.first("credit") is not None:
            job["credit"] = element.number("credit")
        name = element.text_of("name")
        return {"name": name, **job} if name else job

    def _own(self, element: Element) -> dict[str, Any]:
        fpops = element.number("rsc_fpops_est")
        own: dict[str, Any] = {"fpops_est": fpops} if fpops > 0 else {}
        return own | ({"size_class": element.integer("size_class")} if element.text_of("size_class") else {})

    def _input_template(self, element: Element) -> InputTemplate:
        own = element.first("input_template")
        if own is not None:
            return job_templates.input_of(own)
        template: InputTemplate = self._shared("in", self._names[0], job_templates.read_input)
        return template

    def _output_template(self, element: Element) -> list[dict[str, Any]]:
        own = element.first("output_template")
        if own is not None:
            return job_templates.output_of(own)
        files: list[dict[str, Any]] = self._shared("out", self._names[1], job_templates.read_output)
        return files

    def _shared(self, kind: str, name: str, read: Callable[[str], Any]) -> Any:
        if kind not in self._common:
            text = self._text(kind, name)
            if text is None:
                raise RequestError(f"template file missing: {name or f'that of the app, APP_{kind}'}")
            try:
                self._common[kind] = read(text)
            except XmlError as error:
                raise RequestError(f"{name or f'APP_{kind}'}: {error}") from error
        return self._common[kind]

    def _inputs(self, number: int, element: Element, template: InputTemplate) -> Iterator[dict[str, Any]]:
        given = list(element.all("input_file"))
        if len(given) != template.njob_files:
            raise RequestError(f"wrong # of input files for job {number}: need {template.njob_files}, got {len(given)}")
        files = iter(given)
        for template_input in template.files:
            file = _constant(template_input) if template_input.physical_name else _given(next(files), template_input)
            if "name" in file:
                self.staged.add(file["name"])
            yield {
                "open_name": template_input.open_name,
                **file,
                **({"sticky": True} if template_input.is_sticky else {}),
            }


def _constant(template_input: TemplateInput) -> dict[str, Any]:
    return {"name": template_input.physical_name}


def _given(file: Element, template_input: TemplateInput) -> dict[str, Any]:
    mode, source = file.text_of("mode"), file.first("source")
    if mode == "remote":
        url, md5 = file.text_of("url"), file.text_of("md5").lower()
        return {"url": url, "nbytes": file.number("nbytes"), "md5": md5}
    if mode == "inline":
        return {"content": source.verbatim if source is not None else ""}
    if mode != "local_staged":
        raise RequestError(": ".join(filter(None, (f"unsupported file mode: {mode[:40]}", _NOT_SERVED.get(mode)))))
    name = source.text if source is not None else ""
    if template_input.urls:
        return {
            "url": [f"{url}{name}" for url in template_input.urls],
            "nbytes": template_input.nbytes,
            "md5": template_input.md5,
        } | (
            {
                "gzipped_url": [f"{url}{name}.gz" for url in template_input.urls],
                "gzipped_nbytes": template_input.gzipped_nbytes,
            }
            if template_input.gzipped_nbytes
            else {}
        )
    return {"name": name}


def fpops_in(batch: Element, of_template: Callable[[], Mapping[str, Any] | None]) -> float:
    """Return the FLOPs of the jobs of an ``estimate_batch``: each job's own, or those of the app's template."""
    total = 0.0
    for job in batch.all("job"):
        fpops = job.number("rsc_fpops_est")
        if fpops <= 0:
            fpops = (of_template() or {}).get("fpops_est", 0)
        if fpops <= 0:
            raise RequestError("no rsc_fpops_est given for job")
        total += fpops
    return total
