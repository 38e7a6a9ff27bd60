"""Classes of computers whose programs round alike: for apps whose results are compared only within one. Pure.

Coarse: the operating system and the kind of processor. Fine: also its maker, and the widest vector instructions that it
has, by which libraries choose their code. A computer whose client reports neither has no class.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Redundancy(StrEnum):
    """Which computers may confirm each other's results (homogeneous redundancy)."""

    OFF = "off"
    COARSE = "coarse"
    FINE = "fine"


_SYSTEMS: Final = ("", "Linux", "Windows", "Darwin", "FreeBSD", "Android")
_PROCESSORS: Final = ("", "x86", "PowerPC", "ARM", "Intel", "AMD", "Apple")
_X86, _POWERPC, _ARM, _INTEL, _AMD, _APPLE = range(1, 7)
_VECTORS: Final = ("", "SSE2", "AVX", "AVX2", "AVX-512", "SVE")
_FEATURES: Final = ((4, "avx512f"), (3, "avx2"), (2, "avx"), (1, "sse2"), (5, "sve"))


def class_of(redundancy: str, os_name: str, p_vendor: str, p_model: str, p_features: frozenset[str]) -> int:
    """Return the number of the computer's class: system × 1000 + processor × 10 + vectors; 0 if it has none."""
    if redundancy == Redundancy.OFF:
        return 0
    system = _system(os_name)
    processor = _processor(f"{p_vendor} {p_model}".lower(), p_features)
    if not (system and processor):
        return 0
    if redundancy == Redundancy.COARSE:
        coarse = {_INTEL: _X86, _AMD: _X86, _APPLE: _ARM}.get(processor, processor)
        return system * 1000 + coarse * 10
    vectors = next((number for number, feature in _FEATURES if feature in p_features), 0)
    return system * 1000 + processor * 10 + vectors


def class_name(hr_class: int) -> str:
    """Return the class in words for operators, "Linux, Intel, AVX2"; these are proper names, and not translated."""
    parts = _SYSTEMS[hr_class // 1000], _PROCESSORS[hr_class // 10 % 100], _VECTORS[hr_class % 10]
    return ", ".join(part for part in parts if part)


def _system(os_name: str) -> int:
    lower = os_name.lower()
    # Android is a Linux, too, and says so.
    for number in (5, 1, 2, 3, 4):
        if _SYSTEMS[number].lower() in lower:
            return number
    return 0


def _processor(words: str, p_features: frozenset[str]) -> int:
    for number, signs in (
        (_INTEL, ("intel",)),
        (_AMD, ("amd",)),
        (_APPLE, ("apple",)),
        (_POWERPC, ("powerpc", "power macintosh", "ppc", "ibm,power")),
        (_ARM, ("arm", "aarch64", "impl 0x")),
    ):
        if any(sign in words for sign in signs):
            return number
    return _X86 if "sse2" in p_features else 0
