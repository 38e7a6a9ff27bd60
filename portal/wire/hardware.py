"""Reads a computer's hardware from the client's <host_info> (BOINC protocol, host description and coprocessors).

Every number has a range that includes any real machine. A number outside it is left out and listed as a fault: a
strange computer is no reason to refuse its report. Pure: bytes in, dataclasses out.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from portal.languages.messages import Message
from portal.wire.names import cleaned
from portal.wire.scanner import Fields, ProtocolError, TagScanner, as_float, as_int, clip

MAX_COPROCS: Final = 64
_MAX_BYTES: Final = 1e18
_MAX_FLOPS: Final = 1e18
_MIB: Final = 1 << 20

# Fields that change while the hardware stays the same. Swap grows and shrinks on some systems, the time of a benchmark
# matters only if its result changed, and requests to schedulers include how much work is wanted.
_VOLATILE = re.compile(
    rb"<(d_free|m_swap|p_calculated|ip_addr|domain_name|available_ram|req_secs|req_instances|estimated_delay)>"
    rb"[^<]*+</\1>"
)
_D_FREE = re.compile(rb"<d_free>([^<]*+)</d_free>")

_COPROC_TYPES: Final = {
    b"coproc": "",
    b"coproc_cuda": "NVIDIA",
    b"coproc_ati": "ATI",
    b"coproc_intel_gpu": "intel_gpu",
    b"coproc_apple_gpu": "apple_gpu",
}
_END: Final = frozenset({b"/host_info", b"/coprocs"})

MAX_DISTROS: Final = 16
_DISTRO_BYTES: Final = 1 << 14
_DOCKER_VERSION = re.compile(rb"<docker_version>([^<]*+)</docker_version>")
_OF_DISTRO = re.compile(rb"<(distro_name|os_name|os_version|docker_version|disallowed)(?:\s*+/>|>([^<]*+)</\1>)")

# Clients since 7.22 name the OpenCL elements after the version's fields, older ones in mixed case.
_OPENCL_VERSION = re.compile(rb"<open(?:cl|CL)_device_version>([^<]*+)<")
_OPENCL_DRIVER = re.compile(rb"<open(?:cl|CL)_driver_version>([^<]*+)<")
_OPENCL_RAM = re.compile(rb"<(?:global_mem_size|global_RAM)>([^<]*+)<")


@dataclass(frozen=True, slots=True)
class Coproc:
    """Coprocessors of one type and model; peak_flops of each, in FLOPS."""

    type: str
    name: str
    count: int
    peak_flops: float | None
    ram_bytes: int | None
    driver_version: str
    opencl_version: str


@dataclass(frozen=True, slots=True)
class Distro:
    """A Linux under Windows (WSL). ``is_allowed``: its owner lets BOINC use it; ``docker_version``: empty without."""

    name: str
    system: str
    docker_version: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Containers:
    """The means of a computer to run containers: its own Docker (or Podman), and those in Linux under Windows."""

    docker_version: str = ""
    distros: tuple[Distro, ...] = ()


NO_CONTAINERS: Final = Containers()


@dataclass(frozen=True, slots=True)
class Hardware:
    """A computer's hardware, as reported by its client. None: absent or out of range (then in `faults`).

    timezone in seconds east of UTC; p_fpops, p_iops in operations/s of one processor; p_membw in bytes/s;
    p_calculated: Unix time of the benchmark; m_* and d_* in bytes.
    """

    timezone: int | None
    ncpus: int | None
    p_vendor: str
    p_model: str
    p_features: str
    p_fpops: float | None
    p_iops: float | None
    p_membw: float | None
    p_calculated: float | None
    m_nbytes: int | None
    m_cache: int | None
    m_swap: int | None
    d_total: int | None
    d_free: int | None
    os_name: str
    os_version: str
    product_name: str
    virtualbox_version: str
    containers: Containers
    coprocs: tuple[Coproc, ...]
    faults: tuple[Message, ...]


class _FieldReader:
    """Reads typed values from one element's fields and collects their faults."""

    def __init__(self, fields: Fields, faults: list[Message], prefix: str = "") -> None:
        self.fields = dict(fields)
        self.faults = faults
        self.prefix = prefix

    def text(self, tag: bytes, max_len: int) -> str:
        return cleaned(clip(self.fields.get(tag, b""), max_len, entities=True))

    def integer(self, tag: bytes, low: int, high: int) -> int | None:
        raw = self.fields.get(tag)
        if raw is None:
            return None
        try:
            return as_int(self.prefix + tag.decode(), raw, low, high)
        except ProtocolError as error:
            self.faults.append(Message("reported_no_integer", field=error.field, low=low, high=high))
            return None

    def number(self, tag: bytes, low: float, high: float, raw: bytes | None = None) -> float | None:
        raw = self.fields.get(tag) if raw is None else raw
        if raw is None:
            return None
        try:
            return as_float(self.prefix + tag.decode(), raw, low, high)
        except ProtocolError as error:
            self.faults.append(Message("reported_no_number", field=error.field, low=float(low), high=float(high)))
            return None

    def nbytes(self, tag: bytes, raw: bytes | None = None) -> int | None:
        number = self.number(tag, 0, _MAX_BYTES, raw)
        return None if number is None else int(number)


