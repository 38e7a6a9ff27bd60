"""A project's description of itself: the reply of get_project_config.php, read into dataclasses. Pure.

Source: BOINC protocol, web RPCs. Projects are of all ages and write by hand, so invalid values become the default. Of
two elements the first counts. Raises ProtocolError for other documents, and for replies beyond the hard limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import cattrs

from portal.languages.messages import Message
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_int, clip, flag, float_or_none

LIMITS: Final = Limits(body_bytes=1 << 20, elements=20_000, text_bytes=1 << 18)
MAX_NAME: Final = 100
MAX_URL: Final = 255
MAX_PLATFORMS: Final = 500
MAX_KEYWORDS: Final = 200
MAX_TERMS: Final = 1 << 16

_ROOT: Final = b"project_config"
_FLAGS: Final = frozenset(
    {
        b"account_manager", b"uses_username", b"account_creation_disabled", b"client_account_creation_disabled",
        b"invite_code_required", b"web_stopped", b"sched_stopped", b"ldap_auth",
    }
)  # fmt: skip
_NUMBERS: Final = frozenset({b"min_passwd_length", b"error_num"})
_TEXTS: Final = {
    b"name": MAX_NAME,
    b"master_url": MAX_URL,
    b"web_rpc_url_base": MAX_URL,
    b"min_client_version": 20,
    b"error_msg": 300,
    b"terms_of_use": MAX_TERMS,
    b"account_ownership_public_key": 2048,
}
_PLATFORM: Final = re.compile(r"[\w.+-]{1,64}", re.ASCII)
_KEYWORD_ID: Final = re.compile(rb"<(?:keyword_)?id>\s*+(\d{1,6})\s*+</(?:keyword_)?id>")
_KEYWORD_PART: Final = re.compile(rb"<(?:fraction|weight)>([^<]{1,32})</(?:fraction|weight)>")
_NUMBER_WITH_PART: Final = re.compile(rb"(\d{1,6})(?::([0-9.]{1,12}))?")

# BOINC's names of processor types, by substrings of plan class names
_TYPES: Final = (
    (re.compile(r"(?:^|[^a-z])(?:cuda|nvidia)"), "NVIDIA"),
    (re.compile(r"(?:^|[^a-z])(?:ati|amd)"), "ATI"),
    (re.compile(r"intel_gpu"), "intel_gpu"),
    (re.compile(r"apple_gpu|(?:^|[^a-z])metal"), "apple_gpu"),
)


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """``versions``: platform and BOINC's name of the processor type, sorted. ``keywords``: the fraction of the
    project's work that each applies to, above 0 to 1. ``error_num``: 0 if the project is all right.
    """

    name: str = ""
    master_url: str = ""
    web_rpc_url_base: str = ""
    min_passwd_length: int = 0
    min_client_version: str = ""
    terms_of_use: str = ""
    account_ownership_public_key: str = ""
    account_manager: bool = False
    uses_username: bool = False
    account_creation_disabled: bool = False
    client_account_creation_disabled: bool = False
    invite_code_required: bool = False
    ldap_auth: bool = False
    web_stopped: bool = False
    sched_stopped: bool = False
    error_num: int = 0
    error_msg: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    keywords: Mapping[int, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the configuration as it is stored; `from_json` reads it back."""
        document: dict[str, Any] = cattrs.unstructure(self)
        return document | {
            "versions": [list(version) for version in self.versions],
            "keywords": {str(id_): part for id_, part in self.keywords.items()},
        }


def from_json(stored: Mapping[str, Any]) -> ProjectConfig:
    return cattrs.structure(stored, ProjectConfig)


def parse_project_config(data: bytes) -> ProjectConfig:
    """Read the reply. Raises ProtocolError."""
    scanner = TagScanner(data, LIMITS)
    fields: dict[str, Any] = {}
    is_reply = False
    while (tag := scanner.next()) is not None:
        name = tag.decode("latin-1")
        if tag in (_ROOT, b"/" + _ROOT, b"error"):
            # Old projects leave the opening tag out where they refuse.
            is_reply = True
            if tag != b"/" + _ROOT:
                scanner.enter()
        elif tag.startswith(b"/"):
            continue
        elif tag in _FLAGS:
            fields.setdefault(name, flag(scanner.element_text(tag)))
        elif tag in _NUMBERS:
            fields.setdefault(name, _number(scanner.element_text(tag)))
        elif tag in _TEXTS:
            fields.setdefault(name, clip(scanner.element_text(tag), _TEXTS[tag], entities=True))
        elif tag == b"platforms":
            fields.setdefault("versions", _versions(_inside(scanner, tag)))
        elif tag == b"keywords":
            fields.setdefault("keywords", _keywords(_inside(scanner, tag)))
        else:
            scanner.skip(tag)
    if not is_reply:
        raise ProtocolError("answer", Message("answer_no_config"))
    return ProjectConfig(**fields)


def _inside(scanner: TagScanner, tag: bytes) -> bytes:
    return scanner.section(tag) or b""


def _number(raw: bytes) -> int:
    try:
        return as_int("", raw, -10_000, 10_000)
    except ProtocolError:
        return 0


def _versions(section: bytes) -> tuple[tuple[str, str], ...]:
    """Return each platform with the types of processors that there are programs for."""
    scanner = TagScanner(section, LIMITS)
    versions: set[tuple[str, str]] = set()
    while (tag := scanner.next()) is not None and len(versions) < MAX_PLATFORMS:
        if tag != b"platform":
            continue
        fields = dict(scanner.fields(b"platform", frozenset({b"platform"})))
        platform = clip(fields.get(b"platform_name", b""), 65)
        if _PLATFORM.fullmatch(platform):
            versions.add((platform, processor_type(clip(fields.get(b"plan_class", b""), 64))))
    return tuple(sorted(versions))


def processor_type(plan_class: str) -> str:
    """Return BOINC's name of the type of processor that programs of this plan class need, by the names in use."""
    return next((type_ for pattern, type_ in _TYPES if pattern.search(plan_class.lower())), "CPU")


def _keywords(section: bytes) -> dict[int, float]:
    """Parse numbers with the fraction of the work that each applies to: as elements, or as a list such as "3:0.5
    12".
    """
    amounts: dict[int, float] = {}
    if b"<keyword>" in section:
        for keyword_part in section.split(b"<keyword>")[1:]:
            number, part = _KEYWORD_ID.search(keyword_part), _KEYWORD_PART.search(keyword_part)
            if number is not None:
                amounts.setdefault(int(number[1]), _part(part[1] if part else None))
    else:
        for match in _NUMBER_WITH_PART.finditer(re.sub(rb"<[^<>]*+>", b" ", section)):
            amounts.setdefault(int(match[1]), _part(match[2]))
    return dict(sorted(amounts.items())[:MAX_KEYWORDS])


def _part(raw: bytes | None) -> float:
    part = float_or_none(raw, 0.0, 1.0)
    return 1.0 if part is None else max(0.01, round(part, 4))
