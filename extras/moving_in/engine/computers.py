"""What BOINC's server kept of computers: their coprocessors and programs, in two forms."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from extras.moving_in.engine.texts import storable

_PARTS: Final = re.compile(r"\[([^\[\]]{1,200})\]")
_TYPES: Final = {
    "CUDA": "NVIDIA",
    "nvidia": "NVIDIA",
    "CAL": "ATI",
    "amd": "ATI",
    "INTEL": "intel_gpu",
    "intel": "intel_gpu",
    "apple_gpu": "apple_gpu",
    "apple": "apple_gpu",
}
_MAX_COPROCS: Final = 16
_MB: Final = 2**20


@dataclass(slots=True)
class Equipment:
    """In the form of `portal.models.Host`."""

    client_version: str = ""
    client_brand: str = ""
    virtualbox_version: str = ""
    docker_version: str = ""
    coprocs: list[dict[str, Any]] = field(default_factory=list)


def equipment(serialnum: str, misc: str) -> Equipment:
    """Of ``misc``, which newer servers write, else of ``serialnum``. What is in no form that is known is left out."""
    if misc.startswith("{"):
        try:
            return _of_misc(json.loads(misc))
        except (ValueError, TypeError, AttributeError, RecursionError):
            # Clients' texts are not escaped in it.
            pass
    return _of_serialnum(serialnum)


def _of_misc(found: Mapping[str, Any]) -> Equipment:
    coprocs = [
        _coproc(_TYPES[gpu["type"]], gpu.get("model"), gpu.get("count"), gpu.get("ram_mb"), gpu.get("driver_version"),
                gpu.get("opencl_version"))
        for gpu in found.get("gpus", [])[:_MAX_COPROCS]
        if gpu.get("type") in _TYPES
    ]  # fmt: skip
    return Equipment(
        client_version=_text(found.get("client_version"), 32),
        virtualbox_version=_text(found.get("vbox", {}).get("version"), 64),
        docker_version=_text(found.get("docker", {}).get("version"), 64),
        coprocs=coprocs,
    )


def _of_serialnum(text: str) -> Equipment:
    found = Equipment()
    for kind, *values in _parts(text):
        if kind == "BOINC" and values:
            found.client_version, found.client_brand = values[0][:32], "".join(values[1:2])[:64]
        elif kind == "vbox" and values:
            found.virtualbox_version = values[0][:64]
        elif kind in _TYPES and len(values) >= 3 and len(found.coprocs) < _MAX_COPROCS:
            model, count, ram, driver, opencl, *_ = [*values, "", ""]
            found.coprocs.append(_coproc(_TYPES[kind], model, count, ram.removesuffix("MB"), driver, opencl))
    return found


def _parts(text: str) -> Iterator[list[str]]:
    for part in _PARTS.findall(text):
        yield part.split("|")


def _coproc(kind: str, model: object, count: object, ram_mb: object, driver: object, opencl: object) -> dict[str, Any]:
    ram = _number(ram_mb)
    return {
        "type": kind,
        "name": _text(model, 256),
        "count": min(max(_number(count) or 1, 1), 64),
        "peak_flops": None,
        "ram_bytes": ram * _MB if ram else None,
        "driver_version": _driver(kind, _text(driver, 64)),
        "opencl_version": _opencl(_text(opencl, 64)),
    }


def _text(value: object, most: int) -> str:
    return storable(str(value or ""))[:most]


def _number(value: object) -> int | None:
    try:
        number = int(float(str(value)))
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < 2**30 else None


def _driver(kind: str, text: str) -> str:
    """NVIDIA's are numbers: 53104 for 531.04."""
    number = _number(text) if kind == "NVIDIA" and text.isdecimal() else None
    if number is not None:
        return f"{number // 100}.{number % 100:02}" if number else ""
    return "" if text in ("0", "unknown") else text


def _opencl(text: str) -> str:
    """A number, 300 for 3.0, in one of the forms."""
    return f"{int(text) // 100}.{int(text) % 100}" if text.isdecimal() and len(text) == 3 else ""