def hardware_digest(host_info: bytes) -> bytes:
    """Return a digest of 16 bytes that changes only with the hardware in <host_info>; b"" for an empty section."""
    if not host_info:
        return b""
    return hashlib.blake2b(_VOLATILE.sub(b"", host_info), digest_size=16).digest()


def free_disk(host_info: bytes) -> bytes:
    """Return the text of <d_free>, b"" when there is none."""
    # Searching for the text is much faster than for the pattern.
    start = host_info.find(b"<d_free>")
    match = _D_FREE.search(host_info, start) if start >= 0 else None
    return match[1] if match else b""


def names_containers(host_info: bytes) -> bool:
    """Whether it mentions Docker or WSL, as clients since 8.2 do."""
    return b"<docker_version>" in host_info or b"<distro>" in host_info


def parse_containers(host_info: bytes) -> Containers:
    """Return what the inside of a <host_info> says about Docker and WSL (BOINC's lib/hostinfo and lib/wslinfo)."""
    if not names_containers(host_info):
        return NO_CONTAINERS
    begin = host_info.find(b"<wsl>")
    end = host_info.find(b"</wsl>", begin) if begin >= 0 else -1
    inside, outside = (host_info[begin:end], host_info[:begin] + host_info[end:]) if end >= 0 else (b"", host_info)
    distros = [
        _distro(distro.partition(b"</distro>")[0][:_DISTRO_BYTES])
        for distro in inside.split(b"<distro>", MAX_DISTROS + 1)[1:]
    ]
    match = _DOCKER_VERSION.search(outside)
    return Containers(clip(match[1], 64, entities=True) if match else "", tuple(distros[:MAX_DISTROS]))


def _distro(inside: bytes) -> Distro:
    fields = dict(_OF_DISTRO.findall(inside))

    def text(tag: bytes) -> str:
        return clip(fields.get(tag, b""), 64, entities=True)

    system = f"{text(b'os_name')} {text(b'os_version')}".strip()
    is_allowed = fields.get(b"disallowed", b"0").strip() == b"0"
    return Distro(text(b"distro_name"), system, text(b"docker_version"), is_allowed)


