"""The parsers that are fuzzed. Each may refuse an input by its own error; everything else is a fault. Pure.

A parser's output is used at once as the site would use it, since some of it is read on demand.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from accounting.wire import requests as am_requests
from accounting.wire import statistics
from accounting.wire.statistics import HOSTS, USERS, StatisticsError
from emulator.engine.scenario import Preferences, ScenarioError
from emulator.files import presets
from emulator.files.client_settings import read_cc_config, read_preferences
from emulator.files.job_log import read_job_log
from emulator.files.scenario import read_upload, read_zip
from emulator.files.scenario_json import Document, document_json, read_document, to_json
from emulator.files.time_log import read_time_log
from emulator.files.unused import Tally
from portal.wire.scanner import ProtocolError
from scheduler.wire import requests as scheduler_requests
from scheduler.wire import uploads

DATA = Path(__file__).parents[2] / "tests" / "data"
FOUND = DATA / "fuzzing"
"""Inputs that were once faults, in a folder for each parser: each test run reads them again."""
_PARTS = b"\n=====\n"


@dataclass(frozen=True)
class Parser:
    """``parse``: takes any bytes; ``refuses``: its own errors; ``seeds``: initial inputs."""

    name: str
    parse: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...]
    seeds: Callable[[], Iterable[bytes]]

    def read(self, data: bytes) -> bool:
        """Return whether it accepts the input; raises unexpected errors."""
        try:
            self.parse(data)
        except self.refuses:
            return False
        return True


def _account_manager(data: bytes) -> None:
    am_requests.credentials_of(data)
    request = am_requests.parse_request(data)
    request.hardware()
    json.dumps(request.contact(), allow_nan=False)


def _scheduler(data: bytes) -> None:
    scheduler_requests.authenticator_of(data)
    scheduler_requests.parse_request(data, is_cut=data[-1:] == b"c")


def _upload(data: bytes) -> None:
    steps = uploads.read_head()
    steps.send(None)
    try:
        for begin in range(0, len(data) + 4096, 4096):
            steps.send(data[begin : begin + 4096])
    except StopIteration as end:
        uploads.parse_head(end.value.text)


def _statistics(data: bytes) -> None:
    kind = HOSTS if b"<hosts>" in data[:100] else USERS
    for _ in statistics.records(kind, [data[: len(data) // 2], data[len(data) // 2 :]]):
        pass


def _packed_statistics(data: bytes) -> None:
    for _ in statistics.records(USERS, statistics.unpack(USERS, [data])):
        pass


def _client_state(data: bytes) -> None:
    state, _, rest = data.partition(_PARTS)
    settings, _, configuration = rest.partition(_PARTS)
    files = {"client_state.xml": state, "global_prefs.xml": settings, "cc_config.xml": configuration}
    read_upload({name: content for name, content in files.items() if content or name == "client_state.xml"})


def _scenario(data: bytes) -> None:
    to_json(read_document(data).scenario)


def _captures(pattern: str) -> Callable[[], Iterable[bytes]]:
    return lambda: (path.read_bytes() for path in sorted(DATA.glob(pattern)))


def _state_seeds() -> Iterable[bytes]:
    for folder in ("real_client", "client_at_work"):
        names = ("client_state.xml", "global_prefs_override.xml", "cc_config.xml")
        yield _PARTS.join((DATA / "emulator" / folder / name).read_bytes() for name in names)


def _archives() -> Iterable[bytes]:
    for folder in ("real_client", "client_at_work"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for path in sorted((DATA / "emulator" / folder).iterdir()):
                archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        yield packed.getvalue()


def _scenarios() -> Iterable[bytes]:
    for key in ("shortfall", "gpu_and_cpu"):
        yield json.dumps(document_json(Document(getattr(presets, key)()))).encode()


_TABLES = b"<tables>\n<update_time>1795000000</update_time>\n<nusers_total>3</nusers_total>\n</tables>\n"
_USERS = b"<users>\n<user>\n <id>1</id>\n <name>A</name>\n <total_credit>1.5</total_credit>\n</user>\n</users>\n"
_HOSTS = b"<hosts>\n<host>\n <id>2</id>\n <userid>1</userid>\n <host_cpid>aa</host_cpid>\n</host>\n</hosts>\n"
PARSERS = {
    parser.name: parser
    for parser in (
        Parser("account-manager", _account_manager, (ProtocolError,), _captures("protocol/am_request_*.xml")),
        Parser("scheduler", _scheduler, (ProtocolError,), _captures("protocol/sched_request_*.xml")),
        Parser("upload", _upload, (ProtocolError,), _captures("protocol/upload_request_*.xml")),
        Parser("statistics", _statistics, (StatisticsError,), lambda: (_USERS, _HOSTS)),
        Parser("packed-statistics", _packed_statistics, (StatisticsError,), lambda: (gzip.compress(_USERS, mtime=0),)),
        Parser("tables", statistics.read_tables, (StatisticsError,), lambda: (_TABLES,)),
        Parser("client-state", _client_state, (ScenarioError,), _state_seeds),
        Parser(
            "preferences",
            lambda data: read_preferences(data, "global_prefs.xml", "", Preferences(), Tally()),
            (ScenarioError,),
            _captures("emulator/*/global_prefs*.xml"),
        ),
        Parser(
            "cc-config",
            lambda data: read_cc_config(data, "cc_config.xml", Tally()),
            (ScenarioError,),
            _captures("emulator/*/cc_config.xml"),
        ),
        Parser(
            "job-log",
            lambda data: read_job_log(data, "job_log_example.org.txt"),
            (ScenarioError,),
            _captures("emulator/*/job_log*"),
        ),
        Parser(
            "time-log",
            lambda data: read_time_log(data, 1.8e9),
            (ScenarioError,),
            _captures("emulator/*/time_stats_log"),
        ),
        Parser("archive", read_zip, (ScenarioError,), _archives),
        Parser("scenario", _scenario, (ScenarioError,), _scenarios),
    )
}


def found(name: str) -> list[Path]:
    """Return the inputs that were once faults of the parser."""
    return sorted((FOUND / name).glob("*"))
