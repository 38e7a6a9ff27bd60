"""Query projects and the central server, and average: a daily task. Nothing is queried in a transaction.

If a server does not answer, or not as it should, its last answer is kept; the problem is recorded and shown. Servers do
not affect each other.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from credit.engine.cross_project import ExportedVersion, Factor, average_factors, versions_that_count
from credit.models import AppVersion
from credit.statistics.facts import rules_of
from extras.central_factors.models import MAX_PROBLEM, CollectedExport, FactorList
from extras.central_factors.wire import MAX_BODY_BYTES, parse_export, parse_factors
from portal.fetch.errors import FetchError
from portal.fetch.fetcher import FetchLimits, fetch
from portal.languages.messages import Message
from portal.wire.scanner import ProtocolError

log = structlog.get_logger(__name__)

EVERY: Final = dt.timedelta(hours=23)
KEPT: Final = dt.timedelta(days=30)
"""A server's last answer is used for this long. By then recent credit, the weight, is down to a twentieth."""
MAX_RUN_SECS: Final = 300.0
"""The most servers of one run, so that other tasks get their turn; the next run continues."""
DOCUMENT: Final = "version_factors.xml"
AVERAGED_HERE: Final = ""
_USUAL_PORTS: Final = (80, 443)
_LIMITS: Final = FetchLimits(wire_bytes=MAX_BODY_BYTES, body_bytes=MAX_BODY_BYTES)


@dataclass(frozen=True, slots=True)
class Collected:
    """How many servers were queried, and how many have a problem."""

    nasked: int
    nproblems: int


def collect(now: dt.datetime, *, is_due: bool = False) -> Collected:
    """Query servers not queried for a day, or all if ``is_due``; average again. Runs may overlap: each takes others."""
    ends = time.monotonic() + MAX_RUN_SECS
    before = now if is_due else now - EVERY
    _keep_rows()
    nasked = nproblems = 0
    rows: list[CollectedExport | FactorList] = [*CollectedExport.objects.all()]
    rows += FactorList.objects.exclude(url=AVERAGED_HERE)
    for row in sorted(rows, key=lambda row: (row.asked_at is not None, row.asked_at)):
        if time.monotonic() >= ends:
            break
        if _take(row, before, now):
            nasked += 1
            nproblems += not _ask(row, now)
    if settings.CENTRAL_PROJECTS:
        average(now)
    return Collected(nasked, nproblems)


def _keep_rows() -> None:
    """Make a row for each server that the settings name, and for no others."""
    projects = _asked_projects()
    CollectedExport.objects.exclude(url__in=projects).delete()
    lists = {settings.CENTRAL_SERVER} if settings.CENTRAL_SERVER else set()
    FactorList.objects.exclude(url__in=lists | ({AVERAGED_HERE} if settings.CENTRAL_PROJECTS else set())).delete()
    for url in projects:
        CollectedExport.objects.get_or_create(url=url)
    for url in lists:
        FactorList.objects.get_or_create(url=url)


def _asked_projects() -> list[str]:
    """Return the projects in the settings without this site's own; two spellings of one address count once."""
    projects: dict[tuple[str, int | None, str], str] = {}
    for url in settings.CENTRAL_PROJECTS:
        projects.setdefault(_place(url), url)
    projects.pop(_place(settings.PROJECT_URL), None)
    return list(projects.values())


def _place(url: str) -> tuple[str, int | None, str]:
    """Return what two spellings of an address have in common: with http or https, with or without www and the usual
    port.
    """
    parts = urlsplit(url)
    port = None if parts.port in _USUAL_PORTS else parts.port
    return (parts.hostname or "").removeprefix("www."), port, parts.path


def _take(row: CollectedExport | FactorList, before: dt.datetime, now: dt.datetime) -> bool:
    """Whether this run queries the server. Its time is set first: one that stops the worker stops it once a day."""
    if row.asked_at is not None and row.asked_at > before:
        return False
    of_row = type(row)._default_manager.filter(pk=row.pk, asked_at=row.asked_at)
    row.asked_at = now
    return bool(of_row.update(asked_at=now))


def _ask(row: CollectedExport | FactorList, now: dt.datetime) -> bool:
    """Query a server; return whether it answered as it should."""
    take: Callable[[bytes], None]
    problem: Message | None
    if isinstance(row, CollectedExport):
        page, take = "app_versions.php?xml=1", lambda body: _take_export(row, body, now)
    else:
        page, take = DOCUMENT, lambda body: _take_factors(row, body)
    try:
        take(fetch(row.url + page, limits=_LIMITS).body)
    except FetchError as error:
        problem = error.message
    except ProtocolError as error:
        problem = Message("factors_not_in_answer", fault=error.message)
    else:
        problem = None
        row.read_at = now
    row.problem = problem
    row.problem_since = (row.problem_since or now) if problem else None
    row.save()
    if problem:
        log.info("factors_not_read", source=row.pk, reason=str(problem))
    return not problem


def _take_export(row: CollectedExport, body: bytes, now: dt.datetime) -> None:
    export = parse_export(body, now.timestamp())
    row.versions = [asdict(version) for version in export.versions]
    row.nversions, row.ncounted = len(export.versions), len(versions_that_count(export.versions))
    row.refused = export.refused[:MAX_PROBLEM]


def _take_factors(row: FactorList, body: bytes) -> None:
    row.factors = [asdict(factor) for factor in parse_factors(body)]


def average(now: dt.datetime) -> list[Factor]:
    """Average projects' exports, including this site's own project, and publish the result."""
    rows = CollectedExport.objects.filter(read_at__gt=now - KEPT).order_by("url")
    projects = [own_export(), *([ExportedVersion(**version) for version in row.versions] for row in rows)]
    factors = average_factors(projects, now.timestamp())
    FactorList.objects.update_or_create(
        url=AVERAGED_HERE, defaults={"factors": [asdict(factor) for factor in factors], "asked_at": now, "read_at": now}
    )
    return factors


def own_export() -> list[ExportedVersion]:
    """Return this site's own versions, as `app_versions.php` has them."""
    versions = AppVersion.objects.filter(is_deprecated=False).select_related("app", "platform").order_by("pk")
    return [
        ExportedVersion(
            app_name=version.app.name,
            platform=version.platform.name,
            version_num=version.version_num,
            plan_class=version.plan_class,
            processor_type=version.processor_type,
            pfc_n=version.pfc_n,
            pfc_scale=version.pfc_scale or 0.0,
            expavg_credit=version.expavg_credit,
            expavg_time=version.expavg_at.timestamp() if version.expavg_at else 0.0,
            sample_threshold=rules_of(version.app).min_version_samples,
            is_received=version.is_scale_received,
        )
        for version in versions
    ]


@dataclass(frozen=True, slots=True)
class KnownFactors:
    """``source``: the central server's address, "" if they were averaged here."""

    factors: list[Factor]
    source: str
    read_at: dt.datetime
    problem: Message | None


def known_factors(now: dt.datetime) -> KnownFactors | None:
    """Return those of the central server in the settings, else those averaged here; None if there are none or only old
    ones.
    """
    if not (settings.CENTRAL_SERVER or settings.CENTRAL_PROJECTS):
        return None
    row = FactorList.objects.filter(url=settings.CENTRAL_SERVER, read_at__gt=now - KEPT).first()
    if row is None or row.read_at is None:
        return None
    return KnownFactors([Factor(**factor) for factor in row.factors], row.url, row.read_at, row.problem)