def parse_hardware(host_info: bytes) -> Hardware:
    """Return the hardware that the inside of a <host_info> describes, with any faults in its `faults`."""
    faults: list[Message] = []
    fields, coprocs = _split(host_info, faults)
    read = _FieldReader(fields, faults)
    return Hardware(
        timezone=read.integer(b"timezone", -86_400, 86_400),
        ncpus=read.integer(b"p_ncpus", 1, 65_535),
        p_vendor=read.text(b"p_vendor", 128),
        p_model=read.text(b"p_model", 256),
        p_features=read.text(b"p_features", 4096),
        p_fpops=read.number(b"p_fpops", 0, 1e15),
        p_iops=read.number(b"p_iops", 0, 1e15),
        p_membw=read.number(b"p_membw", 0, 1e15),
        p_calculated=read.number(b"p_calculated", 0, 1e11),
        m_nbytes=read.nbytes(b"m_nbytes"),
        m_cache=read.nbytes(b"m_cache"),
        m_swap=read.nbytes(b"m_swap"),
        d_total=read.nbytes(b"d_total"),
        d_free=read.nbytes(b"d_free"),
        os_name=read.text(b"os_name", 128),
        os_version=read.text(b"os_version", 256),
        product_name=read.text(b"product_name", 256),
        virtualbox_version=read.text(b"virtualbox_version", 64),
        containers=parse_containers(host_info),
        coprocs=coprocs,
        faults=tuple(faults),
    )


def _split(host_info: bytes, faults: list[Message]) -> tuple[Fields, tuple[Coproc, ...]]:
    """Return the section's plain fields and its coprocessors, as far as they are within the limits."""
    scan = TagScanner(host_info)
    fields: Fields = []
    described: list[tuple[str, Fields]] = []
    try:
        while (tag := scan.next()) is not None:
            if tag in _COPROC_TYPES:
                described.append((_COPROC_TYPES[tag], scan.fields(tag, _END)))
            elif scan.text is not None:
                fields.append((tag, scan.text))
            elif tag != b"coprocs" and not tag.startswith(b"/"):
                fields.append((tag, scan.element_text(tag)))
    except ProtocolError as error:
        faults.append(Message("reported_in_part", reason=error.message))
    if len(described) > MAX_COPROCS:
        faults.append(Message("reported_coprocs_limit", limit=MAX_COPROCS))
    coprocs = [_coproc(kind, children, faults) for kind, children in described[:MAX_COPROCS]]
    return fields, tuple(coproc for coproc in coprocs if coproc is not None)


def _coproc(kind: str, fields: Fields, faults: list[Message]) -> Coproc | None:
    """Return the coprocessor, or None if the computer has none of this type (clients list those too)."""
    read = _FieldReader(fields, faults, prefix="coproc ")
    kind = kind or read.text(b"type", 64)
    if read.fields.get(b"count", b"").strip() == b"0":
        return None
    count = read.integer(b"count", 1, 1024)
    if count is None or not kind:
        return None
    opencl = read.fields.get(b"coproc_opencl", b"")
    return Coproc(
        type=kind,
        name=read.text(b"name", 256),
        count=count,
        peak_flops=read.number(b"peak_flops", 0, _MAX_FLOPS),
        ram_bytes=_ram_bytes(read, opencl),
        driver_version=_driver_version(read, opencl),
        opencl_version=_found(_OPENCL_VERSION, opencl),
    )


def _ram_bytes(read: _FieldReader, opencl: bytes) -> int | None:
    """Memory of one device: NVIDIA's in bytes, ATI's in MiB, else what OpenCL says."""
    if ram := read.nbytes(b"totalGlobalMem"):
        return ram
    if megabytes := read.number(b"localRAM", 0, _MAX_BYTES / _MIB):
        return int(megabytes * _MIB)
    match = _OPENCL_RAM.search(opencl)
    return read.nbytes(b"global_mem_size", match[1]) if match else None


def _driver_version(read: _FieldReader, opencl: bytes) -> str:
    """NVIDIA's driver number 53504 is version 535.04; ATI's is text; else what OpenCL says."""
    if number := read.integer(b"drvVersion", 0, 2**31 - 1):
        return f"{number // 100}.{number % 100:02d}"
    return read.text(b"CALVersion", 64) or _found(_OPENCL_DRIVER, opencl)


def _found(pattern: re.Pattern[bytes], raw: bytes) -> str:
    match = pattern.search(raw)
    return clip(match[1], 64, entities=True) if match else ""
