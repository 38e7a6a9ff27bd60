"""Which processor types a volunteer's preferences refuse (BOINC protocol, scheduler request). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from scheduler.engine.request import CPU

_REFUSED: Final = re.compile(rb"<(no_gpus|no_cpu|no_cuda|no_ati|no_intel_gpu|no_apple_gpu)(?:\s*/>|>\s*1\s*<)")
_REFUSED_TYPES: Final = {
    b"no_cpu": (CPU,),
    b"no_cuda": ("NVIDIA",),
    b"no_ati": ("ATI",),
    b"no_intel_gpu": ("intel_gpu",),
    b"no_apple_gpu": ("apple_gpu",),
}


def refused_types(preferences: bytes, gpu_types: Sequence[str]) -> frozenset[str]:
    """By the elements of all preferences that the client sent; ``gpu_types``: those that this computer has."""
    refused: set[str] = set()
    for tag in set(_REFUSED.findall(_without_venues(preferences))):
        refused.update(_REFUSED_TYPES.get(tag, gpu_types))
    return frozenset(refused)


def _without_venues(preferences: bytes) -> bytes:
    """What holds in all venues: those of others are none of this computer's, and its own are among the working ones."""
    kept, at = [], 0
    while (begin := preferences.find(b"<venue", at)) >= 0 and (end := preferences.find(b"</venue>", begin)) >= 0:
        kept.append(preferences[at:begin])
        at = end
    return b"".join([*kept, preferences[at:]])
