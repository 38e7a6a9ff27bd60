"""Projects' exports of their versions, and the published averages, as bytes. Pure.

Exports are the replies of `app_versions.php`: BOINC's own, or this site's (docs/reference/web-rpcs.md), which contain
more. A version with an impossible number is left out. Raises ProtocolError for other documents, for truncated ones, and
beyond the hard limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from credit.engine.cross_project import MAX_FACTORS, MAX_SCALE, MIN_SCALE, ExportedVersion, Factor
from credit.engine.facts import ProcessorType
from portal.languages.messages import Message
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_bool, as_float, as_int, as_text, flag

MAX_BODY_BYTES: Final = 4 << 20
MAX_VERSIONS: Final = 2_000
"""The most versions of one project."""
MAX_RECENT_CREDIT: Final = 1e12
"""Credits a day of a version: more than all projects grant together."""
MAX_NAME: Final = 64
CLOCK_SLACK_SECS: Final = 86_400.0
LEFT_OUT_SHOWN: Final = 3

_LIMITS: Final = Limits(body_bytes=MAX_BODY_BYTES, elements=60_000, text_bytes=1 << 12)
_DEFAULT_THRESHOLD: Final = 100
_MAX_SAMPLES: Final = 1e12
_MAX_COUNT: Final = 1_000_000
# As BOINC's server distinguishes them, whose factors depend on it
_TYPES_BY_NAME: Final = (
    ("cuda", ProcessorType.NVIDIA),
    ("nvidia", ProcessorType.NVIDIA),
    ("ati", ProcessorType.ATI),
    ("amd", ProcessorType.ATI),
    ("intel_gpu", ProcessorType.INTEL),
    ("apple_gpu", ProcessorType.APPLE),
)


@dataclass(frozen=True, slots=True)
class Export:
    """``refused``: which versions were left out, and why, in words; empty: none."""

    versions: list[ExportedVersion]
    refused: str = ""


def parse_export(data: bytes, now: float) -> Export:
    """Parse a project's reply; ``now``: Unix time. Raises ProtocolError."""
    versions: dict[tuple[str, str, str, int], ExportedVersion] = {}
    faults = []
    count = 0
    for fields in _rows(data, b"app_versions", b"app_version", MAX_VERSIONS):
        count += 1
        try:
            version = _version(fields, now)
        except ProtocolError as error:
            faults.append(f"no. {count}: {error}")
            continue
        key = version.app_name, version.platform, version.plan_class, version.version_num
        versions.setdefault(key, version)
    refused = "; ".join(faults[:LEFT_OUT_SHOWN])
    if len(faults) > LEFT_OUT_SHOWN:
        refused += f"; and {len(faults) - LEFT_OUT_SHOWN} more"
    return Export(list(versions.values()), refused)


def parse_factors(data: bytes) -> list[Factor]:
    """Parse the averages of a central server, all or none. Raises ProtocolError."""
    factors: dict[tuple[str, str | None], Factor] = {}
    for fields in _rows(data, b"version_factors", b"factor", MAX_FACTORS):
        is_whole_type = flag(fields.get(b"all_plan_classes"))
        factor = Factor(
            processor_type=_processor_type(fields, ""),
            plan_class=None if is_whole_type else _name(fields, b"plan_class"),
            scale=_number(fields, b"pfc_scale", MIN_SCALE, MAX_SCALE),
            expavg_credit=_number(fields, b"expavg_credit", 0, MAX_RECENT_CREDIT * _MAX_COUNT),
            nprojects=as_int("nprojects", fields.get(b"nprojects", b""), 1, _MAX_COUNT),
            nversions=as_int("nversions", fields.get(b"nversions", b""), 1, _MAX_COUNT),
        )
        factors.setdefault((factor.processor_type, factor.plan_class), factor)
    return list(factors.values())


