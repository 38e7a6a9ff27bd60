"""Platforms, apps, plan classes, and versions with their files."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.files import File
from django.db import transaction
from django.db.models import Q

from credit.models import App, AppVersion, Platform, ProcessorType
from credit.models.apps import MAX_SIZE_CLASSES, Comparison, HomogeneousRedundancy
from extras.moving_in.boinc import folders
from extras.moving_in.boinc.values import line
from extras.moving_in.engine import plan_classes
from extras.moving_in.engine.jobs import Program, ProgramFile, checked_name, program
from extras.moving_in.engine.plan_classes import PlanClassFacts
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite
from extras.moving_in.machinery.steps import CallStep, Context
from extras.moving_in.source import Row, Table
from portal.wire import signing
from scheduler.files.store import StoringError, store_file
from scheduler.models import PlanClass, VersionFile

_MAX_NAME: Final = 64
_PLATFORMS: Final = Table("platform", {"name": b"", "user_friendly_name": b"", "deprecated": 0})
_APPS: Final = Table(
    "app",
    {
        **{"name": b"", "user_friendly_name": b"", "create_time": 0, "deprecated": 0, "weight": 1.0, "beta": 0},
        **{"target_nresults": 0, "min_avg_pfc": 0.0, "homogeneous_redundancy": 0, "homogeneous_app_version": 0},
        **{"non_cpu_intensive": 0, "locality_scheduling": 0, "n_size_classes": 0},
    },
)
_REDUNDANCY: Final = {1: HomogeneousRedundancy.FINE, 2: HomogeneousRedundancy.COARSE}
_VERSIONS: Final = Table(
    "app_version",
    {
        **{"create_time": 0, "appid": 0, "version_num": 0, "platformid": 0, "xml_doc": b"", "min_core_version": 0},
        **{"max_core_version": 0, "deprecated": 0, "plan_class": b"", "pfc_n": 0.0, "pfc_avg": 0.0},
        **{"pfc_scale": 0.0, "expavg_credit": 0.0, "expavg_time": 0.0, "beta": 0},
    },
    more={"app": "a.name", "platform": "p.name"},
    join="LEFT JOIN app a ON a.id = t.appid LEFT JOIN platform p ON p.id = t.platformid",
)


def _rows(context: Context, table: Table, tally: Tally) -> Iterator[Row]:
    if not context.source.has(table.name):
        tally.tell("the database has no such table", table.name, 0)
        return
    for row in context.source.rows(table, 0, None):
        tally.nread += 1
        yield row


def _time(value: Any, context: Context) -> dt.datetime | None:
    secs = finite(value, 1, context.now.timestamp())
    return dt.datetime.fromtimestamp(secs, dt.UTC) if secs is not None else None


def count(tally: Tally, is_new: bool) -> None:
    """One was taken, and perhaps made here."""
    tally.ntaken += 1
    tally.nchanged += is_new


def take_platforms(context: Context, tally: Tally) -> None:
    for row in _rows(context, _PLATFORMS, tally):
        try:
            name = checked_name(line(row, "name", tally, 254), "platform", _MAX_NAME)
        except BrokenRow as broken:
            tally.leave(broken.reason, row["id"])
            continue
        values = {
            "name": name,
            "user_friendly_name": line(row, "user_friendly_name", tally, 100),
            "is_deprecated": bool(row["deprecated"]),
        }
        same = Q(name=name) | Q(pk=row["id"])
        if (there := Platform.objects.filter(same).exclude(name=name, pk=row["id"]).first()) is not None:
            tally.leave("a platform with this name or number already exists here", f"{row['id']} {there}")
            continue
        is_new = context.writes and Platform.objects.get_or_create(pk=row["id"], defaults=values)[1]
        count(tally, is_new)


def take_apps(context: Context, tally: Tally) -> None:
    """An app that is here already stays as it is: operators may have changed it since."""
    project = folders.of(context).config
    validators = project.validators()
    for row in _rows(context, _APPS, tally):
        try:
            name = checked_name(line(row, "name", tally, 254), "app", _MAX_NAME)
        except BrokenRow as broken:
            tally.leave(broken.reason, row["id"])
            continue
        if row["locality_scheduling"]:
            tally.tell("locality scheduling: not supported here", name)
        weight = finite(row["weight"], 0, 1e6)
        if weight is None:
            tally.tell("an impossible weight, taken as 1", f"{name} {row['weight']}")
        said = validators.get(name)
        if said is None or not said.comparison:
            reason = "say in the admin how its outputs are compared: “identical bit by bit” stands for its own program"
            tally.tell(reason, f"{name}: {said.program if said else 'none named in config.xml'}")
        values: dict[str, Any] = {
            "name": name,
            "user_friendly_name": line(row, "user_friendly_name", tally, 100) or name,
            "is_deprecated": bool(row["deprecated"]),
            "weight": 1.0 if weight is None else weight,
            "is_non_cpu_intensive": bool(row["non_cpu_intensive"]),
            "adaptive_replication": row["target_nresults"] > 0,
            "homogeneous_redundancy": _REDUNDANCY.get(row["homogeneous_redundancy"], HomogeneousRedundancy.OFF),
            "homogeneous_app_version": bool(row["homogeneous_app_version"]),
            "n_size_classes": min(max(row["n_size_classes"], 1), MAX_SIZE_CLASSES),
            "is_beta": bool(row["beta"]),
            "one_result_per_user": project.is_one_per_user,
            "min_avg_pfc": finite(row["min_avg_pfc"], 1e-300, 1e29),
            "comparison": Comparison.BITWISE,
            "created_at": _time(row["create_time"], context) or context.now,
        }
        if said is not None and said.is_credit_given:
            values["credit_system"] = "given"
        if project.daily_quota:
            values["max_jobs_per_day_init"] = min(project.daily_quota, 100_000)
        if (there := App.objects.filter(name=name).exclude(pk=row["id"]).first()) is not None:
            tally.leave("an app with this name already exists here", f"{row['id']} {there}")
            continue
        is_new = context.writes and App.objects.get_or_create(pk=row["id"], defaults=values)[1]
        count(tally, is_new)


@dataclass(frozen=True, slots=True)
class VersionUse:
    """What a job of a version uses."""

    processor_type: ProcessorType
    ncpus: float


def plan_classes_of(context: Context) -> dict[str, PlanClassFacts]:
    """Of the versions, by name."""
    described = plan_classes.read(folders.of(context).text("plan_class_spec.xml") or "")
    names = {
        row["plan_class"].decode("ascii", "replace")
        for row in context.source.rows(Table("app_version", {"plan_class": b""}), 0, None)
    }
    return {name: described.get(name) or plan_classes.built_in(name) for name in sorted(names) if name}


def version_uses(context: Context) -> dict[int, VersionUse]:
    """By the numbers of versions."""
    classes = plan_classes_of(context)
    found = {}
    for row in context.source.rows(Table("app_version", {"plan_class": b""}), 0, None):
        plan = classes.get(row["plan_class"].decode("ascii", "replace"))
        found[row["id"]] = VersionUse(plan.processor_type, plan.avg_ncpus) if plan else VersionUse(ProcessorType.CPU, 1)
    return found


def take_plan_classes(context: Context, tally: Tally) -> None:
    for name, facts in plan_classes_of(context).items():
        tally.nread += 1
        try:
            checked_name(name, "plan class", _MAX_NAME)
        except BrokenRow as broken:
            tally.leave(broken.reason, name)
            continue
        for lost in facts.lost:
            tally.tell(f"{lost}: not supported here, so its versions are imported as withdrawn", name)
        slots = [slot for slot in PlanClassFacts.__slots__ if slot not in ("name", "lost")]
        values = {slot: getattr(facts, slot) for slot in slots}
        values["cpu_features"] = facts.cpu_features[:200]
        is_new = context.writes and PlanClass.objects.get_or_create(name=name, defaults=values)[1]
        count(tally, is_new)


def take_versions(context: Context, tally: Tally) -> None:
    classes = plan_classes_of(context)
    for row in _rows(context, _VERSIONS, tally):
        try:
            found = program(row["xml_doc"].decode("utf-8", "replace"))
        except BrokenRow as broken:
            tally.leave(broken.reason, row["id"])
            continue
        for unknown in found.unknown:
            tally.tell(f"{unknown}: not supported here", row["id"])
        if not context.writes:
            _check_files(context, row, found, tally)
            tally.ntaken += 1
            continue
        with transaction.atomic():
            _take_version(context, row, found, classes, tally)


def _check_files(context: Context, row: Row, found: Program, tally: Tally) -> None:
    for file in found.files:
        if folders.of(context).download(file.name) is None:
            tally.tell(_NO_FILE, f"{row['id']} {file.name}")


_NO_FILE: Final = "a program file is missing from download/: the version is imported as withdrawn"


def _take_version(
    context: Context, row: Row, found: Program, classes: Mapping[str, PlanClassFacts], tally: Tally
) -> None:
    name = row["plan_class"].decode("ascii", "replace")
    plan = classes.get(name) or PlanClassFacts("")
    of = ((App, "app"), (Platform, "platform"))
    if not all(
        model.objects.filter(pk=row[f"{what}id"], name=line(row, what, tally, 254)).exists() for model, what in of
    ):
        tally.leave("its app or platform is missing here", row["id"])
        return
    state = _statistics(row, context)
    values = {
        "app_id": row["appid"],
        "platform_id": row["platformid"],
        "version_num": min(max(row["version_num"], 0), 100_000_000),
        "min_client_version": max(row["min_core_version"], 0),
        "max_client_version": max(row["max_core_version"], 0),
        "plan_class": name[:_MAX_NAME],
        "processor_type": plan.processor_type,
        "avg_ncpus": plan.avg_ncpus,
        "gpu_usage": plan.gpu_usage,
        "min_gpu_ram_bytes": plan.min_gpu_ram_bytes,
        "api_version": found.api_version,
        "file_prefix": found.file_prefix,
        **dict.fromkeys(found.flags, True),
        "is_deprecated": bool(row["deprecated"]) or bool(plan.lost),
        "created_at": _time(row["create_time"], context) or context.now,
    }
    identity = {column: values[column] for column in ("app_id", "platform_id", "version_num", "plan_class")}
    if AppVersion.objects.filter(**identity).exclude(pk=row["id"]).exists():
        tally.leave("a version with this app, platform, number and plan class already exists here", row["id"])
        return
    version, is_new = AppVersion.objects.get_or_create(pk=row["id"], defaults={**values, **state})
    if is_new:
        files = [_take_file(context, file, row, tally) for file in found.files]
        if not all(files):
            version.is_deprecated = True
            version.save(update_fields=["is_deprecated"])
    is_changed = AppVersion.objects.filter(pk=version.pk).exclude(**state).update(**state) if not is_new else 1
    count(tally, bool(is_changed))


def _statistics(row: Row, context: Context) -> dict[str, Any]:
    """Averages that have no sample are none; those of NaN and the like neither."""
    n = int(finite(row["pfc_n"], 0, 2**62) or 0)
    average = finite(row["pfc_avg"], 0, 1e29)
    if not n or average is None:
        n, average = 0, None
    return {
        "pfc_n": n,
        "pfc_avg": average,
        "pfc_scale": finite(row["pfc_scale"], 1e-300, 1e29),
        "expavg_credit": finite(row["expavg_credit"], 0, 1e29) or 0.0,
        "expavg_at": _time(row["expavg_time"], context),
    }


def _take_file(context: Context, file: ProgramFile, row: Row, tally: Tally) -> bool:
    """Whether the version has its file now."""
    path = folders.of(context).download(file.name)
    if path is None:
        tally.tell(_NO_FILE, f"{row['id']} {file.name}")
        return False
    is_program = file.is_executable or file.is_main_program
    with path.open("rb") as content:
        if not _is_signed(content.read(), file.signature, folders.of(context).text("keys", "code_sign_public") or ""):
            tally.tell("a program file is not signed with keys/code_sign_public", f"{row['id']} {file.name}")
            return False
        try:
            stored = store_file(file.name, File(content), signature=file.signature, is_executable=is_program)
        except StoringError as error:
            tally.tell("a program file cannot be stored", f"{row['id']} {error}")
            return False
    VersionFile.objects.create(
        app_version_id=row["id"],
        file=stored,
        open_name=file.open_name[:200],
        is_main_program=file.is_main_program,
        is_copied=file.is_copied,
    )
    return True


def _is_signed(content: bytes, signature: str, key: str) -> bool:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    try:
        return signing.verify_md5(md5, signature, signing.parse_public_key(key))
    except signing.SigningError:
        return False


PROGRAMS: Final = (
    CallStep("platforms", take_platforms),
    CallStep("apps", take_apps),
    CallStep("plan classes", take_plan_classes),
    CallStep("versions", take_versions),
)