def factors_document(factors: Iterable[Factor], computed_at: float) -> bytes:
    """Render the averages as a central server publishes them; ``computed_at``: Unix time."""
    lines = ['<?xml version="1.0" encoding="UTF-8" ?>', "<version_factors>"]
    lines.append(f"    <computed_time>{computed_at:.0f}</computed_time>")
    for factor in factors:
        is_of_class = factor.plan_class is not None
        lines += [
            "    <factor>",
            f"        <processor_type>{escape(factor.processor_type)}</processor_type>",
            f"        <plan_class>{escape(factor.plan_class or '')}</plan_class>"
            if is_of_class
            else "        <all_plan_classes/>",
            f"        <pfc_scale>{factor.scale!r}</pfc_scale>",
            f"        <expavg_credit>{factor.expavg_credit!r}</expavg_credit>",
            f"        <nprojects>{factor.nprojects}</nprojects>",
            f"        <nversions>{factor.nversions}</nversions>",
            "    </factor>",
        ]
    return "\n".join([*lines, "</version_factors>", ""]).encode()


Fields = dict[bytes, bytes]


def _rows(data: bytes, root: bytes, row: bytes, most: int) -> Iterable[Fields]:
    """Return the children of each row; of several of the same name, the first. A reply without its end was cut off."""
    scanner = TagScanner(data, _LIMITS)
    is_open = is_closed = False
    count = 0
    while (tag := scanner.next()) is not None:
        if tag == root:
            is_open = True
            is_closed = scanner.text is not None
        elif tag == b"/" + root:
            is_closed = True
        elif tag == row and is_open:
            count += 1
            if count > most:
                raise ProtocolError(row.decode(), Message("more_than", limit=most))
            fields: Fields = {}
            for name, text in scanner.fields(row, frozenset({b"/" + root})):
                fields.setdefault(name, text)
            yield fields
        elif not is_open and not tag.startswith(b"/"):
            raise ProtocolError("answer", Message("factors_no_element", name=root.decode()))
    if not is_open:
        raise ProtocolError("answer", Message("factors_no_element", name=root.decode()))
    if not is_closed:
        raise ProtocolError("answer", Message("factors_cut_off"))


def _version(fields: Fields, now: float) -> ExportedVersion:
    app_name = _name(fields, b"app_name")
    if not app_name:
        raise ProtocolError("app_name", Message("factors_missing"))
    plan_class = _name(fields, b"plan_class")
    scale = _number(fields, b"pfc_scale", 0, MAX_SCALE)
    if 0 < scale < MIN_SCALE:
        raise ProtocolError("pfc_scale", Message("field_no_number", low=f"{MIN_SCALE:g}", high=f"{MAX_SCALE:g}"))
    threshold = fields.get(b"sample_threshold")
    return ExportedVersion(
        app_name=app_name,
        platform=_name(fields, b"platform"),
        version_num=as_int("version_num", fields.get(b"version_num", b"0"), 0, 100_000_000),
        plan_class=plan_class,
        processor_type=_processor_type(fields, plan_class),
        pfc_n=_number(fields, b"pfc_n", 0, _MAX_SAMPLES),
        pfc_scale=scale,
        expavg_credit=_number(fields, b"expavg_credit", 0, MAX_RECENT_CREDIT),
        expavg_time=_number(fields, b"expavg_time", 0, now + CLOCK_SLACK_SECS),
        sample_threshold=_DEFAULT_THRESHOLD
        if threshold is None
        else as_int("sample_threshold", threshold, 1, _MAX_COUNT),
        is_received=as_bool("pfc_scale_received", fields.get(b"pfc_scale_received", b"0")),
    )


def _name(fields: Fields, name: bytes) -> str:
    text = as_text(name.decode(), fields.get(name, b""), MAX_NAME, entities=True)
    if not text.isprintable():
        raise ProtocolError(name.decode(), Message("factors_not_printable"))
    return text


def _number(fields: Fields, name: bytes, low: float, high: float) -> float:
    if name not in fields:
        raise ProtocolError(name.decode(), Message("factors_missing"))
    return as_float(name.decode(), fields[name], low, high)


def _processor_type(fields: Fields, plan_class: str) -> str:
    """Return the named type; BOINC's own exports name none, so it follows from the plan class as there."""
    if b"processor_type" in fields:
        name = _name(fields, b"processor_type")
        if name not in set(ProcessorType):
            raise ProtocolError("processor_type", Message("factors_unknown"))
        return name
    return next((type_.value for part, type_ in _TYPES_BY_NAME if part in plan_class), ProcessorType.CPU.value)
